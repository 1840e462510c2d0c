"""Rules, fixed before a campaign, that decide whether a run counts.

A gate examines the evidence of a run and returns the reason why the run must not count, or None. It compares the
evidence with the properties that the run is claimed to have (`Claim`), never with the settings that were meant to cause
them. A new gate is an entry in `GATES`: its name, its check, and how it counts against a run. Gates that compare a run
with others are in `measure.campaign.expectations`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from browsers.contract import NAME_NOT_RESOLVED, Request
from dataset.gates import KIND_OF_GATE, MACHINE
from dataset.reasons import Reason
from measure.host.canary import BUSY
from measure.host.device_index import TOLERANCE_AFTER, is_near
from measure.instruments.pace import INDEX_AFTER, SHARE
from record.connections import HTTP1
from tuning.devices import Device

if TYPE_CHECKING:
    from measure.run.evidence import Evidence

SHOWN_URL_LENGTH = 100
# RFC 9110, section 15.5.2
UNAUTHORIZED = 401

# A busy browser reports its first paint late: in 70 runs of seven sites, the film was ahead of the report by up to 746
# ms. The longest round trip of a network in the paper is 750 ms.
FILM_AHEAD_MS = 1500
# The orange disappears some 10 ms before navigation start, and later if the processors are busy.
ORANGE_OFF_MS = 500
# If a packet is later than this, which is the shortest round trip of a network in the paper, the network was not
# emulated as it should be.
LATE_WAKEUP_MS = 24
LATE_WAKEUPS = 500
# Time synchronisation corrects a clock by some ms an hour. If the clock shifts by more than this within one run,
# somebody has set it.
CLOCK_SHIFT_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The properties that a run is claimed to have: all of them, so that no gate lacks one.

    `http_version`: h2 or h3. `further_versions`: those that the browser may also use; if it `knows_alternative`, it
    knows of them when it requests the page. `servers`: the addresses of the site's servers. `hosts`: the recorded
    hosts. `window`: the size of the page's window in pixels. `limit_s`: the longest time that the load may have taken.
    `http1_servers`: those of the servers that speak only HTTP/1.1. `cross_traffic`: each background flow's name,
    direction and congestion control. `device`: the device on which the page was loaded; None for this machine as it is.
    `scripted`: whether the site has a page script.
    """

    http_version: str
    servers: Collection[str]
    hosts: Collection[str]
    window: tuple[int, int] | None
    filmed: bool
    limit_s: float | None
    http1_servers: Collection[str]
    cross_traffic: tuple[tuple[str, str, str], ...]
    further_versions: tuple[str, ...]
    knows_alternative: bool
    device: Device | None
    scripted: bool


@dataclass(frozen=True)
class Gate:
    """A rule: `name` stands in `runs.csv`; `check` returns why a run must not count, or None.

    `attempts`: as how many attempts a rejection counts against the run. `about_load`: whether the gate judges only
    whether the page loaded as it should, so that it also applies if a page is loaded for another purpose than its
    times.
    """

    name: str
    check: Callable[[Evidence, Claim], str | None]
    attempts: int = 1
    about_load: bool = False

    @property
    def is_of_machine(self) -> bool:
        """Whether the gate's rejections are the machine's fault, not the page's. Up to MACHINE_RETRIES of them do not
        count against a run."""
        return KIND_OF_GATE.get(self.name) == MACHINE


def replay(evidence: Evidence, claim: Claim) -> str | None:
    """The replay failed, which is the testbed's fault."""
    return evidence.replay_failure


def over_time(evidence: Evidence, claim: Claim) -> str | None:
    """The page took longer to load than allowed."""
    if claim.limit_s is None or evidence.browsed_s < claim.limit_s:
        return None
    # As long as the first page has not come, the browser reports the load time of the empty page before it.
    waiting = [request for request in evidence.requests if request.main_frame][-1:]
    unanswered = any(page.status is None and page.error is None for page in waiting)
    # The driver measures from a later start than the page does. So the page may have taken longer than the limit
    # although the driver saw it loaded in time.
    late = evidence.plt is None or evidence.plt > 1000 * claim.limit_s
    return f"not loaded within {claim.limit_s:g} s{_login(evidence)}" if late or unanswered else None


def load_failed(evidence: Evidence, claim: Claim) -> str | None:
    """The browser could not be driven through the load, or a part of the evidence is missing."""
    return "; ".join(evidence.failures) or None


