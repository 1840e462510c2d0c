"""Rules, fixed before a campaign, by which a run counts or not.

A gate looks at the evidence of a run and says why the run must not count, or None. It compares with what
the run is said to be (`Claim`), never with the settings that were meant to bring it about. A new gate is
a function here and a line in `GATES`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from measure.evidence import Evidence
from measure.netlog import Request

# What the browser calls a protocol, by transport.
HTTP_VERSION = {"tcp": "h2", "quic": "h3"}
SHOWN_URL_LENGTH = 100


@dataclass(frozen=True)
class Claim:
    """What a run is said to be: its HTTP version (h2 or h3) and the addresses of the site's servers."""

    http_version: str
    servers: Collection[str]


Gate = Callable[[Evidence, Claim], str | None]


def load_failed(evidence: Evidence, claim: Claim) -> str | None:
    """The browser could not be driven through the load, or a part of the evidence is missing."""
    return "; ".join(evidence.failures) or None


def load_unfinished(evidence: Evidence, claim: Claim) -> str | None:
    """The page's load event did not come in time."""
    return "there was no load event" if evidence.plt is None else None


def error_page(evidence: Evidence, claim: Claim) -> str | None:
    """The page that was shown is not the recorded one."""
    pages = [request for request in evidence.requests if request.main_frame]
    if not pages:
        return "no page was asked for"
    last = pages[-1]
    if last.error:
        return f"the page failed with {last.error}: {_short(last)}"
    if last.status is None or last.status >= 400:
        return f"the page's status is {last.status}: {_short(last)}"
    return None


def wrong_protocol(evidence: Evidence, claim: Claim) -> str | None:
    """A request went over another protocol than the one under test."""
    for request in evidence.requests:
        if request.protocol not in (None, claim.http_version):
            return f"{request.protocol} instead of {claim.http_version}: {_short(request)}"
    for version, count in evidence.har_protocols.items():
        if version != claim.http_version:
            return f"{count} request(s) over {version or 'an unknown protocol'} instead of {claim.http_version}"
    return None


def outside(evidence: Evidence, claim: Claim) -> str | None:
    """Something answered that is not one of the site's servers."""
    for request in evidence.requests:
        if request.address is not None and request.address not in claim.servers:
            return f"{request.address} is no server of the site: {_short(request)}"
    return None


def request_failed(evidence: Evidence, claim: Claim) -> str | None:
    """A recorded host did not answer."""
    for request in evidence.requests:
        if not request.own and request.error not in (None, "ERR_NAME_NOT_RESOLVED"):
            return f"{request.error}: {_short(request)}"
    return None


def film_unclean(evidence: Evidence, claim: Claim) -> str | None:
    """The film does not go from orange to blank at once, so its zero or its first change is not to be trusted."""
    start = evidence.film
    if start is None:
        return "there is no film"
    if not start.orange_frames:
        return "the film does not start with orange"
    if not start.blank_after:
        return "the film does not go from orange to a blank page"
    return None


def visual_metrics_missing(evidence: Evidence, claim: Claim) -> str | None:
    """The film gave no visual metrics, or shows a page that never changed."""
    if evidence.visual is None:
        return "there are no visual metrics"
    if evidence.visual.fvc <= 0:
        return "the film shows no change"
    return None


LOAD_GATES: tuple[Gate, ...] = (load_failed, error_page, load_unfinished, wrong_protocol, outside)
GATES: tuple[Gate, ...] = (*LOAD_GATES, request_failed, film_unclean, visual_metrics_missing)


def reason_against(evidence: Evidence, claim: Claim, gates: tuple[Gate, ...] = GATES) -> str | None:
    """The first gate's reason why the run must not count, with the gate's name before it, or None."""
    for gate in gates:
        if reason := gate(evidence, claim):
            return f"{gate.__name__}: {reason}"
    return None


def _short(request: Request) -> str:
    return request.url if len(request.url) <= SHOWN_URL_LENGTH else f"{request.url[:SHOWN_URL_LENGTH]}…"
