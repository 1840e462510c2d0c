"""Page scripts: their steps run when a page is recorded and in each load of the site, and no secret value is kept."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from clients.origin import HOSTS
from support.campaigns import reason_against_page

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT, cache_dir
from browsers.browsertime.configuration import QUIET_MS
from dataset.run_files import REPLAY_EVIDENCE
from measure.run.evidence import Evidence, read_evidence
from measure.run.load import load
from measure.run.setting import Loading, Setting
from measure.sites.completeness import requested_urls
from record.http1 import Headers, Response
from record.layout import PAGE_SCRIPT
from record.page_script import PLACEHOLDER, SCRIPT_BYTES, placeholders, read_page_script, values_of
from record.recorder.filled_values import filled_in
from record.site import Exchange, Recording, Site, write_site
from servers.certificates import machine_ca_certificate
from tuning import networks, protocols

HOST = "www.origin.example"
ORIGIN = PROJECT / "tests" / "clients" / "origin.py"
WWW, API = "https://www.origin.example", "https://api.other.example"
SECRETS = {"TEST_USER": "visitor+1@origin.example", "TEST_PASSWORD": "s3cret & more"}
SCRIPT = """
await click("#host >>> .accept");
await gone("#banner");
await fill("#user", env.TEST_USER);
await fill("#password", env.TEST_PASSWORD);
await click("#in");
await wait("#login img");
"""
STEPS = ["click #host >>> .accept", "gone #banner", "fill #user", "fill #password", "click #in", "wait #login img"]


@dataclass(frozen=True)
class Recorded:
    """The result of a recording."""

    folder: Path
    status: int
    messages: str

    @property
    def site(self) -> Site:
        return Site.load(self.folder / "sites" / "origin.example")


def record(folder: Path, script: str, secrets: dict[str, str]) -> Recorded:
    """Record the page with the banner, with `script`."""
    (folder / "steps.mjs").write_text(script)
    options: list[str | Path] = [
        "--script",
        folder / "steps.mjs",
        "--origin-ca",
        machine_ca_certificate(),
        "--into",
        folder / "sites",
    ]
    recorder = [sys.executable, "-m", "eyelevel", "record", f"{WWW}/consent.html", *options]
    command: list[str | Path] = [*namespaced("net", "mount"), sys.executable, ORIGIN, folder, *recorder]
    environment = {**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT), **secrets}
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return Recorded(folder, completed.returncode, completed.stdout + completed.stderr)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The page, recorded with all steps."""
    return record(tmp_path_factory.mktemp("consent"), SCRIPT, SECRETS)


@pytest.mark.needs_namespaces
def test_steps_are_made_while_a_page_is_recorded_in_frames_of_other_sites_too(recorded: Recorded) -> None:
    assert recorded.status == 0, recorded.messages
    requests = {(exchange.method, exchange.url) for exchange in recorded.site.exchanges}
    assert requests == {
        ("GET", f"{WWW}/consent.html"),
        ("GET", f"{API}/banner.html"),
        ("POST", f"{WWW}/streamed?{len(SECRETS['TEST_PASSWORD'])}"),
        ("GET", f"{WWW}/photo.png"),
        ("GET", f"{WWW}/favicon.ico"),
    }
    assert recorded.site.page_script == SCRIPT


@pytest.mark.needs_namespaces
def test_no_value_that_a_script_fills_in_is_kept(recorded: Recorded) -> None:
    files = [path for path in recorded.site.folder.rglob("*") if path.is_file()]
    kept = b"".join(path.read_bytes() for path in files)
    assert b"origin.example" in kept
    for value in ("visitor", "s3cret"):
        assert value.encode() not in kept and value not in recorded.messages
    left_out = f"GET {WWW}/streamed: it has the value of TEST_USER, which is not kept"
    assert left_out in recorded.site.skipped


@pytest.mark.needs_namespaces
@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("await click(", "the page script is invalid: the browser says: javascript error"),
        ("throw new Error('no such step')", "the page script failed: Error: no such step"),
    ],
    ids=["no script", "an error"],
)
def test_a_script_that_cannot_be_run_ends_the_recording_with_its_reason(
    tmp_path: Path, script: str, fault: str
) -> None:
    (tmp_path / "sites").mkdir()
    failed = record(tmp_path, script, {})
    assert failed.status != 0
    assert fault in failed.messages
    assert not (tmp_path / "sites" / "origin.example").exists()


def exchange(url: str = f"{WWW}/", fields: Headers = (), body: bytes = b"<!doctype html><title>A</title>") -> Exchange:
    """The exchange of the page, or of another `url`."""
    return Exchange("GET", url, Response(200, "OK", (("Content-Type", "text/html"), *fields), body), HOSTS[HOST])


