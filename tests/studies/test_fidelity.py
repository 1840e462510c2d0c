"""Fidelity: the runs planned for each live load, and whether known errors are found and reported."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from factories import ROW, campaign_document, with_metrics
from support.browser import Browser
from support.figures import smallest_type
from support.reports import accessible_report

from analysis.figures.style import SMALL
from analysis.runs import load
from base.errors import EyelevelError
from base.structure import unstructured
from dataset.table import header, lines, write_document
from measure.live import read_live
from measure.live.loads import settings_of
from measure.run.aliases import choose_protocols
from measure.sites.completeness import digest
from record.http1 import Response
from record.live import LiveLoad, LiveLoads
from record.site import Exchange, Recording, Site, write_site
from studies.fidelity import measure
from studies.fidelity.errors import error, errors, overall
from studies.fidelity.machine import sentences as of_machine
from studies.fidelity.measure import Compared, campaign, compare, live_of, summary
from studies.fidelity.section import section
from studies.study import Request
from tuning import networks, protocols

CONFIDENCE = 0.95
LTE = networks.load()["lte"]


def live(*times_ms: float, version: str = "h2", **more: Any) -> LiveLoads:
    loads = tuple(LiveLoad({"plt": time_ms, "si": time_ms / 2}, {version: 9, "http/1.1": 1}) for time_ms in times_ms)
    return LiveLoads("Chrome 1", "2026-01-01T00:00:00+0000", loads, **more)


def on_lte(*times_ms: float, **more: Any) -> LiveLoads:
    return live(*times_ms, network="lte", network_settings=settings_of(LTE), **more)


def written(folder: Path, loads: LiveLoads | None) -> Site:
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"x"), "192.0.2.1")
    return write_site(Recording(page.url, (page,), {"tool": "test"}, live=loads), folder)


def over(names: str = "tcp+,quic") -> list[Any]:
    return choose_protocols(names, protocols.load())


def test_a_site_is_replayed_on_the_network_and_over_the_version_of_its_live_loads(tmp_path: Path) -> None:
    known = networks.load()
    assert compare(written(tmp_path / "a", on_lte(900.0)), known, over()).conditions == (("lte", "tcp+"),)
    of_quic = written(tmp_path / "b", on_lte(900.0, version="h3"))
    assert compare(of_quic, known, over()).conditions == (("lte", "quic"),)
    assert compare(of_quic, known, over(), "dsl").conditions == (("dsl", "quic"),)
    older = written(tmp_path / "c", on_lte(900.0, version="http/1.1"))
    assert compare(older, known, over("tcp,tcp+,quic")).conditions == (("lte", "tcp"), ("lte", "tcp+"))
    with pytest.raises(EyelevelError, match="b was loaded live over h3; name a protocol that speaks it with PROTO="):
        compare(of_quic, known, over("tcp"))


@pytest.mark.parametrize(
    ("loads", "fault"),
    [
        (None, "page has no live loads to compare with; record it with them: LIVE=5"),
        (live(900.0), "the network of the live loads of page is unknown; name it with NET="),
        (live(900.0, network="home"), "page went over home, which is not a network here"),
        (
            live(900.0, network="lte", network_settings={**settings_of(LTE), "down_mbps": 8}),
            r"lte has another down_mbps \(10.5\) than when page was loaded live on it \(8\); NET=lte takes it",
        ),
        (
            live(900.0, network="lte", network_settings={**settings_of(LTE), "up_loss": 0.1}),
            r"lte has another up_loss \(none\) than when page was loaded live on it \(0.1\)",
        ),
        (
            live(900.0, network="lte", network_settings=settings_of(replace(LTE, queue_ms=None))),
            r"lte has another queue_ms \(200\) than when page was loaded live on it \(none\)",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(loads: LiveLoads | None, fault: str, tmp_path: Path) -> None:
    site = written(tmp_path / "page", loads)
    with pytest.raises(EyelevelError, match=fault):
        compare(site, networks.load(), over())


def test_each_site_has_runs_of_its_own_conditions_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sites = {
        "tcp": written(tmp_path / "tcp", on_lte(900.0)),
        "quic": written(
            tmp_path / "quic",
            live(900.0, version="h3", network="dsl", network_settings=settings_of(networks.load()["dsl"])),
        ),
    }
    monkeypatch.setattr(measure, "choose_sites", lambda names: list(sites.values()))
    planned = campaign(Request(tmp_path / "results", sites="tcp,quic", runs=2))
    runs = [(run.site, run.network, run.protocol) for block in planned.campaign.plan() for run in block]
    assert sorted(runs) == [("quic", "dsl", "quic")] * 2 + [("tcp", "lte", "tcp+")] * 2
    assert planned.announcement[0] == (
        "tcp: 1 live load (90.0 % of requests over h2, 10.0 % of requests over http/1.1); replayed over tcp+ on lte"
    )
    # The live loads have PLT and SI, the latter from films.
    assert planned.campaign.loading.filmed


def test_an_error_is_the_ratio_of_geometric_means_with_welch_s_interval() -> None:
    known = error(np.log([100.0, 110.0, 121.0]), np.log([200.0, 220.0, 242.0, 220.0]), CONFIDENCE)
    assert known["error"] == pytest.approx(1.0)
    assert known["live_ms"] == pytest.approx(110) and known["live_scatter"] == pytest.approx(0.1)
    assert known["error_low"] < 1 < known["error_high"]
    single = error(np.log([100.0]), np.log([105.0, 105.1]), CONFIDENCE)
    assert single["error"] == pytest.approx(0.0505, abs=1e-4) and math.isnan(single["error_low"])


@pytest.mark.slow
def test_an_interval_has_the_true_error_as_often_as_it_says() -> None:
    draw, truth, hits, times = np.random.default_rng(3), math.log(1.05), 0, 2000
    for _ in range(times):
        known = error(draw.normal(0, 0.08, 5), draw.normal(truth, 0.02, 10), CONFIDENCE)
        hits += known["error_low"] <= 0.05 <= known["error_high"]
    assert hits / times == pytest.approx(CONFIDENCE, abs=0.02)


ERRORS = {"a": 0.02, "b": -0.03, "c": 0.10, "d": 0.01, "e": 0.04, "f": 0.05, "g": -0.01}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign whose sites have ERRORS, and a site `h` with a single live load and an error of a half."""
    truth = {**ERRORS, "h": 1.0}
    compared = {
        name: Compared(on_lte(*([1000.0, 990.0, 1010.0] if name in ERRORS else [1000.0])), (("lte", "tcp+"),))
        for name in truth
    }
    settings: dict[str, Any] = {"networks": {"lte": {"min_rtt_ms": 74}}, "protocols": {"tcp+": {"transport": "tcp"}}}
    document = campaign_document(sites={name: {"sha256": "0"} for name in truth}, **settings)
    study: Mapping[str, Any] = {
        "name": "fidelity",
        "sites": {name: unstructured(one) for name, one in compared.items()},
    }
    write_document(tmp_path, replace(document, study=dict(study)))
    rows = [
        with_metrics(
            replace(ROW, site=name, protocol="tcp+", run=number, block=number, folder=f"runs/{name}/lte/{number}-1"),
            plt=1000.0 * (1 + off) * factor,
            si=500.0 * (1 + off) * factor,
        )
        for name, off in truth.items()
        for number, factor in enumerate((0.99, 1.0, 1.01), start=1)
    ]
    (tmp_path / "runs.csv").write_text(header() + lines(rows))
    return tmp_path


