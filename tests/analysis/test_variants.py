"""Variants are compared with their originals, in pairs of runs that were measured side by side."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.analysis_truth import campaign_table

from analysis import hypotheses
from analysis.outcomes import FASTER, NOT_DECIDED
from analysis.runs import CampaignTable
from analysis.variants import variants
from measure.campaign.plan import PlannedBlock, extended, plan

SITES = ("news", "shop", "shop@small")
PROTOCOLS = ("tcp", "quic")


def measured(blocks: Sequence[PlannedBlock], scatter: float = 0.3) -> CampaignTable:
    """A campaign of these `blocks`, which `scatter` much; the variant shop@small takes 10 % less time."""
    draw = np.random.default_rng(3)
    rows = []
    for number, block in enumerate(blocks, start=1):
        shared = draw.normal(0, scatter)
        for run in block:
            level = np.log(1000) + shared + draw.normal(0, 0.02) + np.log(0.9) * (run.site == "shop@small")
            cells = {"site": run.site, "network": run.network, "protocol": run.protocol, "run": run.number}
            rows.append({**cells, "block": number, "attempt": 1, "valid": True, "reason": "", "si": np.exp(level)})
    return campaign_table(pd.DataFrame(rows), ("lte",), PROTOCOLS)


def in_blocks_of_their_own(runs: int) -> list[PlannedBlock]:
    """The plan of an earlier version: the blocks of a site and its variant follow each other."""
    together = plan(SITES, ["lte"], PROTOCOLS, runs, 1)
    sites = [dict.fromkeys(run.site for run in block) for block in together]
    return [
        tuple(run for run in block if run.site == site)
        for block, names in zip(together, sites, strict=True)
        for site in names
    ]


def test_a_variant_is_compared_with_its_own_original_alone_within_blocks() -> None:
    table = variants(measured(plan(SITES, ["lte"], PROTOCOLS, 12, 1)), hypotheses.load())
    assert set(zip(table["variant"], table["original"], strict=True)) == {("shop@small", "shop")}
    assert table["protocol"].tolist() == ["tcp", "quic"]
    assert table["pairs"].tolist() == table["within_blocks"].tolist() == [12, 12]
    # Runs scatter by 2 %, and blocks by 30 %, which cancel.
    assert table["change"].to_numpy() == pytest.approx(-0.1, abs=0.02)
    assert (table["verdict"] == FASTER).all()


def test_neighbouring_blocks_of_two_machines_are_not_paired() -> None:
    campaign = measured(in_blocks_of_their_own(6), scatter=0.0)
    runs = campaign.runs
    # The last two variants were measured elsewhere.
    is_elsewhere = (runs["site"] == "shop@small") & (runs["run"] > 4)
    machines = np.where(is_elsewhere, "there", "here")
    table = variants(replace(campaign, runs=runs.assign(machine=machines)), hypotheses.load())
    assert table["pairs"].tolist() == [4, 4]


def test_blocks_of_earlier_versions_are_paired_with_their_neighbours_and_go_on_as_shared_ones() -> None:
    before = in_blocks_of_their_own(6)
    table = variants(measured(before, scatter=0.0), hypotheses.load())
    assert table["pairs"].tolist() == [6, 6]
    assert table["within_blocks"].tolist() == [0, 0]
    assert table["change"].to_numpy() == pytest.approx(-0.1, abs=0.03)
    more = extended(before, plan(SITES, ["lte"], PROTOCOLS, 10, 1), len(before))
    assert more[: len(before)] == before
    table = variants(measured(more, scatter=0.0), hypotheses.load())
    assert table["pairs"].tolist() == [10, 10]
    assert table["within_blocks"].tolist() == [4, 4]


def test_a_variant_that_was_added_later_has_no_pairs_of_what_was_measured_before() -> None:
    before = plan(SITES[:2], ["lte"], PROTOCOLS, 5, 1)
    late = variants(measured(extended(before, plan(SITES, ["lte"], PROTOCOLS, 5, 1), len(before))), hypotheses.load())
    assert late["pairs"].tolist() == [0, 0]
    assert (late["verdict"] == NOT_DECIDED).all()
    more = variants(measured(extended(before, plan(SITES, ["lte"], PROTOCOLS, 12, 1), len(before))), hypotheses.load())
    assert more["pairs"].tolist() == more["within_blocks"].tolist() == [7, 7]


def test_campaigns_that_do_not_know_their_blocks_are_paired_by_the_number_of_the_run() -> None:
    table = measured(plan(SITES, ["lte"], PROTOCOLS, 5, 1), scatter=0.0)
    bare = CampaignTable(table.runs.drop(columns="block"), table.document)
    assert variants(bare, hypotheses.load())["pairs"].tolist() == [5, 5]
