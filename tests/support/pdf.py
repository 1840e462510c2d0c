"""Reads the texts of a PDF printed by the packaged browser, page by page.

This supports only the part of the format (ISO 32000-1) that Skia uses, the browser's drawing library. A PDF consists
of numbered objects:

    catalogue → tree of pages → page → content, a stream of drawing commands; page → fonts → Unicode of their glyphs
"""

import re
import zlib

OBJECT = re.compile(rb"(\d+) 0 obj\s(.*?)\sendobj", re.DOTALL)
STREAM = re.compile(rb"stream\r?\n(.*)\r?\nendstream", re.DOTALL)
# The commands that choose a font, show glyphs (two bytes each), and end a text.
COMMAND = re.compile(rb"/(\w+) [\d.]+ Tf|<([0-9A-Fa-f]+)>|\b(ET)\b")
CHARACTER = re.compile(rb"<(\w+)> <(\w+)>\s")
RANGE = re.compile(rb"<(\w+)> <(\w+)> <(\w+)>")
Glyphs = dict[int, str]


def page_texts(pdf: bytes) -> list[str]:
    """The text of each page, in drawing order, with a space after each piece."""
    objects = {int(number): body for number, body in OBJECT.findall(pdf)}
    catalogue = next(body for body in objects.values() if b"/Type /Catalog" in body)
    return [_text(objects, page) for page in _pages(objects, *_references(b"Pages", catalogue))]


def _references(key: bytes, body: bytes) -> list[int]:
    """The numbers of the objects to which `key` of `body` refers: one, or those of a list."""
    match = re.search(rb"/" + key + rb" (?:(\d+) 0 R|\[([^\]]*)\])", body)
    assert match, f"{key!r} is missing"
    return [int(number) for number in re.findall(rb"(\d+) 0 R", match[0])]


def _pages(objects: dict[int, bytes], number: int) -> list[bytes]:
    """The pages below a node of their tree, in order."""
    body = objects[number]
    if b"/Kids" not in body:
        return [body]
    return [page for kid in _references(b"Kids", body) for page in _pages(objects, kid)]


def _text(objects: dict[int, bytes], page: bytes) -> str:
    fonts = re.search(rb"/Font <<(.*?)>>", page, re.DOTALL)
    names = re.findall(rb"/(\w+) (\d+) 0 R", fonts[1]) if fonts else []
    glyphs = {name: _glyphs(_stream(objects, *_references(b"ToUnicode", objects[int(n)]))) for name, n in names}
    chosen: Glyphs = {}
    text = ""
    for font, glyph_codes, end in COMMAND.findall(_stream(objects, *_references(b"Contents", page))):
        if font:
            chosen = glyphs.get(font, {})
        elif glyph_codes:
            text += "".join(chosen.get(int(glyph_codes[at : at + 4], 16), "") for at in range(0, len(glyph_codes), 4))
        elif end:
            text += " "
    return text


def _stream(objects: dict[int, bytes], number: int) -> bytes:
    """The content of a stream."""
    body = objects[number]
    match = STREAM.search(body)
    assert match, f"object {number} is no stream"
    return zlib.decompress(match[1]) if b"/FlateDecode" in body[: match.start()] else match[1]


def _glyphs(table: bytes) -> Glyphs:
    """Glyph → its characters, from a font's Unicode table."""
    glyphs: Glyphs = {}
    for part in re.findall(rb"beginbfchar(.*?)endbfchar", table, re.DOTALL):
        glyphs |= {int(glyph, 16): _characters(text) for glyph, text in CHARACTER.findall(part)}
    for part in re.findall(rb"beginbfrange(.*?)endbfrange", table, re.DOTALL):
        for first, last, text in RANGE.findall(part):
            low = int(text, 16)
            glyphs |= {glyph: chr(low + glyph - int(first, 16)) for glyph in range(int(first, 16), int(last, 16) + 1)}
    return glyphs


def _characters(text: bytes) -> str:
    return bytes.fromhex(text.decode()).decode("utf-16-be")
