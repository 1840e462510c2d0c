"""Variants of a site: `shop@no-fonts` is `shop` with some responses dropped, replaced or delayed, or with further
header fields. A variant is a complete site; its recorder's entry also names its original and the edits."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from base.errors import EyelevelError, Misuse
from base.text import nearest
from record.connections import recorded_rtts
from record.content import UndecodableContent, encode
from record.http1 import NOT_IN_A_LINE, NOT_REPLAYED, SINGLE, TOKEN, MalformedMessage, require_sendable_fields
from record.layout import ORIGINALS
from record.limits import BODY_BYTES, THINK_TIME_S
from record.site import Exchange, Recording, Site

# Keys of `Site.recorder` in a variant: the original's name and digest, and the edits.
ORIGINAL, ORIGINAL_SHA256, EDITS = "variant of", "original sha256", "edits"
DELAY = "delay"


@dataclass(frozen=True)
class Edit:
    """One edit: `kind` (a key of KINDS), the `pattern` of the URLs that it changes (`*` stands for any text, `?` for
    any character), and a `value`: none, a file's path, milliseconds, or a header field `Name: value`."""

    kind: str
    pattern: str
    value: str = ""

    @classmethod
    def parse(cls, kind: str, text: str) -> "Edit":
        """The edit in `text`: `PATTERN`, or `PATTERN -> VALUE`. Raises EyelevelError."""
        pattern, _, value = (part.strip() for part in text.partition(" -> "))
        if not pattern or bool(value) != (kind != "drop"):
            form = "PATTERN" if kind == "drop" else "'PATTERN -> VALUE'"
            raise Misuse(f"--{kind} takes {form}, not {text!r}")
        return cls(kind, pattern, value)

    def matches(self, url: str) -> bool:
        """Whether this edit applies to `url`."""
        # A bracket in a pattern means itself; fnmatch needs it in a set of one character.
        return fnmatchcase(url, self.pattern.replace("[", "[[]"))

    def fault(self, urls: Sequence[str], site: str) -> str:
        """Why this edit changed no response of `site`, which has these `urls`, and the URL that it may have meant: one
        that it matches except for case, scheme, `www.` and a final slash, or else the most similar one."""
        if any(map(self.matches, urls)):
            return f"it changes none of the responses of {site} that it matches"
        loose = replace(self, pattern=_loose(self.pattern))
        near = next((url for url in urls if loose.matches(_loose(url))), None) or nearest(self.pattern, urls)
        return f"it matches no response of {site}{f'; {near} is similar' if near else ''}"


def variant(site: Site, original_sha256: str, edits: Sequence[Edit]) -> Recording:
    """`site` after `edits`, applied in order, as a recording to store. `original_sha256` is the digest of `site`.

    Raises EyelevelError when an edit is not possible or changes nothing, or when there are no edits.
    """
    if not edits:
        raise Misuse(f"{site.name} has no edits: give --drop, --replace, --delay, --header or --hint")
    recording, lines = site.recording(), []
    for edit in edits:
        change = KINDS[edit.kind](edit, recording)
        touched, kept = 0, []
        for exchange in recording.exchanges:
            if not edit.matches(exchange.url):
                kept.append(exchange)
                continue
            edited = change(exchange)
            touched += edited != exchange
            kept += [edited] if edited else []
        if not touched:
            fault = edit.fault([exchange.url for exchange in recording.exchanges], site.name)
            raise EyelevelError(f"--{edit.kind} {edit.pattern}: {fault}")
        recording = replace(recording, exchanges=tuple(kept))
        lines.append(_line(edit, touched))
    made_of = {ORIGINAL: site.name, ORIGINAL_SHA256: original_sha256}
    return replace(recording, recorder={**site.recorder, **made_of, EDITS: "; ".join(lines)})


def is_variant(site: Site) -> bool:
    """Whether `site` is a variant."""
    return ORIGINAL in site.recorder


