"""A campaign that cannot be measured is refused in one line before anything is measured."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from base.errors import EyelevelError
from eyelevel.commands import import_
from eyelevel.program import program
from eyelevel.requirements import require_networks, require_one_protocol
from measure.campaign.campaign import Campaign
from measure.campaign.method import PAGES
from record.demo import generate
from record.layout import INDEX
from record.site import write_site
from studies.states.measure import StatesMethod
from tuning import networks, protocols


@pytest.mark.parametrize("name", ["lte", "delay10"])
def test_a_server_that_cannot_serve_on_a_network_is_named_beforehand(name: str, tmp_path: Path) -> None:
    chosen = {one: protocols.load()[one] for one in ("tcp", "caddy-h3")}
    campaign = Campaign(tmp_path, {}, {name: networks.load()[name]}, chosen, runs=1, seed=1)
    if name == "lte":
        require_networks(campaign)
        return
    with pytest.raises(EyelevelError, match=f"^caddy-h3: caddy's QUIC can lose half of .* as that of {name}$"):
        require_networks(campaign)
    assert not list(tmp_path.iterdir())


def test_a_study_of_single_protocols_refuses_servers_that_speak_two(tmp_path: Path) -> None:
    chosen = {"deployed-cold": protocols.load()["deployed-cold"]}
    campaign = Campaign(tmp_path, {}, {"lte": networks.load()["lte"]}, chosen, runs=1, seed=1, method=PAGES)
    require_one_protocol(campaign)
    with pytest.raises(EyelevelError, match="the servers of deployed-cold speak h2 and h3, which only"):
        require_one_protocol(replace(campaign, method=StatesMethod()))


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_results_that_cannot_be_written_are_refused_before_anything_is_validated(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = ["--net", "dsl", "--proto", "tcp", "--sites", "demo-light", "--runs", "1", "--campaign", "c"]
    done = CliRunner().invoke(program, ["campaign", *options, "--results", str(tmp_path / "file" / "results")])
    text = f"{tmp_path}/file/results cannot be written (Not a directory); --results names another folder"
    assert str(done.exception) == text
    assert "measuring" not in done.output


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.parametrize("command", ["campaign", "validate"])
def test_a_congestion_control_that_the_kernel_lacks_is_refused_before_anything_is_measured(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "protocols.toml").write_text('[nonesuch]\nlike = "tcp"\ncongestion_control = "nonesuch"\n')
    monkeypatch.setenv("EYELEVEL_TUNING", str(tmp_path))
    options = ["--net", "dsl", "--sites", "demo-light", "--campaign", "c", "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(program, [command, "--proto", "nonesuch", *(options if command == "campaign" else [])])
    assert "nonesuch needs the congestion control nonesuch" in str(done.exception)
    assert "\n" not in str(done.exception) and not (tmp_path / "results").exists()


def test_a_mistyped_recording_is_answered_with_the_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "www.yelp.com").mkdir()
    done = CliRunner().invoke(program, ["import", str(tmp_path / "www.yelp.con")])
    meant = f"did you mean {tmp_path}/www.yelp.com?"
    assert str(done.exception) == f"there is no recording at {tmp_path}/www.yelp.con; {meant}"


@pytest.mark.skipif(os.geteuid() != 0, reason="need root (only root gives files away)")
def test_an_imported_site_belongs_to_who_used_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1234")
    recording = write_site(generate("demo-light"), tmp_path / "recording")
    monkeypatch.setattr(import_, "site_folder", (tmp_path / "sites").joinpath)
    monkeypatch.setattr(import_, "SITES", tmp_path / "sites")
    assert CliRunner().invoke(program, ["import", str(recording.folder), "--name", "shop"]).exit_code == 0
    folder = tmp_path / "sites"
    assert {path.stat().st_uid for path in (folder, *folder.rglob("*"))} == {1234}


def test_an_import_does_not_replace_a_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = write_site(generate("demo-light"), tmp_path / "recording")
    monkeypatch.setattr(import_, "site_folder", (tmp_path / "sites").joinpath)
    command = ["import", str(recording.folder), "--name", "shop"]
    first = CliRunner().invoke(program, command)
    assert first.stderr.splitlines()[-1] == "next: make answer SITE=shop"
    before = (tmp_path / "sites" / "shop" / INDEX).read_bytes()
    done = CliRunner().invoke(program, command)
    assert str(done.exception) == f"{tmp_path}/sites/shop exists; name the new site with NAME=, or remove it"
    assert (tmp_path / "sites" / "shop" / INDEX).read_bytes() == before
