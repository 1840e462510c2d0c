"""Figures show what the tables say, and their files meet the requirements of papers."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from support.analysis_truth import simulated_table, varied_findings, with_canary
from support.figures import smallest_type, type_and_overhang
from support.reports import parts_of_report

from analysis import hypotheses, stability
from analysis.figures import (
    calibration,
    exclusion_bars,
    figure1,
    figure3,
    forest,
    order,
    order_of_service,
    paper_beside,
    sites_map,
    style,
    window_after_loss,
    within,
)
from analysis.figures.films import Shot, Strip
from analysis.report.sections.films import strip_figure
from analysis.samples import samples_of
from analysis.statistics.contrasts import RATIO
from analysis.statistics.gain import gains
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import SIGNIFICANT_P
from analysis.statistics.samples import Samples
from analysis.text import whole_percent
from base.places import PROJECT
from eyelevel.simulate import Truth
from studies.downloads import figure2

COMPARISONS = hypotheses.load().comparisons
TRUTH = Truth(sites=5, networks=("dsl", "lte"), runs=4, effects={"quic": -0.1, "tcp+": -0.05}, effect_sd=0.03)


@pytest.fixture(scope="module")
def samples() -> Samples:
    return samples_of(simulated_table(TRUTH))


@pytest.fixture(scope="module")
def gain_table(samples: Samples) -> pd.DataFrame:
    return gains(samples, hypotheses.load().comparisons)


def test_many_panels_are_placed_the_same_way_each_time() -> None:
    networks, metrics, pairs = ("dsl", "lte", "da2gc", "mss"), ("fvc", "lvc", "vc85", "si", "plt"), [*COMPARISONS]
    rows = [
        {"network": network, "metric": metric, "reference": pair.reference, "compared": pair.compared}
        for network, metric, pair in product(networks, metrics, pairs)
    ]
    changes = np.random.default_rng(1).uniform(-0.4, 0.3, len(rows))
    table = pd.DataFrame(rows).assign(
        **{name: changes + off for name, off in zip(("gain_low", "gain", "gain_high"), (-0.1, 0, 0.1), strict=True)},
        **dict.fromkeys(RATIO, changes),
    )
    figures = [forest.draw(table, networks, metrics, pairs) for _ in range(5)]
    for figure in figures:
        figure.draw_without_rendering()
    first, *others = [[axes.get_position().bounds for axes in figure.axes] for figure in figures]
    assert [places for places in others if places != first] == []
    assert type_and_overhang(figures[0])[1] <= 0


def test_figure_3_is_a_grid_of_networks_and_metrics(gain_table: pd.DataFrame) -> None:
    figure = figure3.draw(gain_table, TRUTH.networks, TRUTH.protocols, "tcp")
    assert len(figure.axes) == 2 * 4
    assert [axes.get_title() for axes in figure.axes[:4]] == ["FVC", "SI", "VC85", "PLT"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["TCP+", "TCP+BBR", "QUIC", "QUIC+BBR"]


def test_figure_3_draws_every_sites_gain(gain_table: pd.DataFrame) -> None:
    figure = figure3.draw(gain_table, TRUTH.networks, TRUTH.protocols, "tcp")
    against_tcp = gain_table[(gain_table["reference"] == "tcp") & (gain_table["network"] == "lte")]
    quic = against_tcp[against_tcp["compared"] == "quic"]
    expected = np.sort(quic[quic["metric"] == "si"]["gain"])
    line = next(line for line in figure.axes[5].lines if line.get_color() == style.LINE_STYLES["quic"].color)
    assert np.asarray(line.get_xdata())[1:-1] == pytest.approx(expected)
    # The line spans the whole axis, and rises from 0 to 1.
    assert np.asarray(line.get_ydata()) == pytest.approx([*np.arange(6) / 5, 1])
    assert tuple(np.asarray(line.get_xdata())[[0, -1]]) == figure.axes[5].get_xlim()


def gain_rows(sites: np.ndarray) -> pd.DataFrame:
    """A row of Figure 3: each of `sites` has nearly the same gain in all metrics and over four protocols."""
    rows = [
        (f"s{number}", metric, protocol, gain + 0.01 * place)
        for number, gain in enumerate(sites)
        for metric in figure3.METRICS
        for place, protocol in enumerate(TRUTH.protocols[1:])
    ]
    return pd.DataFrame(rows, columns=["site", "metric", "compared", "gain"]).assign(network="lte", reference="tcp")


@pytest.mark.parametrize("sites", [12, 38])
def test_figure_3_is_not_squeezed_by_one_site_and_says_how_many_gains_lie_beyond(sites: int) -> None:
    table = gain_rows(np.append(np.linspace(-0.3, 0.05, sites - 1), 0.95))
    low, high = figure3.limits(table["gain"].to_numpy())
    assert -0.34 < low < -0.3 and 0.08 < high < 0.12
    figure = figure3.draw(table, ("lte",), TRUTH.protocols, "tcp")
    assert [[text.get_text() for text in axes.texts] for axes in figure.axes] == [["4 beyond"]] * 4


def test_figure_3_shows_all_sites_that_lie_near_and_ends_at_twice_the_time() -> None:
    spread = gain_rows(np.linspace(-0.8, 0.8, 10))
    low, high = figure3.limits(spread["gain"].to_numpy())
    assert low < spread["gain"].min() and high > spread["gain"].max()
    wide = gain_rows(np.linspace(-0.1, 1.2, 10))
    assert figure3.limits(wide["gain"].to_numpy()) == pytest.approx((-0.1 - 0.04 * 1.1, 1.0))
    panel = wide[(wide["metric"] == "si") & (wide["gain"] > 1)]
    figure = figure3.draw(wide, ("lte",), TRUTH.protocols, "tcp")
    assert [text.get_text() for text in figure.axes[1].texts] == [f"{len(panel)} beyond"]


def test_figure_3_of_one_site_shows_it() -> None:
    low, high = figure3.limits(gain_rows(np.array([-0.1]))["gain"].to_numpy())
    assert low < -0.1 and high > 0


def test_differences_in_ms_have_a_linear_axis_for_each_network() -> None:
    rows = [
        ("mean_delta", "dsl", -20.0, -24.0),
        ("mean_delta", "mss", -1800.0, -8364.0),
        ("mean_gain", "dsl", -0.1, -0.2),
    ]
    table = pd.DataFrame(rows, columns=["kind", "network", "value", "ours"]).assign(
        ours_low=lambda frame: frame["ours"] * 1.1, ours_high=lambda frame: frame["ours"] * 0.9,
        reference="tcp+", compared="quic", metric="si", site="", unit="ms",
    )  # fmt: skip
    figure = paper_beside.draw(table)
    panels = {axes.get_title(loc="right"): axes for axes in figure.axes if axes.axison}
    assert list(panels) == [
        "Change of the means", "Difference of the means on DSL [ms]", "Difference of the means on MSS [ms]",
    ]  # fmt: skip
    assert {axes.get_xscale() for axes in panels.values()} == {"linear"}
    low, high = panels["Difference of the means on MSS [ms]"].get_xlim()
    assert low < -8364 and high > -1800


def test_a_cell_without_runs_is_hatched_and_zero_has_no_sign(gain_table: pd.DataFrame) -> None:
    pair = hypotheses.load().family[0]
    holed = gain_table[(gain_table["site"] != gain_table["site"].iloc[0]) | (gain_table["metric"] != "si")]
    figure = sites_map.draw(holed, ("dsl", "lte"), ("si", "plt"), pair)
    assert figure.axes[0].patch.get_hatch() and figure.legends
    assert not sites_map.draw(gain_table, ("dsl", "lte"), ("si", "plt"), pair).legends
    without = gain_table[gain_table["site"] != "site-02"]
    names = ["site-01", "site-02", "site-03", "site-04", "site-05"]
    whole = sites_map.draw(without, ("dsl", "lte"), ("si", "plt"), pair, names)
    assert [text.get_text() for text in whole.axes[0].get_yticklabels()] == names and whole.legends
    assert [whole_percent(gain) for gain in (-0.004, 0.004, 0.01, -0.126)] == ["0", "0", "+1", "-13"]


def test_a_site_without_the_first_protocol_names_the_one_in_its_place(samples: Samples) -> None:
    values = samples.values.copy()
    values[1, 3, 0] = np.nan
    holed = Samples(values, samples.networks, samples.sites, samples.protocols, samples.metrics)
    names = [text.get_text() for text in within.draw(holed, "lte", "si", TRUTH.protocols).axes[0].get_yticklabels()]
    assert names[3] == f"{samples.sites[3]} (TCP+: 0)" and names[2] == samples.sites[2]


@pytest.fixture(scope="module")
def laid_out() -> dict[str, tuple[float, float]]:
    """The smallest type (points) and the overhang (inches) of each of a campaign's figures, by its name."""
    metrics = {"fvc": 400.0, "lvc": 900.0, "vc85": 600.0, "plt": 800.0}
    shots = [Shot(Path(), "site-01", "dsl", protocol, 1, metrics) for protocol in ("tcp+", "quic")]
    picture = np.zeros((9, 16, 3), dtype=np.uint8)
    times_ms = tuple(np.linspace(100, 1000, 10))
    strips = [Strip(shot, times_ms, tuple(range(10, 101, 10)), (picture,) * 10) for shot in shots]
    parts = parts_of_report(varied_findings(hypotheses.load()), strip_figure(1, strips))
    figures = {figure.name: figure.draw(*figure.arguments) for part in parts for figure in part.figures}
    names = ["a", "b", "www.a-long-name.example"]
    sites = pd.DataFrame({"site": names, "bytes": [1e6, 2e7, 3e7], "servers": [3, 40, 58]})
    figures["figure1"] = figure1.draw(sites)
    kinds = {"figure1", "figure3", "figure4_dsl_1", "confirmatory_si", "over_sites", "beside_the_paper", "runs_needed"}
    kinds |= {"order", "calibration", "exclusions", "within_lte", "sites_quic_against_tcpplus"}
    assert kinds <= set(figures)
    return {name: type_and_overhang(figure) for name, figure in figures.items()}


