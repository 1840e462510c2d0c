"""Every gate rejects the faults for which it exists, names itself, and accepts a valid run."""

from dataclasses import replace
from typing import Any

import pytest

from browsers.contract import Request
from dataset.reasons import Reason
from films.frames import FilmStart
from films.visual_metrics import VisualMetrics
from measure.host.canary import BUSY
from measure.instruments.cross_traffic import CrossTrafficFlow
from measure.instruments.pace import INDEX_AFTER, SHARE
from measure.run.evidence import Evidence, RequestCounts
from measure.run.gates import (
    CLOCK_SHIFT_S,
    FILM_AHEAD_MS,
    GATES,
    LATE_WAKEUP_MS,
    LATE_WAKEUPS,
    Claim,
    reason_against,
)
from tuning.devices import Device

CROSS_TRAFFIC = (("cubic", "down", "cubic"),)
CLAIM = Claim(
    http_version="h3",
    servers={"198.18.0.1", "198.18.0.2"},
    hosts={"a.example", "b.example"},
    window=(1366, 768),
    filmed=True,
    limit_s=60,
    http1_servers=(),
    cross_traffic=CROSS_TRAFFIC,
    further_versions=(),
    knows_alternative=False,
    device=None,
    scripted=False,
)
VIEW = {"width": 360, "height": 640, "pixel_ratio": 3.0, "platform": "Android"}
FLOW = CrossTrafficFlow("cubic", "down", "cubic", run_bytes=1000)
PAGE = Request("https://a.example/", "GET", True, False, "198.18.0.1", "h3", 200)
NEXT = replace(PAGE, url="https://a.example/en/", initiator="https://a.example")
IMAGE = Request("https://b.example/i", "GET", False, False, "198.18.0.2", "h3", 200)
SOUND = Evidence(
    failures=(),
    plt=1000.0,
    visual=VisualMetrics(500, 900, 700, 650),
    film=FilmStart(orange_ms=400, blank_ms=-9, blank_after=True),
    requests=(PAGE, IMAGE),
    har_protocols={"h3": 2},
    request_counts=RequestCounts(2, 2, 0, 2),
    first_paint=510.0,
    film_size=(1366, 768),
    film_missed_pixels=0,
    late_wakeups=3,
    latest_wakeup_ms=3.7,
    cross_traffic=(FLOW,),
)


def with_request(request: Request) -> Evidence:
    return replace(SOUND, requests=(PAGE, request))


def named(reason: Reason | None) -> str | None:
    """The gate that `reason` names."""
    return reason.gate if reason else None


PHONE = Device("phone", "a phone", 360, 640, 3.0, 400, 4)
ON_PHONE = replace(
    SOUND,
    readings={SHARE: 0.4, INDEX_AFTER: 399},
    page={"browserScripts": [{"custom": {"view": {"device": {**VIEW, "touch": True}}}}]},
)
# Runs that claim to be on a phone.
FAULTS_ON_PHONE = {
    "other_device": [
        replace(ON_PHONE, readings={}),
        replace(ON_PHONE, page={}),
        replace(ON_PHONE, page={"browserScripts": [{"custom": {"view": {"device": {**VIEW, "touch": False}}}}]}),
    ],
    "pace_not_kept": [
        replace(ON_PHONE, readings={SHARE: 0.4, INDEX_AFTER: None}),
        replace(ON_PHONE, readings={SHARE: 0.4, INDEX_AFTER: 442}),
        replace(ON_PHONE, readings={SHARE: 0.4, INDEX_AFTER: 359}),
    ],
}

# The script of a page: what it did, and why the run then does not count.
SCRIPT = {"steps": [["click #in", 12]], "ended": True, "fault": None}
UNFINISHED: list[tuple[dict[str, Any] | None, str]] = [
    (None, "no page script at its end"),
    (SCRIPT | {"ended": False}, "it did click #in"),
    (SCRIPT | {"ended": False, "steps": []}, "none of its steps"),
    (SCRIPT | {"ended": False, "fault": "Error: no"}, "failed: Error: no"),
]

