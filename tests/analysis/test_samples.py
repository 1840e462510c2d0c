"""How far a campaign has come, as its samples tell it."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
from support.worlds import World, attempt, campaign, table_of

from analysis.runs import CampaignTable
from analysis.samples import samples_of
from measure.table import GivenUp, write_given_up


def without(table: CampaignTable, site: str, after_run: int) -> CampaignTable:
    runs = table.runs
    return replace(table, runs=runs[(runs["site"] != site) | (runs["run"] <= after_run)])


def test_a_round_is_over_at_all_sites_together() -> None:
    table = campaign(World(sites=3, runs=6), 1)
    assert samples_of(table).rounds == (6, 6)
    late = without(table, "s01", 4)
    assert samples_of(late).rounds == (4, 4)
    assert samples_of(late).first(3).rounds == (3, 3)


def test_a_site_that_was_given_up_holds_up_nothing(tmp_path: Path) -> None:
    late = replace(without(campaign(World(sites=3, runs=6), 1), "s01", 2), folder=tmp_path)
    write_given_up(tmp_path, [GivenUp("s01", "lte", "load_failed: no", 12, "then")])
    assert samples_of(late).rounds == (2, 6)
    write_given_up(tmp_path, [GivenUp(site, "lte", "load_failed: no", 12, "then") for site in ("s00", "s01", "s02")])
    assert samples_of(late).rounds == (2, 2)


def test_a_block_whose_runs_were_all_lost_is_measured() -> None:
    rows = [attempt(protocol=name, run=run, block=run) for name in ("tcp", "quic") for run in (1, 2)]
    rows += [attempt(protocol=name, run=3, block=3, reason="load_failed: no") for name in ("tcp", "quic")]
    samples = samples_of(table_of(pd.DataFrame(rows), 3))
    assert (samples.rounds, samples.values.shape[-1]) == ((3,), 2)
