"""Pages that ask for the same on every load: the script gets into documents, into nothing else, and may run."""

import gzip

import pytest

from record.http1 import Headers, Response
from replay.repeatable import with_script

SCRIPT = b"(function () {})(1);"
PUT = b"<script>" + SCRIPT + b"</script>"
HASH = "'sha256-"


def html(body: bytes, *headers: tuple[str, str]) -> Response:
    return Response(200, "OK", (("Content-Type", "text/html; charset=utf-8"), *headers), body)


@pytest.mark.parametrize(
    ("document", "changed"),
    [
        (b"<!doctype html><html><head><title>", b"<!doctype html><html><head>" + PUT + b"<title>"),
        (b"<HTML><HEAD lang=en><title>", b"<HTML><HEAD lang=en>" + PUT + b"<title>"),
        (b"\n<!-- hello -->\n<html><body>", b"\n<!-- hello -->\n<html>" + PUT + b"<body>"),
        (b"<!DOCTYPE html><p>", b"<!DOCTYPE html>" + PUT + b"<p>"),
    ],
)
def test_the_script_comes_first_in_a_document(document: bytes, changed: bytes) -> None:
    got = with_script(html(document), SCRIPT)
    assert got is not None
    assert got.body == changed


@pytest.mark.parametrize("body", [b"", b'{"html": "<html>"}', b"<div>a fragment</div>", b"var a = '<html>';"])
def test_what_is_only_called_html_stays_as_it_is(body: bytes) -> None:
    assert with_script(html(body), SCRIPT) is None


def test_other_types_and_broken_encodings_stay_as_they_are() -> None:
    assert with_script(Response(200, "OK", (("Content-Type", "text/plain"),), b"<html>"), SCRIPT) is None
    assert with_script(html(b"<html>", ("Content-Encoding", "gzip")), SCRIPT) is None


def test_an_encoded_document_stays_encoded() -> None:
    got = with_script(html(gzip.compress(b"<html><head>"), ("Content-Encoding", "gzip")), SCRIPT)
    assert got is not None
    assert gzip.decompress(got.body) == b"<html><head>" + PUT


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ("default-src 'self'", f"default-src 'self'; script-src 'self' {HASH}"),
        ("script-src a.example; img-src *", f"script-src a.example {HASH}; img-src *"),
        ("script-src 'none'", f"script-src {HASH}"),
        ("script-src 'nonce-x' 'unsafe-inline'", f"script-src 'nonce-x' 'unsafe-inline' {HASH}"),
        ("script-src 'unsafe-inline'", "script-src 'unsafe-inline'"),
        ("img-src 'self'", "img-src 'self'"),
        ("script-src a, script-src b", f"script-src a {HASH},script-src b {HASH}"),
    ],
)
def test_policies_allow_the_script_and_nothing_else_more(policy: str, allowed: str) -> None:
    headers: Headers = (("Content-Security-Policy", policy),)
    got = with_script(html(b"<html>", *headers), SCRIPT)
    assert got is not None
    value = got.header("content-security-policy") or ""
    digest = value.partition(HASH)[2].partition("'")[0] + "'" if HASH in value else ""
    assert value.replace(f"{HASH}{digest}", HASH) == allowed
