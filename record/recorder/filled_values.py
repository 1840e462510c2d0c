"""The values that a page script fills in are not kept: which exchanges have one."""

from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from record.content import UndecodableContent, decode
from record.site import Exchange


def filled_in(exchange: Exchange, values: Mapping[str, str]) -> str | None:
    """The name of the first of `values` (by name) that is in the URL, the header fields or the body of `exchange`, as
    it is or as URLs and forms encode it; None if none is."""
    response = exchange.response
    try:
        body = decode(response.body, response.encoding)
    except UndecodableContent:
        body = response.body
    fields = [f"{name}: {value}" for name, value in (*response.headers, *exchange.request_headers)]
    text = "\n".join([exchange.url, *fields]).encode(errors="surrogateescape") + b"\n" + body
    # As it is, as URLs and as forms encode it.
    forms = (text, unquote_to_bytes(text), unquote_to_bytes(text.replace(b"+", b" ")))
    return next((name for name, value in values.items() if any(value.encode() in form for form in forms)), None)
