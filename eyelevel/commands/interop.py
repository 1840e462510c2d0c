"""`eyelevel interop`: test every server with every browser."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from base.clock import now_iso
from base.errors import EyelevelError, Misuse
from base.files import write_file
from base.ownership import give_to_caller
from base.places import RESULTS
from base.privileges import require_browsing
from base.progress import each_shown
from base.terminal import fits, plain_table, print_json, print_line, terminal
from base.text import unknown
from base.words import plural
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from measure.interop.matrix import Case, Result

# How long a load takes in addition to its waits (s), on two cores. Only its ratio to other loads matters.
LOAD_S = 12

T = TypeVar("T")


@click.command(params=parameters_of("interop"))
def main(
    server: str | None,
    browser: str | None,
    test: str | None,
    loads: int,
    into: Path | None,
    results: Path,
    as_json: bool,
) -> None:
    """Test every server with every browser, and print a table of results: passed, failed or unsupported.

    Each test loads a generated page over each version of HTTP that the server speaks. The command fails if any load
    does. A case that a server or browser does not support is unsupported. For a missing program, the command that
    installs it is named. docs/interop.md describes each test.

    Example: eyelevel interop --server nginx,quic_server --browser chromium --test "h2,h3,large response"
    """
    from rich.console import Console

    from browsers.registry import browser_named, chosen_browsers
    from measure.host.exclusive import measuring_alone
    from measure.host.machine import machine, versions
    from measure.interop.document import page
    from measure.interop.matrix import FAILED, Result, cases, missing_program, result
    from measure.interop.tests import PAGES, TESTS
    from servers.registry import all_servers

    require_browsing("testing servers with browsers")
    chosen_servers = _chosen("server", server, all_servers().values(), lambda one: one.name)
    tested_browsers = [browser_named(name) for name in chosen_browsers(browser or "all")]
    planned = cases(chosen_servers, tested_browsers, _chosen("test", test, TESTS, lambda one: one.name))
    progress, done = Console(stderr=True, highlight=False), list[Result]()
    with measuring_alone(), tempfile.TemporaryDirectory(prefix="interop-") as temporary:
        sites = {one.name: one.write(Path(temporary) / one.name) for one in PAGES}
        for case in each_shown(planned, _description, _expected_s, progress):
            # Remove the files that an earlier matrix left for this case.
            shutil.rmtree(results / case.name, ignore_errors=True)
            done.append(result(case, sites[case.test.page.name], results, loads))
            why = f": {done[-1].why}" if done[-1].why else ""
            print_line(progress, f"{_description(case)}: {done[-1].outcome}{why}")
    if results.exists():
        give_to_caller(results, RESULTS)
    if as_json:
        print_json([_record(one) for one in done])
    else:
        _print(done)
    if into:
        here = [one for one in chosen_servers if not missing_program(one)]
        present = [one for one in tested_browsers if not missing_program(one)]
        programs = versions([one.name for one in here], [one.name for one in present], capturing=True)
        write_file(into, page(done, programs, machine(), now_iso()[:10]))
        print_line(progress, f"written: {into}")
    if failed := [one for one in done if one.outcome == FAILED]:
        kept = f"; their loads are in {results}" if any(one.folder for one in failed) else ""
        raise EyelevelError(f"{len(failed)} of {plural('test', len(done))} failed{kept}")


def _chosen(kind: str, names: str | None, known: Iterable[T], name_of: Callable[[T], str]) -> list[T]:
    """The elements of `known` whose names are in `names`, separated by commas; all of them if `names` is None. Raises
    Misuse."""
    by_name = {name_of(one): one for one in known}
    wanted = [name.strip() for name in names.split(",")] if names else list(by_name)
    for name in wanted:
        if name not in by_name:
            raise Misuse(unknown(kind, name, by_name))
    return [by_name[name] for name in dict.fromkeys(wanted)]


def _description(case: Case) -> str:
    return f"{case.server.name} with {case.browser.name}: {case.test.name} over {case.http_version}"


def _expected_s(case: Case) -> float:
    return LOAD_S + case.test.quiet_ms / 1000 * (2 if case.test.early_data else 1)


def _record(result: Result) -> dict[str, str | int]:
    case = result.case
    return {
        "server": case.server.name,
        "browser": case.browser.name,
        "test": case.test.name,
        "http_version": case.http_version,
        "outcome": result.outcome,
        "why": result.why,
        "loads": result.loads,
        "repeated": result.repeated,
    }


def _print(results: Sequence[Result]) -> None:
    """Print the outcomes as a table, with a column for each test if the terminal is wide enough; then the reasons."""
    from rich.text import Text

    from measure.interop.document import reasons, rows, tests_of
    from measure.interop.matrix import FAILED, PASSED

    def styled(outcome: str) -> Text:
        return Text(outcome, {PASSED: "green", FAILED: "bold red"}.get(outcome, "dim"))

    names, console, wide, tall = [test.name for test in tests_of(results)], terminal(), plain_table(), plain_table()
    for name in ("server", "browser", *names):
        wide.add_column(name)
    for name in ("server", "browser", "test", "outcome"):
        tall.add_column(name)
    for server, browser, *outcomes in rows(results):
        wide.add_row(server, browser, *map(styled, outcomes))
        for name, outcome in zip(names, outcomes, strict=True):
            tall.add_row(server, browser, name, styled(outcome))
    console.print(wide if fits(console, wide) else tall)
    for line in reasons(results):
        print_line(console, line)