@pytest.mark.slow
def test_no_type_of_a_campaigns_figures_is_smaller_than_seven_points(laid_out: dict[str, tuple[float, float]]) -> None:
    assert {name: size for name, (size, _) in laid_out.items() if size < style.SMALL} == {}


@pytest.mark.slow
def test_nothing_of_a_campaigns_figures_is_cut_off(laid_out: dict[str, tuple[float, float]]) -> None:
    assert {name: over for name, (_, over) in laid_out.items() if over > 0} == {}


def test_the_map_has_each_gain_in_percent(gain_table: pd.DataFrame) -> None:
    pair = hypotheses.load().family[0]
    figure = sites_map.draw(gain_table, ("dsl", "lte"), ("si", "plt"), pair)
    family = gain_table[(gain_table["reference"] == "tcp+") & (gain_table["compared"] == "quic")]
    family = family[family["metric"].isin(["si", "plt"])]
    outlines = {
        id(sites_map.outline(f"{gain:+d}" if gain else "0", is_bold)): (gain, is_bold)
        for gain in range(-100, 101)
        for is_bold in (False, True)
    }
    drawn = [
        outlines[id(outline)]
        for numbers in figure.axes[0].collections
        for outline in numbers.get_paths()
        for _ in np.asarray(numbers.get_offsets())
    ]
    expected = [(round(100 * row.gain), row.p < SIGNIFICANT_P) for row in family.itertuples()]
    assert sorted(drawn) == sorted(expected)


