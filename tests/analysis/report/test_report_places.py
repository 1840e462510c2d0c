"""Where a report is written, and that its links to files of runs lead to existing files."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from factories import ROW, with_metrics

from analysis import hypotheses
from analysis.report.run_files import MOST_RUNS
from analysis.report.write import write_report
from base.namespaces import namespaced
from base.places import PROJECT
from base.structure import structured
from dataset.package import METADATA
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Row, header, lines, require_document, write_document
from eyelevel.commands import report as report_command
from eyelevel.commands.package import main as package_command
from eyelevel.commands.package import package_of
from eyelevel.commands.report import main
from eyelevel.package import write_package

LICENCE = "https://example.org/licence"
LEFT = ("browsertime.har.gz", "netlog.json.gz", "client.pcapng", "quic-198.18.0.1-ä 1.sqlog")


def campaign_with(folder: Path, *rows: Row) -> Path:
    """A campaign of loads without films."""
    settings = {"sites": {"s": {}}, "networks": {"lte": {}}, "protocols": {"quic": {}}, "filmed": False}
    folder.mkdir(parents=True)
    write_document(
        folder, CampaignDocument(structured({"seed": 1, "runs": len(rows), **settings}, CampaignSettings, ""))
    )
    (folder / "runs.csv").write_text(header() + lines(rows))
    return folder


def run(number: int) -> Row:
    place = f"runs/s/lte/quic/{number}-1"
    return replace(with_metrics(ROW, plt=1000.0), site="s", network="lte", protocol="quic", run=number, folder=place)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign of two runs: the first left all files, the second only a link to a file outside the campaign."""
    folder = campaign_with(tmp_path / "data" / "try", run(1), run(2))
    for row in (run(1), run(2)):
        (folder / row.folder).mkdir(parents=True)
    for name in LEFT:
        (folder / run(1).folder / name).write_bytes(b"x")
    (tmp_path / "secret").write_text("x")
    (folder / run(2).folder / "client.pcapng").symlink_to(tmp_path / "secret")
    return folder


def report(folder: Path, *options: str) -> str:
    """The output of making the report of the campaign in `folder`, or the error that prevents it."""
    done = CliRunner().invoke(main, [str(folder), *options])
    return str(done.exception or done.output).removeprefix(f"reading {folder}\n").strip()


def named(into: Path) -> str:
    """The line that names the report in `into`."""
    return f"report: {into / 'index.html'}"


def links(page: Path) -> dict[str, Path]:
    """The texts of the page's links to runs, and their targets."""
    text = page.read_text()
    assert "secret" not in text, "no link leads out of the campaign"
    anchors = re.findall(r'<a href="([^"#:]*runs/[^"]*)">([^<]*)</a>', text)
    assert all(href.startswith("../") for href, _ in anchors), "links are relative"
    return {text: Path(os.path.normpath(page.parent / unquote(href))) for href, text in anchors}


@pytest.mark.parametrize("place", ["", "elsewhere/deep/page"])
def test_links_lead_to_the_files_of_runs_that_are_there_and_to_no_others(
    place: str, campaign: Path, tmp_path: Path
) -> None:
    into = tmp_path / place if place else campaign / "report"
    assert named(into) in report(campaign, *(["--into", str(into)] if place else [])).splitlines()
    names = {"HAR": LEFT[0], "network log": LEFT[1], "client": LEFT[2], "quic-198.18.0.1-ä 1": LEFT[3]}
    expected = {text: campaign / run(1).folder / name for text, name in names.items()}
    assert links(into / "index.html") == expected
    for name in LEFT[1:]:
        (campaign / run(1).folder / name).unlink()
    report(campaign, *(["--into", str(into)] if place else []))
    assert set(links(into / "index.html")) == {"HAR"}
    assert "qlog" not in (into / "index.html").read_text().partition("<table")[2].partition("</table")[0]


def test_a_package_has_no_links_to_runs(campaign: Path, tmp_path: Path) -> None:
    def packaged(of: Path) -> Path:
        return write_report(of, [], hypotheses.load(hypotheses.DECLARED))

    write_package(campaign, tmp_path / "package", LICENCE, packaged)
    assert links(tmp_path / "package" / "report" / "index.html") == {}
    assert "Files of runs" not in (tmp_path / "package" / "report" / "index.html").read_text()


