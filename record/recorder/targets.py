"""What to record, as it is named on the command line: a URL, or a file that lists some."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from eyelevel.errors import EyelevelError


@dataclass(frozen=True)
class Target:
    """A page to record, and the name of the site that is made of it."""

    name: str
    url: str


def read_targets(source: str) -> list[Target]:
    """The targets that `source` means: itself when it is a URL, else those of the file. Raises EyelevelError.

    A line of a file is `name url` or a URL; what follows a `#` at the beginning or after a space is a comment.
    """
    if "://" in source:
        return [_target(source, source)]
    try:
        lines = Path(source).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EyelevelError(f"{source} is neither a URL (https://…) nor a file that can be read ({error})") from None
    targets = []
    for number, line in enumerate(lines, 1):
        if text := re.sub(r"(^|\s)#.*", "", line).strip():
            targets.append(_target(text, f"{source}, line {number}"))
    names = [target.name for target in targets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise EyelevelError(f"{source} has two sites of the name {twice}; give one of them another, as in: NAME URL")
    return targets


def _target(text: str, where: str) -> Target:
    *names, url = text.split()
    parts = urlsplit(url)
    if len(names) > 1 or parts.scheme not in ("http", "https") or not parts.hostname:
        raise EyelevelError(f"{where}: {text!r} is neither a URL nor a name and a URL, as in: gnu https://www.gnu.org/")
    name = names[0] if names else parts.hostname.removeprefix("www.")
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise EyelevelError(f"{where}: {name!r} is no name for a folder; use letters, digits, dots and hyphens")
    return Target(name, url)