def goes_on(evidence: Evidence, claim: Claim) -> str | None:
    """The page navigated to another one by itself (by a Refresh field, a script or a form), or loaded itself again, and
    the times of the last page, counted from the first navigation, are not known: that page failed, or it is unknown
    when the first navigation began. The browser's own times are only those of the last page."""
    pages = [request for request in evidence.requests if request.main_frame and request.is_of_web]
    # Some requests for pages do not come from the page: the testbed's own navigation, of which a return visit has two;
    # and the browser's second request for a page that failed, or that needs hints (Critical-CH).
    led = [
        place
        for place, (before, page) in enumerate(pairwise(pages), 1)
        if not page.redirected and not before.error
        if page.url not in (pages[0].url, before.url) or (page.initiator or "").startswith("http")
    ]
    if not led:
        return None
    first, last, end = pages[led[0] - 1], pages[led[-1]], pages[-1]
    fault = _fault(end)
    if evidence.followed_ms and not fault:
        return None
    # The first page is still shown if the response had no content, was a download, or got its own window.
    if evidence.page_url == first.url.partition("#")[0] != last.url:
        return None
    if first.url == last.url:
        return f"the page loads itself again: {_short(first)}"
    text = f"the page {_short(first)} goes on to {_short(last)} by itself"
    if fault:
        return f"{text}, and {fault}; record it from there on" + ("" if end is last else f" ({_short(end)})")
    if last.method != "GET":
        return f"{text}, by a form ({last.method}), with which no measurement can begin"
    return f"{text}; import the recording with URL={_short(last)} to measure that one"


def load_unfinished(evidence: Evidence, claim: Claim) -> str | None:
    """The page's load event did not come in time."""
    return f"there was no load event{_login(evidence)}" if evidence.plt is None else None


def page_script_unfinished(evidence: Evidence, claim: Claim) -> str | None:
    """The page script did not do all of its steps."""
    if not claim.scripted or (evidence.script and evidence.script["ended"]):
        return None
    if not evidence.script:
        return "the page had no page script at its end: it is not a document of HTML, or a step left it"
    if fault := evidence.script["fault"]:
        return f"the page script failed: {fault}"
    steps = ", ".join(step for step, _ in evidence.script["steps"])
    return f"the page script did not end: {f'it did {steps}' if steps else 'none of its steps was done'}"


def opens_window(evidence: Evidence, claim: Claim) -> str | None:
    """The page opened a window or a dialog, which covers it in the film."""
    return "the page opened a window, or the dialog for printing" if evidence.windows > 1 else None


def error_page(evidence: Evidence, claim: Claim) -> str | None:
    """The page that was shown is not the recorded one."""
    pages = [request for request in evidence.requests if request.main_frame]
    if pages and (fault := _fault(pages[-1])):
        return f"{fault}: {_short(pages[-1])}"
    if evidence.failures:
        return None
    if not pages:
        return "no page was requested"
    return f"the page had no response: {_short(pages[-1])}" if pages[-1].status is None else None


def wrong_protocol(evidence: Evidence, claim: Claim) -> str | None:
    """A request went over another protocol than the one under test."""
    versions = (claim.http_version, *claim.further_versions, *([HTTP1] if claim.http1_servers else ()))
    of_servers = versions[: 1 + len(claim.further_versions)]
    for request in evidence.requests:
        allowed = (HTTP1,) if request.address in claim.http1_servers else of_servers if request.address else versions
        if request.protocol not in (None, *allowed):
            return f"{request.protocol} instead of {allowed[0]}: {_short(request)}"
    for version, count in evidence.har_protocols.items():
        if version not in versions:
            return f"{count} request(s) over {version or 'an unknown protocol'} instead of {claim.http_version}"
    return None


def alternative_unknown(evidence: Evidence, claim: Claim) -> str | None:
    """The browser could not learn of the alternative as it should have. (Whether the browser used the alternative is a
    result. A gate that required this would reject exactly those loads in which the other version won the race.)"""
    if not claim.further_versions:
        return None
    other = " and ".join(claim.further_versions)
    if claim.knows_alternative:
        known = any(request.knows_alternative for request in evidence.requests if request.main_frame)
        return None if known else f"the browser did not know of {other} when it requested the page"
    announced = any(request.announces_alternative for request in evidence.requests)
    return None if announced else f"no response announced {other}"


def tcp_beside_quic(evidence: Evidence, claim: Claim) -> str | None:
    """The browser tried TCP, although the page was to be loaded only over QUIC: waiting for an answer over TCP takes
    time."""
    if claim.http_version != "h3" or not evidence.tcp_syns:
        return None
    # No browser uses WebSockets over HTTP/3. So if the page opens one, connections over TCP prove nothing.
    if any(urlsplit(request.url).scheme in ("ws", "wss") for request in evidence.requests):
        return None
    return f"the browser tried {evidence.tcp_syns} time(s) to connect over TCP (by SYN, or through a proxy)"


def outside(evidence: Evidence, claim: Claim) -> str | None:
    """A request was answered by something other than the site's servers."""
    for request in evidence.requests:
        if request.address is not None and request.address not in claim.servers:
            return f"{request.address} is not a server of the site: {_short(request)}"
    return None


