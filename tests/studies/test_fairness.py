"""Fairness: from received bytes to shares, Jain's index, intervals and figures."""

import json
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from factories import ROW
from support.browser import Browser
from support.figures import smallest_type
from support.reports import accessible_report

from analysis.figures.style import SMALL, save
from base.errors import EyelevelError
from base.structure import structured
from dataset.run_files import ATTEMPT, CROSS_TRAFFIC_SAMPLES, REPLAY_EVIDENCE
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, header, lines, write_document
from measure.campaign.method import cross_traffic_claim
from measure.instruments.cross_traffic import CrossTrafficFlow, bytes_at, load_mbps, read_series
from measure.run.setting import Setting
from record.collection import load_site
from studies.fairness import STUDY as REGISTERED
from studies.fairness.measure import STUDY, FairnessMethod, campaign
from studies.fairness.section import section
from studies.fairness.shares import jain, queue_of, rates, summary, table
from studies.fairness.shares import read_runs as read
from studies.study import Request
from tuning import networks, protocols

PROTOCOLS = protocols.load()
NETWORKS = networks.load()
LINK = NETWORKS["fairness-10mbps-1bdp"]
METHOD = FairnessMethod(against=PROTOCOLS["tcp+"], seconds=10)
BEGAN_S = 1_000.0


