"""A load begins when it is told to and its processors are idle, and leaves nothing when it is no longer wanted."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path

import pytest
from support.leaks import own_groups
from support.processes import awaited_descendants, still_there

from base.errors import EyelevelError
from base.places import PROJECT
from base.processes import first_readable, pidfd
from browsers.browsertime.configuration import QUIET_SIGN_MS
from dataset.run_files import FILM_LOG, REQUEST_LOG, TIMES, VISUAL
from measure.host.idle_priority import Policy, idle_priority, require_ordinary
from measure.run.evidence import analyse_film, read_evidence
from measure.run.load import Load, Moments
from measure.run.setting import Loading, Setting
from measure.run.turn import OVER, PAINTED, QUIET, READY, UP, Prompter, turn_of_visit
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

# A visit without a browser; it prints the result of its turn.
VISIT = """
import json, os
from base.errors import EyelevelError
from measure.run.turn import turn_of_visit
stamps, paints = {}, [False, True, True]
turn = turn_of_visit(stamps, is_prompted=True, has_painted=lambda: paints.pop(0), latest_s=0.1)
never_ended, _ = os.pipe()
print("up", flush=True)
try:
    turn.await_start()
    print("started", flush=True)
    turn.await_begin(never_ended)
    print(json.dumps(stamps), flush=True)
    for _ in range(3):
        turn.look()
    turn.say_quiet()
    turn.say_over()
    print(repr(os.read(0, 1)), paints, flush=True)
except EyelevelError as error:
    print(error, flush=True)
