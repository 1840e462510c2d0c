"""`flood.py FOLDER COMMAND…`: serve a page that requests more than a recording may contain, and report the resources
that COMMAND uses.

Run it in fresh network, mount and process namespaces. COMMAND records http://flood.example:8001/. `flood.py` prints
JSON: the command's `status`, and the peak sizes in bytes of the proxy's process (`proxy`) and of the recording's files
(`files`).
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from base.places import tool

PORT = 8001
BODIES, BODY_BYTES = 6, 200 << 20
PAGE = f"""<!doctype html><title>Flood</title><img src=/until-done><script>
async function read(url) {{
    const reader = (await fetch(url)).body.getReader();
    while (!(await reader.read()).done);
}}
(async () => {{
    for (let number = 0; number < {BODIES}; number++) await read("/body?" + number);
    await fetch("/done");
}})();
</script>"""
STEP_S = 0.2

DONE = threading.Event()


def answer(connection: socket.socket) -> None:
    """Answer one request."""
    with connection, suppress(OSError):
        path = connection.recv(65536).decode("latin-1").split(" ")[1]
        if path == "/done":
            DONE.set()
        if path == "/until-done":  # the page has not finished loading
            DONE.wait()
        length = BODY_BYTES if path.startswith("/body") else len(PAGE)
        kind = "application/octet-stream" if path.startswith("/body") else "text/html"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        if length == len(PAGE):
            connection.sendall(PAGE.encode())
            return
        part = bytes(1 << 20)
        for _ in range(length // len(part)):
            connection.sendall(part)


def accept(server: socket.socket) -> None:
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def resident_bytes(folder: Path) -> int:
    return int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(folder: Path, command: list[str]) -> None:
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost flood.example\n")
    subprocess.run([tool("mount"), "--bind", hosts, "/etc/hosts"], check=True)
    subprocess.run([tool("ip"), "link", "set", "lo", "up"], check=True)
    server = socket.create_server(("127.0.0.1", PORT))
    threading.Thread(target=accept, args=(server,), daemon=True).start()
    most = {"proxy": 0, "files": 0}
    with subprocess.Popen(command, stdout=sys.stderr) as recorder:
        while recorder.poll() is None:
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # the process has ended
                    words = (process / "cmdline").read_bytes().split(b"\0")
                    if b"record.recorder.mitmdump" in words:
                        most["proxy"] = max(most["proxy"], resident_bytes(process))
                    if b"record.recorder.inside" in words:
                        files = os.statvfs(process / "root" / "dev" / "shm" / "exchanges")
                        most["files"] = max(most["files"], (files.f_blocks - files.f_bfree) * files.f_frsize)
            time.sleep(STEP_S)
    print(json.dumps({"status": recorder.returncode, **most}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
