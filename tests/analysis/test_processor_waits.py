"""Contrasts whose loads waited for a processor are marked; other contrasts, and campaigns without these data, are
not."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from support.first_screens import findings_of
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.processor import BUSY, COLUMNS, DIFFERENT
from analysis.report.sections.summary import confirmatory
from analysis.report.warnings import of_waits
from analysis.runs import CampaignTable
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT

DECLARED = hypotheses.load()


def waiting(effect: float = 0.0, waits: Mapping[str, float] | None = None, seed: int = 0) -> CampaignTable:
    """A campaign in which QUIC is slower by `effect`. `waits`: protocol → the factor by which its loads wait longer."""
    table = campaign(World(effects={"quic": effect}), seed)
    factors = table.runs["protocol"].map(waits or {}).fillna(1)
    return CampaignTable(table.runs.assign(processor_wait_ms=table.runs[PROCESSOR_WAIT] * factors), table.document)


def waits_of(table: CampaignTable) -> pd.DataFrame:
    return findings_of(table, DECLARED)["processor_waits"]


def test_waits_of_a_protocol_that_are_as_large_as_its_difference_are_named() -> None:
    table = waits_of(waiting(0.1, {"quic": 2}))
    assert set(table["warning"]) == {DIFFERENT}
    # PLT is 1.7 times the Speed Index, and loads over TCP+ wait for 0.2 of PLT. Loads over QUIC take 1.1 times as long,
    # and wait for twice that share.
    si = table[table["metric"] == "si"]
    assert si["wait_gain"].to_numpy() == pytest.approx(1.7 * 0.2 * (2 * 1.1 - 1), rel=0.1)
    ratio = table["wait_compared"] / table["wait_reference"]
    assert ratio.to_numpy() == pytest.approx(2.2, rel=0.1)
    assert (table["difference_ms"] > 0).all()
    texts = of_waits(table, 2)
    assert len(texts) == 2
    assert all("QUIC's loads waited" in text and "SI and PLT may be smaller, or none" in text for text in texts)


def test_the_faster_of_two_that_waits_longer_might_be_faster_still() -> None:
    (text, *_) = of_waits(waits_of(waiting(-0.1, {"quic": 3})), 2)
    assert "SI and PLT may be larger" in text


def test_a_small_part_of_a_difference_is_no_warning() -> None:
    assert of_waits(waits_of(waiting(1.0, {"quic": 1.2})), 2) == []


def test_waiting_for_most_of_the_time_is_said_whatever_the_difference() -> None:
    table = waits_of(waiting(0.0, dict.fromkeys(("tcp", "tcp+", "quic"), 5)))
    assert set(table["warning"]) == {BUSY}
    (text,) = of_waits(table, 2)
    assert text.startswith("Behind DSL and LTE, threads that had work")
    assert "of 2 cores" in text and "more cores" in text


def test_protocols_that_wait_alike_are_not_named() -> None:
    assert of_waits(waits_of(waiting()), 2) == []


def test_an_older_campaign_has_no_waits_and_no_warning() -> None:
    table = waiting()
    old = CampaignTable(table.runs.drop(columns=[*PROCESSOR_COLUMNS, PROCESSOR_WAIT], errors="ignore"), table.document)
    assert waits_of(old).empty
    assert [*waits_of(old)] == COLUMNS
    unknown = CampaignTable(table.runs.assign(processor_wait_ms=np.nan), table.document)
    assert of_waits(waits_of(unknown), 2) == []


def test_the_table_of_hypotheses_marks_these_gains_alone() -> None:
    marked = confirmatory(findings_of(waiting(0.1, {"quic": 2}), DECLARED))
    assert marked.texts["gain"].str.endswith("%*").all()
    assert "* The loads of one protocol waited longer" in marked.note
    unmarked = confirmatory(findings_of(waiting(0.1), DECLARED))
    assert not unmarked.texts["gain"].str.contains("*", regex=False).any()
    assert "waited" not in unmarked.note
