"""A page recorded with a login: a browser that loads the replay has no user name and no password."""

import pytest

from record.assemble import assemble
from record.http1 import Response
from record.intake import Intake
from record.logins import without_logins
from record.site import Exchange

URL = "https://a.example/"
PAGE = Exchange(
    "GET", URL, Response(200, "OK", (("Content-Type", "text/html"),), b"<!doctype html><p>"), "192.0.2.1", 50
)


def login(status: int = 401, value: str = 'Basic realm="staging"', at_ms: float | None = 0, url: str = URL) -> Exchange:
    field = "WWW-Authenticate" if status == 401 else "Proxy-Authenticate"
    response = Response(status, "", (("Content-Type", "text/html"), (field, value)), b"<h1>no</h1>")
    return Exchange("GET", url, response, "192.0.2.1", at_ms)


@pytest.mark.case("page-asks-for-a-login")
@pytest.mark.parametrize("status", [401, 407])
@pytest.mark.parametrize("value", ['Basic realm="staging"', "negotiate", 'Bearer, Digest realm="x"', "NTLM"])
def test_a_login_is_left_out_where_the_answer_after_it_was_recorded(status: int, value: str) -> None:
    asks = login(status, value)
    kept, lines = without_logins([asks, login(status, value, at_ms=20), PAGE])
    assert kept == [PAGE]
    assert lines == [f"GET {URL}: a login (status {status}), since the answer after it was recorded"]


def test_a_recording_without_times_has_its_login_left_out_too() -> None:
    kept, _ = without_logins([PAGE, login(at_ms=None)])
    assert kept == [PAGE]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="no other answer"),
        pytest.param([login(at_ms=90)], id="two logins"),
        pytest.param([PAGE], id="an answer before it"),
    ],
)
def test_a_login_without_an_answer_after_it_stays_and_is_named(others: list[Exchange]) -> None:
    asks = login(at_ms=80)
    kept, lines = without_logins([*others, asks])
    assert kept == [*others, asks]
    assert lines == [f"GET {URL}: the answer after its login (status 401), which was not recorded"]


@pytest.mark.parametrize("response", [login(value="Bearer").response, PAGE.response._replace(status=401)])
def test_an_answer_for_the_pages_own_script_stays(response: Response) -> None:
    refused = Exchange("GET", URL, response, "192.0.2.1", 0)
    assert without_logins([refused, PAGE]) == ([refused, PAGE], [])


def test_a_site_has_the_page_without_the_login_and_the_line() -> None:
    intake = Intake("a recording", keep_cookies=False)
    for exchange in (login(), PAGE):
        intake.take(exchange.url, lambda exchange=exchange: exchange)  # type: ignore[misc]
    recording = assemble(intake, {"tool": "test"})
    assert [exchange.response.status for exchange in recording.exchanges] == [200]
    assert recording.skipped == (f"GET {URL}: a login (status 401), since the answer after it was recorded",)