FAULTS = {
    "replay": [replace(SOUND, replay_failure="no nginx"), replace(SOUND, replay_failure="no nginx", plt=None)],
    "over_time": [
        replace(SOUND, plt=None, browsed_s=61),
        replace(SOUND, plt=None, browsed_s=61, failures=("it broke",)),
        replace(SOUND, plt=60_500, browsed_s=61),
        replace(SOUND, plt=10, browsed_s=61, requests=(replace(PAGE, status=None),)),
    ],
    "load_failed": [
        replace(SOUND, failures=("browsertime.json is missing",)),
        replace(SOUND, failures=("it broke",), requests=()),
        replace(SOUND, failures=("it broke",), requests=(replace(PAGE, status=None),)),
    ],
    "opens_window": [replace(SOUND, page={"browserScripts": [{"custom": {"windows": 2}}]})],
    "goes_on": [
        replace(SOUND, requests=(PAGE, NEXT)),
        replace(SOUND, requests=(PAGE, NEXT), failures=("it broke",)),
        replace(SOUND, requests=(PAGE, replace(PAGE, initiator="https://a.example"))),
        # A page in a sandbox has no origin.
        replace(SOUND, requests=(PAGE, replace(NEXT, initiator="null"))),
        replace(SOUND, requests=(PAGE, NEXT), page={"browserScripts": [{"pageinfo": {"url": NEXT.url}}]}),
    ],
    "load_unfinished": [replace(SOUND, plt=None)],
    "error_page": [
        replace(SOUND, requests=()),
        replace(SOUND, requests=(replace(PAGE, status=404), IMAGE)),
        replace(SOUND, requests=(replace(PAGE, status=None),)),
        replace(SOUND, requests=(PAGE, replace(PAGE, error="ERR_CONNECTION_RESET"))),
        replace(SOUND, requests=(replace(PAGE, status=401),), failures=("Browsertime: Failed to load",)),
    ],
    "wrong_protocol": [
        with_request(replace(IMAGE, protocol="h2")),
        with_request(replace(IMAGE, protocol="http/1.1", by_browser=True)),
        replace(SOUND, har_protocols={"h3": 2, "h2": 1}),
        replace(SOUND, har_protocols={"h3": 2, "": 1}),
    ],
    "tcp_beside_quic": [replace(SOUND, tcp_syns=1)],
    "outside": [with_request(replace(IMAGE, address="203.0.113.1"))],
    "request_failed": [with_request(replace(IMAGE, error="ERR_QUIC_PROTOCOL_ERROR"))],
    "film_unclean": [
        replace(SOUND, film=None),
        replace(SOUND, film=FilmStart(0, None, blank_after=False)),
        replace(SOUND, film=FilmStart(400, None, blank_after=False)),
        replace(SOUND, film=FilmStart(400, -9, blank_after=False)),
        replace(SOUND, film=FilmStart(400, 700, blank_after=True)),
        replace(SOUND, film=FilmStart(400, -700, blank_after=True)),
    ],
    "film_incomplete": [replace(SOUND, film_missed_pixels=1)],
    "cross_traffic_missing": [
        replace(SOUND, cross_traffic=()),
        replace(SOUND, cross_traffic=(replace(FLOW, run_bytes=0),)),
        replace(SOUND, cross_traffic=(replace(FLOW, congestion_control="reno"),)),
        replace(SOUND, cross_traffic=(FLOW, FLOW)),
    ],
    "other_display": [
        replace(SOUND, film_size=(800, 600)),
        replace(SOUND, first_paint=SOUND.visual.fvc + FILM_AHEAD_MS + 1 if SOUND.visual else None),
    ],
    "machine_busy": [
        replace(SOUND, late_wakeups=1, latest_wakeup_ms=LATE_WAKEUP_MS + 1),
        replace(SOUND, late_wakeups=LATE_WAKEUPS + 1, latest_wakeup_ms=2),
        replace(SOUND, slowness=BUSY + 0.1),
    ],
    "beyond_lane": [replace(SOUND, strange_cores=(0,))],
    "clock_shifted": [replace(SOUND, clock_shift_s=CLOCK_SHIFT_S + 1), replace(SOUND, clock_shift_s=-3600)],
    "visual_metrics_missing": [
        replace(SOUND, visual=None),
        replace(SOUND, visual=VisualMetrics(0, 0, 0, 0)),
        replace(SOUND, visual=VisualMetrics(500, 900, 0, 0)),
    ],
}


