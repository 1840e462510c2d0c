"""The innermost process of a replay: prepares the client's namespace, then becomes the command, or runs it if it is a
Python module.

Only `replay.inside` starts it, as the command of the innermost shell.
"""

import json
import os
import runpy
import socket
import sys

from base.errors import reports_errors
from base.places import ca_certificate
from base.portable import from_argument
from replay import names, world
from replay.shells.registry import shells_named
from replay.spec import CONTROL, ReplaySpec
from tuning import kernel

# A shell's exit status if the command does not exist (POSIX, 2.8.2).
COMMAND_NOT_FOUND = 127


@reports_errors
def main(spec: ReplaySpec, command: list[str]) -> None:
    """Set up names and the kernel, report to process 1, wait for its go-ahead, and become `command`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(str(CONTROL))
        # The name server starts while the servers do.
        world.open_ports()
        await_names = names.start_name_server(shells_named(spec.shells).name_server_port)
        with control.makefile("r") as lines:
            lines.readline()
        tuned = {
            "sysctls": kernel.apply_sysctls(spec.protocol.client_kernel),
            "routes": kernel.tune_client_routes(world.outward_device(), spec.protocol),
        }
        await_names()
        control.sendall(json.dumps(tuned).encode() + b"\n")
    os.environ.update(world.client_environment(ca_certificate()))
    if command[:2] == [sys.executable, "-m"]:
        # Another Python would need a tenth of a second of processor time to start and load the same modules again.
        sys.argv = command[2:]
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
        sys.exit()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"eyelevel: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(COMMAND_NOT_FOUND)


if __name__ == "__main__":
    main(from_argument(sys.argv[1]), sys.argv[2:])