"""
QUIET_MS = 500
# How long a visit gets no message: longer than it waits for idle processors.
UNTOLD_S = 0.5


@contextmanager
def visit_and_prompter() -> Iterator[tuple["subprocess.Popen[str]", Prompter]]:
    prompter = Prompter()
    command, stdin = [sys.executable, "-c", VISIT], prompter.standard_input.fileno()
    with subprocess.Popen(command, cwd=PROJECT, stdin=stdin, stdout=subprocess.PIPE, text=True) as visit:
        try:
            prompter.standard_input.close()
            assert visit.stdout and visit.stdout.readline() == "up\n"
            yield visit, prompter
        finally:
            prompter.close()
            visit.kill()


def test_a_load_begins_when_it_is_told_and_tells_when_it_is_over() -> None:
    with visit_and_prompter() as (visit, prompter):
        assert visit.stdout
        with pidfd(visit) as ended:
            assert prompter.await_sign(ended, UP) == UP
            assert first_readable(visit.stdout.fileno(), timeout_s=UNTOLD_S) is None, "its browser did not wait"
            prompter.say_start()
            assert visit.stdout.readline() == "started\n"
            assert prompter.await_sign(ended, READY) == READY
        assert first_readable(visit.stdout.fileno(), timeout_s=UNTOLD_S) is None, "it did not wait"
        prompter.say_begin()
        stamps = json.loads(visit.stdout.readline())
        assert stamps["begin"] - stamps["ready"] > UNTOLD_S
        with pidfd(visit) as ended:
            assert prompter.await_sign(ended, PAINTED, QUIET, OVER) == PAINTED
            assert prompter.await_sign(ended, QUIET, OVER) == QUIET
            assert prompter.await_sign(ended, OVER) == OVER
        # The visit's standard input, which its programs inherit, contains none of the messages.
        # The film is no longer searched for the first paint once this was found.
        assert visit.stdout.readline() == "b'' [True]\n"


def test_a_load_may_be_told_to_start_and_to_begin_at_once() -> None:
    with visit_and_prompter() as (visit, prompter):
        assert visit.stdout
        prompter.say_start()
        prompter.say_begin()
        assert visit.stdout.readline() == "started\n"
        assert json.loads(visit.stdout.readline())["begin"] > 0


def test_a_load_that_nobody_wants_any_more_does_not_begin() -> None:
    with visit_and_prompter() as (visit, prompter):
        prompter.say_start()
        assert visit.stdout and visit.stdout.readline() == "started\n"
        prompter.close()
        assert visit.stdout.readline() == "the load was given up before it began\n"
    with visit_and_prompter() as (visit, prompter):
        prompter.close()
        assert visit.stdout and visit.stdout.readline() == "the load was given up before its browser started\n"


@pytest.mark.parametrize(
    ("shares", "kept"), [([None, 0.2, 0.9], 0.9), ([0.1], 0.1), ([None], None)], ids=["idle at last", "busy", "unknown"]
)
def test_a_load_waits_for_idle_processors_but_not_for_long(shares: list[float | None], kept: float | None) -> None:
    stamps: dict[str, float | None] = {}
    never_ended, other_end = os.pipe()
    looks = chain(shares, repeat(shares[-1]))
    latest_s = 60.0 if kept == 0.9 else 0.1
    turn_of_visit(stamps, is_prompted=False, latest_s=latest_s, idle_share=lambda: next(looks)).await_begin(never_ended)
    os.close(never_ended)
    os.close(other_end)
    assert stamps["idle_share"] == kept
    assert stamps["begin"] is not None and stamps["ready"] is not None
    if kept != 0.9:
        assert stamps["begin"] - stamps["ready"] >= 0.1


def setting_in(folder: Path, *, filmed: bool = False) -> Setting:
    site = write_site(generate("demo-light"), folder / "site")
    return Setting(site, networks.load()["dsl"], protocols.load()["quic"], Loading(filmed=filmed, quiet_ms=QUIET_MS))


@dataclass(frozen=True)
class FilmedLoad:
    """The folder of a completed load; when it was over (s since 1970), and its film at that time."""

    folder: Path
    over_s: float
    film: bytes


@pytest.fixture(scope="module")
def filmed_load(tmp_path_factory: pytest.TempPathFactory) -> FilmedLoad:
    loads = list[FilmedLoad]()
    folder = tmp_path_factory.mktemp("run")

    def look() -> None:
        loads.append(FilmedLoad(folder, time.time(), (folder / FILM_LOG).read_bytes()))

    with Load(setting_in(tmp_path_factory.mktemp("site"), filmed=True), folder) as load:
        awaited_descendants(os.getpid(), lambda names: "chromium" in names)
        assert load.make(Moments(over=look)) is None
    (one,) = loads
    return one


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_a_prepared_load_asks_for_nothing_before_it_begins_and_is_then_as_any_other(filmed_load: FilmedLoad) -> None:
    folder = filmed_load.folder
    times = json.loads((folder / TIMES).read_text())
    order = ["visit", "browsertime", "ready", "begin", "painted", "over", "browsertime_end", "visit_end"]
    assert sorted(order, key=lambda name: times[name]) == order
    assert filmed_load.over_s < times["visit_end"]
    evidence = read_evidence(folder, filmed=False)
    assert evidence.failures == () and evidence.request_counts.missed == 0
    assert min(request.began_s or 0 for request in evidence.requests if request.main_frame) > times["begin"]
    assert gzip.decompress((folder / "netlog.json.gz").read_bytes())


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_the_film_is_whole_when_a_load_is_over_and_has_nothing_before_its_orange(filmed_load: FilmedLoad) -> None:
    assert filmed_load.film == (filmed_load.folder / FILM_LOG).read_bytes()
    analyse_film(filmed_load.folder)
    evidence = read_evidence(filmed_load.folder)
    start, visual = evidence.film, evidence.visual
    assert start and start.blank_after and start.blank_ms is not None
    # The film's first picture is orange.
    zero_ms = 1000 * json.loads((filmed_load.folder / VISUAL).read_text())["zero_s"]
    assert start.orange_ms == pytest.approx(zero_ms + start.blank_ms, abs=0.01)
    assert visual and 0 < visual.fvc <= visual.lvc and evidence.film_missed_pixels == 0


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.timing  # at idle priority, no browser starts next to other tests
def test_what_is_prepared_beside_a_quiet_page_is_at_idle_priority_until_that_load_is_over(tmp_path: Path) -> None:
    """A return visit is prepared during a visit, and a visit during the second load of the return visit."""
    setting = setting_in(tmp_path)
    visit = replace(setting, loading=Loading(filmed=False, quiet_ms=QUIET_SIGN_MS + 1000))
    settings = [visit, replace(visit, protocol=protocols.load()["quic+0rtt"]), visit]
    folders = [tmp_path / name for name in ("visit", "return", "next")]
    for folder in folders:
        folder.mkdir()
    with idle_priority(own_groups()) as idle, ExitStack() as ends:
        if not idle:
            pytest.skip("needs idle priority")
        loads = [ends.enter_context(Load(settings[0], folders[0]))]

        def prepare() -> None:
            number = len(loads)
            loads.append(ends.enter_context(Load(settings[number], folders[number], idle=idle)))
            loads[-1].await_ready()
            with pytest.raises(EyelevelError, match=r"of this run (still has idle|is still in)"):
                require_ordinary(os.getpid())

        def lift() -> None:
            loads[-1].lift()
            require_ordinary(os.getpid())

        for number in range(2):
            assert loads[number].make(Moments(prepare, lift)) is None
            loads[number].close()
        assert len(loads) == len(settings)
    for folder in folders[:2]:
        times, evidence = json.loads((folder / TIMES).read_text()), read_evidence(folder, filmed=False)
        assert evidence.failures == () and evidence.request_counts.missed == 0
        # The latest request of a return visit belongs to its second load.
        last_s = max(request.began_s or 0 for request in evidence.requests if request.main_frame)
        assert times["quiet"] - last_s >= 0.9, "few pages are quiet for 1 s and ask again"


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_a_load_that_is_not_at_ordinary_priority_does_not_begin_and_leaves_nothing(tmp_path: Path) -> None:
    class Unliftable(Policy):
        def lift(self, root: int) -> None:
            pass

    folder = tmp_path / "run"
    folder.mkdir()
    with Load(setting_in(tmp_path), folder, idle=Unliftable()) as load:
        below = awaited_descendants(os.getpid(), lambda names: "chromium" in names)
        fault = load.make()
    assert still_there([pid for pid, _ in below], timeout_s=0) == []
    assert fault and "of this run still has idle priority" in fault
    assert not (folder / REQUEST_LOG).read_text()


# Prepares a load, and waits to be killed.
HOLDER = """
import signal, sys
from pathlib import Path
from measure.run.load import Load
from measure.run.setting import Setting
from record.site import Site
from tuning import networks, protocols

setting = Setting(Site.load(Path(sys.argv[1])), networks.load()["dsl"], protocols.load()["quic"])
load = Load(setting, Path(sys.argv[2]))
signal.pause()
"""


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_a_prepared_load_ends_with_whoever_has_prepared_it(tmp_path: Path) -> None:
    site, folder = setting_in(tmp_path).site, tmp_path / "run"
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLDER, site.folder, folder], cwd=PROJECT) as holder:
        below = awaited_descendants(holder.pid, lambda names: "chromium" in names)
        holder.send_signal(signal.SIGKILL)
    assert still_there([pid for pid, _ in below]) == []
