"""Builds of browsers that users name by path: `mine=chromium:/path/to/chrome:/path/to/chromedriver`.

The environment variable EYELEVEL_BROWSERS has those of this process and of all processes that it starts, separated by
blanks; so a load in a replay knows its browser by the name alone. Nothing here runs a browser, except for its version.
"""

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from base.errors import EyelevelError, Misuse
from base.places import tool
from base.programs import printed_version
from browsers.contract import Browser, Build
from tuning.devices import IN_BROWSER, ON

VARIABLE = "EYELEVEL_BROWSERS"
FORM = re.compile(r"(?:(?P<name>[^=:]*)=)?(?P<kind>[^=:]*):(?P<program>[^:]+)(?::(?P<driver>[^:]+))?")
# Names stand in tables, and are a part of names of folders.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
# Digits of the digest of a build's path in its name, unless the user names it.
NAME_DIGITS = 6


def is_build(text: str) -> bool:
    """Whether `text` names a build, rather than a browser that is known by its name."""
    return bool({*text} & {*":=/"})


def build_of(text: str, kinds: Mapping[str, Browser]) -> Build:
    """The build that `text` names, with the name and the driver that it may omit; `kinds`: the browsers by name.

    The driver is by default that beside the program, else the one that the set-up installed. Raises Misuse when `text`
    names no build of these kinds, and EyelevelError when the build cannot be used.
    """
    form = FORM.fullmatch(text)
    if not form or not (kind := kinds.get(form["kind"])) or not kind.version_line:
        known = " or ".join(name for name, one in kinds.items() if one.version_line)
        raise Misuse(f"{text!r} names no browser: write KIND:/path/to/program, where KIND is {known}")
    program = Path(form["program"]).expanduser().absolute()
    name = form["name"]
    if name is None:
        name = f"{kind.name}-{sha256(os.fsencode(program)).hexdigest()[:NAME_DIGITS]}"
    if not NAME.fullmatch(name) or ON in name or IN_BROWSER in name or name in (*kinds, "all"):
        raise Misuse(f"a browser of your own cannot be called {name!r}: choose another name of letters and digits")
    if not program.is_file():
        raise EyelevelError(f"{text}: there is no file {program}; give the path of the browser's program")
    _require_separate(program, text)
    version = _version(program, kind.version_line, f"{text}: {program} is no {kind.name}", "give another path")
    beside = program.resolve().parent / kind.driver
    if form["driver"]:
        driver = Path(form["driver"]).expanduser().absolute()
    else:
        driver = beside if beside.is_file() else _installed(kind.driver, text, beside.parent)
    of_driver = _version(driver, kind.driver_line, f"{text}: {driver} is no {kind.driver}", "give another path")
    if kind.driver_has_its_version and of_driver != version:
        raise EyelevelError(
            f"{text}: {program} has version {version}, and its driver {driver} version {of_driver}; put the "
            f"{kind.driver} of version {version} beside it, or give it: {kind.name}:{program}:/path/to/{kind.driver}"
        )
    return Build(name, kind.name, program, driver)


def _require_separate(program: Path, text: str) -> None:
    """Raises EyelevelError when the folder of `program` has more in it than a build: pages that strangers made could
    read it (`base.jail`)."""
    folder, home = program.resolve().parent, Path.home()
    if folder in (Path("/"), Path("/tmp"), home, *home.parents):
        raise EyelevelError(
            f"{text}: the browser can read the whole folder of its program, and {folder} has more in it; put the "
            "program into a folder of its own"
        )


def _installed(driver: str, text: str, folder: Path) -> Path:
    try:
        return tool(driver)
    except EyelevelError:
        raise EyelevelError(
            f"{text}: there is no {driver} in {folder}; put it there, or give it: {text}:/path/to/{driver}"
        ) from None


def _version(program: Path, line: str, fault: str, remedy: str) -> str:
    """The major version of `program`, the group of the pattern `line` in what it prints. Raises EyelevelError."""
    if not os.access(program, os.X_OK):
        why = "it is not executable" if program.exists() else "there is no such file"
        raise EyelevelError(f"{fault}: {why}; {remedy}")
    printed = printed_version(program, "--version")
    if not (match := re.match(line, printed)):
        printed = f"prints {printed!r}" if printed else "fails"
        raise EyelevelError(f"{fault}: '{program} --version' {printed}; {remedy}")
    return match[1]
