"""A user names a build of a browser by its path: what is refused, under which name it is measured, and that a changed
one is noticed."""

import gzip
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from support.scripted import SOUND, measured, scripted_campaign

from base.errors import EyelevelError, Misuse
from base.programs import digest_of_program
from browsers.builds import VARIABLE
from browsers.chromium.program import BINARY
from browsers.registry import all_browsers, browser_named, browser_of, chosen_browsers, one_browser
from dataset.run_files import REPLAY_LOG
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, read_rows, write_document
from eyelevel.commands.campaign import chosen_browsers as browsers_of_campaign
from measure.campaign.method import claim
from measure.campaign.resuming import require_named_builds
from measure.host.machine import digests
from measure.run.evidence import read_evidence
from measure.run.gates import reason_against
from measure.run.load import load
from measure.run.setting import Loading, Setting
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

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


@pytest.mark.parametrize("name", ["", "a-on-b", "a@b", "../x", "chromium", "all"])
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
        f"chromium:{without_right}": "is no chromium: it is not executable",
        f"chromium:{other}": "prints 'GNU bash, version 5.2'",
        f"chromium:{broken}": "--version' fails",
        f"firefox:{chrome}": "is no firefox",
        f"chromium:{alone}:{driver}": f"{alone} has version 98, and its driver {driver} version 99",
        f"chromium:{chrome}:{other}": "is no chromedriver",
        f"chromium:{chrome}:{folder / 'none'}": "there is no such file",
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
    # Another process knows the build from the campaign alone.
    document = campaign.document()
    monkeypatch.setenv(VARIABLE, "")
    assert browsers_of_campaign(None, None, document) == browsers
    assert browsers_of_campaign("mine,chromium", None, document) == browsers
    # An attempt that was prepared and never begun, in a browser whose name has hyphens.
    unmade = campaign.folder / "runs" / "site" / "lte" / "tcp" / "1-2-mine-on-phone-mid"
    unmade.mkdir()
    measured(campaign, SOUND)
    assert not unmade.exists()
    with (chrome.parent / changed).open("a") as file:
        file.write("# another one\n")
    digest_of_program.cache_clear()
    with pytest.raises(EyelevelError, match=r"other versions: mine sha256 was [0-9a-f]{12}…, is [0-9a-f]{12}…; "):
        measured(replace(campaign, programs=digests(["mine"])), SOUND)
    assert read_rows(campaign.folder) == rows


def test_a_package_names_no_program_that_its_reader_has_not_named(tmp_path: Path) -> None:
    settings = CampaignSettings(browser={"name": "x", "build": "x=chromium:/opt/x:/opt/driver"})
    write_document(tmp_path, CampaignDocument(settings))
    with pytest.raises(Misuse, match="x=chromium:/opt/x:/opt/driver; name all its browsers with BROWSER"):
        require_named_builds(tmp_path)


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
    assert reason_against(read_evidence(folder, filmed=False), claim(setting)) is None
    with gzip.open(folder / browser_named("mine").network_log, "rt") as log:
        assert SWITCH in log.readline()
