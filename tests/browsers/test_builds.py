"""A user names a build of a browser by its path: what is refused, under which name it is measured, and that a changed
one is noticed."""

import gzip
import platform
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.campaigns import reason_against_page
from support.scripted import SOUND, measured, scripted_campaign

from base.errors import EyelevelError, Misuse
from browsers.builds import VARIABLE
from browsers.chromium.program import BINARY
from browsers.registry import (
    all_browsers,
    browser_named,
    browser_of,
    chosen_browsers,
    one_browser,
    require_named_builds,
)
from dataset.run_files import REPLAY_LOG
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, header, read_document, read_rows, write_document
from eyelevel.commands.campaign import chosen_browsers as browsers_of_campaign
from eyelevel.package import write_package
from eyelevel.program import program as eyelevel
from measure.campaign.resuming import resume_from_package
from measure.host.machine import digests, versions
from measure.run.evidence import read_evidence
from measure.run.load import load
from measure.run.setting import Loading, Setting
from record.demo import generate
from record.site import write_site
from studies.study import Request
from tuning import networks, protocols

# So that it says that it was begun here.
HERE = {"host": platform.node()}
SWITCH = "--aggressive-cache-discard"


@pytest.fixture(autouse=True)
def no_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")


def program(path: Path, version: str, mode: int = 0o755) -> Path:
    """A program that does nothing but print its version."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {shlex.quote(version)}\n")
    path.chmod(mode)
    return path


@pytest.fixture
def chrome(tmp_path: Path) -> Path:
    """A Chromium 99 with its driver beside it."""
    program(tmp_path / "build" / "chromedriver", "ChromeDriver 99.1.2 (abc)")
    return program(tmp_path / "build" / "chrome", "Google Chrome for Testing 99.1.2")


def test_a_build_is_called_as_the_user_says_else_after_its_path(chrome: Path) -> None:
    plain, *others = chosen_browsers(f"chromium:{chrome} mine=chromium:{chrome},chromium,mine")
    assert others == ["mine", "chromium"]
    assert plain.startswith("chromium-") and len(plain) == len("chromium-") + 6
    assert chosen_browsers(f"chromium:{chrome}") == [plain] == [one_browser(plain)]
    browser = browser_named("mine-on-phone-mid")
    assert (browser.name, browser.kind) == ("mine", "chromium")
    assert browser.files() == {"mine": chrome, "mine chromedriver": chrome.parent / "chromedriver"}
    assert chrome.parent in browser.readable()
    # Installed browsers and the readers of logs know nothing of it.
    assert set(all_browsers()) >= {"chromium", "firefox"} and "mine" not in all_browsers()
    assert browser_of(chrome.parent).name == "chromium"


def test_a_driver_can_be_given_and_that_of_firefox_has_any_version(chrome: Path) -> None:
    driver = program(chrome.parent.parent / "elsewhere" / "driver", "ChromeDriver 99.9")
    one_browser(f"a=chromium:{chrome}:{driver}")
    assert browser_named("a").files()["a chromedriver"] == driver
    firefox = program(chrome.parent / "firefox", "Mozilla Firefox 140.0a1")
    program(chrome.parent / "geckodriver", "geckodriver 0.36.0")
    one_browser(f"b=firefox:{firefox}")
    words = f"{firefox} --marionette -no-remote"
    assert browser_named("b").part(words) == "browser"
    assert browser_named("b").part(f"{chrome.parent}/geckodriver --marionette-port 1") is None


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("/opt/x/chrome --user-data-dir=/tmp/p --app=data:,", "browser"),
        ("/usr/lib/chromium/chromium --type=renderer --lang=en", "renderer"),
        ("/opt/x/chrome --type=utility --utility-sub-type=network.mojom.NetworkService", "network"),
        ("/opt/x/chromedriver --port=1", None),
        ("node browsertime https://a.example/?x=--type=renderer", None),
        ("", None),
    ],
)
def test_the_processes_of_a_build_have_their_parts_whatever_they_are_called(
    chrome: Path, command: str, part: str | None
) -> None:
    assert browser_named(one_browser(f"chromium:{chrome}")).part(command) == part


@pytest.mark.parametrize("name", ["", "a-on-b", "a@b", "../x", "chromium", "firefox-esr", "geckodriver", "all"])
def test_a_name_that_other_names_exclude_is_refused(chrome: Path, name: str) -> None:
    with pytest.raises(Misuse, match="cannot be called"):
        chosen_browsers(f"{name}=chromium:{chrome}")


@pytest.mark.parametrize("text", ["/opt/chrome", "chrome:/opt/chrome", "chromium:", "a=/opt/chrome"])
def test_a_text_that_names_no_build_is_answered_with_the_form(text: str) -> None:
    with pytest.raises(Misuse, match="names no browser: write KIND:/path/to/program"):
        chosen_browsers(text)


def test_what_cannot_be_used_is_refused_in_one_line(chrome: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chrome.parent
    other = program(folder / "other", "GNU bash, version 5.2")
    without_right = program(folder / "data", "Chromium 99.1", mode=0o644)
    alone = program(folder.parent / "alone" / "chrome", "Chromium 98.1")
    driver = folder / "chromedriver"
    broken = program(folder / "broken", "")
    for text, why in {
        f"chromium:{folder / 'none'}": "there is no file",
        f"chromium:{folder}": "there is no file",
        f"chromium:{without_right}": "is not chromium: it is not executable",
        f"chromium:{other}": "prints 'GNU bash, version 5.2'",
        f"chromium:{broken}": "--version' fails",
        f"firefox:{chrome}": "is not firefox",
        f"chromium:{alone}:{driver}": f"{alone} has version 98, and its driver {driver} version 99",
        f"chromium:{chrome}:{other}": "is not chromedriver",
        f"chromium:{chrome}:{folder / 'none'}": "there is no file",
    }.items():
        with pytest.raises(EyelevelError) as raised:
            chosen_browsers(text)
        assert why in str(raised.value) and "\n" not in str(raised.value) and "; " in str(raised.value)
    one_browser(f"a=chromium:{chrome}")
    program(folder.parent / "second" / "chromedriver", "ChromeDriver 99.1")
    with pytest.raises(EyelevelError, match="already the browser a="):
        one_browser(f"a=chromium:{program(folder.parent / 'second' / 'chrome', 'Chromium 99.1')}")
    # A page could read the user's other files.
    monkeypatch.setenv("HOME", str(folder))
    with pytest.raises(EyelevelError, match="folder of its own"):
        one_browser(f"b=chromium:{program(folder / 'late', 'Chromium 99.1')}")


@pytest.mark.parametrize("changed", ["chrome", "libmine.so"])
def test_a_campaign_is_resumed_with_its_builds_and_not_with_a_changed_one(
    changed: str, chrome: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browsers = chosen_browsers(f"chromium,mine=chromium:{chrome}")
    programs = digests(["mine"])
    campaign = scripted_campaign(tmp_path, proto="tcp", runs=1, further_browsers=("mine",), programs=programs)
    measured(campaign, SOUND)
    rows = read_rows(campaign.folder)
    assert [row.browser for row in rows if row.folder.endswith("-mine")] == ["mine"] and len(rows) == 2
    # Another process must be given the build again, as by the line that began the campaign.
    document = campaign.document()
    monkeypatch.setenv(VARIABLE, "")
    assert browsers_of_campaign(f"mine=chromium:{chrome},chromium", None, document) == browsers
    assert browsers_of_campaign(None, None, document) == browsers
    # An attempt that was prepared and never begun, in a browser whose name has hyphens.
    unmade = campaign.folder / "runs" / "site" / "lte" / "tcp" / "1-2-mine-on-phone-mid"
    unmade.mkdir()
    measured(campaign, SOUND)
    assert not unmade.exists()
    with (chrome.parent / changed).open("a") as file:
        file.write("# another one\n")
    with pytest.raises(EyelevelError, match=r"other versions: mine sha256 was [0-9a-f]{12}…, is [0-9a-f]{12}…; "):
        measured(replace(campaign, programs=digests(["mine"])), SOUND)
    assert read_rows(campaign.folder) == rows


@pytest.mark.parametrize("options", [("--browser", "chromium"), ()])
def test_no_program_runs_because_a_campaign_names_it(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's package names a program that came with it."""
    evil, mark, results = tmp_path / "with" / "evil", tmp_path / "mark", tmp_path / "results"
    program(evil, "").write_text(f"#!/bin/sh\ntouch {mark}\necho Chromium 99.1\n")
    driver = program(evil.with_name("chromedriver"), "ChromeDriver 99.1")
    monkeypatch.chdir(evil.parent)
    for number, build in enumerate((f"x=chromium:{evil}:{driver}", "x=chromium:./evil")):
        campaign = tmp_path / f"campaign-{number}"
        campaign.mkdir()
        settings = CampaignSettings(browser={"name": "chromium"}, further_browsers={"x": {"build": build}})
        write_document(campaign, CampaignDocument(settings, machine=HERE))
        (campaign / "runs.csv").write_text(header())
        package = write_package(campaign, tmp_path / f"{number}-package", "https://example.org/licence", no_report)
        line = ["campaign", "--results", str(results), "--net", "lte", "--proto", "tcp", *options]
        assert_refused([*line, "--package", str(package)])
        assert not results.exists()
        # Nor a campaign's folder, wherever it says that it was begun.
        resume_from_package(package, results / "p")
        assert_refused([*line, "--campaign", "p"])
        with pytest.raises(Misuse, match="was measured with builds of browsers"):
            Request(tmp_path, document=read_document(results / "p")).browser_names()
        # Commands that read campaigns run no browser.
        for command in ("status", "results", "report", "waterfall") if options else ():
            CliRunner().invoke(eyelevel, [command, str(results / "p")])
        shutil.rmtree(results)
    assert not mark.exists()
    # Its user may name it.
    require_named_builds([{"build": f"x=chromium:{evil}:{driver}"}], f"chromium,x=chromium:{evil}")
    assert mark.exists()


