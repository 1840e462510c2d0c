"""The matrix of servers and browsers passes correct behaviour, and fails what is deliberately broken."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from factories import ROW, rejected

from browsers.registry import all_browsers
from dataset.table import Row, Run
from measure.interop.document import cell, page, reasons, rows
from measure.interop.matrix import (
    FAILED,
    NOT_SET_UP,
    PASSED,
    UNSUPPORTED,
    Case,
    InteropMethod,
    Result,
    cases,
    missing_program,
    result,
)
from measure.interop.site import REPORT_PATH, Page
from measure.interop.tests import PAGE, TESTS, Observation, most_at_once
from measure.run.evidence import LoggedRequest, read_evidence
from measure.run.gates import MACHINE_BUSY
from measure.run.setting import Setting
from servers.contract import Server, Serving
from servers.registry import all_servers

CHROMIUM = all_browsers()["chromium"]
BY_NAME = {test.name: test for test in TESTS}
SMALL = Page("small", (0, 5), servers=2)


class Elsewhere(Server):
    """A server of both transports, one of whose programs does not exist."""

    name = "elsewhere"
    transports = ("tcp", "quic")
    congestion_controls = ("cubic",)
    programs: ClassVar = {"a-program-of-nobody": "--version"}

    def serve(self, serving: Serving) -> AbstractContextManager[None]:
        return nullcontext()

    def congestion_controls_taken(self, folder: Path) -> set[str]:
        return set()


class HereOnly(Elsewhere):
    """The same server, but it needs no program, so it counts as set up. No protocol setting names it."""

    name = "here-only"
    programs: ClassVar = {}


def reported(*accounts: str) -> LoggedRequest:
    return LoggedRequest("prefix", "GET", f"https://interop.example{REPORT_PATH}?got={'+'.join(accounts)}", "report")


def right(of: Page) -> list[str]:
    """The results that the page reports when everything has arrived."""
    text = of.fault([reported(*["wrong"] * len(of.sizes_bytes))])
    assert text
    accounts: list[str] = []
    for number in range(len(of.sizes_bytes)):
        text = of.fault([reported(*accounts, *["wrong"] * (len(of.sizes_bytes) - number))])
        assert text
        accounts.append(text.partition("wrong in place of ")[2].partition(" for object")[0])
    return accounts


def test_a_page_is_content_only_with_every_byte_of_every_object() -> None:
    accounts = right(SMALL)
    assert accounts[0] == "200,0,e3b0c44298fc1c14"  # SHA-256 of nothing
    assert SMALL.fault([reported(*accounts)]) is None
    assert "no report" in (SMALL.fault([]) or "")
    assert "the page reported 1 objects in place of 2" in (SMALL.fault([reported(accounts[0])]) or "")
    broken = accounts[1].replace("200,5", "200,4")
    assert "1 of 2 objects did not arrive" in (SMALL.fault([reported(accounts[0], broken)]) or "")


def test_of_several_visits_the_last_counts() -> None:
    accounts = right(SMALL)
    assert SMALL.fault([reported("TypeError", "TypeError"), reported(*accounts)]) is None
    assert "TypeError in place of" in (SMALL.fault([reported(*accounts), reported("TypeError", "TypeError")]) or "")


def test_a_stream_is_open_from_its_request_to_the_end_of_its_response() -> None:
    began = {0: 0.0, 4: 0.1, 8: 0.2, 12: 0.3}
    assert most_at_once(began, {0: 0.05, 4: 0.2, 8: 0.9, 12: 0.4}) == 2  # one that ends when another begins is closed
    assert most_at_once(began, {0: 0.5, 4: 0.6}) == 4  # the ends of the others were not seen
    assert most_at_once({}, {}) == 0


def test_what_a_server_lacks_is_unsupported_and_what_it_has_is_tested_over_each_version(tmp_path: Path) -> None:
    nginx, both = all_servers()["nginx"], Elsewhere()
    planned = cases([nginx, both], [CHROMIUM], TESTS)
    versions: dict[tuple[str, str], list[str]] = {(case.server.name, case.test.name): [] for case in planned}
    for case in planned:
        versions[case.server.name, case.test.name].append(case.http_version)
    assert versions["nginx", "h3"] == ["h3"] and versions["nginx", "loss"] == ["h2"]
    assert versions["elsewhere", "loss"] == ["h2", "h3"]
    site = PAGE.write(tmp_path / "site")
    if not missing_program(nginx):
        outcome = result(Case(nginx, CHROMIUM, BY_NAME["h3"], "h3"), site, tmp_path, 1)
        assert (outcome.outcome, outcome.why) == (UNSUPPORTED, "nginx serves over h2, not over h3")
    outcome = result(Case(both, CHROMIUM, BY_NAME["h3"], "h3"), site, tmp_path, 1)
    assert outcome.outcome == NOT_SET_UP and "a-program-of-nobody is not installed; run 'make setup'" in outcome.why


@pytest.mark.needs_browser
def test_a_server_that_no_protocol_names_fails_and_says_so(tmp_path: Path) -> None:
    outcome = result(Case(HereOnly(), CHROMIUM, BY_NAME["h3"], "h3"), PAGE.write(tmp_path / "site"), tmp_path, 1)
    assert outcome.outcome == FAILED and "no protocol setting has server = 'here-only'" in outcome.why


def test_the_table_has_a_word_for_each_test_and_a_line_for_each_reason() -> None:
    results = [
        Result(Case(server, CHROMIUM, BY_NAME[name], version), outcome, why, loads)
        for server, name, version, outcome, why, loads in (
            (Elsewhere(), "h2", "h2", PASSED, "", 2),
            (Elsewhere(), "loss", "h2", PASSED, "", 2),
            (Elsewhere(), "loss", "h3", FAILED, "no load event", 1),
            (HereOnly(), "h2", "h2", UNSUPPORTED, "not that", 0),
            (HereOnly(), "loss", "h2", UNSUPPORTED, "not that", 0),
        )
    ]
    assert rows(results) == [
        ["elsewhere", "chromium", "passed", "h2 passed, h3 failed"],
        ["here-only", "chromium", "unsupported", "unsupported"],
    ]
    assert cell(results[1:3]) == "h2 passed, h3 failed"
    assert reasons(results) == [
        "elsewhere with chromium, loss over h3: failed: no load event",
        "here-only with chromium, h2, loss over h2: unsupported: not that",
    ]
    text = page(results, {"nginx": "1.22"}, {"testbed": "abc"}, "2026-11-23")
    assert "| elsewhere | chromium | passed | h2 passed, h3 failed |" in text and "| nginx | 1.22 |" in text


def case_of(server: str, name: str) -> Case:
    """The case of a server that every installation has."""
    (case,) = cases([all_servers()[server]], [CHROMIUM], [BY_NAME[name]])
    return case


@pytest.mark.needs_browser
@pytest.mark.parametrize(("busy", "outcome", "remaining"), [(0, PASSED, []), (1, PASSED, []), (2, FAILED, ["1-2"])])
def test_a_load_that_is_repeated_for_the_machines_fault_leaves_nothing(
    busy: int, outcome: str, remaining: list[str], tmp_path: Path
) -> None:
    class OnBusyMachine(InteropMethod):
        def make(self, *_: object, **__: object) -> None:
            pass

        def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
            row = replace(ROW, attempt=attempt, folder=str(folder.relative_to(campaign)))
            return rejected(f"{MACHINE_BUSY.name}: 9 s", row) if attempt <= busy else row

    case = case_of("nginx", "h2")
    total = result(case, BY_NAME["h2"].page.write(tmp_path / "site"), tmp_path / "results", 1, OnBusyMachine)
    assert (total.outcome, total.repeated, total.loads) == (outcome, min(busy, 1), 1)
    assert [place.name for place in (tmp_path / "results" / case.name).iterdir()] == remaining


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads(group="interop")
def test_bytes_that_differ_fail_alone_and_their_load_is_kept(tmp_path: Path) -> None:
    site = PAGE.write(tmp_path / "site")
    (file,) = site.folder.rglob("*object-11*")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    outcome = result(case_of("quic_server", "h3"), site, tmp_path / "results", 1)
    assert outcome.outcome == FAILED and "1 of 12 objects did not arrive as they were sent" in outcome.why
    assert outcome.folder and (outcome.folder / "requests.tsv").exists()
    # Nothing else is wrong: by the test of this version, and not by that of the other, the load would pass.
    observation = Observation(outcome.folder, "h3", read_evidence(outcome.folder, filmed=False))
    assert BY_NAME["h3"].fault(observation) is None
    assert "packets over UDP" in str(BY_NAME["h2"].fault(replace(observation, http_version="h2")))