def test_a_sound_run_counts() -> None:
    assert reason_against(SOUND, CLAIM) is None


@pytest.mark.parametrize(("gate", "evidence"), [(gate, fault) for gate, faults in FAULTS.items() for fault in faults])
def test_a_gate_fires_and_names_itself(gate: str, evidence: Evidence) -> None:
    assert named(reason_against(evidence, CLAIM)) == gate


def said(evidence: Evidence) -> str:
    """The text of the reason why a run does not count."""
    reason = reason_against(evidence, CLAIM)
    assert reason
    return reason.text


@pytest.mark.case("page-goes-on-by-itself")
@pytest.mark.parametrize(
    ("pages", "text"),
    [
        (
            (PAGE, NEXT),
            "the page https://a.example/ goes on to https://a.example/en/ by itself; import the recording with "
            "URL=https://a.example/en/ to measure that one",
        ),
        ((PAGE, replace(PAGE, initiator="https://a.example")), "the page loads itself again: https://a.example/"),
        (
            (PAGE, replace(NEXT, method="POST")),
            "the page https://a.example/ goes on to https://a.example/en/ by itself, by a form (POST), with which no "
            "measurement can begin",
        ),
        (
            (PAGE, replace(NEXT, status=404)),
            "the page https://a.example/ goes on to https://a.example/en/ by itself, and the page's status is 404; "
            "record it from there on",
        ),
        (
            (PAGE, NEXT, replace(NEXT, url="https://b.example/", redirected=True, error="ERR_CONNECTION_REFUSED")),
            "the page https://a.example/ goes on to https://a.example/en/ by itself, and the page failed with "
            "ERR_CONNECTION_REFUSED; record it from there on (https://b.example/)",
        ),
    ],
)
def test_a_page_that_goes_on_by_itself_is_named_with_the_one_to_import(pages: tuple[Request, ...], text: str) -> None:
    assert said(replace(SOUND, requests=pages)) == text
    # If the start of the first navigation is known, the load counts, unless the other page failed.
    followed = reason_against(replace(SOUND, requests=pages, followed_ms=200.0), CLAIM)
    assert (followed is not None and followed.text == text) == ("record it" in text)


MOVED = replace(PAGE, status=302)
THERE = replace(PAGE, url=NEXT.url, initiator="null", redirected=True)


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param((MOVED, THERE), id="a redirect"),
        pytest.param((PAGE, replace(PAGE, initiator="not an origin")), id="a return visit"),
        pytest.param((PAGE, replace(PAGE, initiator="null")), id="a page asked for once more, with hints"),
        pytest.param((MOVED, THERE, replace(THERE, redirected=False)), id="the same after a redirect"),
        pytest.param((PAGE, replace(PAGE, url="chrome://settings/", initiator="https://a.example")), id="no page"),
    ],
)
def test_a_page_that_the_browser_itself_led_to_counts(pages: tuple[Request, ...]) -> None:
    assert reason_against(replace(SOUND, requests=pages), CLAIM) is None


def test_a_page_that_stays_where_it_is_counts_whatever_it_asked_for() -> None:
    page = {"browserScripts": [{"pageinfo": {"url": f"{PAGE.url}#top"}}]}
    assert reason_against(replace(SOUND, requests=(PAGE, NEXT), page=page), CLAIM) is None


@pytest.mark.case("redirect-to-plain-http")
def test_a_page_that_the_browser_tries_again_does_not_go_on_by_itself() -> None:
    refused = replace(PAGE, url="http://a.example/en/", status=None, error="ERR_CONNECTION_REFUSED", initiator="null")
    requests = (replace(PAGE, status=301), replace(refused, redirected=True), refused)
    evidence = replace(SOUND, requests=requests, failures=("UrlLoadError",))
    assert said(evidence) == "the page failed with ERR_CONNECTION_REFUSED: http://a.example/en/"