def samples(folder: Path, mbps: tuple[float, ...], seconds: float = 10.0) -> None:
    """Write into `folder` the samples of a run with flows of these rates."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        f"{BEGAN_S + step / 20:.3f}\t{flow}\t{round(rate * 1e6 / 8 * step / 20)}"
        for step in range(round(20 * seconds) + 1)
        for flow, rate in enumerate(mbps)
    ]
    (folder / CROSS_TRAFFIC_SAMPLES).write_text("\n".join(["at_s\tflow\tbytes", *rows, ""]))


def write_campaign(folder: Path, shares: dict[str, list[tuple[float, ...]]], mix: str = "1x1") -> None:
    """Write a campaign whose runs over each protocol had flows of these rates."""
    settings = {
        "networks": {LINK.name: {"name": LINK.name, "min_rtt_ms": 36, "up_mbps": 10, "down_mbps": 10, "queue_ms": 36}},
        "protocols": {name: {"transport": "quic"} for name in shares},
        "sites": {f"fairness-{mix}": {"sha256": "0"}},
        "method": {"against": "tcp+"},
        "seed": 1,
        "runs": 2,
    }
    rows = []
    for protocol, runs in shares.items():
        for number, mbps in enumerate(runs, start=1):
            place = f"runs/fairness-{mix}/{LINK.name}/{protocol}/{number}-1"
            samples(folder / place, mbps)
            row = replace(ROW, site=f"fairness-{mix}", network=LINK.name, protocol=protocol, folder=place)
            rows.append(replace(row, run=number, metrics={}))
    write_document(folder, CampaignDocument(settings=structured(settings, CampaignSettings, ""), study={"name": STUDY}))
    (folder / "runs.csv").write_text(header() + lines(rows))


def test_jains_index_is_that_of_its_definition() -> None:
    assert jain(np.array([3.0, 3.0])) == pytest.approx(1)
    assert jain(np.array([4.0, 0.0])) == pytest.approx(1 / 2)
    assert jain(np.array([1.0, 2.0, 3.0])) == pytest.approx(36 / (3 * 14))


def test_rates_and_shares_are_of_what_came(tmp_path: Path) -> None:
    write_campaign(tmp_path, {"quic": [(6, 3), (7, 3)], "quic+1con": [(5, 5), (4, 6)]})
    runs = read(tmp_path, STUDY)
    assert rates([[(0.0, 0), (1.0, 125_000)]]) == pytest.approx(np.array([[1.0, 1.0]]))
    rows = table(runs, {LINK.name: 10.0})
    assert list(rows["share"].round(4)) == [0.6667, 0.7, 0.5, 0.4]
    assert list(rows["relative"].round(4)) == [1.3333, 1.4, 1.0, 0.8]
    assert list(rows["used"].round(3)) == [0.9, 1.0, 1.0, 1.0]
    means = summary(rows, 0.95).set_index("protocol")
    assert means.loc["quic", "share"] == pytest.approx((2 / 3 + 0.7) / 2)
    # Student's interval for two runs spans 12.7 standard errors either way, here cut off at the largest possible value.
    reach = 12.7062 * abs(2 / 3 - 0.7) / 2
    assert means.loc["quic", "share_low"] == pytest.approx((2 / 3 + 0.7) / 2 - reach, abs=1e-4)
    assert means.loc["quic+1con", "share_high"] == 1


def test_a_share_of_one_flow_beside_two_is_counted_by_its_equal_part(tmp_path: Path) -> None:
    write_campaign(tmp_path, {"quic": [(5, 2.5, 2.5)]}, mix="1x2")
    (row,) = table(read(tmp_path, STUDY), {LINK.name: 10.0}).to_dict("records")
    assert (row["mix"], round(row["share"], 3), round(row["relative"], 3)) == ("1x2", 0.5, 1.5)


@pytest.mark.slow
def test_the_section_says_and_draws_it(tmp_path: Path) -> None:
    write_campaign(tmp_path, {"quic": [(6, 3), (7, 3)], "quic+1con": [(5, 5), (4, 6)]})
    of_report = section(tmp_path)
    assert of_report
    assert of_report.paragraphs[0].startswith("QUIC got 1.37 times its equal part (68.3 % as 1x1 on fairness-10")
    assert [figure.name for figure in of_report.figures] == ["shares-1x1", f"rates-1x1-{LINK.name}"]
    for figure in of_report.figures:
        drawn = figure.draw(*figure.arguments)
        assert smallest_type(drawn) >= SMALL
        save(drawn, tmp_path, figure.name)
    assert section(tmp_path / "none") is None


@pytest.mark.needs_axe
def test_everybody_can_read_the_section(browser: Browser, tmp_path: Path) -> None:
    write_campaign(tmp_path, {"quic": [(6, 3), (7, 3)], "quic+1con": [(5, 5), (4, 6)]})
    assert accessible_report(browser, tmp_path) == []


def test_queues_are_ordered_by_length_and_managed_ones_are_last() -> None:
    names = ["fairness-10mbps-0.5bdp", "fairness-10mbps-4bdp", "fairness-aqm-10mbps-pie", "dsl"]
    assert [queue_of(NETWORKS[name]) for name in names] == [
        ("0.5 BDP", 0.5),
        ("4 BDP", 4.0),
        ("pie", float("inf")),
        ("0.5 BDP", 0.5),
    ]


@pytest.mark.parametrize(
    ("seconds", "controls", "gate"),
    [
        (10, ("cubic", "cubic"), None),
        (8, ("cubic", "cubic"), "fairness"),
        (10, ("cubic", "bbr"), "cross_traffic_missing"),
    ],
)
def test_a_run_counts_that_was_seen_whole(
    seconds: float, controls: tuple[str, str], gate: str | None, tmp_path: Path
) -> None:
    samples(tmp_path, (6, 3), seconds)
    flows = [
        {"name": name, "direction": "down", "congestion_control": control, "bytes": 1000}
        for name, control in zip(("quic", "tcp+"), controls, strict=True)
    ]
    (tmp_path / REPLAY_EVIDENCE).write_text(json.dumps({"cross_traffic": {"flows": flows}}))
    (tmp_path / ATTEMPT).write_text(json.dumps({"clock_shift_s": 0.0, "slowness": 1.0, "failure": None}))
    setting = Setting(load_site("fairness-1x1"), LINK, PROTOCOLS["quic"])
    assert cross_traffic_claim(METHOD.flows(setting)) == (("quic", "down", "cubic"), ("tcp+", "down", "cubic"))
    reason = METHOD.reason_against(setting, tmp_path, METHOD.evidence(setting, tmp_path))
    assert (reason.gate if reason else None) == gate


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"proto": "quic+bbr"}, "quic\\+bbr needs the connection options TBBR"),
        ({"options": {"against": None, "mixes": "1:1", "seconds": None}}, "write a mix as 1x2"),
    ],
)
def test_what_cannot_be_measured_is_refused(changed: dict[str, object], fault: str, tmp_path: Path) -> None:
    request = Request(tmp_path, options={"against": None, "mixes": None, "seconds": None})
    with pytest.raises(EyelevelError, match=fault):
        campaign(replace(request, **changed))  # type: ignore[arg-type]


def test_a_campaign_knows_the_programs_of_both_sides_and_how_long_its_runs_last(tmp_path: Path) -> None:
    request = Request(tmp_path, proto="tcp+", options={"against": "quic", "mixes": None, "seconds": 30.0})
    measured = campaign(request).campaign
    assert set(measured.further_programs()) == {"nginx", "uwsgi", "quic_server", "quinn_client"}
    assert 30 < measured.run_model().forecast(("fairness-1x1", "fairness-10mbps-1bdp")).seconds < 35
    # If tcp+ were another setting, the results would change.
    assert measured.method.settings()["against_settings"]["congestion_control"] == "cubic"
    without_quic = campaign(replace(request, options={**request.options, "against": "tcp+bbr"})).campaign
    assert set(without_quic.further_programs()) == {"nginx", "uwsgi"}


def test_bytes_between_two_samples_come_evenly() -> None:
    series = [(1.0, 100), (2.0, 300)]
    assert [bytes_at(series, at_s) for at_s in (0.5, 1.0, 1.5, 2.0, 3.0)] == [0, 100, 200, 300, 300]
    assert load_mbps(()) is None
    flow = CrossTrafficFlow("cubic", "down", "cubic", 10, 10, 1.5)
    assert load_mbps((flow, replace(flow, load_mbps=2.0))) == 3.5


def test_a_run_whose_samples_were_cut_off_is_still_read(tmp_path: Path) -> None:
    samples(tmp_path, (6, 3))
    whole = read_series(tmp_path)
    with (tmp_path / CROSS_TRAFFIC_SAMPLES).open("a") as file:
        file.write("1010.050\t0")
    assert read_series(tmp_path) == whole


def test_runs_that_never_settle_are_refused() -> None:
    seconds = next(option for option in REGISTERED.options if option.name == "--seconds").click_parameter()
    with pytest.raises(click.BadParameter):
        seconds.type.convert("5", seconds, None)
