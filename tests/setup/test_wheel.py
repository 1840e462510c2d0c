"""pip installs the part that reads results, with the packages in pyproject.toml, and nothing for measuring."""

import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from base.places import PROJECT

CAMPAIGNS = PROJECT / "docs" / "first-hour"
PACKAGES = ["analysis", "base", "browsers", "dataset", "eyelevel", "films", "measure", "record", "replay", "servers"]
PACKAGES += ["studies", "tuning"]
# Files that only measuring machines need, or build from.
FOR_MEASURING = re.compile(r"films/recorder/|servers/(quic|quinn)/|\.(c|md|textproto|clang-format)$")
MEASURING = {"measure", "replay", "servers", "browsers"}
# Runs the command lines of `eyelevel` on standard input (JSON), one by one, from the folder argv[1]; importing the
# packages in argv[2] is forbidden. Prints how each ended as JSON: its status or fault, its output and its errors, and
# the modules that were loaded by then.
RUN_ALONE = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
folder, refused = sys.argv[1:]

class Refusal:
    names = frozenset(refused.split(","))

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"no {name} here", name=name)

sys.path.insert(0, folder)
sys.meta_path.insert(0, Refusal())
from eyelevel.program import main

def draw_one_figure_alone():
    from analysis.report.section import ReportFigure
    draw = ReportFigure.write

    def write(figure, folder):
        return draw(figure, folder) if figure.name == "order" else ""

    ReportFigure.write = write

def ended(arguments):
    if arguments[0] == "report":
        draw_one_figure_alone()  # all figures take seconds, and what draws them is loaded anyway
    sys.argv = ["eyelevel", *arguments]
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code or 0
    return status, output.getvalue(), errors.getvalue(), list(sys.modules)

print(json.dumps([ended(arguments) for arguments in json.load(sys.stdin)]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages in which pip would have installed the checkout."""
    source, folder = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("installed")
    # pip builds in the folder itself.
    for name in ("pyproject.toml", "README.md", "LICENSE", *files()):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((PROJECT / name).read_bytes())
    command: list[str | Path] = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--no-compile", "--target", folder, source]
    subprocess.run(command, check=True)
    return folder


def files() -> list[str]:
    """The files of the packages, as paths in the checkout; generated files are left out."""
    paths = [path for package in PACKAGES for path in (PROJECT / package).rglob("*") if path.is_file()]
    names = [path.relative_to(PROJECT) for path in paths]
    return [str(name) for name in names if not {"__pycache__", "target"} & {*name.parts}]


def eyelevel(installed: Path, *lines: list[str], cwd: Path) -> list[tuple[int | str, str, str, list[str]]]:
    """Run the program with only its own dependencies, and theirs, on each of `lines` of arguments.

    Returns the status or fault, the output and the errors of each, and the modules that were loaded by then.
    """
    command: list[str | Path] = [sys.executable, "-c", RUN_ALONE, installed, ",".join(refused())]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, input=json.dumps(lines), cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [tuple(ending) for ending in json.loads(done.stdout)]


def dependencies() -> list[Requirement]:
    document = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    return [Requirement(line) for line in document["project"]["dependencies"]]


def closure() -> set[str]:
    """The canonical names of the packages that pip would install."""
    names, waiting = {"eyelevel"}, [one.name for one in dependencies()]
    while waiting:
        if (name := canonicalize_name(waiting.pop())) in names:
            continue
        names.add(name)
        try:
            needed = map(Requirement, requires(name) or ())
        except PackageNotFoundError:  # for another system
            continue
        waiting += [one.name for one in needed if not one.marker or one.marker.evaluate({"extra": ""})]
    return names


@cache
def refused() -> list[str]:
    """The names of packages that are installed here and that pip would not install."""
    allowed, owners = closure(), packages_distributions()
    names = sorted(name for name, of_name in owners.items() if not allowed & {*map(canonicalize_name, of_name)})
    assert {"aioquic", "pytest"} <= {*names}, "it looks for what is installed"
    return names


def test_what_the_tests_run_with_is_what_pip_may_install() -> None:
    for one in dependencies():
        assert one.specifier.contains(version(one.name)), one


@pytest.mark.slow
def test_all_files_of_the_packages_are_installed(installed: Path) -> None:
    needed = [name for name in files() if not FOR_MEASURING.search(name)]
    assert len(needed) > 300
    assert [name for name in needed if not (installed / name).exists()] == []


@pytest.mark.slow
def test_a_report_is_written_without_what_measures_and_loads_nothing_of_it(installed: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    for name in ("near", "far"):
        subprocess.run(["cp", "-r", CAMPAIGNS / name, results / name], check=True)
    # Draw only one network, since drawing all takes seconds.
    lines = [
        ["report", "far"],
        ["compare", "--a", "near", "--b", "far"],
        ["results", "near"],
        ["status", "near"],
        ["networks", "--net", "lte"],
        ["protocols", "--proto", "tcp+"],
        ["verify", "."],
    ]
    (status, _, errors, modules), *others = eyelevel(installed, *lines, cwd=tmp_path)
    assert status == 0, (status, errors)
    ours = [name for name in modules if name.partition(".")[0] in PACKAGES]
    assert "analysis.report.write" in ours and len(ours) < 140
    assert [name for name in ours if name.partition(".")[0] in MEASURING] == []
    assert (results / "far" / "report" / "index.html").exists()
    assert (results / "far" / "report" / "figures" / "order.pdf").exists()
    for arguments, (fault, output, errors, _) in zip(lines[1:], others, strict=True):
        assert output or arguments[0] == "verify", arguments
        # `compare` ends with 3 if the second campaign is worse. The folder is no package.
        expected = {"compare": (0, 3), "verify": (1,)}.get(arguments[0], (0,))
        assert fault in expected and "Traceback" not in errors, (arguments, fault, errors)


@pytest.mark.slow
def test_what_measures_says_what_it_needs_in_a_line(installed: Path, tmp_path: Path) -> None:
    commands = ["campaign", "video"]
    endings = eyelevel(installed, *([command, "--runs", "1"] for command in commands), cwd=tmp_path)
    for command, (status, _, errors, _) in zip(commands, endings, strict=True):
        needs = "measuring needs a checkout of Eyelevel with 'make setup'"
        assert (status, errors) == (1, f"eyelevel: 'eyelevel {command}' is not available here: {needs}\n")
