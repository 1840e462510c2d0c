"""The scripts of a page's text for which this machine has no fonts.

Chromium draws the same box for each such letter, at once, while a reader's browser draws the text. So the film of, for
example, a Chinese page does not show what its readers see. Web fonts of the page are not taken into account.
"""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from base.errors import EyelevelError
from base.words import plural
from record.content import UndecodableContent, decode
from record.http1 import Response

# A script counts from this many letters on: any page may contain a name or a word in another script.
LETTERS = 10
# A smaller share of a page's text is not written as a number.
SHOWN_SHARE = 0.001
CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
# HTML declares its encoding within its first bytes (HTML, section 4.2.5.4).
CHARSET_BYTES = 1024
INVISIBLE = frozenset({"script", "style", "title", "template", "noscript"})
FC_LIST_LIMIT_S = 30
# At most this many bytes of a document are read; by then, a longer document has shown its script.
DOCUMENT_BYTES = 1 << 20


@dataclass(frozen=True)
class Script:
    """A script: its characters, the language code that fontconfig uses for its fonts, and a Debian package with such
    fonts.

    A page counts as written in the script if its text has at least `letters` of these characters.
    """

    name: str
    characters: str
    language: str
    package: str
    letters: int = LETTERS


@dataclass(frozen=True)
class Undrawn:
    """The text of a page for which this machine has no fonts: its `scripts`, and how many of the page's `characters`
    are in them (`missing`)."""

    scripts: Sequence[Script]
    missing: int
    characters: int

    def __str__(self) -> str:
        names = [script.name for script in self.scripts]
        packages = " ".join(dict.fromkeys(script.package for script in self.scripts))
        share = self.missing / self.characters
        share_text = f"{100 * share:.1f} %" if share >= SHOWN_SHARE else f"less than {100 * SHOWN_SHARE:g} %"
        return (
            f"films show boxes for {plural('character', self.missing)} of its text ({share_text}), since this machine "
            f"has no fonts for {', '.join(names)}; apt install {packages}"
        )


# Tested with fc-list on Debian 12: these packages have fonts of these languages.
CJK, EMOJI, NOTO = "fonts-noto-cjk", "fonts-noto-color-emoji", "fonts-noto-core"
SCRIPTS = (
    Script("Chinese characters", "[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002ffff]", "zh-cn", CJK),
    Script("Japanese", "[\u3040-\u30ff]", "ja", CJK),
    Script("Korean", "[\uac00-\ud7a3]", "ko", CJK),
    Script("emoji", "[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]", "und-zsye", EMOJI, letters=1),
    Script("Arabic", "[\u0620-\u064a\u066e-\u06d3]", "ar", NOTO),
    Script("Hebrew", "[\u05d0-\u05ea]", "he", NOTO),
    Script("Thai", "[\u0e01-\u0e5b]", "th", NOTO),
    Script("Devanagari", "[\u0900-\u097f]", "hi", NOTO),
    Script("Bengali", "[\u0980-\u09ff]", "bn", NOTO),
    Script("Tamil", "[\u0b80-\u0bff]", "ta", NOTO),
    Script("Telugu", "[\u0c00-\u0c7f]", "te", NOTO),
    Script("Georgian", "[\u10a0-\u10ff]", "ka", NOTO),
    Script("Armenian", "[\u0530-\u058f]", "hy", NOTO),
    Script("Ethiopic", "[\u1200-\u137f]", "am", NOTO),
    Script("Khmer", "[\u1780-\u17ff]", "km", NOTO),
    Script("Burmese", "[\u1000-\u109f]", "my", NOTO),
)


def without_fonts(documents: Iterable[Response]) -> Undrawn | None:
    """The text in these HTML documents for which this machine has no fonts; None if there is none. Raises
    EyelevelError."""
    text = "".join(map(text_of, documents))
    letters = {script: len(re.findall(script.characters, text)) for script in SCRIPTS}
    written = [script for script in SCRIPTS if letters[script] >= script.letters]
    scripts = [script for script in written if not _has_fonts(script.language)]
    if not scripts:
        return None
    return Undrawn(scripts, sum(letters[script] for script in scripts), sum(not one.isspace() for one in text))


def text_of(document: Response) -> str:
    """The text that an HTML document shows, without what its scripts add."""
    try:
        body = decode(document.body, document.encoding)[:DOCUMENT_BYTES]
    except UndecodableContent:
        return ""
    parser = _Text()
    parser.feed(_as_text(document.header("content-type") or "", body))
    parser.close()
    return "".join(parser.parts)


def _as_text(content_type: str, body: bytes) -> str:
    charset = CHARSET.search(content_type.encode("latin-1", "replace")) or CHARSET.search(body[:CHARSET_BYTES])
    try:
        return body.decode(charset[1].decode() if charset else "utf-8", "replace")
    except LookupError:  # Python does not know this encoding
        return body.decode("utf-8", "replace")


class _Text(HTMLParser):
    """Collects the visible text between tags."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._invisible = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if not self._invisible and tag in INVISIBLE:
            self._invisible = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._invisible:
            self._invisible = ""

    def handle_data(self, data: str) -> None:
        if not self._invisible:
            self.parts.append(data)


def _has_fonts(language: str) -> bool:
    """Whether fontconfig, which Chromium uses, knows a font for the language."""
    command = ["fc-list", f":lang={language}", "family"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=FC_LIST_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise EyelevelError(f"fc-list, which knows this machine's fonts, failed: {error}; run 'make setup'") from None
    return bool(listed.stdout.strip())
