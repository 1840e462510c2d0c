"""A recorded page reaches only public servers, whatever it tries, and nothing from its neighbours gets into the
site."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from clients.neighbours import ATTEMPTS, LAN, MACHINE, METADATA, UNIQUE_LOCAL
from rich.console import Console

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT
from eyelevel.answer.progress import Progress
from eyelevel.answer.recording import Recorder
from eyelevel.program import program
from record.recorder.addresses import AddressPolicy, AddressSpace, Guard, address_space, policy_for
from record.recorder.spec import RecordSpec
from record.recorder.targets import Target
from record.site import Site

NEIGHBOURS = PROJECT / "tests" / "clients" / "neighbours.py"


@dataclass(frozen=True)
class Recorded:
    """The site of the page that tries, and what arrived at its neighbours: lines by address."""

    site: Site
    arrivals: dict[str, list[str]]


def recorded(folder: Path, *options: str) -> Recorded:
    command = [*namespaced("net", "mount"), sys.executable, NEIGHBOURS, folder]
    command += [sys.executable, "-m", "eyelevel", "record", "http://evil.example/", "--into", folder, *options]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    arrivals: dict[str, list[str]] = {}
    for line in (folder / "arrivals").read_text().splitlines():
        address, _, request = line.partition(" ")
        arrivals.setdefault(address, []).append(request)
    return Recorded(Site.load(folder / "evil.example"), arrivals)


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_public_page_reaches_nothing_that_is_not_public(tmp_path: Path) -> None:
    result = recorded(tmp_path)
    assert result.arrivals == {}
    assert {e.url for e in result.site.exchanges} >= {"https://evil.example/", "https://evil.example/done"}
    assert set(result.site.addresses) == {"evil.example"}
    refusals = [line for line in result.site.skipped if "--allow-private" in line]
    refusal = f"{LAN} is a private address, which a page may reach with --allow-private only"
    assert {f"GET http://{LAN}/: {refusal}", f"POST http://lan.example/post: {refusal}"} <= set(refusals)
    assert len(refusals) >= len(ATTEMPTS)


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_with_the_user_s_leave_it_reaches_all_that_it_tries(tmp_path: Path) -> None:
    result = recorded(tmp_path, "--allow-private")
    assert set(result.arrivals) >= {"127.0.0.1", "127.8.9.10", "::1", MACHINE, LAN, METADATA, UNIQUE_LOCAL}
    assert "GET /redirected HTTP/1.1" in result.arrivals["127.0.0.1"]
    assert {"POST /post HTTP/1.1", "GET /socket HTTP/1.1"} <= set(result.arrivals[LAN])
    assert "lan.example" in result.site.addresses


@pytest.mark.parametrize(
    ("address", "space"),
    [
        ("93.184.216.34", AddressSpace.PUBLIC),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", AddressSpace.PUBLIC),
        ("127.0.0.1", AddressSpace.LOOPBACK),
        ("127.255.0.7", AddressSpace.LOOPBACK),
        ("0.0.0.0", AddressSpace.LOOPBACK),
        ("::", AddressSpace.LOOPBACK),
        ("::1", AddressSpace.LOOPBACK),
        ("::ffff:127.0.0.1", AddressSpace.LOOPBACK),
        ("::127.0.0.1", AddressSpace.LOOPBACK),
        ("64:ff9b::7f00:1", AddressSpace.LOOPBACK),
        ("2002:7f00:1::", AddressSpace.LOOPBACK),
        ("10.1.2.3", AddressSpace.PRIVATE),
        ("172.16.0.1", AddressSpace.PRIVATE),
        ("192.168.178.1", AddressSpace.PRIVATE),
        ("100.100.100.200", AddressSpace.PRIVATE),
        ("192.0.0.192", AddressSpace.PRIVATE),
        ("198.18.0.1", AddressSpace.PRIVATE),
        ("224.0.0.251", AddressSpace.PRIVATE),
        ("255.255.255.255", AddressSpace.PRIVATE),
        ("fd00:ec2::254", AddressSpace.PRIVATE),
        ("fec0::1", AddressSpace.PRIVATE),
        ("ff02::1", AddressSpace.PRIVATE),
        ("64:ff9b:1::a00:1", AddressSpace.PRIVATE),
        ("::ffff:10.0.0.1", AddressSpace.PRIVATE),
        ("169.254.169.254", AddressSpace.LINK_LOCAL),
        ("168.63.129.16", AddressSpace.LINK_LOCAL),
        ("fe80::1%lo", AddressSpace.LINK_LOCAL),
        ("64:ff9b::a9fe:a9fe", AddressSpace.LINK_LOCAL),
    ],
)
def test_the_space_of_an_address_is_known_in_each_of_its_forms(address: str, space: AddressSpace) -> None:
    assert address_space(address) is space


@pytest.mark.parametrize(
    ("url", "is_named"),
    [
        ("http://127.0.0.1:8000/", True),
        ("http://[fd00::1]/", True),
        ("https://localhost/", True),
        ("http://shop.localhost:3000/", True),
        ("http://Mine.Test/", True),
        ("http://name.example/", False),
        ("http://127.0.0.1.example/", False),
        ("http://localhost.example/", False),
        ("http://commented.test/", False),
    ],
)
def test_a_private_page_is_asked_for_by_an_address_or_a_name_of_this_machine_s_own(
    url: str, *, is_named: bool, tmp_path: Path
) -> None:
    """A stranger's list of pages may contain a name of his own that resolves to 127.0.0.1."""
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n10.0.0.1\tmine.test other # commented.test\n")
    policy = AddressPolicy.SAME_SPACE if is_named else AddressPolicy.PUBLIC
    assert policy_for(url, allow_private=False, hosts=tmp_path / "hosts") is policy
    assert policy_for(url, allow_private=True, hosts=tmp_path / "nonesuch") is AddressPolicy.ALL