def request_failed(evidence: Evidence, claim: Claim) -> str | None:
    """A recorded host did not answer."""
    for request in evidence.requests:
        if request.by_browser or request.error in (None, NAME_NOT_RESOLVED):
            continue
        url = urlsplit(request.url)
        # Some requests can have no answer: those for other kinds of URLs, such as `about:blank;`, and those to hosts
        # that were not recorded.
        if url.scheme in ("http", "https") and url.hostname in claim.hosts:
            return f"{request.error}: {_short(request)}"
    return None


def film_unclean(evidence: Evidence, claim: Claim) -> str | None:
    """The film does not change from orange to blank when the page is navigated to: the film began too late, or its
    clock is not the page's."""
    start = evidence.film
    if not claim.filmed:
        return None
    if start is None:
        return "there is no film"
    if not start.orange_ms:
        return "the film does not start with orange"
    if start.blank_ms is None or not start.blank_after:
        return "the film does not go from orange to a blank page"
    if abs(start.blank_ms) > ORANGE_OFF_MS:
        side = "before" if start.blank_ms < 0 else "after"
        return f"the film's orange disappeared {abs(start.blank_ms):.0f} ms {side} navigation start"
    return None


def film_incomplete(evidence: Evidence, claim: Claim) -> str | None:
    """The film does not show the screen's final look, so the film lacks changes."""
    if not claim.filmed or not evidence.film_missed_pixels:
        return None
    return f"{evidence.film_missed_pixels} pixels of the screen's final look are not in the film"


def visual_metrics_missing(evidence: Evidence, claim: Claim) -> str | None:
    """The film has no visual metrics, or shows a page that never changed, or that has the colours of the blank page in
    the end: its Speed Index is 0, and is no time."""
    if not claim.filmed:
        return None
    if evidence.visual is None:
        return "there are no visual metrics"
    if evidence.visual.fvc <= 0:
        return "the film shows no change"
    if evidence.visual.si <= 0:
        return "the Speed Index is 0: the film ends with the colours of the blank page"
    return None


def other_display(evidence: Evidence, claim: Claim) -> str | None:
    """The film does not show this run's browser: the film has another size than the window, or shows the page before
    the browser had painted any of it."""
    if claim.window and evidence.film_size not in (None, claim.window):
        return f"the film is {evidence.film_size} pixels large, the window {claim.window}"
    # If the first page navigated to another one by itself, the film shows both, and `first_paint` is that of the
    # second.
    if evidence.visual and evidence.first_paint is not None and not evidence.followed_ms:
        ahead_ms = evidence.first_paint - evidence.visual.fvc
        if ahead_ms > FILM_AHEAD_MS:
            return f"the film shows the page {ahead_ms:.0f} ms before the browser painted"
    return None


def machine_busy(evidence: Evidence, claim: Claim) -> str | None:
    """The machine had no time for the emulated network, or was much slower than usual before the block."""
    if evidence.latest_wakeup_ms > LATE_WAKEUP_MS or evidence.late_wakeups > LATE_WAKEUPS:
        times, worst = evidence.late_wakeups, evidence.latest_wakeup_ms
        return f"the emulated network was more than 1 ms late {times} times, {worst:.1f} ms at worst"
    if evidence.slowness > BUSY:
        return f"the canary took {evidence.slowness:.1f} times as long as usual"
    return None


def other_device(evidence: Evidence, claim: Claim) -> str | None:
    """The browser did not run at the device's pace, or did not present itself to the page as the device's."""
    if not claim.device:
        return None
    if evidence.readings.get(SHARE) is None:
        return f"the browser did not run at the pace of {claim.device.name}"
    expected = {
        "width": claim.device.width,
        "height": claim.device.height,
        "pixel_ratio": claim.device.pixel_ratio,
        "touch": True,
        "platform": "Android",
    }
    if evidence.device != expected:
        return f"the page saw a device that is {evidence.device}, not {expected}"
    return None


def pace_not_kept(evidence: Evidence, claim: Claim) -> str | None:
    """The processor had the device's pace before the block, but not at its end, or the pace was not measured at the
    end."""
    if not claim.device:
        return None
    if (index := evidence.readings.get(INDEX_AFTER)) is None:
        return f"the pace of {claim.device.name} was not checked after the block"
    if not is_near(claim.device, index, TOLERANCE_AFTER):
        return f"the index of {claim.device.name} was {index:.0f} after the block, not {claim.device.index:g}"
    return None


def beyond_lane(evidence: Evidence, claim: Claim) -> str | None:
    """A process of the run could run on processors of another lane, and disturb what is measured there."""
    if not evidence.strange_cores:
        return None
    return f"a process could run on the processors {list(evidence.strange_cores)}, which are not its lane's"


