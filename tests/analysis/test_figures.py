"""What the figures show is what the tables say, and their files hold what a paper needs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from support.analysis_truth import simulated_table

from analysis import diagnostics, hypotheses
from analysis.figures import calibration, figure3, order, sites_map, style, within
from analysis.gain import gains
from analysis.samples import Samples, samples_of
from analysis.simulate import Truth, simulate
from studies.downloads import figure2

TRUTH = Truth(sites=5, networks=("dsl", "lte"), runs=4, effects={"quic": -0.1, "tcp+": -0.05}, effect_sd=0.03)


@pytest.fixture(scope="module")
def samples() -> Samples:
    return samples_of(simulated_table(TRUTH))


@pytest.fixture(scope="module")
def gain_table(samples: Samples) -> pd.DataFrame:
    return gains(samples, hypotheses.load().comparisons)


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
    assert np.asarray(line.get_xdata())[1:] == pytest.approx(expected)
    assert np.asarray(line.get_ydata()) == pytest.approx(np.arange(6) / 5)


def test_the_map_has_each_gain_in_percent(gain_table: pd.DataFrame) -> None:
    pair = hypotheses.load().family[0]
    figure = sites_map.draw(gain_table, ("dsl", "lte"), ("si", "plt"), pair)
    family = gain_table[(gain_table["reference"] == "tcp+") & (gain_table["compared"] == "quic")]
    family = family[family["metric"].isin(["si", "plt"])]
    texts = sorted(text.get_text() for text in figure.axes[0].texts if "%" not in text.get_text())
    numbers = [text for text in texts if text.lstrip("+-").isdigit()]
    assert numbers == sorted(f"{100 * value:+.0f}" for value in family["gain"])


def test_a_band_holds_the_whole_distribution_at_its_rate() -> None:
    """Of 400 samples of 20, the band of 95 % must leave the true uniform distribution about 20 times."""
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
    assert len(figure.axes[0].patches) == 6
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1 KB", "100 KB", "10 MB"]


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


def test_fonts_are_embedded_and_files_reproducible(gain_table: pd.DataFrame, tmp_path: Path) -> None:
    first, second = (
        files(figure3.draw(gain_table, TRUTH.networks, TRUTH.protocols, "tcp"), tmp_path) for _ in range(2)
    )
    assert first == second
    pdf, png = first
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert png.startswith(b"\x89PNG")


def test_protocols_differ_in_grey_too() -> None:
    """No two protocols share a line style, and no two of one style of point."""
    styles = list(style.LINE_STYLES.values())
    assert len({line_style.marker for line_style in styles}) == len(styles)
    assert len({(str(line_style.dashes), line_style.color) for line_style in styles}) == len(styles)
    assert style.LINE_STYLES["tcp+"].dashes != style.LINE_STYLES["quic"].dashes


def test_an_order_plot_of_few_runs_is_drawn() -> None:
    runs = simulate(Truth(sites=1, networks=("dsl",), protocols=("tcp",), runs=3, canary=True))
    assert order.draw(diagnostics.residuals(runs), "si", "canary_ms").axes
