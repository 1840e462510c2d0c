"""Certificate chains are as long as the recorded ones, and everything that a browser checks in them is correct."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from base.errors import EyelevelError
from record.connections import Connection
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from servers.certificate_authority import CertificateAuthority
from servers.certificates import certify, chain_bytes
from servers.recorded_chains import ChainForm, recorded_chains

PAGE = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"<p>A"), "192.0.2.1")
NAMES = ("a.example", "*.a.example", "www.b.example")


def site_of(folder: Path, *chains: tuple[int, ...]) -> Site:
    """A site with a server for each chain, and one without a known chain."""
    ips = [f"192.0.2.{n}" for n in range(1, len(chains) + 2)]
    exchanges = (PAGE, *(replace(PAGE, url=f"https://{ip}.example/", recorded_ip=ip) for ip in ips[1:]))
    connections = (
        Connection(ip, "a.example", certificates=chain, names=NAMES) for ip, chain in zip(ips, chains, strict=False)
    )
    return write_site(Recording(PAGE.url, exchanges, {"tool": "test"}, connections=tuple(connections)), folder)


@pytest.mark.parametrize("chain", [(1400,), (900, 1300), (1700, 1560, 1380), (2901, 1200)], ids=str)
def test_a_chain_is_as_long_as_it_was_recorded_and_signed_by_the_ca(tmp_path: Path, chain: tuple[int, ...]) -> None:
    ca = CertificateAuthority.new("test", timedelta(days=1))
    forms = {"198.18.0.1": ChainForm(chain, NAMES)}
    certificate = certify(ca, {"198.18.0.1": ("a.example", "c.example")}, tmp_path, forms)["198.18.0.1"]
    # The length of signatures varies by a byte or two.
    assert chain_bytes(certificate) == pytest.approx(sum(chain), abs=4 * len(chain))
    first, *others = x509.load_pem_x509_certificates(certificate.chain.read_bytes())
    assert len(others) == len(chain) - 1
    first.verify_directly_issued_by(ca.certificate)
    names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example", "c.example", "*.a.example", "www.b.example"]
    assert len(first.public_bytes(Encoding.DER)) == pytest.approx(chain[0], abs=4)


def test_what_one_certificate_has_too_many_the_others_have_fewer(tmp_path: Path) -> None:
    ca = CertificateAuthority.new("test", timedelta(days=1))
    hosts = tuple(f"a-host-with-a-rather-long-name-{n}.example" for n in range(20))
    forms = {"198.18.0.1": ChainForm((700, 1300, 1300))}
    certificate = certify(ca, {"198.18.0.1": hosts}, tmp_path, forms)["198.18.0.1"]
    assert chain_bytes(certificate) == pytest.approx(3300, abs=12)


def test_servers_have_the_chains_that_they_sent_and_others_a_usual_one(tmp_path: Path) -> None:
    site = site_of(tmp_path / "a", (1000, 500), (4000,), (2000, 1000))
    forms = recorded_chains(site)
    assert list(forms) == list(site.servers)
    assert [form.certificates for form in forms.values()] == [(1000, 500), (4000,), (2000, 1000), (2000, 1000)]
    assert [bool(form.names) for form in forms.values()] == [True, True, True, False]


def test_a_site_without_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="a: no certificates of its servers were recorded; record it again"):
        recorded_chains(site_of(tmp_path / "a"))
