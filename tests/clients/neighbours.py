"""`neighbours.py FOLDER COMMAND…`: run COMMAND on a machine that has a web before it, and neighbours beside it.

To be run in fresh network, mount and process namespaces, which are the machine. The web is in another network behind a
pair of devices. In it evil.example is the one public server: its page tries to reach all others. What comes to these is
written to FOLDER/arrivals, a line each: to which address, and what. The exit status is that of COMMAND.
"""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from base.places import tool

EVIL, MACHINE = "11.22.33.1", "11.22.33.2"
LAN, METADATA, UNIQUE_LOCAL = "10.9.9.9", "169.254.169.254", "fd00:9::9"
PORT = 8001

WEB_ADDRESSES = (f"{EVIL}/24", f"{LAN}/24", f"{METADATA}/16", f"{UNIQUE_LOCAL}/64")
MACHINE_ADDRESSES = (f"{MACHINE}/24", "10.9.9.2/24", "169.254.1.1/16", "fd00:9::2/64")
HOSTS = {
    "evil.example": EVIL,
    "machine.example": "127.0.0.1",
    "machine6.example": "::1",
    "mapped.example": "::ffff:127.0.0.1",
    "lan.example": LAN,
}

# Each leads to a neighbour, or to a server of the machine itself.
ATTEMPTS = (
    f"http://127.0.0.1:{PORT}/",
    f"http://127.8.9.10:{PORT}/",
    f"http://2130706433:{PORT}/",
    f"http://localhost:{PORT}/",
    f"http://[::1]:{PORT}/",
    f"http://[::ffff:127.0.0.1]:{PORT}/",
    f"http://machine.example:{PORT}/",
    f"http://machine6.example:{PORT}/",
    f"http://mapped.example:{PORT}/",
    f"http://{MACHINE}:{PORT}/",
    f"http://{LAN}/",
    "http://lan.example/",
    f"http://{METADATA}/latest/meta-data/",
    f"http://[{UNIQUE_LOCAL}]/",
    "http://evil.example/redirect",
)
PAGE = f"""<!doctype html><title>Evil</title><img src=http://lan.example/image><script>
const attempts = {list(ATTEMPTS)!r}.map(url => fetch(url, {{mode: "no-cors"}}));
attempts.push(fetch("http://lan.example/post", {{method: "POST", mode: "no-cors", body: "x"}}));
attempts.push(new Promise(resolve => new WebSocket("ws://lan.example/socket").onerror = resolve));
Promise.allSettled(attempts).then(() => fetch("/done"));
</script>
"""


def answer_of(address: str, path: str) -> bytes:
    """The response of the server at `address` to a GET of `path`."""
    if address != EVIL:
        head, body = "200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: text/plain", "a neighbour's secret"
    elif path == "/redirect":
        head, body = f"302 Found\r\nLocation: http://127.0.0.1:{PORT}/redirected", ""
    else:
        head, body = "200 OK\r\nContent-Type: text/html", PAGE if path == "/" else "x"
    return f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


def serve(arrivals: Path, host: str, port: int) -> None:
    """Answer on `port` of `host` in threads, for as long as this process lives."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, port), family=family, dualstack_ipv6=host == "::")

    def answer(connection: socket.socket) -> None:
        with connection:
            address = connection.getsockname()[0].removeprefix("::ffff:")
            request = connection.recv(65536).decode("latin-1")
            if address != EVIL:
                with arrivals.open("a") as file:
                    file.write(f"{address} {request.partition(chr(13))[0]}\n")
            connection.sendall(answer_of(address, request.split(" ")[1] if " " in request else "/"))

    def accept() -> None:
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def set_up(device: str, addresses: tuple[str, ...]) -> None:
    lines = ["link set lo up", f"link set {device} up"]
    lines += [f"address add {address} dev {device} {'nodad' if ':' in address else ''}" for address in addresses]
    subprocess.run([tool("ip"), "-batch", "-"], input="\n".join(lines), text=True, check=True)


def be_the_web(arrivals: Path) -> None:
    """What runs in the web's network: its servers, until standard input ends."""
    print("there", flush=True)
    sys.stdin.readline()
    set_up("there", WEB_ADDRESSES)
    for address in (EVIL, LAN, METADATA, UNIQUE_LOCAL):
        serve(arrivals, address, 80)
    print("up", flush=True)
    sys.stdin.read()


def main(folder: Path, command: list[str]) -> int:
    arrivals = folder / "arrivals"
    arrivals.touch()
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in HOSTS.items()))
    subprocess.run([tool("mount"), "--bind", hosts, "/etc/hosts"], check=True)
    web: list[str | Path] = [tool("unshare"), "--net", sys.executable, __file__, "--web", str(arrivals)]
    with subprocess.Popen(web, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        pair = f"link add name here type veth peer name there netns {process.pid}"
        subprocess.run([tool("ip"), *pair.split()], check=True)
        set_up("here", MACHINE_ADDRESSES)
        print(file=process.stdin, flush=True)
        process.stdout.readline()
        serve(arrivals, "::", PORT)
        status = subprocess.run(command, check=False).returncode
        process.stdin.close()
    return status


if __name__ == "__main__":
    os.umask(0o022)
    if sys.argv[1] == "--web":
        be_the_web(Path(sys.argv[2]))
    else:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
