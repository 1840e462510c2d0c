"""Help, completion, usage errors and `status` load no slow library.

This tests the set of modules, not the time, which `benchmarks.start_up` measures.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

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
# Errors of the program → the beginning of their text, and the exit status: 2 for a wrong command line, otherwise 1.
FAULTS: dict[tuple[str, ...], tuple[str, int]] = {
    (UNKNOWN,): ("No such command", 2),
    ("campagn",): ("No such command 'campagn'. Did you mean 'campaign'?", 2),
    ("campaign", f"--{UNKNOWN}"): ("No such option", 2),
    ("report",): ("Missing argument", 2),
    ("load",): ("Missing option", 2),
    ("campaign", "--films", UNKNOWN): ("Invalid value for '--films': 'nonsense' is not one of", 2),
    ("campaign", "--runs", UNKNOWN): ("the number of runs must be", 2),
    ("campaign", "--budget", UNKNOWN): ("write a budget as 90s,", 2),
    ("campaign", "--net", UNKNOWN): ("unknown network 'nonsense': 'eyelevel networks' lists all", 2),
    ("campaign", "--net", "lta"): ("unknown network 'lta': did you mean lte? 'eyelevel networks' lists all", 2),
    ("campaign", "--proto", "TPC"): ("unknown protocol 'TPC': did you mean tcp? 'eyelevel protocols' lists all", 2),
    ("campaign", "--campaign", "try x"): ("a campaign's name has no blanks, unlike 'try x'", 2),
    ("grid", "--net", UNKNOWN): ("unknown network", 2),
    ("fairness", "--proto", UNKNOWN): ("unknown protocol", 2),
    ("answer", "--net", UNKNOWN): ("unknown network", 2),
    ("validate", "--proto", UNKNOWN): ("unknown protocol", 2),
    ("networks", "--net", UNKNOWN): ("unknown network", 2),
    ("protocols", "--proto", UNKNOWN): ("unknown protocol", 2),
    ("quiet-times", UNKNOWN, "--quiet-ms", "1s"): ("--quiet-ms takes whole numbers", 2),
    ("waterfall", UNKNOWN): ("name either --proto (median runs) or --run", 2),
    ("compare", "--a", UNKNOWN, "--b", UNKNOWN, "--worse-than", "3"): ("--worse-than takes a percentage", 2),
    **{
        (command, UNKNOWN): ("there is no campaign", 1)
        for command in ("status", "report", "results", "package", "quiet-times", "review")
    },
    ("user-study", "write", UNKNOWN): ("there is no campaign", 1),
    ("waterfall", UNKNOWN, "--proto", "tcp"): ("there is no campaign", 1),
    ("compare", "--a", UNKNOWN, "--b", UNKNOWN): ("there is no campaign", 1),
    ("combine", UNKNOWN, UNKNOWN): ("there is no campaign", 1),
    ("history", UNKNOWN): ("there is no folder", 1),
}

# Runs each command line on standard input; prints its output, its status, and which heavy modules it loaded that no
# earlier one had loaded.
RUNNER = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from eyelevel.program import main

heavy, lines = json.loads(sys.stdin.read())
results, loaded = [], set()
for variables, arguments in lines:
    os.environ.update(variables)
    sys.argv = ["eyelevel", *arguments]
    output, status = io.TextIOWrapper(io.BytesIO(), write_through=True), 0
    with redirect_stdout(output), redirect_stderr(output):
        try:
            main()
        except SystemExit as end:
            status = end.code
    new = {name.partition(".")[0] for name in sys.modules} & {*heavy} - loaded
    loaded |= new
    results.append((output.buffer.getvalue().decode(), status, sorted(new)))
print(json.dumps(results))
"""


def outputs(lines: Sequence[tuple[Mapping[str, str], Sequence[str]]], folder: Path) -> list[str]:
    """The output of each of `lines`, as `endings` has them, all with exit status 0."""
    results = endings(lines, folder)
    assert [status for _, status in results] == [0] * len(lines), results
    return [text for text, _ in results]


def endings(
    lines: Sequence[tuple[Mapping[str, str], Sequence[str]]], folder: Path, heavy: Collection[str] = HEAVY
) -> list[tuple[str, int]]:
    """The output and the exit status of each of `lines` (variables, and arguments of the program) in an empty `folder`.

    Fails if one of them loads a `heavy` module.
    """
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps([sorted(heavy), lines]),
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: list[tuple[str, int, list[str]]] = json.loads(done.stdout)
    loaded = {f"eyelevel {' '.join(line)}": new for (_, line), (*_, new) in zip(lines, results, strict=True) if new}
    assert not loaded
    return [(text, status) for text, status, _ in results]


def test_helps_load_nothing_heavy(tmp_path: Path) -> None:
    lines = [["--help"], *HELPS]
    for line, text in zip(lines, outputs([({}, line) for line in lines], tmp_path), strict=True):
        assert text.startswith("Usage: eyelevel"), line


def test_errors_are_one_line_have_a_status_of_their_kind_and_load_nothing_heavy(tmp_path: Path) -> None:
    for fault, (text, status) in zip(FAULTS, endings([({}, line) for line in FAULTS], tmp_path), strict=True):
        expected, expected_status = FAULTS[fault]
        # Some commands announce what they begin.
        line = text.splitlines()[-1]
        assert line.startswith(f"eyelevel: {expected}"), fault
        assert status == expected_status, fault


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


def test_the_doctor_loads_nothing_heavy_and_its_status_says_whether_the_machine_is_fit(tmp_path: Path) -> None:
    # Servers, whose programs it names, load these.
    [(text, status)] = endings([({}, ["doctor", "--json"])], tmp_path, HEAVY - {"cryptography", "jinja2"})
    seen = json.loads(text)
    assert seen["facts"]["eyelevel"].startswith("0.") and "kernel" in seen["facts"]["system"]
    assert status == bool(seen["findings"])
    assert all(finding["what"] and finding["remedy"] for finding in seen["findings"])