@pytest.mark.slow
def test_a_band_holds_the_whole_distribution_at_its_rate() -> None:
    """A band of 95 % must miss the true uniform distribution in about 20 of 400 samples of 20 values."""
    draw = np.random.default_rng(1)
    outside = 0
    for _ in range(400):
        x, share, low, high = calibration.band(draw.random(20), 0.95)
        before = np.append(0, share[:-1])
        reach = (high - share)[:1][0] if high[0] < 1 else 0.294
        outside += bool((np.maximum(np.abs(share - x), np.abs(before - x)) > reach).any())
        assert (low <= share).all() and (share <= high).all()
    assert 5 <= outside <= 40


def test_figure_2_has_a_box_for_each_size_and_protocol() -> None:
    rows = [
        (protocol, size, repetition, size / 1e4 + repetition)
        for protocol in ("tcp+", "quic")
        for size in (1000, 100_000, 10_000_000)
        for repetition in range(5)
    ]
    figure = figure2.draw(pd.DataFrame(rows, columns=["protocol", "size_bytes", "repetition", "ms"]))
    assert smallest_type(figure) >= style.SMALL
    assert "1,000" in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(figure.axes[0].patches) == 6
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1 KB", "100 KB", "10 MB"]


def test_numbers_of_a_logarithmic_axis_are_in_full_also_within_a_decade() -> None:
    labels = {}
    for low, high in ((20, 80), (2, 3e6)):
        figure = Figure()
        axes = figure.subplots()
        axes.set(yscale="log", ylim=(low, high))
        style.plain_log_axis(axes.yaxis)
        figure.draw_without_rendering()
        labels[low] = {text.get_text() for text in axes.get_yticklabels(which="both") if text.get_text()}
    assert {"20", "30"} <= labels[20]
    assert {"10", "1,000", "100,000"} <= labels[2] and all(text.replace(",", "").isdigit() for text in labels[2])


