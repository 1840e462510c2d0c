"""The log of all requests of Firefox's network stack, its own included, which `note_requests.js` makes it keep.

It is what Firefox tells its own developer tools. The HAR, which comes from there, too, lacks requests that failed,
those of the browser itself, and addresses; Firefox's text logs (MOZ_LOG) have all, in words that change.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from browsers.contract import NAME_NOT_RESOLVED, Request

# The parts of Firefox whose errors are the network's: a code has the part's number, and 0x45, above its lower 16 bits
# (xpcom/base/ErrorList.py).
NETWORK, SECURITY = 6, 21
MODULE_OFFSET, MODULE_MASK = 0x45, 0x1FFF
# The errors that have a code of the network's, but are of requests that the page, the browser or its caches ended.
OF_NO_NETWORK = frozenset(
    {
        "NS_BINDING_ABORTED",
        "NS_BINDING_REDIRECTED",
        "NS_BINDING_RETARGETED",
        "NS_ERROR_BLOCKED_BY_POLICY",
        "NS_ERROR_DOCUMENT_NOT_CACHED",
        "NS_ERROR_DOM_CORP_FAILED",
        "NS_ERROR_PARSED_DATA_CACHED",
    }
)
NAMES = {"NS_ERROR_UNKNOWN_HOST": NAME_NOT_RESOLVED}


def read_requests(path: Path) -> list[Request]:
    """The requests in the log at `path`, in the order they were made; its last line may have been cut short.

    Raises ValueError or KeyError when it is broken elsewhere.
    """
    with gzip.open(path, "rt", errors="replace") as file:
        lines = file.read().split("\n")
    requests: dict[int, Request] = {}
    # The text after the last line's end is empty, or was cut short.
    for line in lines[:-1]:
        note = json.loads(line)
        channel, at_s = note["channel"], note["at_ms"] / 1000
        if "url" in note:
            requests[channel] = _begun(note, at_s)
        _follow(requests[channel], note, at_s)
    return list(requests.values())


def _begun(note: dict[str, Any], at_s: float) -> Request:
    url: str = note["url"]
    return Request(
        # Firefox's channel of a WebSocket has the URL of its handshake.
        url=url.replace("http", "ws", 1) if note["web_socket"] else url,
        method=note["method"],
        main_frame=note["main_frame"],
        by_browser=note["by_browser"],
        initiator=note["initiator"],
        began_s=at_s,
        redirected=note["redirected"],
    )


def _follow(request: Request, note: dict[str, Any], at_s: float) -> None:
    """Add to `request` what one more line has about it."""
    if "code" in note:
        request.ended_s = at_s
        module = ((note["code"] >> 16) - MODULE_OFFSET) & MODULE_MASK
        if module in (NETWORK, SECURITY) and note["error"] not in OF_NO_NETWORK:
            request.error = NAMES.get(note["error"], note["error"])
    request.status = note.get("status", request.status)
    request.protocol = note.get("protocol") or request.protocol
    request.address = note.get("address") or request.address
