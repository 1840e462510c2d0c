"""Adding a metric, a gate or a study takes one entry in a list: toys are added, measured, and followed to the report.

The toys are in a temporary folder and use only the public lists. Their measurements and the canary are simulated, so
that no browser is needed.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT

TOYS = '''
"""A metric, a gate and a study, and the program with them."""

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from base.clock import now_iso
from base.options import Option
from eyelevel.program import main
from measure.campaign import slot
from measure.campaign.method import Method
from measure.run.setting import Loading
from measure.run.gates import GATES, Gate
from measure.host.canary import Canary
from dataset.metrics import METRICS, Metric
from measure.run.evidence import Evidence, RequestCounts
from dataset.run_files import ATTEMPT
from dataset.table import read_document, valid_rows
from studies import STUDIES
from studies.campaign import study_campaign
from studies.study import Measurement, Study

METRICS.append(Metric("weight", "g", "Weight", lambda evidence: evidence.page.get("weight")))
GATES.append(Gate("too_heavy", lambda evidence, claim: "it is heavy" if evidence.page["weight"] > 100 else None))


@dataclass(frozen=True)
class ToyMethod(Method):
    depth: int = 1

    def settings(self):
        return {"depth": self.depth}

    def gates(self):
        return [gate for gate in GATES if gate.name in ("load_failed", "too_heavy")]

    def analyse(self, folder):
        """Toys are not filmed."""

    def make(self, setting, circumstances, folder, attempt=1, **_):
        heavy = setting.protocol.name == "quic" and attempt == 1
        weight = 200.0 if heavy else 40.0 + setting.seed % 10
        (folder / "toy.json").write_text(json.dumps({"weight": weight}))
        made = {"started_at": now_iso(), "seconds": 0.1, "failure": None, "block": circumstances.block}
        made |= {"machine": circumstances.machine, "canary": None, "slowness": 1.0}
        (folder / ATTEMPT).write_text(json.dumps(made))

    def evidence(self, setting, folder):
        page = json.loads((folder / "toy.json").read_text())
        return Evidence((), 1000.0, None, None, (), {}, RequestCounts(1, 1, 0, 1), page=page)


def campaign(request):
    chosen = study_campaign(request, "toy", ToyMethod(depth=request.options["depth"]), runs=2, repeats=1)
    # The report of a filmed campaign of pages has all metrics.
    chosen = replace(chosen, loading=Loading(filmed=True))
    return Measurement(chosen, announcement=["toys are weighed"], summary=lambda: ["toys were weighed"])


def section(folder):
    from analysis.report.section import Section  # what draws takes a second to load

    rows = valid_rows(folder, "toy")
    if not rows:
        return None
    weights = ", ".join(f"{row.metrics['weight']:.0f} g" for row in rows)
    return Section("toy", "The weight of toys", (f"Toys weigh {weights}.",))


STUDIES.append(
    Study(
        name="toy",
        command="weigh",
        title="weigh toys",
        help="Weigh toys.",
        campaign=campaign,
        section=section,
        options=(Option("--depth", "How deep toys are.", type=int, default=1),),
    )
)


def ended(arguments):
    """How the program ended with `arguments`: its status or fault, and its output."""
    if arguments[0] == "report":
        write_no_figures()
    sys.argv[1:] = arguments
    with redirect_stdout(StringIO()) as output, redirect_stderr(output):
        try:
            main()
        except SystemExit as end:
            return end.code, output.getvalue()
    return 0, output.getvalue()


def write_no_figures():
    """Only words and tables are followed."""
    from analysis.report.section import ReportFigure

    def write(figure, folder):
        (folder / f"{figure.name}.png").touch()

    ReportFigure.write = write


def without_study(folder):
    """Make the toys' campaign in `folder` one of page loads with the same runs; returns 0 and its old document."""
    document = Path(folder) / "campaign.json"
    text = document.read_text()
    document.write_text(json.dumps({**json.loads(text), "study": {}}))
    return 0, text


