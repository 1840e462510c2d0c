"""Means, gains and significance, on hand-made tables with known results."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats
from support.analysis_truth import campaign_table

from analysis.attempts import exclusions, means
from analysis.report.first_answer import report
from analysis.runs import load
from analysis.samples import samples_of
from analysis.statistics.gain import gain, gains
from analysis.statistics.hypotheses import Pair
from analysis.statistics.samples import t_test_p
from base.errors import EyelevelError
from dataset import metrics
from dataset.metrics import Metric, time_names

times = st.lists(st.floats(1, 1e5), min_size=2, max_size=40)


def table(*rows: tuple[str, str, float | None]) -> pd.DataFrame:
    """Attempts at one site on one network. Each of `rows`: the protocol, the reason, and the value of every metric."""
    return pd.DataFrame(
        [
            {
                "site": "s",
                "network": "lte",
                "protocol": protocol,
                "run": number,
                "valid": not reason,
                "reason": reason,
                **dict.fromkeys(time_names(), value),
            }
            for number, (protocol, reason, value) in enumerate(rows)
        ]
    )


@given(times, times)
def test_gain_is_the_papers_formula(a: list[float], b: list[float]) -> None:
    assert gain(np.array(a), np.array(b)) == pytest.approx((np.mean(b) - np.mean(a)) / np.mean(a))


@given(times, st.floats(1.01, 10))
def test_slower_is_positive_and_faster_negative(a: list[float], factor: float) -> None:
    slower = np.array(a) * factor
    assert gain(np.array(a), slower) > 0 > gain(slower, np.array(a))


@given(times, times)
def test_anova_is_scipys(a: list[float], b: list[float]) -> None:
    x, y = np.array(a), np.array(b)
    expected = stats.f_oneway(x, y).pvalue
    # If values differ only by rounding, or groups hardly differ, f_oneway returns only rounding errors.
    differ = max(np.ptp(x), np.ptp(y)) > 1e-9 * max(x.max(), y.max())
    if differ and np.isfinite(expected) and expected < 0.999:
        assert t_test_p(x, y, equal_var=True) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_too_little_to_say_is_no_p_value() -> None:
    assert np.isnan(t_test_p(np.array([1.0]), np.array([2.0, 3.0]), equal_var=True))


@pytest.mark.parametrize(("runs", "p"), [(2, 1 / 3), (5, 2 / 252), (31, 0.0)])
def test_constant_samples_that_differ_have_the_p_value_of_the_permutation_test(runs: int, p: float) -> None:
    one, other = np.full(runs, 267.0), np.full(runs, 300.0)
    assert t_test_p(one, other, equal_var=True) == pytest.approx(p, abs=1e-12)
    assert t_test_p(one, one, equal_var=True) == 1


def test_means_rest_on_valid_runs_alone() -> None:
    result = means(table(("tcp", "", 100), ("tcp", "", 300), ("tcp", "outside: x", 9000), ("quic", "film: x", None)))
    tcp, quic = result.to_dict("records")
    assert (tcp["protocol"], tcp["valid"], tcp["attempts"], tcp["plt"]) == ("tcp", 2, 3, 200)
    assert (quic["protocol"], quic["valid"], quic["attempts"]) == ("quic", 0, 1)
    assert np.isnan(quic["plt"])


def test_only_runs_of_one_block_are_measured_side_by_side() -> None:
    """A protocol that was added later also has run numbers from 1, but separate blocks."""
    runs = table(("tcp", "", 100), ("tcp", "", 300), ("quic", "", 90), ("quic", "", 80)).assign(
        run=[1, 2, 1, 2], block=[1, 2, 3, 4]
    )
    samples = samples_of(campaign_table(runs, ["lte"], ["tcp", "quic"]))
    has_both = np.isfinite(samples.of("tcp")) & np.isfinite(samples.of("quic"))
    assert samples.values.shape[-1] == 4 and not has_both.any()
    together = samples_of(campaign_table(runs.assign(block=[1, 2, 2, 1]), ["lte"], ["tcp", "quic"]))
    assert together.of("quic")[0, 0, 0].tolist() == [80, 90]


def test_a_run_that_counts_twice_is_an_error() -> None:
    runs = table(("tcp", "", 100), ("tcp", "", 300))
    with pytest.raises(EyelevelError, match="the run lte s tcp 1 as valid more than once"):
        samples_of(campaign_table(runs.assign(run=1), ["lte"], ["tcp", "quic"]))
    with pytest.raises(EyelevelError, match="the block lte s tcp 7 as valid more than once"):
        samples_of(campaign_table(runs.assign(block=7), ["lte"], ["tcp", "quic"]))


def test_gains_are_against_the_reference() -> None:
    runs = table(("tcp", "", 200), ("quic", "", 100), ("quic", "outside: x", 9000))
    result = gains(samples_of(campaign_table(runs, ("lte",), ("tcp", "quic"))), [Pair("tcp", "quic")])
    assert result["metric"].tolist() == list(time_names())
    assert set(result["gain"]) == {-0.5}
    assert set(result["delta_ms"]) == {-100}
    assert set(result["verdict"]) == {"untested"}


def test_a_site_without_the_reference_has_no_gain() -> None:
    runs = table(("tcp", "", 200), ("quic", "", 100))
    runs.loc[0, "site"] = "other"
    assert gains(samples_of(campaign_table(runs, ("lte",), ("tcp", "quic"))), [Pair("tcp", "quic")]).empty


def test_exclusions_are_counted_by_protocol_and_gate() -> None:
    result = exclusions(
        table(("tcp", "outside: x", 1), ("tcp", "outside: y", 1), ("quic", "film: z", 1), ("quic", "", 1))
    )
    assert result[["protocol", "gate", "excluded"]].to_dict("records") == [
        {"protocol": "tcp", "gate": "outside", "excluded": 2},
        {"protocol": "quic", "gate": "film", "excluded": 1},
    ]


def test_nothing_excluded_is_an_empty_table() -> None:
    assert exclusions(table(("tcp", "", 1))).empty


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign's folder: quic was named second but measured first."""
    rows = [
        ("quic", "", 101.0),
        ("tcp", "", 200.0),
        ("tcp", "", 202.0),
        ("quic", "", 103.0),
        ("tcp", "outside: x", None),
    ]
    table(*rows).to_csv(tmp_path / "runs.csv", index=False)
    document: dict[str, object] = {"settings": {"networks": {"lte": {}}, "protocols": {"tcp": {}, "quic": {}}}}
    (tmp_path / "campaign.json").write_text(json.dumps(document))
    return tmp_path


