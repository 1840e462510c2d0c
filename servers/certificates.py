"""The testbed's certificate authority, one per machine, and the servers' certificates.

The authority is short-lived and is trusted by nothing but the testbed's own browser profiles. Both
servers get the same kind of chain (ECDSA P-256 leaf signed by the authority), so that a handshake
carries the same bytes on either.
"""

import fcntl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from base.errors import EyelevelError, reports_errors
from base.files import replacing_folder
from base.ownership import give_to_caller
from base.places import authority_certificate, cache_dir

LIFETIME = timedelta(days=90)
RENEWED_BEFORE_END = timedelta(days=14)
# Beside the certificate.
KEY = "key.pem"
OWN_CACHE = "if it is another user's, set EYELEVEL_CACHE to a folder of yours, or have its owner run 'make setup'"


@dataclass(frozen=True)
class Authority:
    """The certificate authority: its certificate's file, the certificate, and its private key."""

    path: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class ServerCertificate:
    """PEM files of a server's certificate chain and private key."""

    chain: Path
    key: Path


def authority() -> Authority:
    """This machine's authority; made on first use, and anew before it runs out. Raises EyelevelError."""
    # Most callers only read: the cache may be one that they may not write to.
    if present := _present_authority():
        return present
    folder = authority_certificate().parent
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name("authority.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process may have made it meanwhile.
            issuer = _present_authority() or _new_authority(folder)
        give_to_caller(folder, cache_dir())
        give_to_caller(folder.with_name("authority.lock"))
        return issuer
    except OSError as error:
        raise EyelevelError(f"{folder} cannot be written ({error.strerror}); {OWN_CACHE}") from None


def _present_authority() -> Authority | None:
    """The authority in the cache; None when there is none, or none that can be used for long. Raises EyelevelError."""
    path = authority_certificate()
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        key = serialization.load_pem_private_key(path.with_name(KEY).read_bytes(), password=None)
    except (FileNotFoundError, ValueError):  # ValueError: a power cut has left half of it
        return None
    except OSError as error:
        raise EyelevelError(f"{error.filename} cannot be read ({error.strerror}); {OWN_CACHE}") from None
    # Also not the key of another certificate, as when it is replaced between the two looks.
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    if certificate.not_valid_after_utc - datetime.now(UTC) < RENEWED_BEFORE_END:
        return None
    return Authority(path, certificate, key)


def certify(issuer: Authority, servers: dict[str, tuple[str, ...]], folder: Path) -> dict[str, ServerCertificate]:
    """Write into `folder` a certificate for each server address, naming the hosts it answers for.

    All share one key, made for this call: its kind, not its value, is what a handshake costs.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    key_path = folder / KEY
    _write_private(key_path, key)
    certificates = {}
    for address, hosts in servers.items():
        chain = folder / f"{address}.pem"
        chain.write_bytes(_leaf(issuer, key.public_key(), address, hosts).public_bytes(serialization.Encoding.PEM))
        certificates[address] = ServerCertificate(chain, key_path)
    return certificates


def _leaf(issuer: Authority, key: ec.EllipticCurvePublicKey, address: str, hosts: Iterable[str]) -> x509.Certificate:
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    return (
        certificate_builder(f"Eyelevel server {address}", issuer.certificate.subject, key)
        .add_extension(x509.SubjectAlternativeName([*names, x509.IPAddress(ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(key_usage(digital_signature=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), critical=False)
        .sign(issuer.key, hashes.SHA256())
    )


def _new_authority(folder: Path) -> Authority:
    """A new authority in `folder`, in place of the one that is there, if any. Raises OSError."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Eyelevel replay testbed")])
    certificate = (
        certificate_builder("Eyelevel replay testbed", name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(key_cert_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = authority_certificate()
    # Key and certificate come in one step, so that nobody meets a key that is not the certificate's.
    with replacing_folder(folder, "*.pem") as new:
        _write_private(new / KEY, key)
        (new / path.name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(path, certificate, key)


def certificate_builder(
    common_name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: timedelta = LIFETIME
) -> x509.CertificateBuilder:
    """A certificate of `key` without its extensions, which its caller adds before it is signed."""
    # A clock that is set back a little must not make a new certificate invalid.
    start = datetime.now(UTC) - timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
    )


def key_usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    """What a key may be used for: the two given, and nothing else."""
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_private(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a private key to a file that was never readable by anyone else."""
    path.unlink(missing_ok=True)
    path.touch(0o600, exist_ok=False)
    path.write_bytes(private_pem(key))


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as it stands in a file."""
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form)


@reports_errors
def main() -> None:
    """Make this machine's certificate authority unless it is there, and say where it lies (`make setup`)."""
    print(authority().path)


if __name__ == "__main__":
    main()
