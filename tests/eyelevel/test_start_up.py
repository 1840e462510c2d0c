"""Help, completion, usage errors and `status` load no slow library.

This tests the set of modules, not the time, which `benchmarks.start_up` measures.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from base.places import PROJECT
from eyelevel.commands.completion import COMPLETES
from eyelevel.program import COMMANDS
from eyelevel.simulate import Truth, write
from studies import STUDIES

HEAVY = {
    *("pandas", "numpy", "scipy", "statsmodels", "matplotlib", "PIL", "pyarrow", "fontTools"),
    *("distributed", "dask", "tornado", "cryptography", "jinja2"),
}
HELPS = [[name, "--help"] for name in [*COMMANDS, *(study.command for study in STUDIES)]]
UNKNOWN = "nonsense"
# Wrong command lines, and the program's errors.
FAULTS: dict[tuple[str, ...], str] = {
    (UNKNOWN,): "No such command",
    ("campaign", f"--{UNKNOWN}"): "No such option",
    ("report",): "Missing argument",
    ("load",): "Missing option",
    ("campaign", "--films", UNKNOWN): "is not one of",
    ("campaign", "--runs", UNKNOWN): "the number of runs must be",
    ("campaign", "--net", UNKNOWN): "unknown network",
    ("campaign", "--proto", UNKNOWN): "unknown protocol",
    ("grid", "--net", UNKNOWN): "unknown network",
    ("fairness", "--proto", UNKNOWN): "unknown protocol",
    ("answer", "--net", UNKNOWN): "unknown network",
    ("validate", "--proto", UNKNOWN): "unknown protocol",
    ("networks", "--net", UNKNOWN): "unknown network",
    **{
        (command, UNKNOWN): "there is no campaign"
        for command in ("status", "report", "results", "package", "quiet-times", "review")
    },
    ("user-study", "write", UNKNOWN): "there is no campaign",
    ("waterfall", UNKNOWN, "--proto", "tcp"): "there is no campaign",
    ("compare", "--a", UNKNOWN, "--b", UNKNOWN): "there is no campaign",
    ("combine", UNKNOWN, UNKNOWN): "there is no campaign",
}

# Runs each command line on standard input; prints its output, and which heavy modules it loaded that no earlier one had
# loaded.
RUNNER = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from eyelevel.program import main

heavy, lines = json.loads(sys.stdin.read())
results, loaded = [], set()
for variables, arguments in lines:
    os.environ.update(variables)
    sys.argv = ["eyelevel", *arguments]
    output = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with redirect_stdout(output), redirect_stderr(output):
        try:
            main()
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=output)
    new = {name.partition(".")[0] for name in sys.modules} & {*heavy} - loaded
    loaded |= new
    results.append((output.buffer.getvalue().decode(), sorted(new)))
print(json.dumps(results))
"""


def outputs(lines: Sequence[tuple[Mapping[str, str], Sequence[str]]], folder: Path) -> list[str]:
    """The output of each of `lines` (variables, and arguments of the program) in an empty `folder`.

    Fails if one of them loads a slow module.
    """
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps([sorted(HEAVY), lines]),
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: list[tuple[str, list[str]]] = json.loads(done.stdout)
    loaded = {f"eyelevel {' '.join(line)}": new for (_, line), (_, new) in zip(lines, results, strict=True) if new}
    assert not loaded
    return [text for text, _ in results]


def test_helps_load_nothing_heavy(tmp_path: Path) -> None:
    lines = [["--help"], *HELPS]
    for line, text in zip(lines, outputs([({}, line) for line in lines], tmp_path), strict=True):
        assert text.startswith("Usage: eyelevel"), line


def test_usage_errors_load_nothing_heavy(tmp_path: Path) -> None:
    for fault, text in zip(FAULTS, outputs([({}, line) for line in FAULTS], tmp_path), strict=True):
        assert FAULTS[fault] in text, fault


def test_completions_load_nothing_heavy(tmp_path: Path) -> None:
    words = {"eyelevel val": "validate", "eyelevel campaign --net lt": "lte", "eyelevel grid --proto qui": "quic"}
    words |= {"eyelevel replay --site demo-l": "demo-light"}
    lines = [
        ({COMPLETES: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}, ()) for line in words
    ]
    for word, text in zip(words.values(), outputs(lines, tmp_path), strict=True):
        assert f"plain,{word}" in text.splitlines()


def test_a_campaign_without_a_cluster_begins_without_what_clusters_and_calibrations_need() -> None:
    code = "import sys, eyelevel.measuring; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "measure" in loaded and not loaded & {"scipy", "distributed", "dask", "tornado", "pandas"}


def test_the_version_names_the_checkout_that_runs(tmp_path: Path) -> None:
    [text] = outputs([({}, ["--version"])], tmp_path)
    assert re.fullmatch(rf"eyelevel \d+\.\d+\.\d+ \({re.escape(str(PROJECT))}, commit \S+\)\n", text)


def test_the_status_of_a_campaign_loads_nothing_heavy(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    write(campaign, Truth(2, runs=2))
    text, as_json = outputs([({}, ["status", str(campaign)]), ({}, ["status", str(campaign), "--json"])], tmp_path)
    assert "runs done" in text
    assert json.loads(as_json)["done"] > 0


# Writes a report without its figures, and prints which of our modules that loaded.
REPORT = """
import sys
from analysis.report.section import ReportFigure

def write(figure, folder):
    (folder / f"{figure.name}.png").touch()

ReportFigure.write = write
from eyelevel.program import main
folders = sys.argv.pop().split(",")
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*(name for name in sys.modules if name.partition(".")[0] in folders))
"""
FOLDERS = ("eyelevel", "studies", "analysis", "films", "dataset", "record", "tuning", "base")
MEASURING = ("measure", "replay", "servers", "browsers")
CELLS_OF_REPORT = 4


@pytest.mark.slow
def test_a_report_loads_nothing_that_measures(tmp_path: Path) -> None:
    folder = tmp_path / "reference"
    ignored = shutil.ignore_patterns("report", "ro-crate-metadata.json")
    shutil.copytree(PROJECT / "data" / "reference", folder, ignore=ignored)
    with (folder / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    cells = {(row["site"], row["network"]) for row in rows if row["run"] == "1"}
    some = sorted(cells)[:CELLS_OF_REPORT]
    with (folder / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row for row in rows if (row["site"], row["network"]) in some)
    done = subprocess.run(
        [sys.executable, "-c", REPORT, "report", str(folder), ",".join((*FOLDERS, *MEASURING))],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules = done.stdout.splitlines()[-1].split()
    assert "analysis.report.write" in modules
    assert [name for name in modules if name.partition(".")[0] in MEASURING] == []
    assert len(modules) < 135
