"""The comparison of a campaign with the paper, and Table 3, on tables with known results."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.analysis_truth import campaign_table
from support.material import REFERENCE

from analysis import hypotheses
from analysis.findings import Findings, Table
from analysis.paper.comparison import campaign_site, handshake_table, read_paper, side_by_side
from analysis.samples import samples_of
from analysis.statistics.contrasts import contrasts, over_sites
from analysis.statistics.gain import gains
from dataset.metrics import time_names


def campaign(times: dict[tuple[str, str], float], network: str = "lte") -> Findings:
    """The findings on three runs of each (site, protocol). In every metric, the runs have its time - 1 ms, its time,
    and its time + 1 ms.

    The round-trip time is 74 ms, and the site gnu is the only one with one server.
    """
    rows = [
        {"site": site, "network": network, "protocol": protocol, "run": run, "valid": True, "reason": ""}
        | dict.fromkeys(time_names(), ms + run - 2)
        for (site, protocol), ms in times.items()
        for run in (1, 2, 3)
    ]
    protocols = tuple(dict.fromkeys(protocol for _, protocol in times))
    table = campaign_table(pd.DataFrame(rows), (network,), protocols)
    table.document.settings.networks[network]["min_rtt_ms"] = 74.0
    samples = samples_of(table)
    pairs = hypotheses.load().restricted_to(samples.protocols, samples.metrics)
    tables: dict[Table, pd.DataFrame] = {"sites": pd.DataFrame({"site": ["two", "gnu"], "servers": [2, 1]})}
    tables |= {"gains": gains(samples, pairs.comparisons), "contrasts": contrasts(samples, pairs, table.rtt_ms)}
    findings = Findings(table, samples, pairs, pairs, tables)
    return replace(findings, tables={**tables, "over_sites": over_sites(findings.comparisons, pairs.confidence)})


def beside(findings: Findings) -> pd.DataFrame:
    return side_by_side(replace(findings, tables={**findings.tables, "handshake": handshake_table(findings)}))


def one(table: pd.DataFrame, **key: str) -> pd.Series:
    for column, value in key.items():
        table = table[table[column] == value]
    (row,) = (row for _, row in table.iterrows())
    return row


@pytest.mark.needs_reference
def test_the_papers_numbers_are_all_carried() -> None:
    theirs, ours = pd.read_csv(REFERENCE / "wolsing2019.csv"), read_paper()
    assert len(ours) == len(theirs)
    assert ours["value"].tolist() == theirs["value"].tolist()
    assert ours["metric"].tolist() == [" ".join(name.lower().split(" and ")) for name in theirs["metric"]]
    assert ours["network"].tolist() == theirs["network"].str.lower().tolist()


def test_a_mean_gain_stands_beside_the_papers() -> None:
    times = {("a", "tcp+"): 1000.0, ("a", "quic"): 900.0, ("b", "tcp+"): 2000.0, ("b", "quic"): 1600.0}
    row = one(beside(campaign(times)), kind="mean_gain", network="lte", compared="quic", metric="si")
    assert (row["value"], row["ours"]) == (-0.14, pytest.approx(-0.15))
    assert (row["same_sign"], row["agrees"], row["sites"]) == ("yes", "yes", 2)
    row = one(beside(campaign(times)), kind="mean_delta", network="lte", reference="tcp+", compared="quic")
    assert (row["value"], row["ours"]) == (-215.9, pytest.approx(-250))


def test_the_opposite_sign_is_said() -> None:
    times: dict[tuple[str, str], float] = {}
    for place in range(6):
        times |= {(f"site {place}", "tcp+"): 1000.0, (f"site {place}", "quic"): 1100.0 + place}
    row = one(beside(campaign(times)), kind="mean_gain", network="lte", compared="quic", metric="si")
    assert (row["same_sign"], row["agrees"]) == ("no", "no")


def test_what_the_campaign_lacks_is_said() -> None:
    table = beside(campaign({("a", "tcp+"): 1000.0, ("a", "quic"): 900.0}))
    lacks = one(table, kind="mean_gain", network="mss", compared="tcp+bbr")["missing"]
    assert lacks == "not measured: network mss, protocol tcp+bbr"
    assert "site gnu.org" in one(table, kind="rtt_delta", network="lte", site="gnu.org", metric="fvc")["missing"]
    assert table.loc[table["missing"] != "", "ours"].isna().all()
    assert table.loc[table["missing"] == "", "ours"].notna().all()


def test_counts_are_scaled_to_the_papers_sites() -> None:
    times: dict[tuple[str, str], float] = {}
    for site, ms in (("a", 500.0), ("b", 1000.0), ("c", 500.0), ("d", 1500.0)):
        times |= {(site, "tcp+"): 1000.0, (site, "quic"): ms}
    row = one(beside(campaign(times, "dsl")), kind="sites_faster", compared="quic", metric="plt")
    assert (row["value"], row["ours"], row["sites"]) == (30, pytest.approx(38 * 2 / 4), 4)
    # Clopper and Pearson's interval for 2 of 4: 6.76 % to 93.24 %.
    assert (row["ours_low"], row["ours_high"]) == (
        pytest.approx(38 * 0.0676, abs=0.01),
        pytest.approx(38 * 0.9324, abs=0.01),
    )


def test_table_3_takes_one_round_trip_off_tcp() -> None:
    findings = campaign({("gnu", "tcp+"): 1000.0, ("gnu", "quic"): 920.0, ("two", "tcp+"): 10.0, ("two", "quic"): 10.0})
    table = handshake_table(findings)
    assert set(table["site"]) == {"gnu"}
    assert table["metric"].tolist() == ["fvc", "plt"]
    # 920 - (1000 - 74)
    assert table["delta_ms"].to_numpy() == pytest.approx([-6, -6])
    assert table["round_trips"].to_numpy() == pytest.approx([-6 / 74] * 2)
    reach = 2.7764 * np.sqrt(2 / 3)  # t for 4 degrees of freedom; the standard deviations are 1
    assert table["delta_low"].to_numpy() == pytest.approx([-6 - reach] * 2, abs=1e-3)
    row = one(beside(findings), kind="rtt_delta", network="lte", site="gnu.org", metric="fvc", compared="quic")
    assert (row["value"], row["ours"], row["same_sign"]) == (0.6, pytest.approx(-6), "no")


@pytest.mark.parametrize("name", ["gnu.org", "www.gnu.org", "Gnu", "gnu"])
def test_a_site_is_known_under_its_usual_names(name: str) -> None:
    assert campaign_site("gnu.org", ("other", name)) == name
    assert campaign_site("gnu.org", ("gnu.orgs", "org")) is None
