"""Rules for every test session.

Nothing is left behind, sessions can be interrupted, timing tests run alone, and skipped and retried tests are counted.
"""

import gc
import os
import shutil
import signal
import tempfile
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir
from support import turns
from support.browser import Browser, SharedBrowser
from support.leaks import MARK, end_marked, guard, mount_points, processes_marked, remove_session
from support.needs import NEEDS
from support.turns import LONGEST, TIMING, ModulesScheduling, Turns, require_folder, write_groups

from base.errors import EyelevelError
from base.places import cache_dir, use_cache
from measure.host import exclusive

# A script's background commands start with SIGINT ignored, and their children inherit that. Then neither pytest nor the
# children that tests interrupt would react to it, and tests would wait for them in vain. A Python handler, unlike an
# ignored signal, becomes the default again in each child.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup, which pytest itself must still obey
    signal.signal(signal.SIGHUP, lambda *_: None)

# 'make test' in a user's own folder sets these; tests must not act there.
for variable in ("EYELEVEL_FOLDER", "EYELEVEL_TUNING"):
    os.environ.pop(variable, None)

# A failing example belongs in a test of its own, not in a database.
settings.register_profile("eyelevel", database=None, deadline=None)
settings.load_profile("eyelevel")

# The folder of the tests that take long, and the time limit of each.
PROOF = Path(__file__).parent / "proof"
PROOF_TIMEOUT_S = 3600

# A test that does not end at its timeout is interrupted again each time that this time has passed.
AGAIN_S = float(os.environ.get("EYELEVEL_TEST_AGAIN_S", "10"))


class Session:
    """The test session that this process controls.

    It has a temporary folder, and a process that removes the session's leftovers in case this process is killed.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="eyelevel-tests-"))
        os.environ[MARK] = str(self.folder)  # workers inherit it
        self._guard = guard(self.folder)

    def end(self) -> None:
        """Remove everything that is left of the session."""
        remove_session(self.folder)
        self._guard.kill()
        self._guard.wait()


SESSION = pytest.StashKey[Session]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # Only the order is random (pytest-randomly). Where that plug-in is switched off, the option of this name is
    # rejected.
    config.option.randomly_reset_seed = False
    for need in NEEDS:
        config.addinivalue_line("markers", f"{need.mark}: needs {need.noun} ({need.remedy})")
    if worker := getattr(config, "workerinput", None):
        folder = Path(worker["folder"])
        config.pluginmanager.register(Groups(folder))
        config.pluginmanager.register(InTurn(folder))
    else:
        try:
            use_cache()
            require_folder()
        except EyelevelError as error:
            raise pytest.UsageError(str(error)) from None
        config.stash[SESSION] = session = Session()
        folder = session.folder
        if config.option.numprocesses:
            # Workers inherit this: if each had threads for linear algebra, these would only wait for each other.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        else:
            config.pluginmanager.register(InTurn(folder))
    # By default the folder would be in the checkout, and belong to root. Hypothesis keeps the constants of each source
    # file there; without them, each worker would read the files for seconds.
    set_hypothesis_home_dir(cache_dir() / "hypothesis")


def pytest_unconfigure(config: pytest.Config) -> None:
    if session := config.stash.get(SESSION, None):
        session.end()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the folder that all workers share to each worker (pytest-xdist)."""
    node.workerinput["folder"] = str(node.config.stash[SESSION].folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ModulesScheduling:
    return ModulesScheduling(config, log, config.stash[SESSION].folder)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker begin elsewhere in a folder, and return to the folder's beginning after its end.

    In a new checkout, each file is so compiled by the first worker that comes to it; side by side, all would do so.
    """
    report = yield
    if (worker := getattr(collector.config, "workerinput", None)) and isinstance(collector, pytest.Dir):
        begin = int(worker["workerid"].removeprefix("gw")) * len(report.result) // worker["workercount"]
        report.result = report.result[begin:] + report.result[:begin]
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    # Collected tests stay until the end. Without this, the garbage collector would visit them again and again.
    gc.collect()
    gc.freeze()


class Groups:
    """A worker's part in a session: which tests must run on one worker together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist sends the names
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        write_groups(self._folder, {item.nodeid: group for item in session.items if (group := group_of(item))})


class InTurn:
    """Runs each test in its turn. A test marked `timing` runs after all others of its session, and while no other test
    runs on this machine."""

    def __init__(self, session: Path) -> None:
        self._turns = Turns(session)
        self._is_alone = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # before the timeout's clock starts
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        alone = has(item, TIMING)
        if not (alone and self._is_alone):
            self._turns.take(alone)
        result = yield
        # Timing tests follow each other without a pause in which other tests could begin.
        self._is_alone = alone and nextitem is not None and has(nextitem, TIMING)
        if not self._is_alone:
            self._turns.give_back()
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._turns.end()  # a worker's process exists until all have finished


def group_of(item: pytest.Item) -> str | None:
    """The group of a test; tests of one group run on one worker, one after the other."""
    if has(item, TIMING):
        return TIMING
    loads = item.get_closest_marker("loads")
    if not (loads and loads.kwargs):
        return None
    lane = loads.kwargs.get("lane", zlib.crc32(item.nodeid.encode()) % loads.kwargs.get("lanes", 1))
    return f"loads {loads.kwargs.get('group', '')} {lane}"


def is_in_a_lane(item: pytest.Item) -> bool:
    """Whether the test's group is split into lanes, which run side by side."""
    loads = item.get_closest_marker("loads")
    return bool(loads and {"lane", "lanes"} & loads.kwargs.keys())


def place_of(item: pytest.Item) -> tuple[int, ...]:
    """The sort key that puts the longest files first, then other slow tests, and timing tests last."""
    return (
        has(item, TIMING),
        LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST),
        not is_in_a_lane(item),
        not has(item, "loads"),
        not has(item, "slow"),
    )


