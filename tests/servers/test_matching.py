"""The matching rule in the uWSGI application; the same cases test quic_server."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from base.places import PROJECT
from record.http1 import Headers, Response
from record.site import Exchange, Recording, write_site
from record.urls import normal_url
from servers.application.wsgi import Application

CASES = json.loads((PROJECT / "tests" / "vectors" / "matching.json").read_text())["cases"]
REQUEST_HEADERS = {
    "origin": "HTTP_ORIGIN",
    "requested_method": "HTTP_ACCESS_CONTROL_REQUEST_METHOD",
    "requested_headers": "HTTP_ACCESS_CONTROL_REQUEST_HEADERS",
    "range": "HTTP_RANGE",
    "if_none_match": "HTTP_IF_NONE_MATCH",
    "if_modified_since": "HTTP_IF_MODIFIED_SINCE",
}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_application_follows_the_matching_rule(case: dict[str, Any], tmp_path: Path) -> None:
    site = write_site(_recording(case["recorded"]), tmp_path / "site")
    log = tmp_path / "requests.log"
    application = Application(site.folder, log)
    for request in case["requests"]:
        status, headers, body = _ask(application, request)
        kind, method, url, file = log.read_text().splitlines()[-1].split("\t")
        answer = None if request["answer"] is None else site.exchanges[request["answer"]]
        assert (kind, file) == (request["kind"], answer.file if answer else "")
        assert (method, url) == (request["method"], request["url"])
        assert status == request["status"]
        expected_body = (
            b"" if answer is None or method == "HEAD" else _body(request["answer"], answer.status, answer.method)
        )
        assert body == expected_body
        assert "x-original-url" not in headers
        assert {"server", "date"} <= headers.keys()


def test_a_request_log_without_space_changes_no_answer(tmp_path: Path) -> None:
    case = CASES[0]
    site = write_site(_recording(case["recorded"]), tmp_path / "site")
    full, sound = (Application(site.folder, log) for log in (Path("/dev/full"), tmp_path / "requests.log"))
    request = next(request for request in case["requests"] if request["answer"] is not None)
    assert _ask(full, request) == _ask(sound, request)


def _recording(recorded: list[dict[str, Any]]) -> Recording:
    exchanges = tuple(
        Exchange(
            method=item["method"],
            url=normal_url(item["url"]),
            response=Response(item["status"], "", _headers(item), b"answer %d" % number),
            recorded_ip="192.0.2.1",
        )
        for number, item in enumerate(recorded)
    )
    return Recording(url=exchanges[0].url, exchanges=exchanges, recorder={"tool": "test"})


def _headers(item: dict[str, Any]) -> Headers:
    return (("Content-Range", item["content_range"]),) if "content_range" in item else ()


def _body(number: int, status: int, method: str) -> bytes:
    return b"" if status in (204, 304) or method == "HEAD" else b"answer %d" % number


def _ask(application: Application, request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    url = urlsplit(request["url"])
    target = request["url"].partition(f"://{url.netloc}")[2] or "/"
    environ = {"REQUEST_METHOD": request["method"], "REQUEST_URI": target, "HTTP_HOST": url.netloc}
    environ |= {variable: request[key] for key, variable in REQUEST_HEADERS.items() if key in request}
    answered: list[Any] = []
    body = b"".join(application(environ, lambda status, headers: answered.extend((status, headers))))
    return int(answered[0][:3]), {name.lower(): value for name, value in answered[1]}, body
