"""Fuzzes imports and loads with thousands of broken recordings and site folders.

python -m support.importer_fuzz FORM COUNT      prints the peak memory, in MiB, and how many inputs there were
python -m support.importer_fuzz FORM SECONDSs   the same for this many seconds
"""

import copy
import gzip
import hashlib
import json
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from base.errors import EyelevelError
from record.formats import read_recording
from record.http1 import MalformedMessage, Response
from record.site import Exchange, Recording, Site, write_site
from record.wacz_writer import write_wacz
from servers.application.wsgi import load_responses
from support.recordings import HTML, PAGE, har_entry, save_file, wacz, warc_record, zipped

# The time limit of an input, on any machine: inputs are small.
LIMIT_S = 20.0
# How many inputs are drawn between two looks at the clock. Each round draws others.
INPUTS_OF_ROUND = 500

RAW = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nContent-Length: 3\r\n\r\n<p>"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n"
REQUEST = b"GET / HTTP/1.1\r\nHost: a.example\r\nReferer: http://a.example/\r\n\r\n"
ARCHIVE = PAGE + warc_record("http://b.example/x", CHUNKED) + warc_record("http://b.example/x", REQUEST, "request")
HAR: dict[str, Any] = {"log": {"entries": [har_entry(text="<p>"), har_entry("http://b.example/x?y#z", text="")]}}

PACKAGE = b'{"mainPageUrl": "https://a.example/"}'
COLLECTION = wacz({"a.warc.gz": gzip.compress(PAGE, mtime=0), "b.warc": ARCHIVE}, ("https://a.example/",))
DEFLATED = wacz({"b.warc": ARCHIVE}, ("https://a.example/",) * 9, zipfile.ZIP_DEFLATED)
SAVE = save_file(headers=(("Content-Type", "text/html"), ("Content-Encoding", "gzip")), body=gzip.compress(b"<p>"))

# Bytes that often break parsers.
BITS = [
    b"\0",
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b":",
    b" ",
    b"%",
    b"-1",
    b"99999999999999999999",
    b"\xff",
    b"\xed\xa0\x80",
    b"../",
]
JUNK = st.binary(max_size=20) | st.sampled_from(BITS)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """`content` with some parts replaced, repeated (some very often), or cut."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 12)))
        often = 1 << draw(st.integers(0, 16)) if draw(st.integers(0, 19)) == 0 else 1
        part = draw(JUNK)
        if often > 1:
            part = (part or content[start:end]) * often
        content = content[:start] + part + content[end:]
    return content[: draw(st.integers(0, len(content)))] if draw(st.integers(0, 9)) == 0 else content


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda v: st.lists(v, max_size=2),
    max_leaves=4,
)


@st.composite
def damaged_collections(draw: st.DrawFn) -> bytes:
    """A valid ZIP file whose list of pages or archive is damaged or has another name."""
    name = draw(
        st.sampled_from(("archive/x.warc.gz", "archive/../x.warc", "/archive/x.warc", "archive/x.warc", "x.wacz"))
    )
    members = {
        "datapackage.json": draw(damaged(PACKAGE)),
        "pages/pages.jsonl": draw(damaged(b'{"format": "json-pages-1.0"}\n{"url": "https://a.example/"}\n')),
        "archive/a.warc.gz": gzip.compress(PAGE, mtime=0),
        name: draw(damaged(ARCHIVE)),
    }
    return zipped(members, draw(st.sampled_from((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))))


def _exported() -> dict[str, bytes]:
    """The members of a collection written by us, by their names."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        exchange = Exchange("GET", "https://a.example/", Response(200, "OK", (HTML,), b"<p>"), "192.0.2.1", 0.0, 12.5)
        write_site(Recording(exchange.url, (exchange,), {"tool": "test"}, "x"), Path(folder, "site"))
        write_wacz(Site.load(Path(folder, "site")), Path(folder, "x.wacz"))
        with zipfile.ZipFile(Path(folder, "x.wacz")) as package:
            return {name: package.read(name) for name in package.namelist()}