def scripted(recorded: Recorded, folder: Path, script: str) -> Site:
    return write_site(replace(recorded.site.recording(), page_script=script), folder / "site")


def load_once(site: Site, folder: Path, protocol: str) -> tuple[Setting, Evidence]:
    loading = Loading(repeatable=True, filmed=False, quiet_ms=QUIET_MS)
    setting = Setting(site, networks.load()["dsl"], protocols.load()[protocol], loading)
    folder.mkdir(exist_ok=True)
    assert load(setting, folder) is None
    return setting, read_evidence(folder, filmed=False)


def requests_of_steps(folder: Path, evidence: Evidence) -> bool:
    """Whether the page in the load in `folder` requested what it requests after the steps."""
    requests = {request.url for request in requested_urls(folder, evidence.requests)}
    return {f"{WWW}/photo.png", f"{WWW}/streamed?{len(PLACEHOLDER)}"} <= requests


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_the_same_steps_are_made_in_each_load_with_stand_ins_for_values(recorded: Recorded, tmp_path: Path) -> None:
    setting, evidence = load_once(recorded.site, tmp_path, "quic")
    assert evidence.script is not None
    assert [step for step, _ in evidence.script["steps"]] == STEPS
    assert reason_against_page(evidence, setting) is None
    assert requests_of_steps(tmp_path, evidence)
    scripts = json.loads((tmp_path / REPLAY_EVIDENCE).read_text())["scripts"]
    assert scripts["page_script"]["documents"] == 3  # the page, its frame, and the 404 of its icon


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_load_whose_script_has_not_ended_does_not_count(recorded: Recorded, tmp_path: Path) -> None:
    site = scripted(recorded, tmp_path, f'{SCRIPT}await wait("#never");')
    setting, evidence = load_once(site, tmp_path / "load", "tcp")
    assert evidence.script is not None
    assert [step for step, _ in evidence.script["steps"]] == STEPS
    assert requests_of_steps(tmp_path / "load", evidence)
    reason = reason_against_page(evidence, setting)
    assert reason is not None
    assert reason.gate == "page_script_unfinished"
    assert f"it did {', '.join(STEPS)}" in reason.text


def test_a_site_keeps_its_script(tmp_path: Path) -> None:
    page = exchange()
    site = write_site(Recording(page.url, (page,), {"tool": "test"}, page_script=SCRIPT), tmp_path / "site")
    assert (site.folder / PAGE_SCRIPT).read_text() == SCRIPT
    copy = write_site(site.recording(), tmp_path / "copy")
    assert copy.page_script == SCRIPT
    without = write_site(Recording(page.url, (page,), {"tool": "test"}), tmp_path / "without")
    assert without.page_script is None


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"x" * (SCRIPT_BYTES + 1), "longer than"),
        (b"a\xff", "is not UTF-8: its byte 1 is not"),
        (b"'</SCRIPT>'", "has </SCRIPT, which cannot be in a script of HTML"),
    ],
    ids=["too long", "no UTF-8", "the end of an element"],
)
def test_what_cannot_be_put_into_a_page_is_no_script(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "steps.mjs"
    path.write_bytes(content)
    with pytest.raises(EyelevelError, match=fault):
        read_page_script(path)


def test_values_are_those_of_the_environment_and_stand_ins_in_loads() -> None:
    assert values_of(SCRIPT, {**SECRETS, "OTHER": "kept out"}) == SECRETS
    assert placeholders(SCRIPT) == dict.fromkeys(SECRETS, PLACEHOLDER)
    for environment in ({}, {**SECRETS, "TEST_USER": "abc"}):
        with pytest.raises(EyelevelError, match="fills in TEST_USER"):
            values_of(SCRIPT, environment)


@pytest.mark.parametrize(
    "leak",
    [
        exchange(f"{WWW}/?as=visitor%2B1%40origin.example"),
        exchange(f"{WWW}/?as=visitor%2B1@origin.example"),
        exchange(fields=(("Location", "/of/s3cret%20%26%20more"),)),
        exchange(fields=(("Location", "/?is=s3cret+%26+more"),)),
        exchange(body=b"Hello visitor+1@origin.example"),
        exchange(fields=(("Content-Encoding", "gzip"),), body=gzip.compress(b"s3cret & more")),
        replace(exchange(), request_headers=(("Referer", f"{WWW}/?visitor+1@origin.example"),)),
    ],
    ids=["URL", "URL, less encoded", "a field", "a form in a field", "body", "packed body", "referrer"],
)
def test_a_value_is_found_wherever_it_is(leak: Exchange) -> None:
    assert filled_in(leak, SECRETS) in SECRETS
    assert filled_in(leak, {}) is None
    assert filled_in(exchange(), SECRETS) is None
