"""Documents, docstrings and comments name only modules and files that exist."""

import re
import subprocess
from functools import cache
from pathlib import Path

from base.places import PROJECT

ROOMS = "analysis|base|browsers|dataset|eyelevel|films|measure|record|replay|servers|setup|shells|studies|tests|tuning"
PATH = re.compile(rf"`((?:{ROOMS})/[\w/.-]+)`")
MODULE = re.compile(rf"`((?:{ROOMS})(?:\.\w+)+)`")
# A file's name, not a module's: `servers.pcapng`, `replay.json`.
ENDINGS = ("json", "pcapng", "rs", "toml")
# Files that describe earlier states.
OLD = ("data/", "docs/decisions/", "docs/first-hour/")


@cache
def tracked() -> tuple[str, ...]:
    """The files of the project."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return tuple(subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.splitlines())


@cache
def places() -> frozenset[str]:
    """The files of the project, and their folders."""
    return frozenset(str(place) for file in tracked() for place in (Path(file), *Path(file).parents))


def is_there(name: str) -> bool:
    """Whether the dotted `name` is a module, or a module followed by a word in its text."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        module = "/".join(words[:length])
        for file in (f"{module}.py", f"{module}/__init__.py"):
            if file in places():
                text = (PROJECT / file).read_text()
                return all(re.search(rf"\b{word}\b", text) for word in words[length : length + 1])
    return False


def test_every_file_and_module_that_is_named_is_there() -> None:
    missing = []
    for file in tracked():
        if file.startswith(OLD) or not file.endswith((".md", ".py", ".toml")) or not (PROJECT / file).is_file():
            continue
        text = (PROJECT / file).read_text()
        # The README of a crate names the crate's own files.
        paths = {
            name
            for name in PATH.findall(text)
            if {name.rstrip("/"), f"{Path(file).parent}/{name}"}.isdisjoint(places())
        }
        modules = {name for name in MODULE.findall(text) if not name.endswith(ENDINGS) and not is_there(name)}
        missing += [f"{file}: {name}" for name in sorted(paths | modules)]
    assert missing == []
