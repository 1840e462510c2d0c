"""Web fonts: letters of DejaVu and STIX, which come with matplotlib, under other names and with a given size.

Real fonts have more letters than a page uses. Ours have those of their script, and the other bytes are noise in the
file's block of private data, which browsers ignore (WOFF 2.0, section 4).
"""

import hashlib
import io
import struct
from functools import cache
from importlib.resources import files

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.ttLib.tables.DefaultTable import DefaultTable

from record.web.text import letters

LATIN = (
    *("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold", "STIXGeneral", "STIXGeneralBol"),
    *("DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSerif-Italic"),
)
FACES = {
    "latin": LATIN,
    "cyrillic": ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold"),
    "greek": ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold"),
    "arabic": ("DejaVuSans", "DejaVuSans-Bold"),
}
# Tables that a small font does not need: hinting, notes of the font's editor; and, of Latin letters, substitutions.
UNUSED, PLAIN = {"FFTM", "kern", "MATH"}, {"GPOS", "GSUB", "GDEF"}
# The length of a table of zeros, which takes no bytes in the file.
ZEROS = 200_000
# Where the headers have the length of the file, and the place and length of private data.
LENGTH, PRIVATE = 8, 40
# Records of names: of the family, of the style, and those that the licences want in each copy: copyright and licence.
FAMILY, STYLE, NOTICES = 1, 2, (0, 13)


def font(script: str, number: int, size_bytes: int) -> bytes:
    """The font of this number of a script, as a WOFF2 file of `size_bytes`, or of more if its letters need more."""
    faces = FACES[script]
    data = bytearray(_subset(script, faces[number % len(faces)]))
    data += bytes(-len(data) % 4)
    noise = max(0, size_bytes - len(data))
    if noise:
        struct.pack_into(">II", data, PRIVATE, len(data), noise)
        data += hashlib.shake_128(f"{script} {number} {size_bytes}".encode()).digest(noise)
        struct.pack_into(">I", data, LENGTH, len(data))
    return bytes(data)


@cache
def _subset(script: str, face: str) -> bytes:
    outlines = files("matplotlib") / "mpl-data" / "fonts" / "ttf" / f"{face}.ttf"
    whole = TTFont(io.BytesIO(outlines.read_bytes()), recalcTimestamp=False)
    for table in (UNUSED | (set() if script == "arabic" else PLAIN)).intersection(whole.keys()):
        del whole[table]
    features = ["init", "medi", "fina", "rlig", "ccmp"] if script == "arabic" else []
    subsetter = Subsetter(
        Options(hinting=False, layout_features=features, name_IDs=[FAMILY, STYLE, *NOTICES], drop_tables=[])
    )
    subsetter.populate(unicodes=letters(script))
    subsetter.subset(whole)
    # The licences of DejaVu and STIX require another name for a changed font.
    for record in whole["name"].names:
        if record.nameID not in NOTICES:
            record.string = "Webset" if record.nameID == FAMILY else "Regular"
    # Browsers refuse a font that is not larger than its file, private data included (OpenType Sanitizer).
    whole["PADD"] = DefaultTable("PADD")
    whole["PADD"].data = bytes(ZEROS)
    # Its compressor is locked (Brotli); that of WOFF is the system's zlib.
    whole.flavor = "woff2"
    file = io.BytesIO()
    whole.save(file)
    return file.getvalue()