def require_think_time(site: Site, think_time: bool) -> None:
    """Raises EyelevelError for a variant with delays when servers do not replay think time."""
    edits = site.recorder.get(EDITS, "").split("; ")
    if not think_time and any(edit.startswith(f"{DELAY} ") for edit in edits):
        raise EyelevelError(f"{site.name} has delays, which need THINK_TIME=recorded")


def _loose(url: str) -> str:
    return re.sub(r"^(https?://)?(www\.)?", "", url.lower()).rstrip("/")


def _line(edit: Edit, touched: int) -> str:
    value = edit.value
    if edit.kind == "replace":
        value = f"{Path(value).name} (sha256 {sha256(_content(edit)).hexdigest()})"
    return f"{edit.kind} {edit.pattern}{f' -> {value}' if value else ''} ({touched})"


def _content(edit: Edit) -> bytes:
    try:
        content = Path(edit.value).read_bytes()
    except OSError as error:
        raise EyelevelError(f"{edit.value} cannot be read: {error.strerror}") from None
    if len(content) > BODY_BYTES:
        raise EyelevelError(f"{edit.value} is longer than {BODY_BYTES >> 20} MiB")
    return content


def _drop(edit: Edit, recording: Recording) -> "Change":
    return lambda exchange: None


def _replace(edit: Edit, recording: Recording) -> "Change":
    content = _content(edit)

    def change(exchange: Exchange) -> Exchange:
        response = exchange.response
        if exchange.method != "GET" or response.status != 200:
            raise EyelevelError(f"--replace {edit.pattern}: {exchange.method} {exchange.url} has no body of its own")
        try:
            return replace(exchange, response=response._replace(body=encode(content, response.encoding)))
        except UndecodableContent as error:
            raise EyelevelError(f"--replace {edit.pattern}: {error}") from None

    return change


def _delay(edit: Edit, recording: Recording) -> "Change":
    if not edit.value.isdecimal() or not 0 < int(edit.value) <= THINK_TIME_S * 1000:
        raise Misuse(f"--delay takes whole ms up to {1000 * THINK_TIME_S:.0f}, not {edit.value!r}")
    rtts = recorded_rtts(recording.connections)

    def change(exchange: Exchange) -> Exchange:
        # Think time is the time to the first byte minus the round trip.
        rtt = rtts.get(exchange.recorded_ip)
        return replace(exchange, ttfb_ms=float(edit.value) + (rtt.rtt_ms if rtt else 0.0))

    return change


def _header(edit: Edit, recording: Recording) -> "Change":
    name, _, value = (part.strip() for part in edit.value.partition(":"))
    lower = name.lower()
    if not TOKEN.fullmatch(name) or not value or NOT_IN_A_LINE.search(value) or not value.isascii():
        raise Misuse(f"--header takes a field 'Name: value' in ASCII, not {edit.value!r}")
    if lower in NOT_REPLAYED | ORIGINALS | {"content-length", "content-encoding"}:
        raise Misuse(f"--header {name}: this field is the servers' own")

    def change(exchange: Exchange) -> Exchange:
        kept = tuple(field for field in exchange.response.headers if lower not in SINGLE or field[0].lower() != lower)
        headers = (*kept, (name, value))
        try:
            require_sendable_fields(headers)
        except MalformedMessage as error:
            raise EyelevelError(f"--header {edit.pattern}: {error}") from None
        return replace(exchange, response=exchange.response._replace(headers=headers))

    return change


def _hint(edit: Edit, recording: Recording) -> "Change":
    return _header(replace(edit, value=f"Link: {edit.value}"), recording)


# The change that an edit makes to an exchange; None drops the exchange.
Change = Callable[[Exchange], Exchange | None]
KINDS: dict[str, Callable[[Edit, Recording], Change]] = {
    "drop": _drop,
    "replace": _replace,
    DELAY: _delay,
    "header": _header,
    "hint": _hint,
}
