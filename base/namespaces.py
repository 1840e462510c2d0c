"""Namespaces that end with the process in them, and what is set up in them."""

from pathlib import Path

from base.places import tool
from base.processes import interruptible, run_program

# Where X servers have their sockets.
X_SOCKETS = Path("/tmp/.X11-unix")


def namespaced(*kinds: str) -> list[str | Path]:
    """The beginning of a command line that runs in fresh namespaces of these `kinds` (unshare(1)) and of processes.

    What it starts is process 1 there: when it ends, so does all that it started. It ends with its caller, and can be
    interrupted, though the caller may ignore that.
    """
    command: list[str | Path] = [tool("setpriv"), "--pdeathsig", "KILL", tool("unshare"), "--pid"]
    return interruptible([*command, *(f"--{kind}" for kind in kinds), "--fork", "--kill-child", "--mount-proc"])


def mount(*arguments: str | Path) -> None:
    """Run mount(8). Raises EyelevelError."""
    words = " ".join(str(argument) for argument in arguments)
    run_program([tool("mount"), *arguments], f"mount {words} failed")


def hide_x_sockets(private: Path) -> None:
    """Put the folder `private` in place of the one for X servers' sockets.

    Other X servers on this machine, of other replays or of the user, have sockets of the same names.
    Raises EyelevelError.
    """
    if not X_SOCKETS.exists():
        X_SOCKETS.mkdir()
        X_SOCKETS.chmod(0o1777)  # for the X servers of any user, whatever our umask
    private.chmod(0o1777)
    mount("--bind", private, X_SOCKETS)
