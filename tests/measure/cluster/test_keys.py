"""Only the caller can read a cluster's keys, and all belong together; unusable keys are refused with a remedy."""

import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509

from base.errors import EyelevelError
from eyelevel.commands.cluster_keys import main
from measure.cluster.keys import Role, keys_of, make_keys


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_keys(tmp_path / "cluster")
    return tmp_path / "cluster"


def test_each_role_has_all_that_it_needs_and_nobody_else_can_read_it(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {"ca.pem", "certificate.pem", "key.pem"}
    assert {str(path.relative_to(folder)) for path in files} == {f"{role}/{name}" for role in Role for name in names}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *(folder / role for role in Role))} == {0o700}


def test_keys_are_never_readable_by_others_whatever_the_umask(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        make_keys(tmp_path / "cluster")
    finally:
        os.umask(mask)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cluster").rglob("*")}
    assert modes == {0o600, 0o700}


def test_the_two_certificates_are_of_one_authority_whose_own_key_is_not_kept(folder: Path) -> None:
    head, worker = keys_of(Role.HEAD, folder), keys_of(Role.WORKER, folder)
    assert head.ca.read_bytes() == worker.ca.read_bytes()
    assert head.key.read_bytes() != worker.key.read_bytes()
    ca = x509.load_pem_x509_certificate(head.ca.read_bytes())
    for certificate in (head.certificate, worker.certificate):
        x509.load_pem_x509_certificate(certificate.read_bytes()).verify_directly_issued_by(ca)
    assert len(list(folder.rglob("*key*"))) == 2


def test_keys_that_are_there_are_replaced_only_by_renewal(folder: Path) -> None:
    before = keys_of(Role.WORKER, folder).key.read_bytes()
    with pytest.raises(EyelevelError, match="there are keys already in"):
        make_keys(folder)
    assert keys_of(Role.WORKER, folder).key.read_bytes() == before
    make_keys(folder, renew=True)
    assert keys_of(Role.WORKER, folder).key.read_bytes() != before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_keys_that_cannot_be_used_are_refused_with_what_to_do(folder: Path, tmp_path: Path) -> None:
    worker = keys_of(Role.WORKER, folder)
    worker.key.chmod(0o640)
    with pytest.raises(EyelevelError, match=r"may be read by others \(mode 0640\); make it yours alone: chmod 600"):
        keys_of(Role.WORKER, folder)
    worker.key.chmod(0o600)
    make_keys(tmp_path / "other")
    for name in ("ca.pem", "certificate.pem", "key.pem"):
        content = (folder / "worker" / name).read_bytes()
        (folder / "worker" / name).write_bytes((tmp_path / "other" / "worker" / name).read_bytes())
        with pytest.raises(EyelevelError, match=r"worker are broken \(.+\); copy them again"):
            keys_of(Role.WORKER, folder)
        (folder / "worker" / name).write_bytes(content)
    worker.certificate.write_bytes(b"nothing")
    with pytest.raises(EyelevelError, match=r"worker are broken \(.+\); copy them again"):
        keys_of(Role.WORKER, folder)
    worker.certificate.unlink()
    with pytest.raises(
        EyelevelError, match=r"certificate\.pem is missing; 'eyelevel cluster-keys --renew' makes the keys"
    ):
        keys_of(Role.WORKER, folder)


def test_keys_that_run_out_during_a_campaign_are_refused_before(tmp_path: Path) -> None:
    make_keys(tmp_path / "cluster", lifetime=timedelta(days=10))
    with pytest.raises(EyelevelError, match=r"valid until .+, which is too soon for a campaign; make new ones"):
        keys_of(Role.HEAD, tmp_path / "cluster")


def test_the_command_makes_them_in_the_cache_and_names_what_is_to_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path))
    outcome = CliRunner().invoke(main, [])
    assert outcome.exit_code == 0, outcome.output
    assert f"copy {tmp_path}/cluster/worker to the same place on workers" in outcome.output
    assert keys_of(Role.HEAD).key == tmp_path / "cluster/head/key.pem"
