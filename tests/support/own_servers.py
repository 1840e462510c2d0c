"""Inputs for tests of our own servers (quic_server, quinn_server): a site, a certificate, endpoints."""

import base64
import hashlib
import json
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from base.places import PROJECT, tool
from record.http1 import Response
from record.site import Exchange, Recording, write_site
from record.urls import normal_url

MATCHING_CASES = json.loads((PROJECT / "tests" / "vectors" / "matching.json").read_text())["cases"]
# The fields of a request in `--match`, in their order.
REQUEST_FIELDS = (
    "method",
    "url",
    "origin",
    "requested_method",
    "requested_headers",
    "range",
    "if_none_match",
    "if_modified_since",
)


def stored(folder: Path, *exchanges: Exchange) -> Path:
    """Store the exchanges as a site's folder, which quic_server can load."""
    return write_site(Recording(exchanges[0].url, exchanges, {"tool": "test"}), folder / "site").folder


def exchange(method: str, url: str, response: Response) -> Exchange:
    return Exchange(method, url, response, recorded_ip="192.0.2.1")


def ok(body: bytes = b"", *headers: tuple[str, str], status: int = 200) -> Response:
    return Response(status, "", headers, body)


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate in PEM files, and the hash by which a browser identifies its key."""

    chain: Path
    key: Path
    spki_sha256: str


def make_certificate(folder: Path, host: str = "*.example") -> Certificate:
    """Make a certificate for every name below example, or only for `host`, in files in `folder`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding, public_format = serialization.Encoding, serialization.PublicFormat
    (folder / "chain.pem").write_bytes(certificate.public_bytes(encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    spki = key.public_key().public_bytes(encoding.DER, public_format.SubjectPublicKeyInfo)
    return Certificate(
        folder / "chain.pem", folder / "key.pem", base64.b64encode(hashlib.sha256(spki).digest()).decode()
    )


def endpoints_file(folder: Path, *endpoints: list[str | Path]) -> Path:
    """Write a file of `endpoints`, each with its address, its port, and the files of its certificate and key."""
    file = folder / "endpoints"
    file.write_text("".join("\t".join(map(str, endpoint)) + "\n" for endpoint in endpoints))
    return file


def match(program: str, folder: Path, *requests: str) -> list[tuple[list[str], list[str]]]:
    """The answers of `program --match` to the requests, each with its fields and its header lines."""
    completed = subprocess.run(
        [tool(program), "--responses", folder, "--match"],
        input="".join(f"{request}\n" for request in requests),
        capture_output=True,
        text=True,
        check=True,
    )
    answers: list[tuple[list[str], list[str]]] = []
    for line in completed.stdout.splitlines():
        if line.startswith("\t"):
            answers[-1][1].append(line[1:])
        else:
            answers.append((line.split("\t"), []))
    return answers


def require_rule(program: str, case: dict[str, Any], folder: Path) -> None:
    """Fail when `program` does not answer according to the matching rule in `case`, one of MATCHING_CASES."""
    recorded = [
        exchange(one["method"], normal_url(one["url"]), ok(b"x", *_content_range(one), status=one["status"]))
        for one in case["recorded"]
    ]
    site = write_site(Recording(recorded[0].url, tuple(recorded), {"tool": "test"}), folder / "site")
    requests = ["\t".join(request.get(key, "") for key in REQUEST_FIELDS) for request in case["requests"]]
    answers = match(program, site.folder, *requests)
    for request, ((kind, file, status, _), _) in zip(case["requests"], answers, strict=True):
        expected = "" if request["answer"] is None else site.exchanges[request["answer"]].file
        assert (kind, file, status) == (request["kind"], expected, str(request["status"]))


def _content_range(recorded: dict[str, Any]) -> list[tuple[str, str]]:
    return [("Content-Range", recorded["content_range"])] if "content_range" in recorded else []
