"""The versions of the programs, and the machine, with which a campaign was measured."""

import os
import platform
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from base.errors import EyelevelError
from base.places import PROJECT, tool
from base.programs import digest_of_program, output_of, printed_version
from browsers.registry import browser_named
from measure.host.timekeeping import timekeeping
from measure.host.wakefulness import idle_processors
from replay.shells.registry import shells_named
from servers.registry import all_servers
from tuning.defaults import DEFAULT_BROWSER, DEFAULT_SHELLS

# The option by which each program prints its version; servers, browsers and shells define their own.
COMMON = {"node": "--version", "ffmpeg": "-version", "film-recorder": "--version", "dnsmasq": "--version"}
CAPTURING = {"dumpcap": "--version", "tshark": "--version", "ping": "-V"}
# `git archive` (.gitattributes) and the Containerfile write the commit to this file. VERSION matches a commit, but not
# the placeholder that `git archive` replaces.
COMMIT = "setup/commit"
VERSION = re.compile(r"[\w.+-]{4,100}")


def versions(
    servers: Iterable[str],
    browsers: Iterable[str] = (DEFAULT_BROWSER,),
    shells: str = DEFAULT_SHELLS,
    *,
    capturing: bool = False,
    further: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Name → version of everything that takes part in runs with these servers, browsers and shells, captured or not,
    and of `further` programs (name or path → the option that prints the version). Two more entries are not programs:
    how the emulated network keeps time (`timekeeping`), and whether idle processors are kept awake (`idle_processors`).

    Raises EyelevelError.
    """
    emulating = shells_named(shells)
    options = {**COMMON, **emulating.programs, **(CAPTURING if capturing else {}), **further}
    for server in servers:
        options |= all_servers()[server].programs
    known = {name: version_of(name, option) for name, option in options.items()}
    for browser in dict.fromkeys(map(browser_named, browsers)):
        if browser.build and browser.name in known:
            raise EyelevelError(f"{browser.build}: there is a program {browser.name}; choose another name")
        for (name, path), option in zip(browser.files().items(), browser.programs.values(), strict=True):
            known[name] = _printed_version(path, option)
    known["browsertime"] = browsertime()
    known["python"] = platform.python_version()
    known["kernel"] = platform.release()
    known["timekeeping"] = emulating.timekeeping or timekeeping()
    known["idle_processors"] = idle_processors()
    return dict(sorted(known.items()))


def machine() -> dict[str, str | int]:
    """The machine, and the commit of the testbed, as far as known."""
    return {
        "host": platform.node(),
        "cpu": _first_match("/proc/cpuinfo", r"^model name\s*:\s*(.+)$") or platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_kib": int(_first_match("/proc/meminfo", r"^MemTotal:\s*(\d+) kB") or 0),
        "system": _first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)') or platform.system(),
        "testbed": commit_of_testbed(),
    }


def commit_of_testbed(project: Path = PROJECT) -> str:
    """The commit of the testbed in the folder `project`, with `-dirty` if files have changed since; otherwise
    "unknown".

    In a checkout, Git knows the commit. In an archive made by Git, or in an image, a file contains it; later changes
    are not detected there.
    """
    # Without this check, Git would also describe a repository that an unpacked archive happens to be in.
    if (project / ".git").exists() and (
        description := output_of(["git", "-C", str(project), "describe", "--always", "--dirty"])
    ):
        return description
    with suppress(OSError):
        if VERSION.fullmatch(text := (project / COMMIT).read_text(errors="replace").strip()):
            return text
    return "unknown"


def version_of(name: str, option: str) -> str:
    """The version of the program `name`, which prints it with `option`; of a file that is not the testbed's, which
    `name` is the path of, its digest, after the version that it prints if there is an `option`. Raises
    EyelevelError."""
    if not Path(name).is_absolute():
        return _printed_version(tool(name), option)
    printed = f"{_printed_version(Path(name), option, 'correct or remove program_version')}, " if option else ""
    return f"{printed}SHA-256 {digest_of_program(Path(name))}"


def digests(browsers: Iterable[str]) -> dict[str, str]:
    """Name → SHA-256 of each program of these browsers (`base.programs`), as further entries of `versions`: programs
    may differ although they print one version. Raises EyelevelError."""
    known = {}
    for browser in map(browser_named, browsers):
        program, *others = browser.measured_files().items()
        known[f"{program[0]} sha256"] = digest_of_program(program[1], with_files=True)
        known |= {f"{name} sha256": digest_of_program(path) for name, path in others}
    return known


def _printed_version(program: Path, option: str, remedy: str = "run 'make setup' again, unless it is yours") -> str:
    if not (text := printed_version(program, option)):
        raise EyelevelError(f"{program} {option} prints no version; {remedy}")
    return text


def browsertime() -> str:
    """The version of Browsertime. Raises EyelevelError when it is not installed."""
    package = tool("browsertime-bundle").resolve().parents[1] / "package.json"
    return _first_match(str(package), r'^\s*"version":\s*"([^"]+)"') or "unknown"


def _first_match(path: str, pattern: str) -> str | None:
    try:
        match = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return None
    return match[1].strip() if match else None
