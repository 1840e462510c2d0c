"""`silent.py FOLDER NAME=VALUE`: in a fresh network namespace, record a page whose server never answers, into FOLDER.

NAME=VALUE is set in the recorder's environment. The program prints the recorder's process id when a request has
arrived. It keeps the connection open until standard input ends, whether or not the recorder is still running.
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
        # Let the recorder be interrupted even if a script that runs these tests in the background ignores SIGINT.
        command = ["env", "--default-signal=INT", sys.executable, "-m", "eyelevel", "record", url, "--into", folder]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, name: value})
        ready, _, _ = select.select([server.fileno(), os.pidfd_open(recorder.pid)], [], [])
        if server.fileno() not in ready:
            sys.exit("the recorder ended before its request")
        connection, _ = server.accept()
        with connection:
            print(recorder.pid, flush=True)
            recorder.wait()
            sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
