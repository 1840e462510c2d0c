"""Workers of a cluster are refused if they differ, and their measurements arrive complete.

tests/proof/test_campaign_faults.py proves the rest, with real workers.
"""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import ROW, rejected
from rich.console import Console
from support.scripted import scripted_campaign, work_of

from base.errors import EyelevelError
from base.structure import structured
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Run
from measure.campaign.campaign import Campaign
from measure.campaign.cluster import Cluster, bring_home
from measure.campaign.progress import ProgressDisplay
from measure.campaign.remote import Introduction, MeasuredBlock
from measure.campaign.results import opened
from measure.campaign.store import FolderStore
from measure.host.lanes import Lane, Lanes
from measure.sites.completeness import digest

HERE = {"chromium": "156", "kernel": "6.1", "timekeeping": "kernel stamps"}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return scripted_campaign(tmp_path, "dsl", "tcp", runs=1, programs=HERE)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, None),
        ({"versions": {**HERE, "quic_server": "150"}}, None),
        ({"versions": {**HERE, "chromium": "157"}}, "chromium is 157 there, 156 here"),
        ({"versions": {**HERE, "kernel": "absent"}}, "kernel is absent there, 6.1 here"),
        (
            {"versions": {**HERE, "timekeeping": "ordinary priority"}},
            "timekeeping is ordinary priority there, kernel stamps here",
        ),
        ({"sites": {"site": "0" * 64}}, "the site site differs"),
        ({"fault": "nginx is not installed"}, "nginx is not installed"),
        (
            {"lanes": Lanes(2, (Lane(1, (0,)), Lane(2, (1,))))},
            "it has LANES=2, and the campaign LANES=1: 'eyelevel worker --lanes 1'",
        ),
    ],
)
def test_a_worker_that_differs_is_refused_with_the_difference(
    campaign: Campaign, changed: dict[str, Any], fault: str | None
) -> None:
    sites = {name: digest(site) for name, site in campaign.sites.items()}
    sound = Introduction("there", HERE, sites)
    assert Cluster("tcp://nowhere:1", campaign)._fault(replace(sound, **changed)) == fault


def test_a_worker_has_a_place_for_each_lane(campaign: Campaign) -> None:
    assert Cluster("tcp://nowhere:1", campaign).places("w") == [("w", None)]
    in_lanes = replace(campaign, lanes=Lanes(3))
    assert Cluster("tcp://nowhere:1", in_lanes).places("w") == [("w", 1), ("w", 2), ("w", 3)]
    sharing = replace(campaign, lanes=Lanes(2, at_once={"lte": 3}))
    assert Cluster("tcp://nowhere:1", sharing).places("w") == [("w", lane) for lane in range(1, 7)]
    # Each worker chooses its own lanes.
    assert in_lanes.document().settings.lanes == 3 and in_lanes.document().lanes == {}


def test_a_scheduler_that_is_not_there_is_told(campaign: Campaign) -> None:
    watch = ProgressDisplay(Console(file=io.StringIO()), [], 0)
    settings = {"seed": 1, "runs": 1, "sites": {}, "networks": {}, "protocols": {}}
    message = r"there is no Dask scheduler at tcp://127\.0\.0\.1:1"
    with (
        opened(campaign.folder, CampaignDocument(structured(settings, CampaignSettings, ""))) as results,
        pytest.raises(EyelevelError, match=message),
    ):
        Cluster("tcp://127.0.0.1:1", campaign, connect_timeout_s=1).measure(work_of(campaign, results, watch))


def test_what_a_worker_measured_comes_home_whole(tmp_path: Path) -> None:
    settings = {"seed": 1, "runs": 1, "sites": {}, "networks": {}, "protocols": {}}
    first = rejected("film_unclean: it is")
    second = replace(ROW, attempt=2, folder="runs/s/lte/tcp/1-2")
    evidence = {"attempt.json": b"{}", "film.mp4": b"film"}
    printed = io.StringIO()
    watch = ProgressDisplay(Console(file=printed, width=200), [ROW.of], 0)
    with opened(tmp_path / "c", CampaignDocument(structured(settings, CampaignSettings, ""))) as results:
        # An interrupted attempt left this file.
        (results.empty_run_folder(ROW.of, 1) / "old").touch()
        bring_home(MeasuredBlock((first, second), (evidence, evidence), ("it drifts",)), 2, results, watch)
        assert results.is_valid(ROW.of)
        assert results.attempts(ROW.of) == 2
        for row in (first, second):
            files = {file.name: file.read_bytes() for file in (results.folder / row.folder).iterdir()}
            assert files == evidence
    assert "warning: it drifts" in printed.getvalue()
    assert "film_unclean: it is; once more" in printed.getvalue()


def test_a_block_that_travels_numbers_its_attempts_on(tmp_path: Path) -> None:
    run = Run("s", "lte", "tcp", 1)
    store = FolderStore(tmp_path, earlier={run: (4, 2)})
    assert (store.attempts(run), store.failures(run), store.is_valid(run)) == (4, 2, False)
    store.keep(rejected("machine_busy: it is", attempt=5))
    assert (store.attempts(run), store.failures(run)) == (5, 2)
    store.keep(rejected("error_page: it is", attempt=6))
    assert (store.attempts(run), store.failures(run)) == (6, 3)
    store.keep(replace(ROW, attempt=7))
    assert store.is_valid(run)
    assert store.run_folder(run, 7) == tmp_path / "runs/s/lte/tcp/1-7"
