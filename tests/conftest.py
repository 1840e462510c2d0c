"""For every session of tests: nothing is left behind, it can be interrupted, and what is skipped is counted."""

import os
import resource
import shutil
import signal
import tempfile
import uuid
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir
from support.browser import Browser, browsing
from support.leaks import MARK, end_marked, mount_points, processes_marked
from support.needs import NEEDS
from support.turns import Kind, ModulesScheduling, Turns, write_groups

from measure.host.exclusive import VARIABLE

# A script's background commands start with SIGINT ignored, and hand that on to what they start. Then pytest could not
# be interrupted, and neither could the children that tests interrupt: they would be waited for in vain. A handler of
# Python's, unlike an ignored signal, becomes the default again in each child.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup, which pytest itself shall go on obeying
    signal.signal(signal.SIGHUP, lambda *_: None)

# An example that failed belongs into a test of its own, not into a database; and what Hypothesis notes down, not into
# the checkout, where it would be root's.
settings.register_profile("eyelevel", database=None, deadline=None)
settings.load_profile("eyelevel")
SESSION_FOLDER = tempfile.TemporaryDirectory(prefix="eyelevel-session-")
set_hypothesis_home_dir(SESSION_FOLDER.name)

# What takes long, and how long each test of it may.
PROOF = Path(__file__).parent / "proof"
PROOF_TIMEOUT_S = 3600

# Of tests beside one that loads pages.
LOW_PRIORITY = 15
# RLIMIT_NICE that lets a process raise its priority to the usual one (getrlimit(2)).
USUAL_NICE_LIMIT = 20

# How long after its timeout, and how often, a test is interrupted again.
AGAIN_S = float(os.environ.get("EYELEVEL_TEST_AGAIN_S", "10"))


def pytest_configure(config: pytest.Config) -> None:
    for need in NEEDS:
        config.addinivalue_line("markers", f"{need.mark}: needs {need.noun} ({need.remedy})")
    if worker := getattr(config, "workerinput", None):
        config.pluginmanager.register(Worker(Path(worker["folder"])))
    elif getattr(config.option, "numprocesses", None):
        # Workers inherit it: threads of linear algebra in each of them would only wait for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each worker (pytest-xdist) what folder all of them share."""
    node.workerinput["folder"] = SESSION_FOLDER.name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ModulesScheduling:
    return ModulesScheduling(config, log, Path(SESSION_FOLDER.name))


class Worker:
    """What each of several workers does: a test that is marked `alone` runs while no other worker runs anything, one
    that is marked `waits` while others run such tests only.

    Beside a test that is marked `loads` others run, at a low priority.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turns = Turns(folder)
        self._turn: Kind | None = None

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist sends the names
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        write_groups(self._folder, {item.nodeid: group for item in session.items if (group := group_of(item))})

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # before the timeout's clock starts
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        kind = kind_of(item)
        if self._turn != kind:
            self._turns.take(kind)
        if may_raise_priority():
            os.setpriority(os.PRIO_PROCESS, 0, LOW_PRIORITY if kind == "other" and not has(item, "loads") else 0)
        result = yield
        self._turn = kind
        # Tests that measure follow each other without a pause, in which others would begin.
        if kind == "other" or nextitem is None or kind_of(nextitem) == "other":
            self._turns.give_back()
            self._turn = None
        return result


def may_raise_priority() -> bool:
    """Whether this process, once it has a low priority, may have the usual one again: as root may, and who is granted
    `nice 0` in limits.conf(5). Others run all tests at the same priority."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NICE)
    return os.geteuid() == 0 or limit == resource.RLIM_INFINITY or limit >= USUAL_NICE_LIMIT


def kind_of(item: pytest.Item) -> Kind:
    """The turn that a test needs."""
    if has(item, "alone"):
        return "alone"
    return "waits" if has(item, "waits") else "other"


def group_of(item: pytest.Item) -> str | None:
    """Tests of one group are dealt out to one worker, so that they follow each other."""
    if has(item, "alone"):
        return "alone"
    if has(item, "waits"):
        return f"waits {item.path}"
    loads = item.get_closest_marker("loads")
    if not loads:
        return None
    lane = loads.kwargs.get("lane", zlib.crc32(item.nodeid.encode()) % loads.kwargs.get("lanes", 1))
    return f"loads {loads.kwargs.get('group', '')} {lane}"


def is_in_a_lane(item: pytest.Item) -> bool:
    """Whether its group is parted into lanes, which run side by side."""
    loads = item.get_closest_marker("loads")
    return bool(loads and {"lane", "lanes"} & loads.kwargs.keys())


def place_of(item: pytest.Item) -> tuple[bool, ...]:
    """What sorts tests such that those that take long, or that others wait for, come first."""
    return (
        not has(item, "waits"),
        not has(item, "alone"),
        not is_in_a_lane(item),
        not has(item, "loads"),
        not has(item, "slow"),
    )


def has(item: pytest.Item, mark: str) -> bool:
    return item.get_closest_marker(mark) is not None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs something that is not here, and give proofs their time; side by side, begin with what is long."""
    if hasattr(config, "workerinput"):
        items.sort(key=place_of)
    missing = [need for need in NEEDS if not need.is_met()]
    for item in items:
        if item.path.is_relative_to(PROOF) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PROOF_TIMEOUT_S))
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("needs_browser")
        if reasons := [need.reason for need in missing if item.get_closest_marker(need.mark)]:
            item.add_marker(pytest.mark.skip(reason=reasons[0]), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> Generator[None, object, object]:
    """Interrupt a test at its timeout (pytest-timeout), and again and again until it has ended.

    The exception ends a wait, but what cleans up on its way out, such as the end of `with Popen(...)`, may wait, too.
    """
    result = yield
    timeout_s, _ = signal.getitimer(signal.ITIMER_REAL)
    signal.setitimer(signal.ITIMER_REAL, timeout_s, AGAIN_S)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> Generator[None, object, object]:
    """Keep the timer of a test that has failed until its fixtures are taken down; pytest-timeout stops it here."""
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    result = yield
    if isinstance(node, pytest.Item) and timer[0]:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count what was skipped, by reason."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped: {count} {reason}", yellow=True)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the session when processes, mounts or temporary files of it outlive its last test.

    Of tests side by side (pytest-xdist) each worker is a session of its own.
    """
    mark = uuid.uuid4().hex
    tmp_path_factory.getbasetemp()  # pytest's own folder is made, and cleared away, by itself
    folder = Path(tempfile.mkdtemp(prefix="eyelevel-tests-"))
    mounts = mount_points()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        patch.setenv("TMPDIR", str(folder))
        # What tests measure, side by side or beside a campaign, is not to wait for each other.
        patch.setenv(VARIABLE, str(Path(SESSION_FOLDER.name) / "measuring"))
        patch.setattr(tempfile, "tempdir", None)
        yield
    signal.setitimer(signal.ITIMER_REAL, 0)  # what follows takes little time, and must not be cut short
    # A namespace lives as long as a process, a mount or a descriptor of ours holds it.
    leaks = [f"process {process}" for process in processes_marked(f"{MARK}={mark}")]
    end_marked(f"{MARK}={mark}")
    leaks += [f"mount on {path}" for path in sorted(mount_points() - mounts)]
    leaks += [f"temporary file {path}" for path in folder.iterdir()]
    shutil.rmtree(folder)
    if leaks:
        pytest.fail("left behind by the tests:\n  " + "\n  ".join(leaks), pytrace=False)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The packaged browser without a window."""
    with browsing(tmp_path_factory.mktemp("browser")) as session:
        yield session
