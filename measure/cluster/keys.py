"""The keys of a cluster: a certificate authority (CA), and the certificates that its head and workers show to each
other.

The nodes of a Dask cluster run code that other nodes send. So each node talks only to nodes with a key of the cluster.
The CA's own key signs the two certificates and is not stored, so nobody can make a third.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID

from base.errors import EyelevelError
from base.files import replacing_folder, write_private
from base.ownership import give_to_caller
from base.places import cache_dir
from servers.certificate_authority import CertificateAuthority, certificate_pem, new_key, private_pem

LIFETIME = timedelta(days=365)
# Keys must be valid for at least this long: a campaign may take weeks, and its nodes may reconnect at any time.
REMAINDER = timedelta(days=14)
NAME = "Eyelevel cluster"
CA, CERTIFICATE, KEY = "ca.pem", "certificate.pem", "key.pem"


class Role(StrEnum):
    """The role of a machine in a cluster. Its keys are in a folder of this name."""

    HEAD = "head"
    WORKER = "worker"


@dataclass(frozen=True)
class Keys:
    """PEM files: the certificate of the cluster's CA, and the certificate and private key of a role."""

    ca: Path
    certificate: Path
    key: Path


def keys_folder() -> Path:
    """The folder with the keys of this machine's cluster; each role has a folder in it."""
    return cache_dir() / "cluster"


def make_keys(folder: Path, *, renew: bool = False, lifetime: timedelta = LIFETIME) -> None:
    """Write the keys of a new cluster, valid for this `lifetime`, for each role into `folder`, readable by the caller
    only.

    They replace any previous keys in one step. Raises EyelevelError when keys exist, unless `renew`.
    """
    if not renew and folder.exists():
        raise EyelevelError(
            f"there are keys already in {folder}; --renew replaces them, and then all workers need the new ones"
        )
    ca = CertificateAuthority.new(NAME, lifetime)
    with replacing_folder(folder) as new:
        new.chmod(0o700)
        for role in Role:
            (new / role).mkdir(0o700)
            for name, content in _files_of(role, ca, lifetime).items():
                write_private(new / role / name, content)
    give_to_caller(folder, cache_dir())


def _files_of(role: Role, ca: CertificateAuthority, lifetime: timedelta) -> Mapping[str, bytes]:
    key = new_key()
    # Every Dask node both listens and connects, so it shows its certificate both as a server and as a client.
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = ca.issue(f"{NAME}'s {role}", key.public_key(), usages, lifetime)
    return {CA: certificate_pem(ca.certificate), CERTIFICATE: certificate_pem(certificate), KEY: private_pem(key)}


def keys_of(role: Role, folder: Path | None = None) -> Keys:
    """The keys of `role` in `folder`, by default this machine's.

    Raises EyelevelError when the keys are missing or broken, do not belong together, may be read by others, or expire
    soon.
    """
    place = (folder or keys_folder()) / role
    keys = Keys(*(place / name for name in (CA, CERTIFICATE, KEY)))
    try:
        ca, certificate = (x509.load_pem_x509_certificate(path.read_bytes()) for path in (keys.ca, keys.certificate))
        mode = keys.key.stat().st_mode & 0o777
        certificate.verify_directly_issued_by(ca)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(keys.certificate, keys.key)
    except FileNotFoundError as error:
        command = "eyelevel cluster-keys --renew" if place.exists() else "make cluster-keys"
        raise EyelevelError(
            f"{error.filename} is missing; '{command}' makes the keys of a cluster on its head, "
            f"and its workers get copies of the folder {Role.WORKER} (docs/parallel.md)"
        ) from None
    except (OSError, ValueError, TypeError, InvalidSignature) as error:
        raise EyelevelError(
            f"the keys in {place} are broken ({str(error) or 'they are of different clusters'}); copy them again, "
            "or make new ones with 'eyelevel cluster-keys --renew'"
        ) from None
    if mode & 0o077:
        raise EyelevelError(f"{keys.key} may be read by others (mode {mode:04o}); make it yours alone: chmod 600")
    if (end := certificate.not_valid_after_utc) - datetime.now(UTC) < REMAINDER:
        raise EyelevelError(
            f"the keys in {place} are valid until {end:%d %b %Y}, which is too soon for a campaign; make new ones "
            f"with 'eyelevel cluster-keys --renew' on the head, and copy the folder {Role.WORKER} to its workers"
        )
    return keys
