"""Programs of the user's as servers: what is refused, how they start, and the two examples."""

import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.level import differences
from support.scripted import one_page

from base.errors import EyelevelError
from base.places import PROJECT
from base.processes import running
from eyelevel.requirements import require_programs
from measure.campaign.campaign import Campaign
from measure.campaign.results import opened, require_resumable
from measure.host.machine import version_of
from record.http1 import Response
from record.site import Exchange, Recording, write_site
from record.urls import normal_url
from servers.program import await_listening, readable
from servers.registry import programs_of, require_served
from tuning import networks, protocols
from tuning.protocols import Protocol
from tuning.settings import USER_FOLDER

EXAMPLES = PROJECT / "examples" / "servers"
OWN = 'like = "tcp+"\nprogram = ["./mine"]\n'


def protocol(folder: Path, script: str, table: str = OWN) -> Protocol:
    """The protocol of a program with this `script` of the shell."""
    folder = folder / "own"
    folder.mkdir(exist_ok=True)
    program = folder / "mine"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    file = folder / "protocols.toml"
    file.write_text(f"[mine]\n{table}")
    return protocols.load(file)["mine"]


def campaign(folder: Path, *over: Protocol) -> Campaign:
    site = folder / "site"
    sites = {"site": one_page(site)}
    return Campaign(
        folder / "results" / "own", sites, {"lte": networks.load()["lte"]}, {one.name: one for one in over}, 1, 1
    )


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (
            'like = "tcp+"\nprogram = ["./mine", "{adress}"]',
            "unknown placeholder {adress}; there are {address},",
        ),
        ('like = "tcp+"\nprogram = []', "program must be a list of words"),
        ('like = "tcp+"\nprogram_version = "-v"', "program_version is for a program"),
        ('like = "tcp+"\nprogram = ["mine"]', "begins with /, ./, ../ or ~/, unlike 'mine'"),
        ('like = "tcp+"\nprogram = ["./nothing"]', "there is no program"),
        ('like = "tcp+"\nprogram = ["./protocols.toml"]', "protocols.toml is not executable; run chmod"),
        (f"{OWN}early_data = true", "early_data is not for a program of your own"),
        (f'{OWN}tls_group = "P-256"', "tls_group of a program of your own must be X25519"),
        (f"{OWN}tls_record_bytes = 4096", "tls_record_bytes is not for a program of your own"),
        (f'{OWN}server = "nginx"', "nginx is a server of the testbed; give the program another name"),
    ],
)
def test_what_is_wrong_with_a_program_is_said_in_one_line(table: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError) as raised:
        require_served([protocol(tmp_path, "", table)])
    assert fault in str(raised.value) and "mine" in str(raised.value) and "\n" not in str(raised.value)


def test_a_program_is_named_after_its_file_and_words_are_paths_from_the_file_of_settings(tmp_path: Path) -> None:
    table = 'like = "quic"\nconnection_options = []\nprogram = ["~/x", "../y", "--z=./z"]'
    mine = protocol(tmp_path, "", table)
    assert mine.program == (str(Path.home() / "x"), str(tmp_path / "y"), "--z=./z")
    assert (mine.server, protocols.load()["quic"].server) == ("x", "quic_server")


def test_a_changed_program_has_another_version_and_its_campaign_is_not_resumed(tmp_path: Path) -> None:
    table = f'{OWN}program_version = "--version"'
    mine = protocol(tmp_path, "echo mine 1.0", table)
    path = str(tmp_path / "own" / "mine")
    assert programs_of([mine]) == {"uwsgi": "--version", path: "--version"}
    assert version_of(path, "--version").startswith("mine 1.0, SHA-256 ")
    begun = campaign(tmp_path, mine)
    begun.folder.parent.mkdir()
    with opened(begun.folder, replace(begun.document(), machine={})):
        pass
    require_resumable(begun.folder, begun.document())
    protocol(tmp_path, "echo mine 1.0 # rebuilt", table)
    with pytest.raises(EyelevelError, match=f"begun with other versions: {path} was mine 1.0, SHA-256 .*, is mine"):
        require_resumable(begun.folder, begun.document())


def test_a_program_of_two_protocols_prints_its_version_in_whichever_order_they_stand(tmp_path: Path) -> None:
    one = protocol(tmp_path, "", f'{OWN}program_version = "--version"')
    other = replace(one, name="other", program_version=None)
    known = {"uwsgi": "--version", str(tmp_path / "own" / "mine"): "--version"}
    assert programs_of([one, other]) == programs_of([other, one]) == known


def test_a_version_that_a_program_does_not_print_is_to_be_corrected(tmp_path: Path) -> None:
    path = str(tmp_path / "own" / "mine")
    protocol(tmp_path, "")
    with pytest.raises(EyelevelError, match="mine -v prints no version; correct or remove program_version"):
        version_of(path, "-v")


def test_a_jail_gets_a_file_alone_from_the_home_of_who_called_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = protocol(tmp_path, "")
    assert readable(mine) == [tmp_path / "own"]
    monkeypatch.setattr("base.jail.pwd.getpwuid", lambda _: SimpleNamespace(pw_dir=str(tmp_path / "own" / "u")))
    monkeypatch.setenv("SUDO_UID", "1234")
    assert readable(mine) == [tmp_path / "own" / "mine"]


@pytest.mark.needs_namespaces
@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("echo ready; echo no such option: -x >&2; exit 3", "mine: mine ended with status 3: no such option: -x"),
        ("echo no HTTP/2 here; exit 127", "mine: unsupported: mine ended with status 127: no HTTP/2 here"),
    ],
)
def test_a_program_that_ends_is_refused_before_anything_is_measured(script: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError) as raised:
        require_programs(campaign(tmp_path, protocols.load()["tcp"], protocol(tmp_path, script)))
    assert str(raised.value) == fault


def test_a_program_that_never_listens_is_said_with_the_end_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("waiting for Godot\n")
    fault = "nothing listens at 127.0.0.1:1 over TCP after 0.1 s; mine does not answer: waiting for Godot"
    with running("mine", ["sleep", "infinity"], log) as mine, pytest.raises(EyelevelError, match=fault):
        await_listening(mine, ("127.0.0.1", 1), socket.SOCK_STREAM, timeout_s=0.1)


@pytest.mark.needs_namespaces
@pytest.mark.parametrize("name", ["example-h3", pytest.param("example-h2", marks=pytest.mark.needs_go)])
def test_an_example_answers_as_the_other_servers_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(EXAMPLES, tmp_path / "servers")
    settings = folder / "protocols.toml"
    settings.write_text(settings.read_text().replace("~/.cache/eyelevel/venv/bin/python", sys.executable))
    monkeypatch.setenv(USER_FOLDER, str(folder))
    if name == "example-h2":
        subprocess.run(["go", "build", "-o", "h2_server", "h2_server.go"], cwd=folder, check=True)
    exchanges = (
        exchange("a.example/", ("Content-Type", "text/html")),
        exchange("a.example/|?a|b=%zz;c", ("Pragma", "no-cache")),
        exchange("a.example:8443/", ("Content-Type", "text/plain"), body=b"x" * 300_000),
        exchange("b.example/", ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), address="192.0.2.2"),
    )
    site = write_site(Recording(exchanges[0].url, exchanges, {"tool": "test"}), tmp_path / "site")
    assert differences(site, tmp_path, ("tcp", name)) == []


def exchange(place: str, *headers: tuple[str, str], body: bytes = b"body", address: str = "192.0.2.1") -> Exchange:
    return Exchange("GET", normal_url(f"https://{place}"), Response(200, "", headers, body), address)