EXPORTED = _exported()
ARCHIVE_NAME, PACKAGE_NAME, PACKAGE_DIGEST = "archive/data.warc.gz", "datapackage.json", "datapackage-digest.json"


@st.composite
def damaged_exports(draw: st.DrawFn) -> bytes:
    """A collection written by us, with some members damaged, replaced or missing.

    Its digests may be right or wrong, so that the code after their check is reached, too.
    """
    members = dict(EXPORTED)
    for name in draw(st.lists(st.sampled_from(sorted(members)), min_size=1, max_size=3, unique=True)):
        content = members.pop(name)
        if name == ARCHIVE_NAME and draw(st.booleans()):
            members[name] = gzip.compress(draw(damaged(gzip.decompress(content))), mtime=0)
        elif name in (PACKAGE_NAME, PACKAGE_DIGEST) and draw(st.booleans()):
            members[name] = draw(damaged_json(json.loads(content)))
        elif draw(st.integers(0, 5)):
            members[name] = draw(damaged(content))
    if PACKAGE_NAME in members and draw(st.booleans()):
        try:
            package = json.loads(members[PACKAGE_NAME])
            for entry in package["resources"]:
                entry["hash"] = f"sha256:{hashlib.sha256(members[entry['path']]).hexdigest()}"
            members[PACKAGE_NAME] = json.dumps(package).encode()
        except (ValueError, LookupError, TypeError):
            pass  # this member itself is damaged
        digest = hashlib.sha256(members[PACKAGE_NAME]).hexdigest()
        members[PACKAGE_DIGEST] = json.dumps({"path": PACKAGE_NAME, "hash": f"sha256:{digest}"}).encode()
    return zipped(members, draw(st.sampled_from((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))))


# Values that no import writes into an index, and similar ones that could come from an import.
SITE_VALUES = st.sampled_from(
    [
        "198.18.0.9/32 dev lo\nnetns add x",
        "198.18.0.2",
        "198.20.0.1",
        "/etc/passwd",
        "a.example/../../00000-x",
        "a.example/00001-index",
        "b.example_8080/00001-x",
        "https://a.example/\n",
        "http://a.example/",
        "https://a.example:8080/",
        "GET\r\nX: y",
        "\x1b[2J",
        "x" * 70_000,
        10**400,
        float("nan"),
        [[]] * 1000,
    ]
)


@st.composite
def damaged_json(draw: st.DrawFn, document: Any, values: st.SearchStrategy[Any] = json_values) -> bytes:
    """`document` with some values changed or missing."""
    changed = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = changed
        while isinstance(place, dict | list) and place:
            key: Any = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if draw(st.integers(0, 3)) == 0 or not isinstance(place[key], dict | list):
                if draw(st.booleans()):
                    # Copy it, so that later changes do not reach the strategy's own value.
                    place[key] = copy.deepcopy(draw(values))
                elif isinstance(place, dict) and draw(st.booleans()):
                    place[str(draw(values))] = place.pop(key)
                else:
                    del place[key]
                break
            place = place[key]
    return json.dumps(changed).encode()


