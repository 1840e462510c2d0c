"""Serving a site so that a page asks for the same on every load.

A script, `repeatable.js`, is put first into every HTML document, and into the scripts of workers: it fixes the time,
random numbers, and what else pages make unrepeatable URLs of. The recording itself stays as it is: the documents and
scripts of its stand-in (`replay.content`) are changed.
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

# When pages believe to be loaded if their recording does not say: any time would do.
UNKNOWN_TIME_MS = 1_767_225_600_000

# A document begins so; what a script fetches and puts together itself may be called HTML, too.
DOCUMENT = re.compile(
    # The end of a comment is decided once (?>, *+): to try the ends of all takes twice as long for each comment more.
    rb"(?:\xef\xbb\xbf)?\s*(?:(?><!--.*?-->|<\?xml.*?\?>)\s*)*+(?:<!doctype\s+html|<html|<head)",
    re.IGNORECASE | re.DOTALL,
)
# The script comes behind the first of these that the document has, or before everything.
TAGS = [re.compile(tag, re.IGNORECASE) for tag in (rb"<head(?=[\s>])", rb"<html(?=[\s>])", rb"<!doctype")]

# The script of a worker begins behind a byte order mark, and stays strict if it begins with that (ECMAScript, 11.2.1).
BEGINNING = re.compile(
    rb"(?P<mark>\xef\xbb\xbf)?(?P<strict>\s*(?:(?>/\*.*?\*/|//[^\n]*\n)\s*)*+(?:'use strict'|\"use strict\"))?",
    re.DOTALL,
)
# Where a page or a script names the script of a worker: `new Worker("name")`, `new SharedWorker(new URL("name", …))`,
# `navigator.serviceWorker.register("name")`. Scripts that are named by a variable are often called so, too.
NAMES_WORKER = re.compile(
    rb"(?:Worker|serviceWorker\s*\.\s*register)\s*\(\s*(?:new\s+URL\s*\(\s*)?[\"'`](?P<url>[^\"'`\s]{1,2000})"
)
CALLED_WORKER = re.compile(r"worker|(?:^|[-_.])sw\b", re.IGNORECASE)

POLICIES = ("content-security-policy", "content-security-policy-report-only")


def script_evidence(script: bytes, documents: int, workers: int) -> dict[str, object]:
    """Evidence of the change: how many documents and scripts of workers have the script, and its SHA-256."""
    return {"documents": documents, "workers": workers, "script_sha256": hashlib.sha256(script).hexdigest()}


def workers_named(response: Response, budget: Budget | None = None) -> set[str]:
    """The names of the files, without their folders, that `response` names as scripts of workers. Raises EyelevelError
    when the `budget`, which is spent on its body, is spent."""
    try:
        text = decode(response.body, response.encoding, budget)
    except UndecodableContent:
        return set()
    urls = (match["url"].decode(errors="replace") for match in NAMES_WORKER.finditer(text))
    return {_file_name(url) for url in urls}


def is_worker(url: str, named: Collection[str]) -> bool:
    """Whether the script at `url` is that of a worker, as far as its name and those that are `named` say it."""
    name = _file_name(url)
    return name in named or CALLED_WORKER.search(name) is not None


def worker_with_script(response: Response, script: bytes, budget: Budget | None = None) -> Response | None:
    """`response`, the script of a worker, that begins with `script`; None when it cannot be decoded. The `budget` as in
    `workers_named`."""
    try:
        text = decode(response.body, response.encoding, budget)
        beginning = BEGINNING.match(text)
        assert beginning is not None  # it fits everything
        mark, strict = beginning["mark"] or b"", b'"use strict";' if beginning["strict"] else b""
        body = encode(mark + strict + script + b"\n" + text.removeprefix(mark), response.encoding)
    except UndecodableContent:
        return None
    return response._replace(body=body)


def with_scripts(response: Response, scripts: Sequence[bytes], budget: Budget | None = None) -> Response | None:
    """`response` with `scripts` in it, allowed by its policies; None when it is no HTML document. The `budget` as in
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
    """The script with the time at which the site was recorded, without comments and indentation."""
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
    """Where the first tag that begins so ends; 0 if there is none."""
    beginning = tag.search(document)
    return document.find(b">", beginning.end()) + 1 if beginning else 0


def _allowing(policies: str, sources: str) -> str:
    """Content Security Policies (a header's value) that allow the inline scripts `sources` too (CSP3, section
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
    """Whether any inline script is allowed: hashes and nonces switch 'unsafe-inline' off."""
    lowered = [source.lower() for source in sources]
    strict = any(source.startswith(("'nonce-", "'sha", "'strict-dynamic'")) for source in lowered)
    return "'unsafe-inline'" in lowered and not strict


def _without_none(sources: list[str]) -> list[str]:
    return [source for source in sources if source.lower() != "'none'"]
