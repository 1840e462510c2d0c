"""Builds of browsers that users name by path: `mine=chromium:/path/to/chrome:/path/to/chromedriver`.

The environment variable EYELEVEL_BROWSERS has those of this process and of all processes that it starts, separated by
blanks; so a load in a replay knows its browser by the name alone.
Only `require_usable` runs a browser, for its version.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from base.errors import EyelevelError, Misuse
from base.jail import shared_folders
from base.places import tool
from base.programs import printed_version
from browsers.contract import Browser, Build
from tuning.devices import IN_BROWSER, ON

VARIABLE = "EYELEVEL_BROWSERS"
FORM = re.compile(r"(?:(?P<name>[^=:]*)=)?(?P<kind>[^=:]*):(?P<program>[^:,\s]+)(?::(?P<driver>[^:,\s]+))?")
# Names stand in tables, and are a part of names of folders.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
# Digits of the digest of a build's path in its name, unless the user names it.
NAME_DIGITS = 6


def is_build(text: str) -> bool:
    """Whether `text` names a build, rather than a browser that is known by its name."""
    return bool({*text} & {*":=/"})


def build_of(text: str, kinds: Mapping[str, Browser]) -> Build:
    """The build that `text` names, with the name and the driver that it may omit; `kinds`: the browsers by name.

    The driver is by default that beside the program, else the one that the set-up installed. Runs nothing: each process
    of a load calls it. Raises Misuse when `text` names no build of these kinds.
    """
    form = FORM.fullmatch(text)
    if not form or not (kind := kinds.get(form["kind"])) or not kind.version_line:
        known = " or ".join(name for name, one in kinds.items() if one.version_line)
        raise Misuse(f"{text!r} names no browser: write KIND:/path/to/program, where KIND is {known}")
    program = Path(form["program"]).expanduser().absolute()
    name = form["name"]
    if name is None:
        name = f"{kind.name}-{sha256(os.fsencode(program)).hexdigest()[:NAME_DIGITS]}"
    # The programs of all browsers have their versions under their names.
    taken = {*kinds, *(installed for one in kinds.values() for installed in one.programs), "all"}
    if not NAME.fullmatch(name) or ON in name or IN_BROWSER in name or name in taken:
        raise Misuse(f"a browser of your own cannot be called {name!r}: choose another name of letters and digits")
    given = form["driver"]
    driver = Path(given).expanduser().absolute() if given else _driver(program, kind.driver)
    build = Build(name, kind.name, program, driver)
    # The folder from which `text` counts may have such signs, too.
    if not FORM.fullmatch(str(build)):
        raise Misuse(f"{build}: paths of a browser cannot have blanks, commas or colons; give others, such as links")
    return build


def require_usable(build: Build, text: str, kind: Browser) -> None:
    """Raises EyelevelError when the `build` of `kind` that `text` names cannot be used. Runs its programs, for their
    versions."""
    program, driver = build.program, build.driver
    if not program.is_file():
        raise EyelevelError(f"{text}: there is no file {program}; give the path of the browser's program")
    if build.folder in shared_folders():
        raise EyelevelError(
            f"{text}: the browser can read the whole folder of its program, and {build.folder} has more in it; put the "
            "program into a folder of its own"
        )
    version = _version(program, kind.version_line, f"{text}: {program} is not {kind.name}", "give another path")
    if not driver.is_file():
        raise EyelevelError(
            f"{text}: there is no file {driver}; put the {kind.driver} beside {program}, or give it: "
            f"{kind.name}:{program}:/path/to/{kind.driver}"
        )
    of_driver = _version(driver, kind.driver_line, f"{text}: {driver} is not {kind.driver}", "give another path")
    if kind.driver_has_its_version and of_driver != version:
        raise EyelevelError(
            f"{text}: {program} has version {version}, and its driver {driver} version {of_driver}; put the "
            f"{kind.driver} of version {version} beside it, or give it: {kind.name}:{program}:/path/to/{kind.driver}"
        )


def _driver(program: Path, name: str) -> Path:
    """The driver called `name` of `program`: that beside it, unless only the set-up has installed one."""
    beside = program.resolve().parent / name
    if not beside.is_file():
        with suppress(EyelevelError):
            return tool(name)
    return beside


def _version(program: Path, line: str, fault: str, remedy: str) -> str:
    """The major version of `program`, the group of the pattern `line` in what it prints. Raises EyelevelError."""
    if not os.access(program, os.X_OK):
        raise EyelevelError(f"{fault}: it is not executable; {remedy}")
    printed = printed_version(program, "--version")
    if not (match := re.match(line, printed)):
        printed = f"prints {printed!r}" if printed else "fails"
        raise EyelevelError(f"{fault}: '{program} --version' {printed}; {remedy}")
    return match[1]
