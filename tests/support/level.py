"""Requests every exchange of a site from servers, over each server's protocol, and compares the answers."""

import hashlib
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from record.http1 import Response
from record.site import Site
from replay import ReplaySpec, run
from servers.application.wsgi import sent_headers
from servers.registry import server_of
from tuning import protocols
from tuning.networks import Network

FETCH = Path(__file__).parents[1] / "clients" / "fetch.py"

# The fastest network that the shells can emulate: this compares content, not time.
FAST = Network("fast", up_mbps=1000, down_mbps=1000, min_rtt_ms=0, loss=0, queue_ms=100)
STEADY = replace(FAST, name="steady", up_mbps=10)

# Go's servers send header fields in random order; fields of one name keep theirs.
# NGINX moves some in front.
WITHOUT_ORDER = ("caddy-h2", "caddy-h3", "example-h2", "example-h3")

Request = dict[str, Any]
Answer = dict[str, Any]


def requests_for(site: Site) -> list[Request]:
    """A request for each exchange, in recorded order, with the headers that distinguish it from others with its URL."""
    requests = []
    for exchange in site.exchanges:
        response = site.recorded(exchange).response
        part = re.fullmatch(r"bytes (\d+-\d+)/.*", response.header("content-range") or "")
        headers = []
        if response.status == 206 and part:
            headers.append(["range", f"bytes={part[1]}"])
        if response.status == 304:
            headers.append(["if-none-match", '"any"'])
        requests.append({"method": exchange.method, "url": exchange.url, "headers": headers})
    return requests


def fetch(
    site: Site, protocol: str, requests: list[Request], folder: Path, *, think_time: bool = False
) -> list[Answer]:
    """The answers of the server of `protocol` to `requests`, sent from inside a replay."""
    chosen = protocols.load()[protocol]
    requests_file, answers_file = folder / "requests.json", folder / f"{protocol}.json"
    requests_file.write_text(json.dumps(requests))
    # The fastest network on which this server may be measured.
    network = FAST if server_of(chosen).network_refusal(chosen, FAST) is None else STEADY
    spec = ReplaySpec(site.folder, network, chosen, think_time=think_time)
    version = chosen.http_version
    with answers_file.open("wb") as answers:
        outcome = run(spec, [sys.executable, FETCH, version, requests_file], stdout=answers.fileno())
    assert outcome.status == 0
    got: list[Answer] = json.loads(answers_file.read_text())
    return got


def differences(
    site: Site,
    folder: Path,
    names: Sequence[str] = ("tcp", "quic"),
    more: Sequence[tuple[Request, int]] = (),
) -> list[str]:
    """A line for each exchange that the servers of these protocols send differently, or not as recorded.

    `more`: further requests, which have no exchange of their own, and the statuses that their answers must have.
    """
    requests = [*requests_for(site), *(request for request, _ in more)]
    answers = {name: fetch(site, name, requests, folder) for name in names}
    first, *others = names
    differences = []
    for number, (request, answer) in enumerate(zip(requests, answers[first], strict=True)):
        if number < len(site.exchanges):
            wrong = _not_as_recorded(answer, site.recorded(site.exchanges[number]).response)
        else:
            _, status = more[number - len(site.exchanges)]
            wrong = [] if answer["status"] == status else [f"status: {answer['status']} sent, {status} expected"]
        for name in others:
            wrong += unlike(first, answer, name, answers[name][number])
        differences += [f"{request['method']} {request['url'][:120]}: {what}" for what in wrong]
    return differences


def unlike(name: str, answer: Answer, other_name: str, other: Answer) -> list[str]:
    """The differences between two answers, by the protocols over which they came."""
    one, two = dict(answer), dict(other)
    if {name, other_name} & set(WITHOUT_ORDER):
        one["headers"], two["headers"] = (
            sorted(headers, key=lambda field: str(field[0])) for headers in (one["headers"], two["headers"])
        )
    keys = ("status", "headers", "sha256", "length")
    return [f"{key}: {one[key]} over {name}, {two[key]} over {other_name}" for key in keys if one[key] != two[key]]


def _not_as_recorded(answer: Answer, recorded: Response) -> list[str]:
    """The differences in status, body, and header fields; servers may choose the order of these."""
    expected = sorted([name.lower(), value] for name, value in sent_headers(recorded.headers))
    pairs = [
        ("status", answer["status"], recorded.status),
        ("body", answer["sha256"], hashlib.sha256(recorded.body).hexdigest()),
        ("headers", sorted(answer["headers"]), expected),
    ]
    return [f"{what}: {sent} sent, {stored} recorded" for what, sent, stored in pairs if sent != stored]