if __name__ == "__main__":
    slot.time_canary = lambda browser: Canary(50.0, 800.0)
    slot.layout = lambda: None  # another process would not know the toys
    commands = json.load(sys.stdin)
    print(json.dumps([without_study(*at) if name == "without-study" else ended([name, *at]) for name, *at in commands]))
'''


def toys(folder: Path, *lines: list[str]) -> list[tuple[int | str, str]]:
    """Run the program with the toys, with each of `lines` of arguments; return its statuses and outputs. The line
    `without-study` and a folder makes the campaign in it one of page loads."""
    (folder / "toys.py").write_text(TOYS)
    done = subprocess.run(
        [sys.executable, str(folder / "toys.py")],
        input=json.dumps(lines),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{PROJECT}"},
        timeout=300,
    )
    return [tuple(result) for result in json.loads(done.stdout)]


@pytest.mark.slow
def test_a_study_that_is_listed_has_its_command_with_its_options_and_those_of_all(tmp_path: Path) -> None:
    (_, of_all), (_, help_text) = toys(tmp_path, ["--help"], ["weigh", "--help"])
    assert "weigh weigh toys" in " ".join(of_all.split())
    for option in ("--depth", "--sites", "--net", "--proto", "--runs", "--seed", "--campaign", "--dask", "--validate"):
        assert option in help_text


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_metric_a_gate_and_a_study_are_followed_to_the_report(tmp_path: Path) -> None:
    options = ["--sites", "demo-light", "--net", "dsl", "--proto", "tcp,quic", "--depth", "3"]
    folder, pages = tmp_path / "weigh", tmp_path / "pages"
    measured, (_, status), again, other, reported, (_, begun), of_pages = toys(
        tmp_path,
        ["weigh", *options, "--results", str(tmp_path)],
        ["status", "--json", str(folder)],
        ["weigh", "--depth", "3", "--results", str(tmp_path)],
        ["weigh", "--depth", "4", "--results", str(tmp_path)],
        ["report", str(folder)],
        ["without-study", str(folder)],
        ["report", str(folder), "--into", str(pages)],
    )
    assert measured[0] == 0, measured
    assert "toys are weighed" in measured[1] and "toys were weighed" in measured[1]
    assert (json.loads(status)["done"], json.loads(status)["rejected"]) == (4, {"too_heavy": 2})
    # Resuming measures nothing twice, and refuses other settings of the study.
    assert again[0] == 0, again
    with (folder / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert other[0] == 1 and "method/depth was 3, is 4" in other[1]
    assert {row["reason"] for row in rows if row["valid"] == "false"} == {"too_heavy: it is heavy"}
    assert len([row for row in rows if row["valid"] == "true"]) == 4
    assert all(40 <= float(row["weight"]) < 50 for row in rows if row["valid"] == "true")
    document = json.loads(begun)
    assert (document["settings"]["method"]["depth"], document["study"]) == (3, {"name": "toy"})
    assert reported[0] == 0, reported
    page = (folder / "report" / "index.html").read_text()
    assert "The weight of toys" in page
    assert "too_heavy" in page
    # The same runs as a campaign of page loads, whose report compares all metrics.
    assert of_pages[0] == 0, of_pages
    assert "Weight" in (pages / "everything.html").read_text()
    with (pages / "tables" / "comparisons.csv").open() as file:
        (compared,) = (row for row in csv.DictReader(file) if row["metric"] == "weight")
    assert 40 <= float(compared["mean_reference"]) < 50 and 40 <= float(compared["mean_compared"]) < 50


def test_a_table_without_the_new_metric_can_be_read(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from dataset.metrics import METRICS, Metric
from dataset.table import header, lines, read_rows
from factories import ROW
folder = Path(sys.argv[1])
(folder / "runs.csv").write_text(header() + lines([ROW]))
METRICS.append(Metric("weight", "g", "Weight", lambda evidence: None))
print(read_rows(folder)[0].metrics)
"""
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "'weight': None" in done.stdout
