"""`silent.py FOLDER`: in a fresh network namespace, record a page whose server never answers, into FOLDER.

Prints the recorder's process id when the server has been asked; ends when the recorder has.
"""

import socket
import subprocess
import sys


def main(folder: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        command = [sys.executable, "-m", "record", "record", url, "--into", folder]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        connection, _ = server.accept()
        with connection:
            print(recorder.pid, flush=True)
            recorder.wait()


if __name__ == "__main__":
    main(sys.argv[1])
