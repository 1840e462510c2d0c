"""Web fonts: the Latin letters of DejaVu, which matplotlib brings, as small WOFF2 files with names of their own."""

import io
from importlib.resources import files

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

# The same as in templates/services/fonts.css: ASCII and typographic signs.
LETTERS = [*range(0x20, 0x7F), 0xA9, 0xB7, 0x2013, 0x2014, 0x2018, 0x2019, 0x201C, 0x201D, 0x2026, 0x2192]
# Tables that a page of English does not need: hinting, substitutions, the notes of the font's editor.
UNUSED_TABLES = ["GPOS", "GSUB", "GDEF", "kern", "FFTM"]
# DejaVu is larger than most fonts at the same size.
SHRINKING = 1.1


def woff2(family: str, weight: int, source: str) -> bytes:
    """A font as a WOFF2 file: its family name, its weight class (CSS), and the DejaVu file that has its outlines."""
    outlines = files("matplotlib") / "mpl-data" / "fonts" / "ttf" / f"{source}.ttf"
    font = TTFont(io.BytesIO(outlines.read_bytes()), recalcTimestamp=False)
    subsetter = Subsetter(Options(hinting=False, layout_features=[], name_IDs=[1, 2], drop_tables=UNUSED_TABLES))
    subsetter.populate(unicodes=LETTERS)
    subsetter.subset(font)
    # The licence of DejaVu asks for another name when the font was changed.
    for record in font["name"].names:
        record.string = family if record.nameID == 1 else str(weight)
    font["head"].unitsPerEm = round(font["head"].unitsPerEm * SHRINKING)
    font.flavor = "woff2"
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()