def test_sites_without_a_protocol_or_a_metric_are_drawn_with_what_they_have(samples: Samples) -> None:
    values = samples.values.copy()
    values[0, 0, 1], values[1, 2, :, 3] = np.nan, np.nan
    holed = Samples(values, samples.networks, samples.sites, samples.protocols, samples.metrics)
    figure = within.draw(holed, "lte", "si", TRUTH.protocols)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        name for place, name in enumerate(samples.sites) if place != 2
    ]
    part = gains(holed, hypotheses.load().comparisons)
    assert figure3.draw(part, TRUTH.networks, TRUTH.protocols, "tcp").axes


def files(figure: Figure, folder: Path) -> tuple[bytes, bytes]:
    style.save(figure, folder, "one")
    return (folder / "one.pdf").read_bytes(), (folder / "one.png").read_bytes()


@pytest.mark.slow
def test_fonts_are_embedded_and_files_reproducible(gain_table: pd.DataFrame, tmp_path: Path) -> None:
    first, second = (
        files(figure3.draw(gain_table, TRUTH.networks, TRUTH.protocols, "tcp"), tmp_path) for _ in range(2)
    )
    assert first == second
    pdf, png = first
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert png.startswith(b"\x89PNG")


def test_a_colour_has_one_meaning() -> None:
    of_protocols = [one.color for one in (*style.LINE_STYLES.values(), *style.OTHER_LINE_STYLES)]
    of_verdicts = {color for color, _ in style.VERDICT_MARKS.values()}
    assert len(set(of_protocols)) == len(of_protocols)
    assert of_verdicts.isdisjoint(of_protocols) and {style.BLUE, style.VERMILION} < of_verdicts
    assert style.RC["axes.prop_cycle"].by_key()["color"][0] not in {style.BLUE, style.VERMILION}
    faster, none, slower = (to_rgb(style.CHANGES(place)) for place in (0.25, 0.5, 0.75))
    assert faster == pytest.approx(to_rgb(style.BLUE), abs=0.02) and min(none) > 0.98
    assert slower == pytest.approx(to_rgb(style.VERMILION), abs=0.02)


def test_the_legend_explains_every_verdict_and_networks_are_in_the_papers_order() -> None:
    pair = Pair("tcp+", "quic")
    row = {**pair._asdict(), "metric": "si", "gain": -0.1, "gain_low": -0.2, "gain_high": -0.05, "margin": 0.02}
    table = pd.DataFrame([{**row, "network": name, "verdict": "faster"} for name in ("wifi", "mss", "dsl")])
    figure = forest.draw_confirmatory(table, ("wifi", "mss", "dsl"), "si", [pair])
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["DSL", "MSS", "wifi"]
    (legend,) = figure.legends
    verdicts = ["faster", "slower", "equivalent", "not decided", "counts as equivalent"]
    assert [text.get_text() for text in legend.get_texts()] == verdicts
    two = forest.rows_by_network(("mss", "dsl"), [pair, Pair("tcp", "quic")])
    assert [network for network, named in two if named is None] == ["dsl", "mss"] and len(two) == 6


@pytest.mark.parametrize(("low", "high"), [(0.65, 1.08), (0.28, 2.05), (0.05, 60), (0.99, 1.01)])
def test_ticks_of_multiples_do_not_collide(low: float, high: float) -> None:
    ticks = within.ticks_between(low, high)
    gaps = np.diff(np.log(ticks)) / np.log(high / low)
    assert 1 in ticks and 1 <= len(ticks) <= 12 and (gaps >= within.APART - 1e-9).all()


