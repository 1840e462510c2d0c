"""The ladder: which runs are planned in which blocks, and whether known contributions are found, summed and named."""

import re
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from factories import campaign_document
from matplotlib.markers import CARETRIGHT
from scipy import stats
from support import ladders
from support.browser import Browser
from support.figures import smallest_type
from support.ladders import RUN_SD, TRANSPORT_ARQ, TRANSPORT_SLOW, TRUTH, write_ladder
from support.reports import accessible_report

from analysis import hypotheses
from analysis.figures.style import SMALL
from analysis.runs import load
from analysis.statistics.ratios import mean_over_sites
from base.errors import EyelevelError
from dataset.table import PROCESSOR_WAIT, RUNS, header, lines, read_rows, require_document, write_document
from eyelevel.commands.report import main as report
from eyelevel.estimate import distinct_networks
from measure.campaign.campaign import Campaign
from measure.run.setting import Setting
from studies.ladder import waterfall
from studies.ladder.contributions import (
    CHANGE,
    DIRECT,
    HIDDEN_LOSSES,
    METRICS,
    RUNG,
    SLOW_BROWSER,
    UNKNOWN_SERVERS,
    VISIBLE_LOSSES,
    WHOLE,
    contributions,
    site_contributions,
)
from studies.ladder.measure import Machine, Missing, campaign, quota_refusal, refusals
from studies.ladder.rungs import ABOVE, BELOW, RUNGS, UNKNOWN, base_network, suffix_of
from studies.ladder.section import section
from studies.study import Request
from tuning import protocols

DECLARED = hypotheses.load()
CONFIDENCE = DECLARED.confidence
# The tests of a plan measure nothing.
ALL = tuple(rung.protocol for rung in RUNGS)
SITE = "demo-light"


# A machine that supports everything.
ABLE = Machine(lambda *_: "", lambda: "")


def requested(folder: Path, **values: Any) -> Request:
    options = values.pop("options", {})
    return Request(folder, **{"sites": SITE, "net": "da2gc", **values}, options=options)


def planned(request: Request, machine: Machine = ABLE) -> Campaign:
    return campaign(request, machine).campaign


def test_every_block_has_all_rungs_and_the_conditions_of_its_network(tmp_path: Path) -> None:
    blocks = planned(requested(tmp_path, net="lte,da2gc", runs=3)).plan()
    assert len(blocks) == 2 * 3
    for block in blocks:
        network = base_network(block[0].network)
        assert {base_network(run.network) for run in block} == {network}
        # Losses scatter times more than a slow browser changes them.
        suffixes = ["+arq"] if network == "da2gc" else ["+slow"]
        more = [*product(suffixes, (BELOW, ABOVE)), ("", "quic+unknown")]
        expected = sorted([*product([""], ALL), *more])
        assert sorted((suffix_of(run.network), run.protocol) for run in block) == expected


def test_the_conditions_differ_from_their_network_in_one_thing(tmp_path: Path) -> None:
    ladder = planned(requested(tmp_path, options={"conditions": "slow,arq"}))
    plain, arq, slow = (ladder.networks[f"da2gc{suffix}"] for suffix in ("", "+arq", "+slow"))
    assert arq == replace(plain, name="da2gc+arq", retransmit_ms=262 / 4)
    assert slow == replace(plain, name="da2gc+slow")
    method, of_site = ladder.method, next(iter(ladder.sites.values()))
    settings = [Setting(of_site, network, ladder.protocols[ABOVE]) for network in (plain, arq, slow)]
    around = [method.observers(setting, tmp_path).around for setting in settings]
    assert [bool(command) for command in around] == [False, False, True]
    assert around[2][-2:] == ("measure.host.quota", "0.5")


