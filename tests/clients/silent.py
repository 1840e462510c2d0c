"""`silent.py FOLDER NAME=VALUE`: in a fresh network namespace, record a page whose server never answers, into FOLDER.

NAME=VALUE goes to the recorder's environment. Prints the recorder's process id when the server has been asked, and
keeps the question open until standard input ends, whether the recorder still lives or not.
"""

import os
import select
import socket
import subprocess
import sys


def main(folder: str, mark: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    name, _, value = mark.partition("=")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        command = [sys.executable, "-m", "eyelevel", "record", url, "--into", folder]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, name: value})
        asked, _, _ = select.select([server.fileno(), os.pidfd_open(recorder.pid)], [], [])
        if server.fileno() not in asked:
            sys.exit("the recorder ended before it asked")
        connection, _ = server.accept()
        with connection:
            print(recorder.pid, flush=True)
            recorder.wait()
            sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
