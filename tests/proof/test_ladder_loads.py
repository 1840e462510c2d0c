"""A block of the ladder, with both conditions, measured and reported by the usual commands."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from analysis.runs import load
from eyelevel.commands.report import main as report
from eyelevel.study_command import study_command
from studies.ladder import STUDY
from studies.ladder.contributions import HIDDEN_LOSSES, SLOW_BROWSER, VISIBLE_LOSSES
from studies.ladder.rungs import ABOVE, BELOW

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser, pytest.mark.loads]

NETWORKS = """
[lossy]
up_mbps = 5
down_mbps = 10
min_rtt_ms = 60
loss = 0.02
queue_ms = 100
"""
# Half a processor makes a page of one second take about three times as long.
LEAST_SLOWNESS = 1.2


def test_a_block_is_measured_under_every_condition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "networks.toml").write_text(NETWORKS)
    monkeypatch.setenv("EYELEVEL_TUNING", str(tmp_path))
    arguments = ["--sites", "demo-light", "--net", "lossy", "--proto", f"{BELOW},{ABOVE},quic", "--runs", "1"]
    arguments += [
        "--conditions",
        "arq,slow,unknown",
        "--results",
        str(tmp_path / "results"),
        "--no-validate",
        "--plain",
    ]
    measured = CliRunner().invoke(study_command(STUDY), arguments)
    assert measured.exit_code == 0, measured.output
    folder = tmp_path / "results" / "ladder"
    runs = load(folder).runs
    valid = runs[runs["valid"]].set_index(["network", "protocol"])
    conditions = [("lossy", name) for name in (BELOW, ABOVE, "quic", "quic+unknown")]
    conditions += [(f"lossy{suffix}", name) for suffix in ("+arq", "+slow") for name in (BELOW, ABOVE)]
    assert sorted(valid.index) == sorted(conditions), runs["reason"].tolist()
    assert valid["block"].nunique() == 1
    assert valid.loc[("lossy+slow", BELOW), "plt"] > LEAST_SLOWNESS * valid.loc[("lossy", BELOW), "plt"]
    reported = CliRunner().invoke(report, [str(folder)])
    assert reported.exit_code == 0, reported.output
    table = (folder / "report" / "tables" / "ladder_contributions.csv").read_text()
    assert all(name in table for name in (HIDDEN_LOSSES, VISIBLE_LOSSES, SLOW_BROWSER))
