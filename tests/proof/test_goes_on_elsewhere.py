"""A declared campaign is measured within a budget, kept as a package, and resumed elsewhere from the package alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.campaigns import rows

from analysis import hypotheses
from analysis.report.section import ANSWER
from base.places import PROJECT
from dataset.last_frames import read_digests
from dataset.plan import read_plan
from eyelevel.commands.reference_campaign import PACKAGE_S
from eyelevel.package import CLAIMS_TABLE

DECLARED = """
networks = ["dsl"]
protocols = ["tcp+", "quic"]
hypotheses = "question.toml"
runs = {runs}
seed = 1
films = "none"
quality = "small"

[[sites]]
name = "demo-light"
reason = "it is small"
"""

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser]


def reference(declaration: Path, results: Path, *options: str) -> str:
    command = [sys.executable, "-m", "eyelevel", "reference", "--declaration", str(declaration), "--no-validate"]
    command += ["--results", str(results), "--plain", *options]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(1800)
@pytest.mark.loads(group="reference")
def test_a_campaign_goes_on_from_its_package_alone(tmp_path: Path) -> None:
    declaration = tmp_path / "declared" / "small.toml"
    declaration.parent.mkdir()
    declaration.write_text(DECLARED.format(runs=1))
    (declaration.parent / "question.toml").write_text(hypotheses.DECLARED.read_text())
    reference(declaration, tmp_path / "here")
    package = declaration.with_suffix("")
    first = rows(package)
    assert sorted((row["protocol"], row["run"]) for row in first if row["valid"] == "true") == [
        ("quic", "1"),
        ("tcp+", "1"),
    ]
    # The paper's numbers are over sites, and this campaign has one.
    assert (package / "report" / ANSWER).exists() and not (package / CLAIMS_TABLE).exists()
    assert "of the paper" not in (package / "README.md").read_text()

    # The first of two further rounds fits into a budget for the package and one and a half blocks.
    declaration.write_text(DECLARED.format(runs=3))
    budget_s = PACKAGE_S + 1.5 * sum(float(row["seconds"]) for row in first if row["valid"] == "true")
    printed = reference(declaration, tmp_path / "there", "--budget", f"{budget_s:.0f}s")
    assert f"resumed from {package}" in " ".join(printed.split())
    assert "the budget is used up; 2 runs left" in printed
    assert len(rows(package)) >= len(first) + 2

    reference(declaration, tmp_path / "there")
    later = rows(package)
    assert {row["machine"] for row in later[: len(first)]} == {f"{first[0]['machine']}~1"}
    assert {row["machine"] for row in later[len(first) :]} == {first[0]["machine"]}
    planned = {(run.protocol, str(run.number)) for block in read_plan(package) for run in block}
    valid = [(row["protocol"], row["run"]) for row in later if row["valid"] == "true"]
    assert sorted(valid) == sorted(planned)
    assert {row["folder"] for row in later if row["valid"] == "true"} <= set(read_digests(package))
