"""Variants are compared with their originals, in pairs of runs that were measured side by side."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from support.analysis_truth import campaign_table

from analysis import hypotheses
from analysis.report.conclusion import conclusion, findings_of
from analysis.report.first_screen import sentences
from analysis.report.variants import of_variants
from analysis.runs import CampaignTable
from analysis.statistics.outcomes import FASTER, NOT_DECIDED
from analysis.variants import variants
from dataset.plan import PlannedBlock
from measure.campaign.plan import extended, plan

SITES = ("news", "shop", "shop@small")
PROTOCOLS = ("tcp", "quic")


def measured(blocks: Sequence[PlannedBlock], scatter: float = 0.3) -> CampaignTable:
    """A campaign of these `blocks`, which scatter by `scatter`. The variant shop@small takes 10 % less time."""
    draw = np.random.default_rng(3)
    rows = []
    for number, block in enumerate(blocks, start=1):
        shared = draw.normal(0, scatter)
        for run in block:
            level = np.log(1000) + shared + draw.normal(0, 0.02) + np.log(0.9) * (run.site == "shop@small")
            cells = {"site": run.site, "network": run.network, "protocol": run.protocol, "run": run.number}
            rows.append({**cells, "block": number, "attempt": 1, "valid": True, "reason": "", "si": np.exp(level)})
    return campaign_table(pd.DataFrame(rows), ("lte",), PROTOCOLS)


def test_a_variant_is_compared_with_its_own_original_alone_within_blocks() -> None:
    table = variants(measured(plan(SITES, ["lte"], PROTOCOLS, 12, 1)), hypotheses.load())
    assert set(zip(table["variant"], table["original"], strict=True)) == {("shop@small", "shop")}
    assert table["protocol"].tolist() == ["tcp", "quic"]
    assert table["pairs"].tolist() == [12, 12]
    # Runs scatter by 2 %. Blocks scatter by 30 %, which cancels within a block.
    assert table["change"].to_numpy() == pytest.approx(-0.1, abs=0.02)
    assert (table["verdict"] == FASTER).all()


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        (
            12,
            r"On LTE, shop@small appears [\d.]+ % sooner than shop over TCP \(95 % interval \d+ to \d+ %, 12 pairs\) ",
        ),
        (
            2,
            r"On LTE, it is not decided whether shop@small appears sooner than shop over TCP \(too few for "
            r"an interval, 2 pairs\) and ",
        ),
    ],
)
def test_the_answer_begins_with_the_variant(blocks: int, words: str) -> None:
    findings = findings_of(measured(plan(SITES, ["lte"], PROTOCOLS, blocks, 1)), hypotheses.load())
    (first,) = of_variants(findings)
    assert re.match(words, first), first
    assert sentences(findings)[0] == conclusion(findings).sentences[0] == first


def test_a_variant_that_was_added_later_has_no_pairs_of_what_was_measured_before() -> None:
    before = plan(SITES[:2], ["lte"], PROTOCOLS, 5, 1)
    late = variants(measured(extended(before, plan(SITES, ["lte"], PROTOCOLS, 5, 1), len(before))), hypotheses.load())
    assert late["pairs"].tolist() == [0, 0]
    assert (late["verdict"] == NOT_DECIDED).all()
    more = variants(measured(extended(before, plan(SITES, ["lte"], PROTOCOLS, 12, 1), len(before))), hypotheses.load())
    assert more["pairs"].tolist() == [7, 7]


def test_campaigns_that_do_not_know_their_blocks_are_paired_by_the_number_of_the_run() -> None:
    table = measured(plan(SITES, ["lte"], PROTOCOLS, 5, 1), scatter=0.0)
    bare = CampaignTable(table.runs.drop(columns="block"), table.document)
    assert variants(bare, hypotheses.load())["pairs"].tolist() == [5, 5]