def test_each_rung_differs_from_the_one_below_in_what_its_name_says() -> None:
    known = protocols.load()
    keys = {
        "tcp-iw32": {"initial_window_packets"},
        "tcp-iw32-paced": {"pacing"},
        "tcp+": {"server_sysctls", "client_sysctls"},
        "tcp+lowat": {"notsent_lowat_bytes"},
        "tcp+lowat+known": {"known_servers"},
        "tcp+level": {"backup_connections"},
        "quic+1con": {"tls_group"},
        "quic+1con+urgency": {"scheduler"},
        "quic": {"emulated_connections", "scheduler"},
    }
    for below, above in pairwise(ALL):
        one, other = vars(known[below]), vars(known[above])
        differences = {key for key in one if one[key] != other[key]} - {"name"}
        if above == ABOVE:
            assert known[below].round_trips_before_request == known[above].round_trips_before_request
            same = ("congestion_control", "initial_window_packets", "pacing", "early_data", "fast_open")
            assert not differences.intersection(same)
        else:
            assert differences == keys[above]
    assert known[BELOW].browser_knows_servers == known[ABOVE].browser_knows_servers
    # The last rung may use the scheduler's default, which the rung below states explicitly.
    assert known["quic+1con+urgency"].scheduler == "urgency" and known["quic"].scheduler in (None, "urgency")


def test_fewer_rungs_may_be_asked_for_and_only_rungs(tmp_path: Path) -> None:
    ladder = planned(requested(tmp_path, proto="quic,tcp,tcp+", runs=1))
    assert tuple(ladder.protocols) == ("tcp", "tcp+", "quic", "quic+unknown")
    assert len(ladder.plan()[0]) == 4
    assert [one["name"] for one in ladder.study["missing"]] == ["arq", "slow"]
    assert len(planned(requested(tmp_path, runs=1, options={"conditions": "none"})).plan()[0]) == len(ALL)
    assert len(planned(requested(tmp_path, runs=1, options={"conditions": "arq"})).plan()[0]) == len(ALL) + 2
    with pytest.raises(EyelevelError, match=r"unknown rung .tcp\+bbr.: did you mean tcp\+\? there are tcp, tcp-iw32, "):
        planned(requested(tmp_path, proto="tcp,tcp+bbr"))
    with pytest.raises(EyelevelError, match="unknown condition 'fast': there are arq, slow, unknown, none"):
        planned(requested(tmp_path, options={"conditions": "fast"}))


def without(*names: str) -> Machine:
    """A machine without control groups that refuses these protocols."""
    return Machine(
        lambda _, name: "this kernel has no such thing" if name in names else "",
        lambda: quota_refusal(("sh", "-c", "echo no control groups >&2; exit 1")),
    )


def test_what_this_machine_refuses_is_left_out_by_name(tmp_path: Path) -> None:
    request = requested(tmp_path, runs=1)
    ladder = campaign(request, without("tcp-iw32"))
    assert tuple(ladder.campaign.protocols) == ("tcp", *ALL[2:], "quic+unknown")
    assert ladder.campaign.study["missing"] == [
        {"name": "tcp-iw32", "reason": "this kernel has no such thing"},
        {"name": "slow", "reason": "no control groups"},
    ]
    for name in ("tcp-iw32: this kernel has no such thing", "the condition slow: no control groups"):
        assert f"not measured: {name}" in ladder.announcement
    assert {run.network for run in ladder.campaign.plan()[0]} == {"da2gc", "da2gc+arq"}
    assert {run.network for run in planned(request, without(BELOW)).plan()[0]} == {"da2gc"}
    missing = [Missing(**entry) for entry in planned(request, without("quic+unknown")).study["missing"]]
    assert "the condition unknown: this kernel has no such thing" in map(str, missing)
    with pytest.raises(EyelevelError, match="no rung can be replayed on this machine; tcp: this kernel has no such"):
        planned(request, without(*ALL, "quic+unknown"))


def test_a_ladder_goes_on_with_the_rungs_that_it_began_with(tmp_path: Path) -> None:
    first = planned(requested(tmp_path, runs=1, proto=f"tcp,{BELOW},{ABOVE}"))
    known = {name: vars(one) for name, one in first.networks.items()}
    document = campaign_document(
        None, networks=known, protocols={name: {} for name in first.protocols}, sites={SITE: {}}, runs=1
    )
    missing = [{"name": "quic", "reason": "it was not there"}]
    document = replace(document, study={**first.study, "missing": missing})
    again = planned(Request(tmp_path, runs=2, document=document))
    assert again.plan()[: len(first.plan())] == first.plan()
    assert len(again.plan()) == 2 * len(first.plan())
    with pytest.raises(EyelevelError, match="is without quic"):
        planned(Request(tmp_path, proto="tcp,quic", document=document))