def test_known_errors_are_found_of_each_site_and_of_all(folder: Path) -> None:
    by_site = errors(load(folder), live_of(folder), CONFIDENCE)
    plt = by_site[by_site["metric"] == "plt"].set_index("site")
    for name, off in ERRORS.items():
        assert plt.loc[name, "error"] == pytest.approx(off, abs=0.001)
        assert plt.loc[name, "error_low"] < off < plt.loc[name, "error_high"]
    assert math.isnan(plt.loc["h", "error_low"])
    of_all = overall(by_site, CONFIDENCE).set_index("metric").loc["plt"]
    # The sizes are 1, 1, 2, 3.1, 4, 5, 10 and 100 %.
    assert of_all["median_error"] == pytest.approx(0.0355, abs=0.001)
    assert of_all["median_low"] < 0.03 and of_all["median_high"] >= 0.1
    assert (of_all["sites"], of_all["with_interval"]) == (8, 7)
    # Three runs of each, which scatter by 1 %.
    assert of_all["chance_error"] == pytest.approx(0.6745 * 0.01 * math.sqrt(2 / 3), rel=0.01)


def test_the_report_tells_and_draws_the_errors_and_a_file_has_them(folder: Path) -> None:
    result = section(folder)
    assert result
    assert "PLT (page load time): the median error of 8 sites is 3.5 %" in result.paragraphs[0]
    assert "There is one live load of h" in " ".join(result.paragraphs)
    assert smallest_type(result.figures[0].draw(*result.figures[0].arguments)) >= SMALL
    assert len(result.tables[1].texts) == 16
    assert "PLT: the median error of 8 sites is 3.5 %" in summary(folder)
    tables = json.loads((folder / "fidelity.json").read_text())
    (single,) = (one for one in tables["sites"] if (one["site"], one["metric"]) == ("h", "plt"))
    assert single["error"] == pytest.approx(1.0, abs=0.001) and single["error_low"] is None