def import_of(folder: Path, name: str, content: bytes) -> None:
    """Import a recording with `content` at `name`, store it, and load it like a server."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    try:
        recording = read_recording(folder / Path(name).parts[0])
    except EyelevelError as error:
        assert str(error).isprintable()
        return
    site = write_site(recording, folder / "site")  # everything that was imported can be stored
    assert all(reason.isprintable() for reason in site.skipped)
    assert len(list(load_responses(site.folder))) == len(site.exchanges)


def load_of(folder: Path, name: str, content: bytes) -> None:
    """Load a site in which the file `name` has this content: first by `Site.load`, then in the way of servers."""
    for path, stored in SITE.items():
        (folder / "site" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "site" / path).write_bytes(content if path == name else stored)
    try:
        site = Site.load(folder / "site")
    except EyelevelError as error:
        assert str(error).isprintable()
        return
    assert all(re.fullmatch(r"198\.18\.[0-9]{1,3}\.[0-9]{1,3}", address) for address in site.servers)
    assert all(re.fullmatch("[!-~]{1,24576}", exchange.url) for exchange in site.exchanges)
    assert {exchange.file for exchange in site.exchanges} <= SITE.keys()
    assert site.user_agent is None or site.user_agent.isprintable()
    try:
        list(load_responses(site.folder))
    except MalformedMessage as error:
        assert str(error).isprintable()


def _site() -> dict[str, bytes]:
    """The files of a site, by their paths in it."""
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (HTML,), b"<p>"), "192.0.2.1", 0.0, 12.5)
    other = Exchange("POST", "https://b.example:8080/x?y", Response(204, "", (), b""), "192.0.2.2", 1.5)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        recording = Recording(page.url, (page, other), {"tool": "test"}, "x", (9, 9), ("x: y",))
        site = write_site(recording, Path(folder, "site"))
        files = [path for path in site.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(site.folder)): path.read_bytes() for path in files}


SITE = _site()
INDEX, RESPONSE = "site.json", "a.example/00000-index"

Act = Callable[[Path, str, bytes], None]

WACZ_CONTENTS = damaged(COLLECTION) | damaged(DEFLATED) | damaged_collections() | damaged_exports()

# For each form: the action, the file that is damaged, and the content of that file.
FORMS: dict[str, tuple[Act, str, st.SearchStrategy[bytes]]] = {
    "mahimahi": (import_of, "m/save.0", damaged(SAVE)),
    "raw": (import_of, "r/a.example/index", damaged(RAW)),
    "warc": (import_of, "x.warc", damaged(ARCHIVE)),
    "warc.gz": (import_of, "x.warc.gz", damaged(ARCHIVE).map(gzip.compress) | damaged(gzip.compress(PAGE, mtime=0))),
    "wacz": (import_of, "x.wacz", WACZ_CONTENTS),
    "har": (import_of, "x.har", damaged_json(HAR) | damaged(json.dumps(HAR).encode())),
    "garbage": (import_of, "x.har", st.binary()),
    "index": (load_of, INDEX, damaged_json(json.loads(SITE[INDEX]), json_values | SITE_VALUES) | damaged(SITE[INDEX])),
    "response": (load_of, RESPONSE, damaged(SITE[RESPONSE])),
}


def fuzz(form: str, examples: int) -> Callable[[], None]:
    """A test that imports or loads this many broken recordings or sites of one form."""
    act, name, contents = FORMS[form]
    # Use a file system in memory if there is one: sites are synchronised to the disk.
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else None

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(contents)
    def run(content: bytes) -> None:
        folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=place))
        started_s = time.process_time()
        try:
            act(folder, name, content)
        finally:
            shutil.rmtree(folder)
        assert time.process_time() - started_s < LIMIT_S

    return run


def fuzz_for(form: str, seconds: float) -> int:
    """Import or load broken recordings or sites of one form for this long; returns how many there were."""
    end_s, inputs = time.monotonic() + seconds, 0
    while time.monotonic() < end_s:
        fuzz(form, INPUTS_OF_ROUND)()
        inputs += INPUTS_OF_ROUND
    return inputs


if __name__ == "__main__":
    form, amount = sys.argv[1:]
    if amount.endswith("s"):
        inputs = fuzz_for(form, float(amount[:-1]))
    else:
        fuzz(form, inputs := int(amount))()
    most_kb = re.search(r"VmHWM:\s*([0-9]+) kB", Path("/proc/self/status").read_text())
    assert most_kb
    print(int(most_kb[1]) >> 10, inputs)
