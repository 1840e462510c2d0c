"""The character encoding of a text, determined as by browsers (HTML, section 13.2.3; CSS Syntax, section 3.2)."""

import re

# Labels that browsers know (Encoding standard, section 4.2) → Python's codec, if its name differs, or if browsers use
# an encoding with more characters. `PYTHONS` matches labels that mean the same to browsers and to Python. Rare
# encodings are left out: texts in them are sent as UTF-8.
CODECS = {
    **dict.fromkeys(("utf8", "utf-8"), "utf-8"),
    **dict.fromkeys(("ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin1"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "iso8859-9", "latin5"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "tis-620", "windows-874"), "cp874"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "korean"), "cp949"),
    **dict.fromkeys(("big5", "big5-hkscs", "x-x-big5"), "big5hkscs"),
    **dict.fromkeys(("utf-16", "utf-16le"), "utf-16-le"),
}
PYTHONS = re.compile(
    r"utf-16be|(windows-|cp)125[0-8]|iso-8859-([2-8]|1[03456])|koi8-[ru]|macintosh|euc-jp|iso-2022-jp|cp866|ibm866"
)

PARAMETER = re.compile(r""";\s*charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
# A declaration is searched for within this many characters, which includes the longest heads of pages.
DECLARED_WITHIN = 1 << 16
IN_HTML = re.compile(r"""<meta\s[^>]*?charset\s*=\s*["']?\s*([^\s"'/>;]+)""", re.IGNORECASE)
IN_XML = re.compile(r"""<\?xml\s[^>]*?encoding\s*=\s*["']([^"']+)""")
IN_CSS = re.compile('@charset "([^"]+)";')
BYTE_ORDER_MARK = "\ufeff"


def charset_of(content_type: str, beginning: str) -> str | None:
    """The label, in lower case, of the character encoding of a text with this beginning. None if nothing names it."""
    if beginning.startswith(BYTE_ORDER_MARK):
        return "utf-8"
    if match := PARAMETER.search(content_type):
        return match[1].lower()
    kind = content_type.partition(";")[0].strip().lower()
    for ending, pattern in (("html", IN_HTML), ("xml", IN_XML), ("/css", IN_CSS)):
        if kind.endswith(ending) and (match := pattern.search(beginning[:DECLARED_WITHIN])):
            label = match[1].lower()
            # If a declaration can be read as ASCII, the text is not in UTF-16, even if the declaration says so.
            return "utf-8" if label.startswith("utf-16") else label
    return "utf-8" if kind.endswith(("json", "xml")) else None


def encoded(text: str, charset: str) -> bytes | None:
    """`text` in the encoding with this label; None if it has characters that the encoding lacks, or the label is
    unknown."""
    codec = CODECS.get(charset, charset if PYTHONS.fullmatch(charset) else None)
    try:
        content = text.encode(codec) if codec else None
        # Some codecs replace characters by similar ones.
        return content if content is None or content.decode(codec or "") == text else None
    except UnicodeError:
        return None


def with_charset(content_type: str, charset: str) -> str:
    """`content_type` with its charset replaced by this one."""
    without = PARAMETER.sub("", content_type)
    return f"{without}; charset={charset}"