@pytest.mark.case("page-asks-for-a-login")
def test_a_login_is_named_whoever_waits_for_it() -> None:
    page = replace(SOUND, requests=(replace(PAGE, status=401),), failures=("UrlLoadError",))
    assert said(page) == "the page asks for a login (status 401): https://a.example/"
    image = replace(SOUND, plt=None, requests=(PAGE, replace(IMAGE, status=401)))
    ends = f", and a login is asked for (status 401): {IMAGE.url}"
    assert said(image) == f"there was no load event{ends}"
    assert said(replace(image, browsed_s=61)) == f"not loaded within 60 s{ends}"


@pytest.mark.parametrize(
    ("image", "har_protocols", "gate"),
    [
        ({"protocol": "http/1.1"}, {"h2": 1, "http/1.1": 1}, None),
        ({"protocol": "http/1.1", "address": None}, {"h2": 1, "http/1.1": 1}, None),
        ({"protocol": "h2"}, {"h2": 2}, "wrong_protocol"),
        ({"protocol": "http/1.1", "address": "198.18.0.1"}, {"h2": 1, "http/1.1": 1}, "wrong_protocol"),
        ({"protocol": "http/1.1"}, {"h2": 1, "h3": 1}, "wrong_protocol"),
    ],
)
def test_a_server_that_speaks_http1_alone_must_do_so(
    image: dict[str, str | None], har_protocols: dict[str, int], gate: str | None
) -> None:
    claim = replace(CLAIM, http_version="h2", http1_servers={"198.18.0.2"})
    requests = (replace(PAGE, protocol="h2"), replace(IMAGE, **image))  # type: ignore[arg-type]
    evidence = replace(SOUND, requests=requests, har_protocols=har_protocols)
    assert named(reason_against(evidence, claim)) == gate


def test_a_load_that_was_not_filmed_needs_no_film_and_all_else() -> None:
    unfilmed = replace(SOUND, visual=None, film=None, film_size=None)
    assert reason_against(unfilmed, replace(CLAIM, filmed=False)) is None
    assert named(reason_against(unfilmed, CLAIM)) == "film_unclean"
    for gate in ("over_time", "load_failed", "wrong_protocol", "outside", "request_failed", "machine_busy"):
        for fault in FAULTS[gate]:
            reason = reason_against(replace(fault, visual=None, film=None), replace(CLAIM, filmed=False))
            assert named(reason) == gate


DEPLOYED = replace(CLAIM, http_version="h2", further_versions=("h3",))
FOUND = replace(PAGE, protocol="h2", knows_alternative=True, announces_alternative=True)
OVER_H2 = replace(SOUND, requests=(FOUND, replace(IMAGE, protocol="h2")), har_protocols={"h2": 2})
MIXED = replace(OVER_H2, requests=(FOUND, IMAGE), har_protocols={"h2": 1, "h3": 1}, tcp_syns=2)
UNKNOWN = replace(MIXED, requests=(replace(FOUND, knows_alternative=False), replace(IMAGE, knows_alternative=True)))
UNANNOUNCED = replace(MIXED, requests=(replace(FOUND, announces_alternative=False), IMAGE))


@pytest.mark.parametrize(
    ("evidence", "knows", "gate"),
    [
        (MIXED, False, None),
        (MIXED, True, None),
        (OVER_H2, False, None),
        (OVER_H2, True, None),
        (UNKNOWN, True, "alternative_unknown"),
        (UNKNOWN, False, None),
        (UNANNOUNCED, False, "alternative_unknown"),
        (UNANNOUNCED, True, None),
        (replace(MIXED, requests=(FOUND, replace(IMAGE, protocol="http/1.1"))), False, "wrong_protocol"),
        (replace(MIXED, har_protocols={"h2": 1, "http/1.1": 1}), False, "wrong_protocol"),
    ],
)
def test_what_servers_speak_beside_counts_where_the_browser_could_find_it(
    evidence: Evidence, knows: bool, gate: str | None
) -> None:
    assert named(reason_against(evidence, replace(DEPLOYED, knows_alternative=knows))) == gate


