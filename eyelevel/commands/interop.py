"""`eyelevel interop`: test every server with every browser."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from base.clock import now_iso
from base.errors import EyelevelError
from base.files import write_file
from base.ownership import give_to_caller
from base.places import RESULTS
from base.privileges import require_browsing
from base.progress import each_shown
from base.terminal import print_line
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from rich.table import Table

    from measure.interop.matrix import Case, Result

# How long a load takes in addition to its waits (s), on two cores. Only its ratio to other loads matters.
LOAD_S = 12
# The width of the table in characters, on any terminal: a table that is cut off is useless.
TABLE_COLUMNS = 120

T = TypeVar("T")


@click.command(params=parameters_of("interop"))
def main(
    server: str | None, browser: str | None, test: str | None, loads: int, into: Path | None, results: Path
) -> None:
    """Test every server with every browser, and print a table of results: passed, failed or unsupported.

    Each test loads a generated page over each version of HTTP that the server speaks. The command fails if any load
    does. A case that a server or browser does not support is unsupported. For a missing program, the command that
    installs it is named. docs/interop.md describes each test.

    Example: eyelevel interop --server nginx,quic_server --browser chromium --test "h2,h3,large response"
    """
    from rich.console import Console

    from browsers.registry import all_browsers
    from measure.host.exclusive import measuring_alone
    from measure.host.machine import machine, versions
    from measure.interop.document import page, reasons
    from measure.interop.matrix import FAILED, Result, cases, missing_program, result
    from measure.interop.tests import PAGES, TESTS
    from servers.registry import all_servers

    require_browsing("testing servers with browsers")
    chosen_servers = _chosen("server", server, all_servers().values(), lambda one: one.name)
    chosen_browsers = _chosen("browser", browser, all_browsers().values(), lambda one: one.name)
    planned = cases(chosen_servers, chosen_browsers, _chosen("test", test, TESTS, lambda one: one.name))
    console, progress, done = Console(highlight=False), Console(stderr=True, highlight=False), list[Result]()
    console.width = max(console.width, TABLE_COLUMNS)
    with measuring_alone("testing servers with browsers"), tempfile.TemporaryDirectory(prefix="interop-") as temporary:
        sites = {one.name: one.write(Path(temporary) / one.name) for one in PAGES}
        for case in each_shown(planned, _description, _expected_s, progress):
            # Remove the files that an earlier matrix left for this case.
            shutil.rmtree(results / case.name, ignore_errors=True)
            done.append(result(case, sites[case.test.page.name], results, loads))
            why = f": {done[-1].why}" if done[-1].why else ""
            print_line(progress, f"{_description(case)}: {done[-1].outcome}{why}")
    if results.exists():
        give_to_caller(results, RESULTS)
    console.print(_table(done))
    for line in reasons(done):
        print_line(console, line)
    if into:
        here = [one for one in chosen_servers if not missing_program(one)]
        present = [one for one in chosen_browsers if not missing_program(one)]
        programs = versions([one.name for one in here], [one.name for one in present], capturing=True)
        write_file(into, page(done, programs, machine(), now_iso()[:10]))
        print_line(console, f"written: {into}")
    if failed := [one for one in done if one.outcome == FAILED]:
        kept = f"; their loads are in {results}" if any(one.folder for one in failed) else ""
        raise EyelevelError(f"{len(failed)} of {len(done)} tests failed{kept}")


def _chosen(kind: str, names: str | None, known: Iterable[T], name_of: Callable[[T], str]) -> list[T]:
    """The elements of `known` whose names are in `names`, separated by commas; all of them if `names` is None. Raises
    EyelevelError."""
    by_name = {name_of(one): one for one in known}
    wanted = [name.strip() for name in names.split(",")] if names else list(by_name)
    if unknown := [name for name in wanted if name not in by_name]:
        raise EyelevelError(f"there is no {kind} {unknown[0]!r}; there are {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(wanted)]


def _description(case: Case) -> str:
    return f"{case.server.name} with {case.browser.name}: {case.test.name} over {case.http_version}"


def _expected_s(case: Case) -> float:
    return LOAD_S + case.test.quiet_ms / 1000 * (2 if case.test.early_data else 1)


def _table(results: Sequence[Result]) -> Table:
    from rich import box
    from rich.table import Table

    from measure.interop.document import rows, tests_of
    from measure.interop.matrix import FAILED, PASSED

    styles = {PASSED: "green", FAILED: "bold red"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("server", "browser", *(test.name for test in tests_of(results))):
        table.add_column(name)
    for server, browser, *cells in rows(results):
        table.add_row(server, browser, *(f"[{styles.get(one, 'dim')}]{one}[/]" for one in cells))
    return table