@pytest.mark.needs_namespaces
def test_a_replay_finds_out_what_the_kernel_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = '[impossible]\nlike = "tcp"\nserver_sysctls = {"net.ipv4.no_such_setting" = "1"}\n'
    (tmp_path / "protocols.toml").write_text(impossible)
    monkeypatch.setenv("EYELEVEL_TUNING", str(tmp_path))
    assert refusals(requested(tmp_path), ["tcp"]) == []
    missing = refusals(requested(tmp_path), ["tcp", "impossible"])
    assert missing == [Missing("impossible", missing[0].reason)]
    assert "net.ipv4.no_such_setting" in missing[0].reason


def of(table: Any, name: str, network: str = "da2gc", metric: str = "si") -> Any:
    rows = table[(table["name"] == name) & (table["network"] == network) & (table["metric"] == metric)]
    return rows.iloc[0] if len(rows) == 1 else rows


def test_known_contributions_are_found_and_add_up(tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", blocks=20, run_sd=0.01)
    table = contributions(load(folder), DECLARED)
    level = 1.0
    for rung in RUNGS[1:]:
        row = of(table, rung.change)
        share = np.exp(TRUTH[rung.protocol])
        assert (row["sites"], row["blocks"]) == (4, 80)
        assert row["gain"] == pytest.approx(share - 1, abs=0.008)
        assert row["points"] == pytest.approx(level * (share - 1), abs=0.008)
        assert row["gain_low"] < row["gain"] < row["gain_high"]
        level *= share
    whole = of(table, DIRECT)
    assert whole["points"] == pytest.approx(level - 1, abs=0.005)
    rungs = table[(table["kind"] == RUNG) & (table["network"] == "da2gc") & (table["metric"] == "si")]
    assert rungs["points"].sum() == pytest.approx(whole["points"], abs=0.005)
    hidden, visible, slow = (of(table, name) for name in (HIDDEN_LOSSES, VISIBLE_LOSSES, SLOW_BROWSER))
    assert hidden["gain"] == pytest.approx(np.expm1(TRANSPORT_ARQ), abs=0.01)
    assert visible["gain"] == pytest.approx(np.expm1(TRUTH[ABOVE] - TRANSPORT_ARQ), abs=0.01)
    assert slow["gain"] == pytest.approx(np.expm1(TRANSPORT_SLOW - TRUTH[ABOVE]), abs=0.01)
    assert of(table, UNKNOWN_SERVERS)["gain"] == pytest.approx(np.expm1(ladders.UNKNOWN_SERVERS), abs=0.01)
    # Both parts begin and end where the transport's contribution does, one after the other.
    transport = of(table, "the transport itself")
    assert hidden["points"] + visible["points"] == pytest.approx(transport["points"], abs=0.005)
    assert of(table, HIDDEN_LOSSES, "lte").empty


def test_a_contribution_is_as_worked_out_by_hand(tmp_path: Path) -> None:
    without = [*ALL[3:6], *ALL[7:9]]
    folder = write_ladder(tmp_path / "ladder", sites=1, blocks=4, over=["lte"], without=without)
    runs = load(folder).runs
    times = runs[runs["network"] == "lte"].pivot_table("si", "block", "protocol")
    first, second = (np.log(times[above] / times[below]) for below, above in pairwise(ALL[:3]))
    row = of(contributions(load(folder), DECLARED), "pacing", "lte")
    # Five rungs and a change in two metrics are twelve tests, of which each interval may miss with 5 % / 12.
    reach = stats.t.ppf(1 - 0.05 / 12 / 2, 3) * second.std(ddof=1) / np.sqrt(4)
    assert row["gain"] == pytest.approx(np.expm1(second.mean()))
    ends = np.expm1(second.mean() + np.array([-reach, reach]))
    assert (row["gain_low"], row["gain_high"]) == pytest.approx(tuple(ends))
    p = stats.ttest_1samp(second, 0).pvalue
    assert (row["p"], row["p_corrected"]) == pytest.approx((p, min(1, 12 * p)))
    assert row["points"] == pytest.approx(np.exp(first.mean()) * np.expm1(second.mean()))
    assert row["ms"] == pytest.approx((times["tcp-iw32-paced"] - times["tcp-iw32"]).mean())
    alone = of(site_contributions(load(folder)), "pacing", "lte")
    assert (alone["points"], alone["ms"], alone["blocks"]) == pytest.approx((row["points"], row["ms"], 4))


def test_a_missing_rung_is_named_and_its_change_goes_with_the_next(tmp_path: Path) -> None:
    missing = [{"name": BELOW, "reason": "this kernel has no tcp_notsent_lowat"}]
    folder = write_ladder(tmp_path / "ladder", without=[BELOW], missing=missing, over=["da2gc"])
    table = contributions(load(folder), DECLARED)
    row = of(table, "no backup connections + the transport itself")
    assert (row["below"], row["above"]) == ("tcp+lowat+known", ABOVE)
    assert set(table["kind"]) == {RUNG, WHOLE, CHANGE}
    assert set(table.loc[table["kind"] == CHANGE, "name"]) == {UNKNOWN_SERVERS}
    said = section(folder)
    assert said and f"Not measured: {BELOW}: this kernel has no tcp_notsent_lowat." in " ".join(said.paragraphs)


def test_a_narrowed_ladder_names_its_own_ends_and_its_bars_have_one_line(tmp_path: Path) -> None:
    kept = ("tcp+", "quic+1con", "quic")
    without = [name for name in (*ALL, UNKNOWN) if name not in kept]
    said = section(write_ladder(tmp_path / "ladder", without=without, over=["lte"], conditions=()))
    assert said
    (figure,) = said.figures
    assert said.title == "The ladder from TCP+ to QUIC" and figure.caption.startswith("From TCP+ to QUIC (LTE: ")
    assert figure.alt.startswith("QUIC against TCP+: SI on LTE ")
    drawn = figure.draw(*figure.arguments)
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert names == ["5 changes, to quic+1con", "2 changes, to QUIC", DIRECT]


def test_the_largest_paint_is_judged_and_drawn_where_its_bars_have_room(tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=2, blocks=5, over=["lte"])
    runs = pd.read_csv(folder / RUNS, dtype=str, keep_default_na=False)
    runs.assign(fcp=runs["si"], lcp=runs["si"]).to_csv(folder / RUNS, index=False)
    said = section(folder)
    assert said and "in SI, PLT and LCP." in " ".join(said.paragraphs) and "FCP" not in said.paragraphs[0]
    assert [figure.name for figure in said.figures] == ["ladder", "ladder_paint"]
    for figure, metrics in zip(said.figures, (["SI", "PLT"], ["LCP"]), strict=True):
        drawn = figure.draw(*figure.arguments)
        drawn.draw_without_rendering()
        assert [axes.get_title() for axes in drawn.axes] == [f"{metric} on LTE" for metric in metrics]
        assert all(axes.get_position().width > 0.15 for axes in drawn.axes)


def test_a_rung_that_never_counts_is_named(tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=2, blocks=2, over=["lte"], lost={"tcp+": 2})
    said = section(folder)
    assert said and "Without a run that counts on LTE: tcp+." in " ".join(said.paragraphs)
    assert "buffers and idle restart + shorter send queue" in said.paragraphs[1]


@pytest.mark.slow
def test_the_section_says_what_is_shown_and_what_is_not(tmp_path: Path) -> None:
    said = section(write_ladder(tmp_path / "ladder", blocks=10, run_sd=0.02))
    assert said
    lead, lte, da2gc = said.paragraphs[:3]
    assert lead.count("QUIC against TCP") == 4
    assert "in a browser that knows nothing of the servers" in lte.lower()
    assert re.search(r"initial window -9\.\d % \(-\d+ ms\)", lead) and "shorter send queue" not in lead
    assert "Not shown to: shorter send queue" in lte
    assert "Head-of-line blocking" in da2gc and "head-of-line blocking" not in lte
    assert "With 0.5 of one processor" in lte
    assert re.search(r"one round trip less per connection -1\d\.\d % \(.*?\), -\d+ ms \(-\d\.\d round trips\)", lte)
    (figure,) = said.figures
    assert "LTE: 4 sites, 40 blocks, 560 runs, 0 attempts excluded" in figure.caption
    drawn = figure.draw(*figure.arguments)
    assert smallest_type(drawn) >= SMALL
    assert len(drawn.axes) == 4


def test_the_rungs_of_a_report_are_one_family(tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=3, blocks=5, run_sd=0.02)
    table = contributions(load(folder), DECLARED)
    judged = table[table["metric"].isin(METRICS) & (table["kind"] != WHOLE)]
    # Ten rungs, two parts and three changes in two metrics on DA2GC; on LTE the same without parts.
    tests = len(judged)
    assert tests == 2 * (15 + 13)
    assert judged["p_corrected"].to_numpy() == pytest.approx(np.minimum(1, tests * judged["p"]))
    assert (judged["is_shown"] == (judged["p_corrected"] < 0.01)).all()
    not_judged = table[~table.index.isin(judged.index)]
    assert not_judged["p_corrected"].isna().all() and not not_judged["is_shown"].any()
    said = section(folder)
    assert said
    assert f"over all {tests} rungs, parts and changes of this report, on all networks and in SI and PLT" in " ".join(
        said.paragraphs
    )
    assert "shown to contribute: " in said.paragraphs[0] and "of this, " not in said.paragraphs[0]


def test_rungs_that_differ_in_nothing_are_seldom_shown(tmp_path: Path) -> None:
    """Nothing differs. Corrected for one network and metric, at 5 %, a rung was shown in three of these reports."""
    campaign = load(write_ladder(tmp_path / "ladder", sites=6, blocks=6, conditions=()))
    random = np.random.default_rng(1)
    wrong = 0
    for _ in range(25):
        si = 1000 * np.exp(random.normal(0, RUN_SD, len(campaign.runs)))
        table = contributions(replace(campaign, runs=campaign.runs.assign(si=si, plt=2 * si)), DECLARED)
        wrong += bool(table["is_shown"].any())
    assert wrong <= 1


@pytest.mark.slow
def test_one_block_has_contributions_without_intervals(tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=1, blocks=1)
    table = contributions(load(folder), DECLARED)
    assert np.isnan(table["gain_low"]).all() and np.isfinite(table["points"]).all()
    assert not table.loc[table["kind"] == RUNG, "is_shown"].any()
    said = section(folder)
    assert said and "% (too few blocks), " in said.paragraphs[0]
    assert len(waterfall.draw(*said.figures[0].arguments).axes) == 4


# The numbers of sites and blocks; whether the direct comparison and the rungs have intervals; and, if not all have one,
# how many blocks are needed.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sites", "blocks", "whole_has", "rungs_have", "needed"),
    [(1, 2, False, False, 5), (1, 4, True, False, 5), (1, 5, True, True, None), (4, 5, True, True, None)],
)
def test_blocks_too_few_for_an_interval_are_said_and_how_many_are_enough(
    tmp_path: Path, sites: int, blocks: int, whole_has: bool, rungs_have: bool, needed: int | None
) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=sites, blocks=blocks, over=["lte"])
    table = contributions(load(folder), DECLARED)
    assert of(table, DIRECT, "lte")[["gain_low", "ms_high"]].notna().all() == whole_has
    rungs = table[table["kind"] == RUNG]
    assert rungs["gain_low"].notna().all() == rungs["gain_high"].notna().any() == rungs_have
    said = section(folder)
    assert said
    lead, lte = said.paragraphs[:2]
    figure, (written, _) = said.figures[0], said.tables
    for text in (lead, lte, figure.caption, written.note):
        assert ("too few blocks" in text) == (needed is not None), text
    for text in (lead, figure.caption, written.note):
        assert (f"each site needs {needed} that count, so at least RUNS={needed}" in text) == (needed is not None), text
    cells = dict(zip(written.texts["contribution"], written.texts["95 % interval"], strict=True))
    assert (cells["pacing"], cells[DIRECT]) == (
        cells["pacing"] if rungs_have else "too few blocks",
        cells[DIRECT] if whole_has else "too few blocks",
    )
    drawn = figure.draw(*figure.arguments)
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert ("too few blocks for an interval" in labels) == (needed is not None)
    outlines = [bar for bar in drawn.axes[0].patches if bar.get_facecolor() == (1, 1, 1, 1)]
    assert bool(outlines) == (needed is not None)