@pytest.mark.parametrize("gate", FAULTS_ON_PHONE)
def test_a_run_on_a_device_counts_where_the_page_was_told_of_it_and_its_pace_was_kept(gate: str) -> None:
    claim = replace(CLAIM, device=PHONE)
    assert reason_against(ON_PHONE, claim) is None
    for evidence in FAULTS_ON_PHONE[gate]:
        assert named(reason_against(evidence, claim)) == gate
        assert reason_against(evidence, CLAIM) is None


def with_script(script: dict[str, Any] | None) -> Evidence:
    return replace(SOUND, page={"browserScripts": [{"custom": {"view": {"script": script}}}]})


@pytest.mark.parametrize(("script", "why"), UNFINISHED)
def test_a_run_of_a_page_with_a_script_counts_where_all_its_steps_were_made(
    script: dict[str, Any] | None, why: str
) -> None:
    scripted = replace(CLAIM, scripted=True)
    assert reason_against(with_script(SCRIPT), scripted) is None
    reason = reason_against(with_script(script), scripted)
    assert reason is not None
    assert reason.gate == "page_script_unfinished" and why in reason.text
    assert reason_against(with_script(script), CLAIM) is None


def test_every_gate_is_tried_here_and_explained() -> None:
    names = {gate.name for gate in GATES}
    elsewhere = {"alternative_unknown", "page_script_unfinished"}
    tried = {*FAULTS, *FAULTS_ON_PHONE, *elsewhere}
    assert names - tried == set(), "add to FAULTS what each of these gates must reject"
    assert tried - names == set(), "these are not in GATES"
    assert all(gate.check.__doc__ for gate in GATES)


def test_tcp_beside_quic_is_no_fault_over_tcp_or_of_a_page_with_websockets() -> None:
    """A WebSocket uses TCP, whatever the page's transport."""
    tried = replace(SOUND, tcp_syns=4)
    requests = tuple(replace(request, protocol="h2") for request in SOUND.requests)
    over_tcp = replace(tried, requests=requests, har_protocols={"h2": len(requests)})
    assert reason_against(over_tcp, replace(CLAIM, http_version="h2")) is None
    socket = Request("wss://a.example/", "GET", False, False, error="ERR_CONNECTION_REFUSED")
    assert reason_against(replace(tried, requests=(PAGE, socket)), CLAIM) is None
    assert named(reason_against(tried, CLAIM)) == "tcp_beside_quic"


def test_the_browsers_own_fruitless_requests_do_not_matter() -> None:
    request = Request("https://browser.invalid/", "POST", False, True, error="ERR_NAME_NOT_RESOLVED")
    assert reason_against(with_request(request), CLAIM) is None


def test_a_host_that_was_not_recorded_is_counted_and_does_not_matter() -> None:
    missing = Request("https://ads.example/", "GET", False, False, error="ERR_NAME_NOT_RESOLVED")
    assert reason_against(with_request(missing), CLAIM) is None
    assert with_request(missing).unrecorded == 1


@pytest.mark.parametrize(
    "url", ["about:blank;", "chrome-extension://abc/a.js", "https://ads.example/", "data:,", "wss://a.example/"]
)
def test_a_request_that_no_recorded_host_could_have_answered_does_not_matter(url: str) -> None:
    request = Request(url, "GET", False, False, error="ERR_UNKNOWN_URL_SCHEME")
    assert reason_against(with_request(request), CLAIM) is None


def test_a_recorded_host_that_does_not_answer_rejects_the_run_whatever_its_port() -> None:
    request = Request("https://B.example:8443/i", "GET", False, False, error="ERR_CONNECTION_REFUSED")
    assert reason_against(with_request(request), CLAIM) == Reason(
        "request_failed", "ERR_CONNECTION_REFUSED: https://B.example:8443/i"
    )


def test_only_machine_faults_do_not_count_and_a_late_page_counts_often() -> None:
    assert {gate.name for gate in GATES if gate.is_of_machine} == {
        *("replay", "cross_traffic_missing", "machine_busy", "clock_shifted", "beyond_lane", "pace_not_kept"),
    }
    assert {gate.name for gate in GATES if gate.attempts > 1} == {"over_time"}
