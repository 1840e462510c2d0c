"""Campaigns with known truth are what they claim to be (`test_first_screens.py` tests that reports find it)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from support.known_campaigns import CAMPAIGNS, KINDS, MULTIPLES, KnownCampaign, write

from analysis.runs import load
from dataset.declaration import declaration_of
from dataset.metrics import metric_names
from dataset.table import columns, read_rows
from measure.instruments.contract import instrument_columns

NAMES = pytest.mark.parametrize("name", CAMPAIGNS)
SECONDS = 10


@dataclass(frozen=True)
class CampaignFolder:
    """A campaign, its folder, and the processor time (s) that it took to write it."""

    known: KnownCampaign
    folder: Path
    seconds: float


FolderOf = Callable[[str], CampaignFolder]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """The campaign of a given name, which is written once; tests must not change it."""

    @cache
    def write_folder(name: str) -> CampaignFolder:
        folder, start = tmp_path_factory.mktemp("known") / name, time.process_time()
        known = write(folder, name)
        return CampaignFolder(known, folder, time.process_time() - start)

    return write_folder


@pytest.mark.slow
@NAMES
def test_a_campaign_has_the_form_of_those_measured(name: str, folder_of: FolderOf) -> None:
    campaign = folder_of(name)
    known, folder = campaign.known, campaign.folder
    # Known campaigns do not contain metrics that were added later.
    added = set(metric_names()) - set(MULTIPLES)
    header = [column for column in (*columns(), *instrument_columns()) if column not in added]
    assert (folder / "runs.csv").read_text().splitlines()[0].split(",") == header
    rows = read_rows(folder)
    valid = [row for row in rows if row.valid]
    assert len({row.of for row in valid}) == len(valid)
    assert all((row.reason is None) == row.valid == (row.metrics["si"] is not None) for row in rows)
    document = load(folder).document
    assert document.settings.auto is bool(known.blocks)
    assert tuple(document.settings.protocols) == known.protocols
    assert known.screen.warnings.isdisjoint(known.screen.silent)
    assert known.screen.warnings | known.screen.silent <= set(KINDS)


def attempts_of(campaign: CampaignFolder) -> pd.DataFrame:
    return load(campaign.folder).runs


def test_another_seed_is_another_campaign_of_the_same_truth(tmp_path: Path) -> None:
    write(tmp_path / "one", "null")
    write(tmp_path / "same", "null")
    write(tmp_path / "other", "null", seed=15)
    one, same, other = ((tmp_path / name / "runs.csv").read_bytes() for name in ("one", "same", "other"))
    assert one == same != other


def test_of_the_late_campaign_no_block_has_both_protocols(folder_of: FolderOf) -> None:
    runs = attempts_of(folder_of("late"))
    starts = pd.to_datetime(runs["started_at"], utc=True)
    quic = runs["protocol"] == "quic"
    assert starts[quic].min() - starts[~quic].max() > pd.Timedelta(days=6.9)
    assert set(runs.loc[quic, "block"]).isdisjoint(runs.loc[~quic, "block"])
    assert sorted(runs.loc[quic, "run"].unique()) == sorted(runs.loc[~quic, "run"].unique()) == list(range(1, 32))


def test_of_the_campaign_with_late_stock_tcp_the_pair_is_measured_together(folder_of: FolderOf) -> None:
    runs = attempts_of(folder_of("late-stock"))
    members = runs.groupby("block")["protocol"].agg(lambda names: " ".join(sorted(names)))
    assert set(members) == {"quic tcp+", "tcp"}
    starts = pd.to_datetime(runs["started_at"], utc=True).groupby(runs["protocol"])
    assert starts.min()["tcp"] - starts.max()["quic"] > pd.Timedelta(days=6.9)


def test_what_was_added_to_a_campaign_has_later_runs_than_all_else(folder_of: FolderOf) -> None:
    runs = attempts_of(folder_of("added"))
    is_new = (runs["protocol"] == "quic+bbr") | (runs["network"] == "lte")
    starts = pd.to_datetime(runs["started_at"], utc=True)
    folder = folder_of("added").folder
    declared = declaration_of(load(folder).document, folder)
    (moment,) = {*declared.networks.values(), *declared.protocols.values()}
    assert starts[~is_new].max() < pd.Timestamp(moment) <= starts[is_new].min()
    assert (list(declared.networks), list(declared.protocols)) == (["lte"], ["quic+bbr"])
    members = runs.groupby(["network", "block"])["protocol"].nunique().groupby("network").unique()
    assert sorted(members["dsl"]) == [1, 3]
    assert list(members["lte"]) == [4]
    assert len(runs) == 12 * 31 * 2 * 4


def test_of_the_campaign_with_losses_one_load_in_eight_never_ends(folder_of: FolderOf) -> None:
    runs = attempts_of(folder_of("losses"))
    lost = runs["reason"].str.startswith("over_time").groupby(runs["protocol"]).mean()
    assert lost["quic"] == pytest.approx(1 / 8, abs=0.04)
    assert lost["tcp"] == lost["tcp+"] == 0
    # A load that is cut off is not repeated.
    assert set(runs.loc[runs["reason"].str.startswith("over_time"), "attempt"]) == {1}


def test_of_the_broken_campaign_one_setting_has_no_valid_run(folder_of: FolderOf) -> None:
    runs = attempts_of(folder_of("broken"))
    valid = runs.groupby(["site", "protocol"])["valid"].sum()
    assert valid["known03.example", "quic"] == 0
    assert (valid.drop(("known03.example", "quic")) == 2 * 31).all()


def test_the_early_campaign_ends_at_looks(folder_of: FolderOf) -> None:
    runs = attempts_of(folder_of("early"))
    assert runs.groupby("network")["run"].max().to_dict() == {"dsl": 5, "lte": 20, "da2gc": 31}


@pytest.mark.parametrize(("name", "is_fixed"), [("null", False), ("order", True)])
def test_the_order_of_protocols_is_random_unless_the_campaign_says_otherwise(
    name: str, is_fixed: bool, folder_of: FolderOf
) -> None:
    runs = attempts_of(folder_of(name))
    first = runs.groupby("block")["protocol"].first().value_counts(normalize=True)
    assert (len(first) == 1) is is_fixed
    assert is_fixed or first.between(0.25, 0.42).all()


def test_times_drift_by_what_the_campaign_says(folder_of: FolderOf) -> None:
    runs = attempts_of(folder_of("drift"))
    first, last = (runs[runs["run"].isin(numbers)]["si"].median() for numbers in ((1, 2), (30, 31)))
    assert last / first == pytest.approx(1.28, abs=0.06)


@pytest.mark.slow
def test_the_full_size_is_written_in_seconds(folder_of: FolderOf) -> None:
    full = folder_of("full")
    assert full.seconds < SECONDS
    assert len((full.folder / "runs.csv").read_text().splitlines()) == 1 + 38 * 4 * 5 * 31
