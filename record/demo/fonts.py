"""Web fonts: the Latin letters of DejaVu, which comes with matplotlib, as small WOFF2 files under other names."""

import io
from importlib.resources import files

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

# The same as in templates/services/fonts.css: ASCII and typographic characters.
LETTERS = [*range(0x20, 0x7F), 0xA9, 0xB7, 0x2013, 0x2014, 0x2018, 0x2019, 0x201C, 0x201D, 0x2026, 0x2192]
# Tables that an English page does not need: hinting, substitutions, notes of the font's editor.
UNUSED_TABLES = {"GPOS", "GSUB", "GDEF", "kern", "FFTM"}
# DejaVu is larger than most fonts of the same nominal size.
SHRINKING = 1.1


def woff2(family: str, weight: int, source: str) -> bytes:
    """A font as a WOFF2 file. `family` is its family name, `weight` its weight class (CSS), and `source` the DejaVu
    file with its outlines."""
    outlines = files("matplotlib") / "mpl-data" / "fonts" / "ttf" / f"{source}.ttf"
    font = TTFont(io.BytesIO(outlines.read_bytes()), recalcTimestamp=False)
    for table in UNUSED_TABLES.intersection(font.keys()):
        del font[table]  # before they are parsed, which takes most of the time
    subsetter = Subsetter(Options(hinting=False, layout_features=[], name_IDs=[1, 2], drop_tables=[]))
    subsetter.populate(unicodes=LETTERS)
    subsetter.subset(font)
    # DejaVu's licence requires another name for a changed font.
    for record in font["name"].names:
        record.string = family if record.nameID == 1 else str(weight)
    font["head"].unitsPerEm = round(font["head"].unitsPerEm * SHRINKING)
    font.flavor = "woff2"
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()
