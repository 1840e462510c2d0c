"""Collections of web archives in one file (WACZ 1.1.1, Webrecorder): a ZIP file with WARC files and a list of pages.

`archive/` has the WARC files; all their exchanges belong to one recording. `pages/pages.jsonl` lists the pages, and
`pages/extraPages.jsonl` those that were found from them. `datapackage.json` may name the main page, and has the digests
of all files: a file that does not match its digest is refused, unless the collection may be changed. Indexes are not
read. No member is unpacked to a file, so names of members cannot lead to other folders.
"""

import hashlib
import io
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from base.bounded import open_regular, parse_json
from base.errors import EyelevelError
from base.text import printable
from record.assemble import assemble
from record.formats import warc
from record.http1 import MalformedMessage
from record.intake import Intake
from record.limits import EXCHANGES
from record.site import Recording, Site
from record.wacz_writer import write_wacz
from record.warc_records import ARCHIVE_BYTES, Archive

NAME = "wacz"
DESCRIPTION = "a collection of web archives"
ENDINGS = (".wacz",)

ARCHIVE = re.compile(r"archive/[^/]+\.warc(\.gz)?", re.IGNORECASE)
PACKAGE, PACKAGE_DIGEST = "datapackage.json", "datapackage-digest.json"
PAGES = ("pages/pages.jsonl", "pages/extraPages.jsonl")
# The key of the main page in `datapackage.json`: by the specification, and as some programs write it.
MAIN_PAGES = ("mainPageUrl", "mainPageURL")

# A limit for the list of a ZIP file's members: room for some ten thousand. A recording of a page has a handful.
DIRECTORY_BYTES = 1 << 20
ARCHIVES = 1000
# A limit for a list of pages, which may contain the text of pages, and for the collection's description.
TEXT_BYTES = 16 << 20
# Other compression methods may need much memory, and the specification has no others.
PACKED_AS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 1
# The specification's digest algorithms; and the number of bytes that are hashed at a time.
HASHES = ("sha256", "md5")
BLOCK_BYTES = 1 << 20

# The errors that `zipfile` and its libraries raise for broken files; RuntimeError includes NotImplementedError.
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, ValueError, LookupError, OverflowError, EOFError)


