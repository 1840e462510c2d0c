"""Changes the content of a site so that its page makes the same requests on every load.

A script, `repeatable.js`, is inserted at the beginning of every HTML document and of the scripts of workers. It fixes
the time, random numbers, and other values from which pages make unrepeatable URLs. The recording itself stays
unchanged: the documents and scripts in its stand-in (`replay.content`) are changed.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path

from record.content import Budget, UndecodableContent, decode, encode
from record.http1 import Response
from record.site import Site

SCRIPT = Path(__file__).with_name("repeatable.js")

# The time that pages see if their recording has none; any time would do.
UNKNOWN_TIME_MS = 1_767_225_600_000

# The beginning of a document. The content type is not enough: fragments that a script inserts itself may also be sent
# as HTML.
DOCUMENT = re.compile(
    # Each comment's end is matched only once (?>, *+); with backtracking, each further comment would double the time.
    rb"(?:\xef\xbb\xbf)?\s*(?:(?><!--.*?-->|<\?xml.*?\?>)\s*)*+(?:<!doctype\s+html|<html|<head)",
    re.IGNORECASE | re.DOTALL,
)
# The script is inserted after the first of these tags in the document, or at its very beginning.
TAGS = [re.compile(tag, re.IGNORECASE) for tag in (rb"<head(?=[\s>])", rb"<html(?=[\s>])", rb"<!doctype")]

# Our script is inserted into a worker's script after its byte order mark. The result stays strict if the worker's
# script begins with "use strict" (ECMAScript, 11.2.1).
BEGINNING = re.compile(
    rb"(?P<mark>\xef\xbb\xbf)?(?P<strict>\s*(?:(?>/\*.*?\*/|//[^\n]*\n)\s*)*+(?:'use strict'|\"use strict\"))?",
    re.DOTALL,
)
# Where a page or a script names a worker's script: `new Worker("name")`, `new SharedWorker(new URL("name", …))`,
# `navigator.serviceWorker.register("name")`. If a variable holds the name, the file's name often says "worker".
NAMES_WORKER = re.compile(
    rb"(?:Worker|serviceWorker\s*\.\s*register)\s*\(\s*(?:new\s+URL\s*\(\s*)?[\"'`](?P<url>[^\"'`\s]{1,2000})"
)
CALLED_WORKER = re.compile(r"worker|(?:^|[-_.])sw\b", re.IGNORECASE)

POLICIES = ("content-security-policy", "content-security-policy-report-only")


def script_evidence(script: bytes, documents: int, workers: int) -> dict[str, object]:
    """Evidence of the change: how many documents and scripts of workers contain the script, and its SHA-256."""
    return {"documents": documents, "workers": workers, "script_sha256": hashlib.sha256(script).hexdigest()}


def workers_named(response: Response, budget: Budget | None = None) -> set[str]:
    """The names, without folders, of the files that `response` names as scripts of workers. Its decoded body counts
    against `budget`; raises EyelevelError when that is used up."""
    try:
        text = decode(response.body, response.encoding, budget)
    except UndecodableContent:
        return set()
    urls = (match["url"].decode(errors="replace") for match in NAMES_WORKER.finditer(text))
    return {_file_name(url) for url in urls}


def is_worker(url: str, named: Collection[str]) -> bool:
    """Whether the script at `url` is a worker's: its name says so, or it is among those `named`."""
    name = _file_name(url)
    return name in named or CALLED_WORKER.search(name) is not None


def worker_with_script(response: Response, script: bytes, budget: Budget | None = None) -> Response | None:
    """`response`, a worker's script, with `script` at its beginning; None if it cannot be decoded. `budget` as in
    `workers_named`."""
    try:
        text = decode(response.body, response.encoding, budget)
        beginning = BEGINNING.match(text)
        assert beginning is not None  # it matches any text
        mark, strict = beginning["mark"] or b"", b'"use strict";' if beginning["strict"] else b""
        body = encode(mark + strict + script + b"\n" + text.removeprefix(mark), response.encoding)
    except UndecodableContent:
        return None
    return response._replace(body=body)


def with_scripts(response: Response, scripts: Sequence[bytes], budget: Budget | None = None) -> Response | None:
    """`response` with `scripts` in it, permitted by its policies; None if it is no HTML document. `budget` as in
    `workers_named`."""
    if not (response.header("content-type") or "").lower().startswith("text/html") or not response.body:
        return None
    encoding = response.encoding
    try:
        document = decode(response.body, encoding, budget)
    except UndecodableContent:
        return None
    if not DOCUMENT.match(document):
        return None
    place = next((end for tag in TAGS if (end := _end_of(tag, document))), 0)
    elements = b"".join(b"<script>" + script + b"</script>" for script in scripts)
    body = encode(document[:place] + elements + document[place:], encoding)
    digests = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    headers = tuple(
        (name, _allowing(value, sources)) if name.lower() in POLICIES else (name, value)
        for name, value in response.headers
    )
    return response._replace(headers=headers, body=body)


def script_of(site: Site) -> bytes:
    """The script, with the time at which the site was recorded, without comments and indentation."""
    lines = (line.strip() for line in SCRIPT.read_text().splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith("//"))
    return f"{text}({_recorded_at_ms(site)});".encode()


def _file_name(url: str) -> str:
    return url.partition("?")[0].partition("#")[0].rpartition("/")[2]


def _recorded_at_ms(site: Site) -> int:
    start = next(exchange for exchange in site.exchanges if exchange.url == site.url)
    date = site.recorded(start).response.header("date")
    try:
        return round(parsedate_to_datetime(date).timestamp() * 1000) if date else UNKNOWN_TIME_MS
    except (ValueError, OverflowError):
        return UNKNOWN_TIME_MS


def _end_of(tag: re.Pattern[bytes], document: bytes) -> int:
    """The end of the first tag with this beginning; 0 if there is none."""
    beginning = tag.search(document)
    return document.find(b">", beginning.end()) + 1 if beginning else 0


def _allowing(policies: str, sources: str) -> str:
    """Content Security Policies (a header's value) that also permit the inline scripts `sources` (CSP3, section
    6.7.3)."""
    return ",".join(_policy_allowing(policy, sources) for policy in policies.split(","))


def _policy_allowing(policy: str, sources: str) -> str:
    directives = [directive.split() for directive in policy.split(";") if directive.strip()]
    by_name = {directive[0].lower(): directive for directive in reversed(directives)}
    names = ("script-src-elem", "script-src", "default-src")
    governing = next((by_name[name] for name in names if name in by_name), None)
    if governing is None or _allows_inline(governing[1:]):
        return policy
    if governing[0].lower() == "default-src":
        directives.append(["script-src", *_without_none(governing[1:]), sources])
    else:
        governing[1:] = [*_without_none(governing[1:]), sources]
    return "; ".join(" ".join(directive) for directive in directives)


def _allows_inline(sources: list[str]) -> bool:
    """Whether all inline scripts are permitted: hashes and nonces disable 'unsafe-inline'."""
    lowered = [source.lower() for source in sources]
    strict = any(source.startswith(("'nonce-", "'sha", "'strict-dynamic'")) for source in lowered)
    return "'unsafe-inline'" in lowered and not strict


def _without_none(sources: list[str]) -> list[str]:
    return [source for source in sources if source.lower() != "'none'"]