def test_the_first_answer(campaign: Path) -> None:
    # Wide enough for any number of metrics.
    lines = printed(campaign, width=500)
    assert "lte" in lines[0]
    (tcp,) = [line for line in lines if " tcp " in line and "201" in line]
    (quic,) = [line for line in lines if " quic " in line and "102" in line]
    assert lines.index(tcp) < lines.index(quic)
    assert "2/3" in tcp and "2/2" in quic
    assert lines[lines.index(quic) + 1].split() == ["change", *["-49.3%*"] * len(time_names())]
    assert sum("change " in line and "%" in line for line in lines) == 1
    assert any("Rejected: 1 of 5 attempts" in line for line in lines)
    assert any("lte tcp: 1 x outside: x" in line for line in lines)


def printed(campaign: Path, width: int) -> list[str]:
    output = io.StringIO()
    report(campaign, Console(file=output, width=width))
    return output.getvalue().splitlines()


def test_the_first_answer_says_whether_its_numbers_are_means(campaign: Path) -> None:
    assert any(line.startswith("Means over the valid runs") for line in printed(campaign, 80))
    table(("tcp", "", 200.0), ("quic", "", 100.0)).to_csv(campaign / "runs.csv", index=False)
    (text,) = (line for line in printed(campaign, 80) if "valid" in line)
    assert text == "One valid run each; times from navigation start. Runs: valid/attempts."


@pytest.mark.parametrize("more", [0, 1, 5])
def test_the_first_answer_fits_the_screen_and_wraps_no_name_whatever_the_number_of_metrics(
    campaign: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    toys = [Metric(f"toy{number}", "g", f"Toy {number}", lambda _: None) for number in range(more)]
    monkeypatch.setattr(metrics, "METRICS", [*metrics.METRICS, *toys])
    runs = table(("tcp", "", 12000.0), ("tcp", "", 12001.0), ("quic", "", 25000.0), ("quic", "", 25001.0))
    runs.assign(site="www.chinatimes.example").to_csv(campaign / "runs.csv", index=False)
    lines = printed(campaign, 80)
    assert max(map(len, lines)) <= 80
    named = [line for line in lines if "chinatimes" in line]
    assert named and all("www.chinatimes.example  tcp" in line and "12000" in line for line in named)
    # Every time by which protocols are compared appears once, with its unit and its gain.
    assert sum(line.count("+108.3%*") for line in lines) == len(time_names())
    for unit in ("ms", "g"):
        count = sum(metric.unit == unit and metric.name in time_names() for metric in metrics.METRICS)
        assert sum(line.count(f"[{unit}]") for line in lines) == count


def test_a_campaign_read_from_disk_keeps_its_types(campaign: Path) -> None:
    runs = load(campaign).runs
    assert runs["valid"].tolist() == [True, True, True, True, False]
    assert runs["reason"].tolist() == ["", "", "", "", "outside: x"]
    assert np.isnan(runs["plt"].iloc[-1])


@pytest.mark.parametrize("cell", ["", "yes", "1"])
def test_a_run_that_is_neither_valid_nor_not_is_an_error(campaign: Path, cell: str) -> None:
    """Any text but true and false must be refused: as a truth value it would be true, and an excluded run would
    count."""
    lines = (campaign / "runs.csv").read_text().splitlines()
    place = lines[0].split(",").index("valid")
    cells = lines[2].split(",")
    cells[place] = cell
    (campaign / "runs.csv").write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:], ""]))
    with pytest.raises(EyelevelError, match=r"line 3 of .*runs\.csv: valid must be true or false"):
        load(campaign)


@pytest.mark.parametrize(("column", "cell"), [("block", "x"), ("block", "1.5"), ("run", "first")])
def test_a_number_that_runs_are_paired_by_and_that_is_none_is_an_error(campaign: Path, column: str, cell: str) -> None:
    runs = pd.read_csv(campaign / "runs.csv", dtype=str, keep_default_na=False)
    runs["block"] = ["", "1", "1", "2", "2"]
    runs.to_csv(campaign / "runs.csv", index=False)
    assert load(campaign).runs["block"].tolist() == [0, 1, 1, 2, 2]
    runs.loc[1, column] = cell
    runs.to_csv(campaign / "runs.csv", index=False)
    with pytest.raises(EyelevelError, match=rf"line 3 of .*runs\.csv: {column} must be a whole number"):
        load(campaign)


def test_no_campaign_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"is not a campaign: campaign\.json is missing"):
        load(tmp_path)