def recognises(path: Path) -> bool:
    """Whether `path` is a recording in this format."""
    return path.is_file() and path.suffix in ENDINGS


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of all archives in the collection `path`, in the order in which they began. Broken parts are left
    out and named. Raises EyelevelError, also for a collection that does not match its digests."""
    return _recording(path, keep_cookies=keep_cookies, is_changed=False)


def read_changed(path: Path, *, keep_cookies: bool = False) -> Recording:
    """As `read`, but the collection need not match its digests: files that do not match are used and named."""
    return _recording(path, keep_cookies=keep_cookies, is_changed=True)


def _recording(path: Path, *, keep_cookies: bool, is_changed: bool) -> Recording:
    intake = Intake(path.name, keep_cookies=keep_cookies)
    with _opened(path) as package:
        archives = _archives(package, intake, path)
        for name, fault in _wrong_digests(package, path):
            if not is_changed:
                raise EyelevelError(f"{path}: {name} {fault}; export it again, or import it with --allow-changed")
            intake.leave_out(f"the digest of {name}", f"the file {fault}; the site has what is there")
        of_archives = warc.take(intake, archives)
        listed = [*_listed_pages(package, intake), *of_archives]
    return assemble(intake, {"tool": NAME, **warc.servers(intake)}, listed=listed)


def write(site: Site, path: Path) -> None:
    """Write `site` as a WACZ file. Raises EyelevelError."""
    write_wacz(site, path)


class _File:
    """A file that refuses to read more than `limit_bytes` at a time, since `zipfile` reads the list of all members at
    once."""

    limit_bytes: float = DIRECTORY_BYTES

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "rb")
        self.seek, self.tell, self.close = self._file.seek, self._file.tell, self._file.close
        self.seekable = self._file.seekable

    def read(self, length: int = -1) -> bytes:
        if length > self.limit_bytes:
            raise MalformedMessage(f"the list of its members is longer than {DIRECTORY_BYTES >> 20} MiB")
        return self._file.read(length)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    file = _File(open_regular(path, follow=True))
    try:
        try:
            package = zipfile.ZipFile(file)
        except BROKEN as error:
            raise EyelevelError(f"{path} is not a WACZ file ({printable(str(error)[:200])})") from None
        file.limit_bytes = math.inf  # the reader of a member limits its length
        with package:
            yield package
    finally:
        file.close()


def _archives(package: zipfile.ZipFile, intake: Intake, path: Path) -> list[Archive]:
    """The archives in `package`, in the order of their names. Raises EyelevelError when there are none."""
    members = sorted((m for m in package.infolist() if ARCHIVE.fullmatch(m.filename)), key=lambda m: m.filename)
    if len(members) > ARCHIVES:
        raise EyelevelError(f"{path} holds more than {ARCHIVES:,} archives; import one page's load of it")
    archives = []
    for member in members:
        try:
            _open(package, member).close()
        except BROKEN as error:
            intake.leave_out(member.filename, error)
        else:
            archives.append(Archive(member.filename, partial(_open, package, member)))
    if not archives:
        why = "; ".join(line[:300] for line in intake.all_skipped()[:3])
        raise EyelevelError(f"{path} holds no web archive that can be read ({why or 'archive/*.warc.gz is missing'})")
    return archives


def _wrong_digests(package: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, str]]:
    """The faults of listed files, as name and fault: files that are missing, and files to be read that do not match
    their digests.

    A file that cannot be unpacked is left to its reader. Raises EyelevelError when the files are too large.
    """
    listed = _document(package, PACKAGE).get("resources")
    digests = [entry for entry in (listed if isinstance(listed, list) else [])[:EXCHANGES] if isinstance(entry, dict)]
    digests.append({**_document(package, PACKAGE_DIGEST), "path": PACKAGE})
    budget_bytes = ARCHIVE_BYTES
    for name, digest in dict.fromkeys((str(one.get("path")), str(one.get("hash"))) for one in digests):
        kind, value = warc.parsed_digest(digest)
        if kind not in HASHES or not (ARCHIVE.fullmatch(name) or name in (*PAGES, PACKAGE)):
            continue
        try:
            with _open(package, package.getinfo(name)) as file:
                content = hashlib.new(kind, usedforsecurity=False)
                while block := file.read(BLOCK_BYTES):
                    content.update(block)
                    if (budget_bytes := budget_bytes - len(block)) < 0:
                        raise EyelevelError(
                            f"{path} holds more than {ARCHIVE_BYTES >> 30} GiB; import one page's load of it"
                        )
        except KeyError:
            yield printable(name[:200]), "is listed, but not in the collection"
            continue
        except (*BROKEN, OSError):
            continue
        if content.digest() != value:
            where = PACKAGE_DIGEST if name == PACKAGE else PACKAGE
            yield printable(name[:200]), f"is not what its digest in {where} says: it was changed or damaged"


def _document(package: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """The JSON object in the member `name`; empty if none can be read."""
    try:
        with _open(package, package.getinfo(name)) as file:
            document = parse_json(file.read(TEXT_BYTES))
    except (*BROKEN, OSError):
        return {}
    return document if isinstance(document, dict) else {}


def _open(package: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """The file `member`, opened for reading. Raises one of BROKEN."""
    if member.flag_bits & ENCRYPTED:
        raise MalformedMessage("it is encrypted")
    if member.compress_type not in PACKED_AS:
        raise MalformedMessage("it is packed in a way that WACZ files are not: neither stored nor deflated")
    return package.open(member)


def _listed_pages(package: zipfile.ZipFile, intake: Intake) -> list[str]:
    """The URLs of the pages that the collection lists: its main page, then the pages of each list by date. A list that
    cannot be read is left out."""
    pages: list[str] = []
    for line in _lines(package, PACKAGE, intake, whole=True):
        pages += [line[key] for key in MAIN_PAGES if isinstance(line.get(key), str)]
    for name in PAGES:
        # The first line describes the file.
        lines = (line for line in _lines(package, name, intake) if isinstance(line.get("url"), str))
        pages += warc.by_date((line["url"], warc.moment_ms(line.get("ts"))) for line in lines)
    return pages[:EXCHANGES]


def _lines(package: zipfile.ZipFile, name: str, intake: Intake, *, whole: bool = False) -> Iterator[dict[str, Any]]:
    """The JSON objects in the first lines of the member `name`; or, if `whole`, the one object that it contains."""
    try:
        with _open(package, package.getinfo(name)) as file:
            content = file.read(TEXT_BYTES + 1)
        if len(content) > TEXT_BYTES:
            raise MalformedMessage(f"it is longer than {TEXT_BYTES >> 20} MiB")
    except KeyError:  # the member is missing
        return
    except (*BROKEN, OSError) as error:
        intake.leave_out(name, error)
        return
    for line in [content] if whole else islice(io.BytesIO(content), EXCHANGES):
        try:
            value = parse_json(line)
        except ValueError as error:
            intake.leave_out(name, f"a line is not JSON that can be read ({str(error)[:200]})")
            continue
        if isinstance(value, dict):
            yield value
