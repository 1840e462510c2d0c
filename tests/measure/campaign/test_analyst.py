"""While other runs are made, separate processes analyse films."""

import errno
import json
import os
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from support.lanes import AnalysedMethod
from support.scripted import ScriptedSlot

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.table import Run
from films.policy import ALL_FILMS
from measure.campaign.analyses import Analyses
from measure.campaign.analyst import analyse_apart
from measure.campaign.block import Block, measure_block
from measure.campaign.preparer import Preparer
from measure.campaign.store import FolderStore
from measure.host.affinity import Layout
from measure.run.setting import Loading

CORE = min(os.sched_getaffinity(0))
PLACES = Layout(*[(CORE,)] * 5)


@pytest.fixture(autouse=True)
def tests_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "tests"))


@pytest.mark.parametrize("has_cores", [True, False])
def test_with_cores_for_it_a_film_is_analysed_by_a_process_on_these(tmp_path: Path, has_cores: bool) -> None:
    slot = ScriptedSlot(layout=PLACES if has_cores else None)
    run = Run("s", "dsl", "tcp", 1)
    store = FolderStore(tmp_path)
    block = Block(1, {run: MagicMock(loading=Loading())}, AnalysedMethod(), 0, ALL_FILMS)
    measure_block(block, store, slot, print, Preparer(store))
    process, cores, _ = json.loads((store.run_folder(run, 1) / "analysis.json").read_text())
    assert (process != os.getpid()) == has_cores
    if has_cores:
        assert cores == [CORE]


@pytest.mark.parametrize("layout", [None, PLACES])
def test_a_run_waits_for_films_unless_they_have_cores_of_their_own(tmp_path: Path, layout: Layout | None) -> None:
    os.mkfifo(meeting := tmp_path / "meeting")
    with Analyses(AnalysedMethod(meeting=meeting if layout else None), layout) as analyses:
        analyses.add(tmp_path, 0.0)
        analyses.await_quiet()
        assert (tmp_path / "analysis.json").exists() == (layout is None)
        if layout:
            os.close(os.open(meeting, os.O_WRONLY))
        analyses.finish()
    assert (tmp_path / "analysis.json").exists()


@pytest.mark.parametrize("idle", [False, True])
def test_films_are_analysed_at_idle_priority_while_other_loads_share_the_processors(tmp_path: Path, idle: bool) -> None:
    with Analyses(AnalysedMethod(), None, idle=idle) as analyses:
        analyses.add(tmp_path, 0.0)
        analyses.finish()
    policy = json.loads((tmp_path / "analysis.json").read_text())[2]
    assert policy == (os.SCHED_IDLE if idle else os.SCHED_OTHER)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device", "strip.jpg"), EyelevelError("odd")])
def test_what_an_analysis_raises_is_raised_here(tmp_path: Path, fault: Exception) -> None:
    with pytest.raises(type(fault)) as raised:
        analyse_apart(AnalysedMethod(fault=fault), tmp_path)
    assert str(raised.value) == str(fault)
    if isinstance(fault, OSError):
        assert isinstance(raised.value, OSError)
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "strip.jpg")


def test_an_analysis_that_ends_otherwise_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EyelevelError, match=r"the analysis of .* has ended with status 1; its errors are above"):
        analyse_apart(AnalysedMethod(fault=ValueError("a fault of ours")), tmp_path)
    assert "ValueError: a fault of ours" in capfd.readouterr().err