def no_report(folder: Path) -> None:
    (folder / "report").mkdir()


def assert_refused(line: list[str]) -> None:
    outcome = CliRunner().invoke(eyelevel, line)
    assert isinstance(outcome.exception, Misuse), outcome.output
    assert "with builds of browsers: x=chromium:" in str(outcome.exception)
    assert "name each of them with its path in BROWSER" in str(outcome.exception)


def test_a_load_runs_no_build_for_its_version(chrome: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = one_browser(f"mine=chromium:{chrome}")
    monkeypatch.setattr(subprocess, "run", None)
    assert browser_named(name).kind == "chromium"


@pytest.mark.parametrize("folder", ["my builds", "a:b", "a,b"])
def test_a_path_that_cannot_stand_in_a_list_of_browsers_is_refused(
    folder: str, chrome: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chrome.parent.rename(tmp_path / folder)
    monkeypatch.chdir(tmp_path / folder)
    with pytest.raises(Misuse, match="paths of a browser cannot have blanks, commas or colons"):
        one_browser("chromium:./chrome")


def test_a_build_is_not_called_as_a_program_whose_version_is_kept(chrome: Path) -> None:
    one_browser(f"node=chromium:{chrome}")
    with pytest.raises(EyelevelError, match="there is a program node; choose another name"):
        versions((), ["node"])
    # A build on two devices is one program.
    one_browser(f"mine=chromium:{chrome}")
    assert versions((), ["mine", "mine-on-phone-mid"])["mine"].endswith("99.1.2")


def test_an_unknown_browser_is_answered_with_the_form_of_builds() -> None:
    with pytest.raises(Misuse, match=r"'mine': there are .*, all; a build of your own: NAME=KIND:/path/to/program"):
        chosen_browsers("mine")


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_script_in_a_folder_of_its_own_loads_a_page_as_the_browser(tmp_path: Path) -> None:
    script = tmp_path / "build" / "chrome"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {BINARY} {SWITCH} "$@"\n')
    script.chmod(0o755)
    (tmp_path / "link").symlink_to(script)
    loading = Loading(browser=one_browser(f"mine=chromium:{tmp_path / 'link'}"), filmed=False)
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    setting = Setting(site, networks.load()["lte"], protocols.load()["tcp"], loading)
    folder = tmp_path / "load"
    folder.mkdir()
    assert load(setting, folder) is None, (folder / REPLAY_LOG).read_text()
    assert reason_against_page(read_evidence(folder, filmed=False), setting) is None
    with gzip.open(folder / browser_named("mine").network_log, "rt") as log:
        assert SWITCH in log.readline()