@pytest.fixture
def package(campaign: Path, tmp_path: Path) -> Path:
    """A package of the campaign, with its report."""
    return package_of(campaign, tmp_path / "kept" / "try-package", LICENCE)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for results, which does not exist yet."""
    monkeypatch.setattr(report_command, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When each file in `folder` was written, and its content."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_the_page_of_a_package_which_may_have_a_stranger_s_scripts_is_not_named_as_our_report(
    package: Path, results: Path
) -> None:
    (package / "report" / "index.html").write_text("<script>alert(1)</script>")
    metadata = package / METADATA
    document = json.loads(metadata.read_text())
    (entry,) = [entry for entry in document["@graph"] if entry["@id"] == "report/index.html"]
    entry["sha256"] = sha256((package / "report" / "index.html").read_bytes()).hexdigest()
    metadata.write_text(json.dumps(document))
    before = content(package)
    into = results / "try-report"
    note, line, following = report(package).splitlines()
    assert note == f"{package} is a read-only package; a new report of it is written to {into}"
    assert line == named(into) and "alert(1)" not in (into / "index.html").read_text()
    assert following == f"next: make campaign PACKAGE={package}"
    assert "omit --figures-only" in report(package, "--figures-only")
    assert content(package) == before


@pytest.mark.parametrize("file", ["runs.csv", "report/index.html"])
@pytest.mark.parametrize("into", [False, True])
def test_a_package_that_was_changed_is_reported_only_where_that_is_allowed(
    file: str, package: Path, results: Path, tmp_path: Path, *, into: bool
) -> None:
    (package / file).write_text((package / file).read_text() + "\n")
    before = content(package)
    options, place = (["--into", str(tmp_path / "new")], tmp_path / "new") if into else ([], results / "try-report")
    fault = f"{package} is not as written: {file} is changed"
    refusal = f"{fault}; 'make verify FOLDER={package}' lists all; --allow-changed reports it anyway"
    assert report(package, *options) == refusal
    assert not place.exists()
    first, *_, line, _ = report(package, "--allow-changed", *options).splitlines()
    assert (first, line) == (f"eyelevel: WARNING: {fault}", named(place))
    assert (place / "index.html").is_file()
    assert content(package) == before


def test_another_report_of_a_package_is_written_where_it_is_asked_for_and_never_into_the_package(
    package: Path, results: Path, tmp_path: Path
) -> None:
    before = content(package)
    assert named(tmp_path / "other") in report(package, "--into", str(tmp_path / "other"))
    assert (tmp_path / "other" / "index.html").is_file()
    question = package.parent / "question.toml"
    question.write_text(hypotheses.DECLARED.read_text())
    assert named(results / "try-report") in report(package, "--hypotheses", str(question))
    assert "is in the package" in report(package, "--into", str(package / "report"))
    assert "omit --figures-only" in report(package, "--site", "s", "--figures-only")
    assert content(package) == before


def test_a_package_warns_of_what_looks_like_secrets_in_the_urls_of_its_sites(campaign: Path, tmp_path: Path) -> None:
    document = require_document(campaign)
    sites = {"s": {"url": "https://a.example/?access_token=abcdefgh12345678&page=1"}}
    write_document(campaign, replace(document, settings=replace(document.settings, sites=sites)))
    done = CliRunner().invoke(package_command, [str(campaign), "--into", str(tmp_path / "package")])
    assert "WARNING: the URLs of its sites, which are in the package" in done.output
    assert "secrets: access_token\n" in done.output and done.exit_code == 0


def test_of_many_runs_the_first_of_each_setting_are_listed(tmp_path: Path) -> None:
    of_each = MOST_RUNS // 2
    settings = [(network, run(number)) for network in "ab" for number in range(1, of_each + 2)]
    rows = [replace(one, network=network, folder=one.folder.replace("lte", network)) for network, one in settings]
    folder = campaign_with(tmp_path / "try", *rows)
    for row in rows:
        (folder / row.folder).mkdir(parents=True)
        (folder / row.folder / LEFT[0]).write_bytes(b"x")
    report(folder)
    page = (folder / "report" / "index.html").read_text()
    assert f"Files of runs that count ({MOST_RUNS} of {MOST_RUNS + 2})" in page
    listed = Counter((network, int(number)) for network, number in re.findall(r"runs/s/([ab])/quic/(\d+)-1", page))
    assert listed == Counter((network, number) for network in "ab" for number in range(1, of_each + 1))


# A program. Its first argument is a campaign's folder, which it makes read-only, even for root. For each further
# argument, it makes a report of the campaign with that argument as the options.
READ_ONLY = """
import subprocess, sys
from pathlib import Path
from test_report_places import report
folder, *all_options = sys.argv[1:]
subprocess.run(["mount", "--bind", folder, folder], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
for options in all_options:
    print(report(Path(folder), *options.split()))
"""


@pytest.mark.needs_namespaces
def test_the_report_of_a_folder_that_cannot_be_written_goes_elsewhere(campaign: Path, tmp_path: Path) -> None:
    into = tmp_path / "elsewhere"
    command = [*namespaced("mount"), sys.executable, "-c", READ_ONLY, campaign, "", "--figures-only", f"--into {into}"]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        command, cwd=PROJECT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    refused = (
        f"{campaign} cannot be written (Read-only file system); --into of 'eyelevel report' (INTO of make) "
        "names another folder for the report"
    )
    assert done.stdout.splitlines()[:3] == [refused, refused, named(into)], done.stderr
    assert (into / "index.html").exists()
    assert sorted(path.name for path in campaign.iterdir()) == ["campaign.json", "runs", "runs.csv"]


def test_a_report_takes_the_place_of_a_report_alone(campaign: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "index.html").write_text("mine")
    assert "so it is not replaced" in report(campaign, "--into", str(thesis))
    assert "has the campaign itself in it" in report(campaign, "--into", str(campaign.parent))
    assert "has the campaign itself in it" in report(campaign, "--into", str(campaign))
    assert "cannot be written" in report(campaign, "--into", "/proc/report")
    assert "omit --figures-only" in report(campaign, "--into", str(tmp_path / "x"), "--figures-only")
    assert [path.name for path in thesis.iterdir()] == ["index.html"]
    for _ in range(2):
        assert named(tmp_path / "report") in report(campaign, "--into", str(tmp_path / "report"))