@pytest.mark.parametrize("url", ["http://name.example/", "http://127.0.0.1/"])
def test_both_commands_that_record_open_private_addresses_to_pages_that_are_named_so_alone(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs: list[RecordSpec] = []

    def note(spec: RecordSpec) -> bool:
        specs.append(spec)
        return False

    monkeypatch.setattr("record.recorder.sandbox.run", note)
    CliRunner().invoke(program, ["record", url, "--into", str(tmp_path)])
    with pytest.raises(EyelevelError):
        Recorder(tmp_path, None, allow_private=False).recorded(
            Target("page", url), None, Progress(Console(quiet=True), is_limited=False)
        )
    assert [spec.address_policy for spec in specs] == [policy_for(url, allow_private=False)] * 2


def test_the_page_s_own_space_is_that_of_the_first_connection() -> None:
    guard = Guard(AddressPolicy.SAME_SPACE)
    # The page's name may have several addresses, the first of which does not answer.
    assert guard.refusal("127.0.0.1") is None
    guard.connected("93.184.216.34")
    assert "127.0.0.1 is a loopback address" in str(guard.refusal("127.0.0.1"))
    of_local_page = Guard(AddressPolicy.SAME_SPACE)
    of_local_page.connected("10.0.0.1")
    of_local_page.connected("127.0.0.1")
    assert of_local_page.refusal("10.9.9.9") is None and of_local_page.refusal("93.184.216.34") is None
    assert of_local_page.refusal("127.0.0.1") and of_local_page.refusal("169.254.169.254")


def test_what_is_fetched_for_a_site_may_come_from_public_addresses_only() -> None:
    guard = Guard(AddressPolicy.PUBLIC)
    assert guard.refusal("10.0.0.1") and guard.refusal("127.0.0.1")
    assert guard.refusal("93.184.216.34") is None
    assert Guard(AddressPolicy.ALL).refusal("127.0.0.1") is None
