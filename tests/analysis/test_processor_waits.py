"""Contrasts whose loads waited for a processor are marked; other contrasts, and campaigns without these data, are
not."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.processor import BUSY, COLUMNS, DIFFERENT, MOST_WAITING, WITHOUT_UWSGI
from analysis.report.conclusion import findings_of
from analysis.report.sections.declared import confirmatory
from analysis.report.sections.diagnostics import diagnostics
from analysis.report.sentences import warnings
from analysis.report.warnings import of_few_cores, of_impossible_waits, of_waits, titled
from analysis.runs import CampaignTable, load, rows_of
from base.places import PROJECT
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT

DECLARED = hypotheses.load()
LATER = "2026-12-01T00:00:00+0000"


def waiting(effect: float = 0.0, waits: Mapping[str, float] | None = None, runs: int = 10) -> CampaignTable:
    """A campaign in which QUIC is slower by `effect`. `waits`: protocol → the factor by which its loads wait longer."""
    table = campaign(World(effects={"quic": effect}, runs=runs), 0)
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
    assert si["wait_gain"].to_numpy() == pytest.approx(1.7 * 0.2 * (2 * 1.1 - 1), rel=0.2)
    ratio = table["wait_compared"] / table["wait_reference"]
    assert ratio.to_numpy() == pytest.approx(2.2, rel=0.15)
    assert (table["difference_ms"] > 0).all()
    (text,) = of_waits(table, 2)
    title, details = titled(text)
    assert title == "Loads over QUIC waited longer for a processor than those over TCP+."
    assert details.startswith("The differences are QUIC against TCP+ ")
    assert "ms on DSL and " in text and "ms on LTE (" in text
    assert "these protocols may compare differently in SI and PLT" in text


@pytest.mark.parametrize("effect", [0.1, -0.1])
def test_no_direction_is_inferred_from_waits(effect: float) -> None:
    (text, *_) = of_waits(waits_of(waiting(effect, {"quic": 3})), 2)
    assert text.startswith("Loads over QUIC waited longer for a processor than those over TCP+.")
    assert "larger" not in text and "smaller" not in text


def test_results_of_a_saturated_machine_are_no_evidence_for_another() -> None:
    texts = of_waits(waits_of(waiting(-0.1, {"tcp+": 5, "quic": 15})), 2)
    assert ["waited longer" in text for text in texts] == [True, False]
    assert "these results are no evidence for a machine that is not." in texts[-1]
    # The sentence is about the protocol that waited most, so no number is below the bound that it names.
    shares = [float(share) for share in re.findall(r"(\d+\.\d) %", texts[-1])]
    assert shares and min(shares) > 50 and "More than 50 % counts" in texts[-1]
    assert not any("larger" in text or "smaller" in text for text in texts)


def asleep(table: CampaignTable, every: int) -> CampaignTable:
    """`table`, in which one QUIC load in `every` seems to wait for a minute more."""
    is_asleep = (table.runs["protocol"] == "quic") & ((table.runs["run"] + table.runs["block"]) % every == 0)
    return CampaignTable(
        table.runs.assign(processor_wait_ms=table.runs[PROCESSOR_WAIT] + 60_000 * is_asleep), table.document
    )


def test_a_few_impossible_waits_hide_nothing_and_are_counted() -> None:
    table = waiting(0.1, {"quic": 2})
    late = asleep(table, 13)
    waits, expected = waits_of(late), waits_of(table)
    assert set(waits["warning"]) == {DIFFERENT}
    columns = ["wait_reference", "wait_compared", "difference_ms", "wait_gain"]
    assert waits[columns].to_numpy() == pytest.approx(expected[columns].to_numpy(), rel=0.1)
    assert (waits["blocks"] < expected["blocks"]).all()
    number = int((late.runs[PROCESSOR_WAIT] > MOST_WAITING * late.runs["plt"]).sum())
    assert number > 5
    (text,) = of_impossible_waits(late.valid)
    assert text.startswith(f"In {number} loads ({number} of QUIC), the kernel counted longer waits")
    assert of_impossible_waits(table.valid) == []
    assert of_impossible_waits(table.valid.drop(columns=PROCESSOR_WAIT)) == []


def test_waits_that_are_wrong_in_a_few_loads_and_possible_hide_nothing() -> None:
    table = waiting(0.1, {"quic": 2}, runs=3)
    high = table.runs["plt"] * (MOST_WAITING - 0.1)
    is_high = (table.runs["protocol"] == "quic") & (table.runs["block"] % 20 == 0)
    runs = table.runs.assign(processor_wait_ms=table.runs[PROCESSOR_WAIT].mask(is_high, high))
    assert set(waits_of(CampaignTable(runs, table.document))["warning"]) == {DIFFERENT}


def test_all_pairs_of_the_reference_campaign_waited_on_lte() -> None:
    folder = PROJECT / "data/reference"
    campaign = load(folder)
    table = findings_of(campaign, hypotheses.of_campaign(folder, campaign.document))["processor_waits"]
    on_lte = rows_of(table, network="lte")
    assert len(on_lte) == 2 * 3
    assert on_lte["warning"].str.contains(DIFFERENT).all()
    # All differences are medians, and agree with those of the medians that stand beside them.
    medians = on_lte["wait_compared"] - on_lte["wait_reference"]
    assert on_lte["difference_ms"].to_numpy() == pytest.approx(medians.to_numpy(), rel=0.4)
    (text,) = of_impossible_waits(campaign.valid)
    assert text.startswith("In 6 loads (2 of quic+1con and 4 of QUIC+BBR), the kernel counted longer waits")


def test_a_small_part_of_a_difference_is_no_warning() -> None:
    assert of_waits(waits_of(waiting(1.0, {"quic": 1.2})), 2) == []


def test_waiting_for_most_of_the_time_is_said_whatever_the_difference() -> None:
    table = waits_of(waiting(0.0, dict.fromkeys(("tcp", "tcp+", "quic"), 5)))
    assert set(table["warning"]) == {BUSY}
    (text,) = of_waits(table, 2)
    assert text.startswith("The machine, of 2 cores, was saturated on DSL and LTE. Threads that had work")
    assert "More cores" in text


def test_few_cores_are_said_where_no_wait_was_too_long() -> None:
    (text,) = of_few_cores(2)
    assert text.startswith("A load had 2 cores for the browser")
    assert of_few_cores(4) == of_few_cores(None) == []


def test_protocols_that_wait_alike_are_not_named() -> None:
    assert of_waits(waits_of(waiting()), 2) == []


def test_an_older_campaign_has_no_waits_and_no_warning() -> None:
    table = waiting()
    old = CampaignTable(table.runs.drop(columns=[*PROCESSOR_COLUMNS, PROCESSOR_WAIT], errors="ignore"), table.document)
    assert waits_of(old).empty
    assert [*waits_of(old)] == COLUMNS
    unknown = CampaignTable(table.runs.assign(processor_wait_ms=np.nan), table.document)
    assert of_waits(waits_of(unknown), 2) == []


@pytest.mark.parametrize(
    ("versions", "started_at", "is_said"),
    [
        ({"uwsgi": "2"}, "2026-11-30T23:59:59+0000", True),
        ({"uwsgi": "2"}, "2026-12-01T00:00:00+0000", False),
        ({}, "2026-11-30T23:59:59+0000", False),
    ],
)
def test_the_report_says_where_waits_of_uwsgi_are_missing(
    versions: dict[str, str], started_at: str, *, is_said: bool
) -> None:
    table = waiting(0.1, {"quic": 2})
    starts = [started_at, *[LATER] * (len(table.runs) - 1)]
    document = replace(table.document, versions=versions)
    findings = findings_of(CampaignTable(table.runs.assign(started_at=starts), document), DECLARED)
    (text,) = [text for text in warnings(findings) if "waited longer" in text]
    title, details = titled(text)
    assert title.endswith(", not counting uWSGI's waits.") is is_said
    assert (WITHOUT_UWSGI in details) is (WITHOUT_UWSGI in confirmatory(findings).note) is is_said
    (of_waits,) = [table for table in diagnostics(findings).tables if table.name == "processor_waits"]
    assert (WITHOUT_UWSGI in of_waits.note) is is_said


def test_the_table_of_hypotheses_marks_these_gains_alone() -> None:
    marked = confirmatory(findings_of(waiting(0.1, {"quic": 2}), DECLARED))
    assert marked.texts["change"].str.endswith("%*").all()
    assert "* The loads of one protocol waited longer" in marked.note
    unmarked = confirmatory(findings_of(waiting(0.1), DECLARED))
    assert not unmarked.texts["change"].str.contains("*", regex=False).any()
    assert "waited" not in unmarked.note