def test_ratios_that_are_all_the_same_are_no_proof_when_they_are_few() -> None:
    two, many = (mean_over_sites(np.full((1, blocks), -0.1)) for blocks in (2, 6))
    assert not two.has_interval(CONFIDENCE) and many.has_interval(CONFIDENCE)


def test_intervals_of_few_blocks_leave_the_bars_their_room(tmp_path: Path) -> None:
    said = section(write_ladder(tmp_path / "ladder", sites=1, blocks=5, over=["lte"], run_sd=0.3))
    assert said
    (figure,) = said.figures
    table, sites, *_ = figure.arguments
    for axes, metric in zip(figure.draw(*figure.arguments).axes, ("si", "plt"), strict=True):
        rows = table[(table["network"] == "lte") & (table["metric"] == metric)]
        assert rows["points_high"].max() > 1
        low, high = axes.get_xlim()
        assert high - low < 4 * (rows["points"].abs().sum() + sites["points"].abs().max())
        assert any(line.get_marker() == CARETRIGHT for line in axes.lines)


@pytest.mark.slow
def test_the_report_of_a_ladder_is_its_section_though_its_loads_are_filmed(tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=2, blocks=2, over=["lte"])
    assert require_document(folder).settings.filmed
    done = CliRunner().invoke(report, [str(folder)])
    assert done.exit_code == 0, done.output
    page = (folder / "report" / "index.html").read_text()
    assert "The ladder from TCP to QUIC" in page and "Nothing is filmed" not in page
    for name in ("figures/ladder.pdf", "tables/ladder_contributions.tex", "tables/ladder_sites.csv"):
        assert (folder / "report" / name).exists()


