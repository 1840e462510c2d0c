"""Firefox's log of all requests, its own included, written through `note_requests.js`.

The data comes from the interface of Firefox's developer tools. The HAR comes from there, too, but lacks failed
requests, the browser's own requests, and addresses. Firefox's text logs (MOZ_LOG) contain all of them, but their
wording changes.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from browsers.contract import NAME_NOT_RESOLVED, Request

# The modules of Firefox whose errors are the network's. The upper 16 bits of an error code are the module's number plus
# 0x45 (xpcom/base/ErrorList.py).
NETWORK, SECURITY = 6, 21
MODULE_OFFSET, MODULE_MASK = 0x45, 0x1FFF
# Errors with a code of the network's modules that were caused by the page, the browser or its caches.
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
    """The requests in the log at `path`, in the order they were made; its last line may be cut off.

    Raises ValueError or KeyError when it is broken elsewhere.
    """
    with gzip.open(path, "rt", errors="replace") as file:
        lines = file.read().split("\n")
    requests: dict[int, Request] = {}
    # After the last line end there is nothing, or a line that was cut off.
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
        # For a WebSocket, Firefox logs the URL of its handshake.
        url=url.replace("http", "ws", 1) if note["web_socket"] else url,
        method=note["method"],
        main_frame=note["main_frame"],
        by_browser=note["by_browser"],
        initiator=note["initiator"],
        began_s=at_s,
        redirected=note["redirected"],
    )


def _follow(request: Request, note: dict[str, Any], at_s: float) -> None:
    """Update `request` with one line of the log."""
    if "code" in note:
        request.ended_s = at_s
        module = ((note["code"] >> 16) - MODULE_OFFSET) & MODULE_MASK
        if module in (NETWORK, SECURITY) and note["error"] not in OF_NO_NETWORK:
            request.error = NAMES.get(note["error"], note["error"])
    request.status = note.get("status", request.status)
    request.protocol = note.get("protocol") or request.protocol
    request.address = note.get("address") or request.address