def test_figures_of_a_page_are_readable_in_the_dark() -> None:
    """A dark colour of a figure in the reference campaign's report has a light one, unless it is on a light ground."""
    page = (PROJECT / "data" / "reference" / "report" / "everything.html").read_text()
    figures = [unquote(url) for url in re.findall(r'src="data:image/svg\+xml,([^"]*)"', page)]
    assert len(figures) > 10 and all("prefers-color-scheme:dark" in figure for figure in figures)
    drawn = {colour for figure in figures for colour in re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", figure)}
    ends_of_changes = {to_hex(style.CHANGES(0.0)), to_hex(style.CHANGES(1.0))}
    dark = {colour for colour in drawn if sum(to_rgb(colour)) < 1.2}
    assert dark - style.DARK.keys() - {style.INK} - ends_of_changes == set()
    assert not re.search(r"\d\.\d{3,}", re.sub(r"scale\([^)]*\)|base64,[^']*|\b0\.\d+", "", figures[0]))


def test_protocols_differ_in_grey_too() -> None:
    """No two protocols share a line style, and no two protocols of one style share a marker."""
    styles = list(style.LINE_STYLES.values())
    assert len({line_style.marker for line_style in styles}) == len(styles)
    assert len({(str(line_style.dashes), line_style.color) for line_style in styles}) == len(styles)
    assert style.LINE_STYLES["tcp+"].dashes != style.LINE_STYLES["quic"].dashes


def test_an_order_plot_of_few_runs_is_drawn() -> None:
    table = simulated_table(Truth(sites=1, networks=("dsl",), protocols=("tcp",), runs=3))
    campaign = replace(table, runs=with_canary(table.runs))
    assert order.draw(stability.residuals(campaign), "si", "canary_ms").axes


def test_windows_after_a_loss_are_drawn_with_their_curve_where_there_is_one() -> None:
    series: dict[str, list[float | None]] = {
        "at_s": [-0.05, 0, 0.05],
        "in_flight": [200, 141, 142],
        "server": [None, 140, 141],
        "expected": [None, 140, 140.5],
    }
    cubic: dict[str, object] = {"before": 200, "after": 140, "rtt_s": 0.25, "segment_bytes": 1448, "series": series}
    bbr = {**cubic, "after": 198, "series": {**series, "expected": [None] * 3}}
    figure = window_after_loss.draw({"tcp+": cubic, "quic+bbr": bbr})
    (curve, none), titles = zip(*((panel.lines, panel.get_title()) for panel in figure.axes), strict=True)
    assert titles == ("TCP+: keeps 70 %", "QUIC+BBR: keeps 99 %")
    seen, expected = curve[1].get_ydata(), curve[2].get_ydata()
    assert list(seen) == [200, 141, 142]
    assert list(expected[1:]) == [140, 140.5]
    assert np.isnan(none[2].get_ydata()).all()


def test_the_order_of_service_has_a_panel_with_its_numbers_for_each_protocol() -> None:
    priorities = {"/style-1": (0, False), "/image-1": (3, True), "/background": (4, False), "/urgent": (0, False)}
    document = {
        "responses": [
            {"path": path, "urgency": urgency, "incremental": incremental, "asked_s": 0.4 if path == "/urgent" else 0.0}
            for path, (urgency, incremental) in priorities.items()
        ],
        "served": [
            *([n / 100, "/style-1", 10_000] for n in range(20)),
            *([0.2 + n / 100, "/image-1", 10_000] for n in range(20)),
            *([0.4 + n / 100, "/background", 10_000] for n in range(50)),
            [0.95, "/urgent", 2_000],
        ],
        "numbers": {"against_priority": 0.33, "in_front_bytes": 500_000, "waited_s": 0.55},
    }
    figure = order_of_service.draw({"tcp+": document, "quic+1con": document})
    assert len(figure.axes) == 2
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"urgent: after 500 kB, 550 ms", "style 1", "image 1", "background"} <= set(texts)
    assert figure.axes[0].get_title(loc="left") == "TCP+: 33% against priority"
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["urgency 0", "urgency 3", "urgency 4", "incremental"]
    assert smallest_type(figure) >= style.SMALL


@pytest.mark.parametrize("gain", [number / 100 for number in range(-60, 61, 5)])
def test_a_number_is_legible_on_the_colour_of_its_change(gain: float) -> None:
    def luminance(color: str | tuple[float, float, float, float]) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    cell = luminance(style.CHANGES(0.5 + gain / sites_map.DEEPEST / 2))
    low, high = sorted([cell, luminance(sites_map.ink(gain))])
    # WCAG 2.2 asks for 4.5 of text.
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_excluded_attempts_are_drawn_for_networks_that_have_some() -> None:
    names = ("dsl", "lte")
    rates = pd.DataFrame({"network": names, "protocol": "quic", "attempts": 10})
    gates = pd.DataFrame({"network": ["lte"], "protocol": ["quic"], "gate": ["film"], "excluded": [2]})
    (axes,) = exclusion_bars.draw(rates, gates, ["quic"]).axes
    assert axes.get_title() == "LTE"
