"""Makes untrusted text safe for a line of a file or of a terminal."""


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