@pytest.mark.needs_axe
def test_everybody_can_read_the_section(browser: Browser, folder: Path) -> None:
    assert accessible_report(browser, folder) == []


def test_a_machine_that_was_slower_live_is_told_of() -> None:
    runs = pd.DataFrame({"canary_cpu_ms": [50.0, np.nan, 52.0], "canary_page_ms": [800.0, np.nan, 800.0]})
    tasks = {"usual": (55.0, 900.0), "slow": (60.0, 1200.0), "fast": (30.0, 800.0)}
    loads = {
        name: LiveLoads("Chrome 1", "2026", (LiveLoad({"plt": 1.0}, {}, {"cpu": cpu_ms, "page": page_ms}),))
        for name, (cpu_ms, page_ms) in tasks.items()
    }
    slow, fast = of_machine(loads | {"unknown": live(900.0)}, runs)
    assert slow.startswith("slow: before its live loads the canary took 1.50 times as long as before its replays")
    assert fast.startswith("fast: before its replays the canary took 1.70 times as long as before its live loads")
    assert of_machine(loads, pd.DataFrame(index=[0])) == []


def test_live_loads_are_no_part_of_the_recording_and_a_broken_file_is_one_line(tmp_path: Path) -> None:
    without, with_live = written(tmp_path / "a", None), written(tmp_path / "b", on_lte(900.0))
    assert digest(without) == digest(with_live) and read_live(without) is None
    assert read_live(with_live) == on_lte(900.0)
    (with_live.folder / "live.json").write_text('{"format": 1, "loads": 3}')
    with pytest.raises(EyelevelError, match=r"live.json is broken \(.*\); remove it, or record the site again"):
        read_live(with_live)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"network": "lte\x1b[2J"}, "it has text that cannot be shown"),
        ({"network_settings": {"a\nb": 1}}, "it has text that cannot be shown"),
        ({"loads": [{"metrics": {"plt": 1.0}, "protocols": {"h9": 1}}]}, "an unknown version of HTTP"),
        ({"loads": [{"metrics": {"plt": 1.0}, "protocols": {"h2": -1}}]}, "an unknown version of HTTP"),
        ({"loads": [{"metrics": {"plt": 0.0}, "protocols": {"h2": 1}}]}, "an invalid time"),
    ],
)
def test_live_loads_of_strangers_are_taken_as_data(changed: dict[str, Any], fault: str, tmp_path: Path) -> None:
    site = written(tmp_path / "a", on_lte(900.0))
    file = site.folder / "live.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    with pytest.raises(EyelevelError, match=fault) as raised:
        read_live(site)
    assert str(raised.value).isprintable()
