"""Which formats there are, and reading a recording in whichever it is."""

import re
from pathlib import Path

from base.errors import EyelevelError
from record.formats import Format, WritableFormat, har, mahimahi, responses, warc
from record.site import Recording

FORMATS: tuple[Format, ...] = (mahimahi, warc, har, responses)
WRITABLE: dict[str, WritableFormat] = {"har": har, "mahimahi": mahimahi}


def read_recording(source: Path, *, keep_cookies: bool = False) -> Recording:
    """Read `source` with the importer that recognises it. Raises EyelevelError."""
    if not source.exists():
        raise EyelevelError(f"there is no recording at {source}")
    for known in FORMATS:
        if known.recognises(source):
            return known.read(source, keep_cookies=keep_cookies)
    raise EyelevelError(
        f"{source} is no recording that can be imported: give a folder of Mahimahi's save.* files or of raw "
        "responses, a .warc, or a .har"
    )


def name_of(source: Path) -> str:
    """The source's name without what tells its format."""
    return re.sub(r"\.(warc|warc\.gz|har)$", "", source.resolve().name)
