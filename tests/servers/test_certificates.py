"""The machine's CA: its key matches its certificate, even if several processes make it, or one is killed while doing
so."""

import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from base.errors import EyelevelError
from base.files import write_private
from base.places import PROJECT, ca_certificate
from servers.certificate_authority import CertificateAuthority, certificate_pem, private_pem
from servers.certificates import machine_ca

# Reports that it is ready, waits for the others, and prints the serial number of its CA.
STARTER = """
import sys
from servers.certificates import machine_ca
print("there", flush=True)
sys.stdin.read(1)
print(machine_ca().certificate.serial_number)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    return tmp_path / "cache"


def assert_sound(one: CertificateAuthority) -> None:
    certificate = x509.load_pem_x509_certificate(ca_certificate().read_bytes())
    key_path = ca_certificate().with_name("key.pem")
    key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
    assert certificate == one.certificate
    assert key.public_key() == certificate.public_key() == one.key.public_key()
    assert stat.S_IMODE(key_path.stat().st_mode) == 0o600


def test_a_ca_is_made_once() -> None:
    assert_sound(first := machine_ca())
    assert machine_ca().certificate == first.certificate


def test_a_key_that_is_not_the_certificates_is_replaced_with_it(cache: Path) -> None:
    first = machine_ca()
    (cache / "ca").rename(cache / "other")
    second = machine_ca()
    (cache / "other" / "key.pem").replace(cache / "ca" / "key.pem")
    assert_sound(third := machine_ca())
    assert len({one.certificate.serial_number for one in (first, second, third)}) == 3


@pytest.mark.parametrize("name", ["key.pem", "certificate.pem"])
@pytest.mark.parametrize("length", [0, 100, None])
def test_what_a_stop_left_half_is_made_anew(cache: Path, name: str, length: int | None) -> None:
    first = machine_ca()
    path = cache / "ca" / name
    if length is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:length])
    assert_sound(second := machine_ca())
    assert second.certificate != first.certificate


@pytest.mark.parametrize(("days", "is_renewed"), [(13, True), (15, False)])
def test_a_ca_that_runs_out_is_made_anew(cache: Path, days: int, is_renewed: bool) -> None:
    first = CertificateAuthority.new("first", timedelta(days=days))
    (cache / "ca").mkdir(parents=True)
    write_private(cache / "ca" / "key.pem", private_pem(first.key))
    (cache / "ca" / "certificate.pem").write_bytes(certificate_pem(first.certificate))
    assert_sound(second := machine_ca())
    assert (second.certificate != first.certificate) is is_renewed


@pytest.mark.slow
def test_of_many_that_start_at_once_all_have_the_same(cache: Path) -> None:
    command = [sys.executable, "-c", STARTER]
    starters = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for starter in starters:
        assert starter.stdout and starter.stdout.readline() == "there\n"
    for starter in starters:
        assert starter.stdin
        starter.stdin.write("\n")
        starter.stdin.flush()
    numbers = {starter.communicate()[0] for starter in starters}
    assert numbers == {f"{machine_ca().certificate.serial_number}\n"}
    assert sorted(path.name for path in cache.iterdir()) == ["ca", "ca.lock"]


def test_a_cache_that_is_not_ours_is_told_in_one_line(cache: Path) -> None:
    machine_ca()
    (cache / "ca" / "key.pem").unlink()
    (cache / "ca" / "key.pem").mkdir()
    with pytest.raises(
        EyelevelError, match=r"key\.pem cannot be read \(.*\); if it is another user's, set EYELEVEL_CACHE"
    ):
        machine_ca()
    (cache / "ca" / "key.pem").rmdir()
    (cache / "ca.lock").unlink()
    (cache / "ca.lock").mkdir()
    with pytest.raises(EyelevelError, match=r"ca cannot be written \(.*\); if it is another user's"):
        machine_ca()