def clock_shifted(evidence: Evidence, claim: Claim) -> str | None:
    """The machine's clock was set to another time while the page loaded. The browser's times depend on this clock."""
    if abs(evidence.clock_shift_s) > CLOCK_SHIFT_S:
        return f"the machine's clock was set {evidence.clock_shift_s:+.1f} s off while the page loaded"
    return None


def cross_traffic_missing(evidence: Evidence, claim: Claim) -> str | None:
    """A background flow of the network was missing, transferred nothing, or was a different one."""
    there = tuple((flow.name, flow.direction, flow.congestion_control) for flow in evidence.cross_traffic)
    if there != claim.cross_traffic:
        said = [", ".join(map(" ".join, flows)) or "none" for flows in (there, claim.cross_traffic)]
        return f"the background flows were {said[0]}, not {said[1]}"
    for flow in evidence.cross_traffic:
        if not flow.run_bytes:
            return f"the background flow {flow.name} {flow.direction} did not move"
    return None


# The number of rejections through the machine's fault that do not count against a run.
MACHINE_RETRIES = 10

REPLAY = Gate("replay", replay, about_load=True)
CROSS_TRAFFIC_MISSING = Gate("cross_traffic_missing", cross_traffic_missing)
MACHINE_BUSY = Gate("machine_busy", machine_busy)
CLOCK_SHIFTED = Gate("clock_shifted", clock_shifted)
LOAD_FAILED = Gate("load_failed", load_failed, about_load=True)
# A page that took too long would take as long again, so the run is given up after a single rejection.
OVER_TIME = Gate("over_time", over_time, attempts=101, about_load=True)

# The gates, in order: the first one that rejects a run gives the reason.
GATES: list[Gate] = [
    REPLAY,
    OVER_TIME,
    # The next two come before LOAD_FAILED, since they say more than Browsertime's own error does in the same case.
    Gate("goes_on", goes_on, about_load=True),
    Gate("error_page", error_page, about_load=True),
    LOAD_FAILED,
    Gate("opens_window", opens_window, about_load=True),
    Gate("load_unfinished", load_unfinished, about_load=True),
    Gate("page_script_unfinished", page_script_unfinished, about_load=True),
    Gate("wrong_protocol", wrong_protocol, about_load=True),
    Gate("alternative_unknown", alternative_unknown, about_load=True),
    Gate("tcp_beside_quic", tcp_beside_quic, about_load=True),
    Gate("outside", outside, about_load=True),
    Gate("request_failed", request_failed),
    Gate("film_unclean", film_unclean),
    Gate("film_incomplete", film_incomplete),
    Gate("visual_metrics_missing", visual_metrics_missing),
    Gate("other_display", other_display),
    CROSS_TRAFFIC_MISSING,
    MACHINE_BUSY,
    CLOCK_SHIFTED,
    Gate("beyond_lane", beyond_lane),
    Gate("other_device", other_device),
    Gate("pace_not_kept", pace_not_kept),
]


def reason_against(evidence: Evidence, claim: Claim, gates: Iterable[Gate] = GATES) -> Reason | None:
    """The reason of the first gate that rejects the run; None if the run counts."""
    for gate in gates:
        if text := gate.check(evidence, claim):
            return Reason(gate.name, text)
    return None


def is_of_machine(reason: Reason | None) -> bool:
    """Whether `reason` blames the machine, not the page."""
    return reason is not None and KIND_OF_GATE.get(reason.gate) == MACHINE


def attempts_against(reason: Reason | None) -> int:
    """As how many attempts an attempt that was rejected for `reason` counts against its run."""
    return next((gate.attempts for gate in GATES if reason and gate.name == reason.gate), 1)


def is_over_time(reason: Reason | None) -> bool:
    """Whether `reason` says that the page took longer than allowed."""
    return reason is not None and reason.gate == OVER_TIME.name


def _login(evidence: Evidence) -> str:
    """The login for which a part of the page may have waited, as the end of a sentence; empty if there is none."""
    asking = (request for request in evidence.requests if request.status == UNAUTHORIZED and not request.by_browser)
    return next((f", and a login is asked for (status {UNAUTHORIZED}): {_short(request)}" for request in asking), "")


def _fault(page: Request) -> str | None:
    """Why the page was not shown: an error of the network, or the status of the response; None if the page was
    shown."""
    if page.error:
        return f"the page failed with {page.error}"
    if page.status == UNAUTHORIZED:
        return f"the page asks for a login (status {page.status})"
    return f"the page's status is {page.status}" if page.status is not None and page.status >= 400 else None


def _short(request: Request) -> str:
    return request.url if len(request.url) <= SHOWN_URL_LENGTH else f"{request.url[:SHOWN_URL_LENGTH]}…"
