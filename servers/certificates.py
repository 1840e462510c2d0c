"""This machine's certificate authority (CA), and the certificates of the servers that it replays.

The CA is short-lived and is trusted by nothing but the testbed's own browser profiles. All server programs get the same
kind of chain (an ECDSA P-256 leaf signed by the CA), so that a handshake carries the same bytes on each.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from base.errors import EyelevelError, reports_errors
from base.files import lock, replacing_folder, write_private
from base.ownership import give_to_caller
from base.places import ca_certificate, cache_dir
from servers.certificate_authority import CertificateAuthority, certificate_pem, new_key, private_pem
from servers.contract import ServerCertificate
from servers.recorded_chains import ChainForm, issue_chain

LIFETIME = timedelta(days=90)
RENEWED_BEFORE_END = timedelta(days=14)
NAME = "Eyelevel replay testbed"
# Beside the certificate.
KEY = "key.pem"
LOCK = "ca.lock"
OWN_CACHE = "if it is another user's, set EYELEVEL_CACHE to a folder of yours, or have its owner run 'make setup'"


def machine_ca() -> CertificateAuthority:
    """This machine's CA; made on first use, and anew before it runs out. Raises EyelevelError."""
    # Most callers only read: the cache may be one that they may not write to.
    if present := _present_ca():
        return present
    folder = ca_certificate().parent
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(LOCK).open("w") as file:
            lock(file.fileno(), wait=True)
            # Another process may have made it meanwhile.
            ca = _present_ca() or _new_ca(folder)
        give_to_caller(folder, cache_dir())
        give_to_caller(folder.with_name(LOCK))
        return ca
    except OSError as error:
        raise EyelevelError(f"{folder} cannot be written ({error.strerror}); {OWN_CACHE}") from None


def machine_ca_certificate() -> Path:
    """The file of its certificate, in PEM; it is made if it is not there. Raises EyelevelError."""
    machine_ca()
    return ca_certificate()


def _present_ca() -> CertificateAuthority | None:
    """The CA in the cache; None when there is none, or none that can be used for long. Raises EyelevelError."""
    path = ca_certificate()
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
    return CertificateAuthority(certificate, key)


def _new_ca(folder: Path) -> CertificateAuthority:
    """A new CA in `folder`, in place of the one that is there, if any. Raises OSError."""
    ca = CertificateAuthority.new(NAME, LIFETIME)
    # Key and certificate come in one step, so that nobody meets a key that is not the certificate's.
    with replacing_folder(folder, "*.pem") as new:
        write_private(new / KEY, private_pem(ca.key))
        (new / ca_certificate().name).write_bytes(certificate_pem(ca.certificate))
    return ca


def certify(
    ca: CertificateAuthority,
    servers: dict[str, tuple[str, ...]],
    folder: Path,
    forms: Mapping[str, ChainForm] | None = None,
) -> dict[str, ServerCertificate]:
    """Write into `folder` a certificate for each server address, naming the hosts it answers for; or chains that are
    like `forms`, of each address one.

    All share one key, made for this call: its kind, not its value, is what a handshake costs.
    """
    key = new_key()
    key_path = folder / KEY
    write_private(key_path, private_pem(key))
    certificates = {}
    for address, hosts in servers.items():
        chain = folder / f"{address}.pem"
        names = [*(x509.DNSName(host) for host in hosts), x509.IPAddress(ip_address(address))]
        usages, subject = [ExtendedKeyUsageOID.SERVER_AUTH], f"Eyelevel server {address}"
        if forms:
            issued = issue_chain(ca, key.public_key(), subject, LIFETIME, names, forms[address])
        else:
            issued = [ca.issue(subject, key.public_key(), usages, LIFETIME, names)]
        chain.write_bytes(b"".join(map(certificate_pem, issued)))
        certificates[address] = ServerCertificate(chain, key_path)
    return certificates


def chain_bytes(certificate: ServerCertificate) -> int:
    """How many bytes a server's chain has on the wire, without what TLS puts around it."""
    chain = x509.load_pem_x509_certificates(certificate.chain.read_bytes())
    return sum(len(one.public_bytes(serialization.Encoding.DER)) for one in chain)


@reports_errors
def main() -> None:
    """Make this machine's certificate authority unless it is there, and say where it lies (`make setup`)."""
    print(machine_ca_certificate())


if __name__ == "__main__":
    main()
