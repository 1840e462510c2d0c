"""Pages to record, as given on the command line: by URL, or by a file that lists some."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from base.errors import EyelevelError
from record.names import require_new_name


@dataclass(frozen=True)
class Target:
    """A page to record, and the name of its site."""

    name: str
    url: str


def read_targets(sources: Iterable[str]) -> list[Target]:
    """The targets of `sources`, each a URL or a file that lists some. Raises EyelevelError."""
    targets = [target for source in sources for target in _of_source(source)]
    names = [target.name for target in targets]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise EyelevelError(f"two of the sites have the name {duplicate}; list them in a file as: NAME URL")
    return targets


def _of_source(source: str) -> Iterator[Target]:
    """The targets in one source. A line of a file is `name url` or a URL; `#` at its beginning or after a space begins
    a comment."""
    if "://" in source:
        yield _target(source, source)
        return
    try:
        lines = Path(source).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EyelevelError(f"{source} is neither a URL (https://…) nor a file that can be read ({error})") from None
    for number, line in enumerate(lines, 1):
        if text := re.sub(r"(^|\s)#.*", "", line).strip():
            yield _target(text, f"{source}, line {number}")


def _target(text: str, where: str) -> Target:
    *names, url = text.split()
    parts = urlsplit(url)
    if len(names) > 1 or parts.scheme not in ("http", "https") or not parts.hostname:
        raise EyelevelError(f"{where}: {text!r} is neither a URL nor a name and a URL, as in: gnu https://www.gnu.org/")
    name = names[0] if names else parts.hostname.removeprefix("www.")
    return Target(require_new_name(name, where), url)