@pytest.mark.needs_axe
def test_everybody_can_read_the_section(browser: Browser, tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=2, blocks=4, run_sd=0.02)
    assert accessible_report(browser, folder) == []


def test_other_campaigns_have_no_section(tmp_path: Path) -> None:
    folder = write_ladder(tmp_path / "ladder", sites=1, blocks=1)
    write_document(folder, replace(require_document(folder), study={"name": "grid"}))
    assert section(folder) is None
    assert section(tmp_path) is None


def test_a_network_is_validated_once_however_fast_the_browser_is(tmp_path: Path) -> None:
    validated = distinct_networks(planned(requested(tmp_path, net="lte,da2gc")).networks.values())
    assert [network.name for network in validated] == ["lte", "da2gc", "da2gc+arq"]


@pytest.mark.parametrize(
    ("network", "wait_ms", "is_said"), [("lte", 3000, True), ("lte", 20, False), ("lte+slow", 3000, False)]
)
def test_a_machine_that_was_too_busy_is_said_unless_it_was_slowed_on_purpose(
    network: str, wait_ms: float, is_said: bool, tmp_path: Path
) -> None:
    folder = write_ladder(tmp_path / "l", sites=1, blocks=2, over=["lte"])
    rows = [
        replace(
            row,
            readings={"renderer_cpu_ms": 100.0, PROCESSOR_WAIT: wait_ms if row.network == network else 0.0},
        )
        for row in read_rows(folder)
    ]
    names = ("renderer_cpu_ms", PROCESSOR_WAIT)
    (folder / "runs.csv").write_text(header(names) + lines(rows, names))
    said = section(folder)
    assert said
    text = " ".join(said.paragraphs)
    assert ("Threads that had work to do for a load waited" in text) == is_said
    assert ("The machine, of 2 cores, was saturated on LTE" in text) == is_said
