"""`outsider.py FOLDER`: which parts of a running recording exist, and which of them others on the machine can reach.

Run it in fresh network and process namespaces, which are the machine. Its only server never answers, so the recorder,
which writes into FOLDER, waits with all its programs running. It prints JSON of the form of `Findings`.
"""

import json
import os
import re
import select
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from base.places import tool

OTHER_USER = 12345
LISTENING = "0A"  # the state in /proc/net/tcp
PROGRAMS = ("mitmdump", "chromedriver", "chromium", "Xvfb")


@dataclass
class Findings:
    """The processes and listeners that were found.

    `programs`: each program's processes, each with the fields of /proc/PID/status, `network` and `users` (identical for
    processes that share these namespaces), and `command`. `machine`: the machine's network. `listening`: the ports and
    abstract sockets that listen in the machine's network or in the recording's networks. `reached_inside`: those in the
    recording's networks that accept connections from there. `reached_outside`: those that accept connections from
    another user on the machine.
    """

    programs: dict[str, list[dict[str, str]]]
    machine: str
    listening: list[str] = field(default_factory=list)
    reached_inside: list[str] = field(default_factory=list)
    reached_outside: list[str] = field(default_factory=list)


def status_of(folder: Path) -> dict[str, str]:
    lines = (folder / "status").read_text().splitlines()
    values = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    namespaces = {"network": str((folder / "ns" / "net").readlink()), "users": str((folder / "ns" / "user").readlink())}
    return values | namespaces | {"command": command}


def processes() -> dict[str, list[dict[str, str]]]:
    """The recording's processes, by program; processes that only start others are not counted."""
    all_of: dict[str, list[dict[str, str]]] = {name: [] for name in PROGRAMS}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            status = status_of(folder)
            # The command line of the jailer contains the command after "--".
            starts = "jailer" in status["command"] or status["command"].startswith(("sh ", "/bin/sh "))
            program = next((p for p in PROGRAMS if p in status["command"].split(" --script")[0]), None)
            if program and not starts:
                all_of[program].append(status)
    return all_of


def listening_in(process: str) -> set[str]:
    """The listeners in the network of a process: TCP ports, and the names of abstract sockets."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            if state == LISTENING:
                sockets.add(str(int(address.rpartition(":")[2], 16)))
    for line in Path(f"/proc/{process}/net/unix").read_text().splitlines()[1:]:
        if match := re.search(r"00010000 0001 01 +\d+ (@.+)$", line):
            sockets.add(match[1])
    return sockets


def reached(names: list[str]) -> list[str]:
    """The ports and abstract sockets among `names` to which this process can connect."""
    connected = []
    for name in names:
        targets: list[tuple[socket.AddressFamily, Any]] = [(socket.AF_UNIX, f"\0{name[1:]}")]
        if not name.startswith("@"):
            targets = [(socket.AF_INET, ("127.0.0.1", int(name))), (socket.AF_INET6, ("::1", int(name)))]
        for family, address in targets:
            with suppress(OSError), socket.socket(family) as client:
                client.connect(address)
                connected.append(name)
    return connected


def reached_inside(names: list[str], process: str) -> list[str]:
    """The `names` to which processes in the same network as `process` can connect."""
    command: list[str | Path] = [tool("nsenter"), f"--net=/proc/{process}/ns/net"]
    command += [sys.executable, __file__, "--reach", json.dumps(names)]
    answer: list[str] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return answer


def reached_by_another(names: list[str]) -> list[str]:
    """The `names` to which another user in this network can connect."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        with suppress(OSError):  # without another user: nobody can reach what we cannot
            os.setgroups([])
            os.setresgid(OTHER_USER, OTHER_USER, OTHER_USER)
            os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
        os.write(writer, json.dumps(reached(names)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        names = json.load(answer)
    os.waitpid(child, 0)
    return names


def findings() -> Findings:
    result = Findings(processes(), str(Path("/proc/self/ns/net").readlink()))
    # One process of each network, ours included.
    networks = {status["network"]: status["Pid"] for group in result.programs.values() for status in group}
    for network, process in {**networks, result.machine: "self"}.items():
        names = sorted(listening_in(process))
        result.listening += names
        if network != result.machine:
            result.reached_inside += reached_inside(names, process)
    result.reached_outside = reached_by_another(result.listening)
    return result


def main(folder: str) -> None:
    subprocess.run([tool("ip"), "link", "set", "lo", "up"], check=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        command = [sys.executable, "-m", "eyelevel", "record", url, "--into", folder]
        with subprocess.Popen(command, stdout=sys.stderr) as recorder:
            ready, _, _ = select.select([server.fileno(), os.pidfd_open(recorder.pid)], [], [])
            if server.fileno() not in ready:
                sys.exit("the recorder ended before its request")
            connection, _ = server.accept()
            with connection:
                print(json.dumps(asdict(findings())))
                recorder.terminate()


if __name__ == "__main__":
    if sys.argv[1] == "--reach":
        print(json.dumps(reached(json.loads(sys.argv[2]))))
    else:
        main(sys.argv[1])
