"""How well a recorded response fits a request, apart from its URL.

This depends on ranges (RFC 9110, section 14), and on whether the client already has the resource (section 13).
`servers/quic/fit.cc` is the same in C++. Standard library only: uWSGI's interpreter loads this file.
"""

import re
from enum import IntEnum

# The numbers have at most as many digits as a file's length.
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class Fit(IntEnum):
    """The fits, the best first."""

    AS_ASKED = 0  # the requested range; without a requested range, a response that is not partial
    SHORTER = 1  # only the beginning of the requested range
    WHOLE = 2  # the whole resource, although a range was requested (section 14.2)
    # Another range; a partial response, although no range was requested; a 304, although the client has no copy.
    NOT = 3


def fit_of(requested_range: str | None, conditional: bool, status: int, content_range: str | None) -> Fit:
    """How well a response with `status` and `content_range` fits a request.

    `requested_range`: the request's Range; `conditional`: whether it has If-None-Match or If-Modified-Since.
    """
    if status == 304:
        return Fit.AS_ASKED if conditional else Fit.NOT
    if status == 206:
        return _fit_of_part(requested_range, content_range or "") if requested_range else Fit.NOT
    return Fit.WHOLE if requested_range else Fit.AS_ASKED


def _fit_of_part(requested_range: str, content_range: str) -> Fit:
    """The fit of a response to one range. For a request with several ranges, no part fits."""
    recorded = CONTENT_RANGE.fullmatch(content_range)
    requested = RANGE.fullmatch(requested_range)
    if recorded is None or requested is None:
        return Fit.NOT
    first, last = int(recorded[1]), int(recorded[2])
    total = None if recorded[3] == "*" else int(recorded[3])
    to_end = last + 1 == total
    if not requested[1]:  # a suffix: the number of bytes at the end
        fits = requested[2] and to_end and first == max(last + 1 - int(requested[2]), 0)
        return Fit.AS_ASKED if fits else Fit.NOT
    if int(requested[1]) != first:
        return Fit.NOT
    if not requested[2]:
        return Fit.AS_ASKED if to_end or total is None else Fit.SHORTER
    if last > int(requested[2]):
        return Fit.NOT
    return Fit.AS_ASKED if to_end or last == int(requested[2]) else Fit.SHORTER