def has(item: pytest.Item, mark: str) -> bool:
    return item.get_closest_marker(mark) is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before tests are selected by their marks, and after they were shuffled
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Skip tests whose needs are missing, set the time limit of proofs, and put tests in order.

    Timing tests are last and may fail once; among tests that run side by side, slow ones are first.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path)  # each worker has collected them in another order
    for item in items:
        if item.path.is_relative_to(PROOF) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PROOF_TIMEOUT_S))
        if has(item, TIMING):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("needs_browser")
    # Look only for what these tests need: each look takes a fraction of a second.
    marks = {mark.name for item in items for mark in item.iter_markers()}
    missing = [need for need in NEEDS if need.mark in marks and not need.is_met()]
    for item in items:
        if reasons := [need.reason for need in missing if item.get_closest_marker(need.mark)]:
            item.add_marker(pytest.mark.skip(reason=reasons[0]), append=False)
    yield
    items.sort(key=place_of if hasattr(config, "workerinput") else lambda item: has(item, TIMING))


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> Generator[None, object, object]:
    """Interrupt a test at its timeout (pytest-timeout), and repeatedly until it has ended.

    The exception ends a wait, but clean-up code on its way out, such as the end of `with Popen(...)`, may wait, too.
    """
    result = yield
    timeout_s, _ = signal.getitimer(signal.ITIMER_REAL)
    signal.setitimer(signal.ITIMER_REAL, timeout_s, AGAIN_S)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> Generator[None, object, object]:
    """Keep the timer of a failed test running until its fixtures are torn down; pytest-timeout would stop it here."""
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    result = yield
    if isinstance(node, pytest.Item) and timer[0]:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
    return result


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests were skipped, by reason, and which were retried, and why."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped: {count} {reason}", yellow=True)
    retried = {report.nodeid: report for report in terminalreporter.stats.get("rerun", [])}
    terminalreporter.write_line(f"retried: {len(retried)} timing tests", yellow=bool(retried))
    for test, report in sorted(retried.items()):
        fault = next((line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")), "")
        terminalreporter.write_line(f"retried: {test}: {fault}", yellow=True)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the session when its processes, mounts or temporary files outlive its last test.

    When tests run side by side (pytest-xdist), each worker counts as a session.
    """
    tmp_path_factory.getbasetemp()  # pytest creates and removes its own folder itself
    worker = getattr(request.config, "workerinput", None)
    session = Path(worker["folder"]) if worker else request.config.stash[SESSION].folder
    folder = session / (worker["workerid"] if worker else "main")
    folder.mkdir()
    mounts = mount_points()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, str(folder))
        patch.setenv("TMPDIR", str(folder))
        # Measurements in parallel tests must wait neither for each other nor for a campaign. The same holds for
        # sessions that tests start.
        patch.setenv(exclusive.VARIABLE, str(session / f"measuring-{folder.name}"))
        patch.setenv(turns.VARIABLE, str(session))
        patch.setattr(tempfile, "tempdir", None)
        yield
    signal.setitimer(signal.ITIMER_REAL, 0)  # the following takes little time, and must not be cut short
    # A namespace lives while one of our processes, mounts or descriptors holds it.
    mark = f"{MARK}={folder}"
    leaks = [f"process {process}" for process in processes_marked(mark)]
    end_marked(mark)
    leaks += [f"mount on {path}" for path in sorted(mount_points() - mounts)]
    leaks += [f"temporary file {path}" for path in folder.iterdir()]
    shutil.rmtree(folder)
    if leaks:
        pytest.fail("left behind by the tests:\n  " + "\n  ".join(leaks), pytrace=False)


@pytest.fixture(scope="session")
def shared_browser(pytestconfig: pytest.Config) -> Iterator[SharedBrowser]:
    """The packaged browser without a window; starting it takes two seconds of processor time."""
    shared = SharedBrowser()

    class Alone:
        """Ends the browser before a timing test, since its processes might disturb the test."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self, item: pytest.Item) -> None:
            if has(item, TIMING):
                shared.end()

    pytestconfig.pluginmanager.register(Alone())
    yield shared
    shared.end()


@pytest.fixture(scope="module")
def browser(shared_browser: SharedBrowser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The packaged browser, without pages of other modules. (A timing test cannot have it.)"""
    yield (running := shared_browser.running(tmp_path_factory.mktemp("browser")))
    with suppress(EyelevelError), ExitStack() as ends:
        ends.callback(shared_browser.end)
        running.begin_anew()
        ends.pop_all()  # it works, so the next module gets it
