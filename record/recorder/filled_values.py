"""Finds exchanges that contain a value that a page script filled in; these are not stored."""

from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from record.content import UndecodableContent, decode
from record.site import Exchange


def filled_in(exchange: Exchange, values: Mapping[str, str]) -> str | None:
    """The name of the first of `values` (name → value) that occurs in the URL, the header fields or the body of
    `exchange`, plainly or encoded as in URLs and forms; None if none does."""
    response = exchange.response
    try:
        body = decode(response.body, response.encoding)
    except UndecodableContent:
        body = response.body
    fields = [f"{name}: {value}" for name, value in (*response.headers, *exchange.request_headers)]
    text = "\n".join([exchange.url, *fields]).encode(errors="surrogateescape") + b"\n" + body
    # Plain text, text encoded as in URLs, and text encoded as in forms.
    forms = (text, unquote_to_bytes(text), unquote_to_bytes(text.replace(b"+", b" ")))
    return next((name for name, value in values.items() if any(value.encode() in form for form in forms)), None)
