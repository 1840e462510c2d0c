"""Makes untrusted text safe for a line of a file or of a terminal, and says what a mistyped name may have meant."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

# An error lists at most this many names.
MOST_LISTED = 8
# The commands that list names, by what has these names.
LISTING = {
    "network": "'eyelevel networks' lists all",
    "protocol": "'eyelevel protocols' lists all",
    "site": "'eyelevel site-info' lists the recorded sites",
}


def printable(text: str) -> str:
    """`text` on one line, with escapes for unprintable characters: control characters, lone surrogates, line ends."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def printable_lines(text: str) -> str:
    """`text` with the same escapes, except that its line ends stay."""
    return "\n".join(map(printable, text.split("\n")))


def excerpt(text: str) -> str:
    """The beginning of `text`, safe to print on one line."""
    return ascii(text[:80])[1:-1]


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """The error that none of the `known` names of `what` is `name`: the name that was probably meant, and either all
    names or, if they are many, the command that lists them."""
    near = nearest(name, known)
    hints = [f"did you mean {near}?"] if near else []
    if len(known) > MOST_LISTED and what in LISTING:
        hints.append(LISTING[what])
    else:
        hints.append(f"there {'is' if len(known) == 1 else 'are'} {', '.join(known) or 'none'}")
    return f"unknown {what} {name!r}: {' '.join(hints)}"


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The one of the `known` names that most resembles `name`, in case it was mistyped; None if none does. `likeness`:
    the least resemblance (difflib), from 0 to 1."""
    by_letters = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), by_letters, n=1, cutoff=likeness)
    return by_letters[near[0]] if near else None
