"""The matrix for readers: its cells in a few words each, and the whole matrix as a Markdown page."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from measure.interop.matrix import FAILED, NOT_SET_UP, PASSED, UNSUPPORTED, Result
from measure.interop.tests import TESTS, Test

MEANINGS = {
    PASSED: "every load did what the test asks",
    UNSUPPORTED: "the server or the browser does not support it",
    FAILED: "a load did not do it; the reason is below",
    NOT_SET_UP: "a program is missing; what installs it is below",
}


def rows(results: Sequence[Result]) -> list[list[str]]:
    """A row for each server and browser: their names, and a cell for each test, in the order of `tests_of`."""
    tests = tests_of(results)
    by_pair = groupby(results, key=lambda one: (one.case.server.name, one.case.browser.name))
    table = []
    for (server, browser), group in by_pair:
        of_pair = list(group)
        table.append([server, browser, *(cell([one for one in of_pair if one.case.test == test]) for test in tests)])
    return table


def tests_of(results: Sequence[Result]) -> list[Test]:
    """The tests that were made."""
    return list(dict.fromkeys(one.case.test for one in results))


def cell(results: Sequence[Result]) -> str:
    """The outcome of one test of a server and a browser: one word, or, if outcomes differ, one word for each version of
    HTTP."""
    words = list(dict.fromkeys(one.outcome for one in results))
    return words[0] if len(words) == 1 else ", ".join(f"{one.case.http_version} {one.outcome}" for one in results)


def reasons(results: Sequence[Result]) -> list[str]:
    """A line for each case that did not pass; cases with the same reason share a line."""
    tests: dict[tuple[str, str, str], list[str]] = {}
    for one in results:
        if one.outcome != PASSED:
            pair = f"{one.case.server.name} with {one.case.browser.name}"
            tests.setdefault((pair, one.outcome, one.why), []).append(_case_name(one))
    return [f"{pair}, {', '.join(names)}: {outcome}: {why}" for (pair, outcome, why), names in tests.items()]


def page(results: Sequence[Result], versions: Mapping[str, str], machine: Mapping[str, object], day: str) -> str:
    """The page of `results`, with the programs' versions, the machine, and the day on which the results were made."""
    tests = tests_of(results)
    passed = [one.loads for one in results if one.outcome == PASSED]
    each = " to ".join(map(str, sorted({min(passed), max(passed)}))) if passed else "no"
    repeated = sum(one.repeated for one in results)
    lines = [
        "# Compatibility matrix: servers and browsers",
        "",
        f"Made by `make interop INTO=docs/interop.md` on {day}, of testbed {machine['testbed']}; do not edit it.",
        "A test that passed has loaded a generated page over each version of HTTP that the server speaks. Loads for",
        f"each test and version: {each}; in all: {sum(passed)}. Loads that were repeated since the machine was at",
        f"fault: {repeated}.",
        "",
        *_table(["server", "browser", *(test.name for test in tests)], rows(results)),
        "",
        *(f"- **{word}**: {meaning}" for word, meaning in MEANINGS.items()),
        "",
        "## Questions of the tests",
        "",
        "In every load, each object must have arrived with its status and all its bytes, as the page itself found by",
        "their digests in the browser (SHA-256), every request must have used the version of HTTP that is tested, and",
        "none may have failed or gone elsewhere. Besides that:",
        "",
        *_table(
            ["test", "asks", "network"],
            [[test.name, test.asks, _network(test)] for test in TESTS if test in tests],
        ),
        "",
        "Early data, streams, and what was sent over another transport or IPv6 are read from a capture at the servers,",
        "decrypted with the browser's keys; what was answered, from the servers' log.",
        "",
    ]
    if why := reasons(results):
        lines += ["## Failures", "", *(f"- {line}" for line in why), ""]
    lines += ["## Programs", "", *_table(["program", "version"], [[*entry] for entry in versions.items()]), ""]
    return "\n".join(lines)


def _case_name(one: Result) -> str:
    test, version = one.case.test, one.case.http_version
    return test.name if len(test.versions) == 1 else f"{test.name} over {version}"


def _network(test: Test) -> str:
    network = test.network
    loss = f", {network.loss:.0%} lost" if network.loss else ""
    return f"{network.min_rtt_ms:g} ms, {network.down_mbps:g} Mbit/s{loss}"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)]
