"""Fuzzes quic_server's reader of response folders (servers/quic/loader_fuzz.cc) with thousands of them."""

import os
import re
import subprocess
from pathlib import Path

from base.places import PROJECT
from record import limits
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site

PART_END = b"\x1e"
# The limits of the memory of the whole process, which the sanitizers use, too, and of the time for one input.
MAX_MEMORY_MB = 500
MAX_INPUT_S = 20
REQUESTS = b"""GET\thttps://a.example/
HEAD\thttps://a.example/?q=1
GET\thttps://a.example/?q=19
POST\thttps://b.example:8080/form
OPTIONS\thttps://a.example/never\thttps://b.example\tPUT\tx-one,x-two
GET\thttps://a.example/film\t\t\t\tbytes=0-3
GET\thttps://a.example/film\t\t\t\tbytes=4-
GET\thttps://a.example/film\t\t\t\tbytes=-4\t"tag"\tThu, 01 Jan 2026 00:00:00 GMT
"""

# Tokens that the loader searches for, or that often break parsers.
TOKENS = [
    *["X-Original-Url: https://", "X-Original-Method: ", "X-Original-Wait-Ms: ", "Content-Length: ", "Content-Range: "],
    *["HTTP/1.1 200 OK", "HTTP/1.1 304 ", "HTTP/1.1 206 ", "bytes 0-3/9", "bytes=", "Location: ", "\r\n", "\r\n\r\n"],
    *[
        "\x1ef",
        "\x1ed",
        "\x1ep",
        "\x1el",
        "a.example/00000-",
        "/dev/zero",
        "..",
        ":443",
        ":",
        "@",
        "#",
        "?",
        "\t",
        "\n",
    ],
    *["GET", "HEAD", "OPTIONS", "\0", "nan", "1e400", "1e-400", "-1", "9" * 18, "9" * 19, "18446744073709551615"],
]


def build_loader_fuzz() -> Path:
    """Build the program if necessary, which takes minutes the first time; return its path."""
    command: list[str | Path] = [PROJECT / "servers" / "quic" / "build.sh", "loader_fuzz"]
    return Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


def fuzz_loader(program: Path, folder: Path, inputs: int) -> dict[str, int]:
    """Give this many inputs to loader_fuzz (`program`), which makes response folders from them in `folder`.

    Returns libFuzzer's counts. Fails with the message if the sanitizers or an assertion reject an input.
    """
    seeds = folder / "seeds"
    seeds.mkdir()
    _write_seeds(_odd_site(folder / "site"), seeds)
    _write_dictionary(folder / "tokens")
    command: list[str | Path] = [program, f"-runs={inputs}", "-seed=16", f"-dict={folder / 'tokens'}", "-verbosity=0"]
    command += [f"-rss_limit_mb={MAX_MEMORY_MB}", f"-timeout={MAX_INPUT_S}", "-print_final_stats=1", seeds]
    options = {"ASAN_OPTIONS": "quarantine_size_mb=32", "UBSAN_OPTIONS": "print_stacktrace=1"}
    completed = subprocess.run(
        command, cwd=folder, env=os.environ | options, stderr=subprocess.PIPE, text=True, errors="replace", check=False
    )
    report = completed.stderr[-10_000:]
    assert completed.returncode == 0, report
    return {name: int(count) for name, count in re.findall(r"stat::(\w+):\s+(\d+)", report)}


def _write_seeds(site: Site, folder: Path) -> None:
    """Write the inputs from which others are made: `site`, and folders with other things than files."""
    files = {exchange.file: (site.folder / exchange.file).read_bytes() for exchange in site.exchanges}
    parts = {name: b"f" + name.encode() + b"\n" + content for name, content in files.items()}
    folders = [[part] for part in parts.values()]
    folders += [[*parts.values()]]
    folders += [[b"pa.example/00000-pipe\n"], [b"da.example/00000-folder\n"], [b"la.example/00000-link\n/dev/zero"]]
    folders += [[b"fx\n", next(iter(parts.values())), b"la.example/00009-link\n00000-index", b"lb.example\na.example"]]
    for number, entries in enumerate(folders):
        (folder / f"{number:02d}").write_bytes(PART_END.join([REQUESTS, *entries]))


def _write_dictionary(file: Path) -> None:
    """The tokens in libFuzzer's form."""
    lines = ("".join(f"\\x{byte:02x}" for byte in token.encode("latin-1")) for token in TOKENS)
    file.write_text("".join(f'"{line}"\n' for line in lines))


def _odd_site(folder: Path) -> Site:
    """A small site with the cases that the loader and the matching distinguish, within the limits of a response."""

    def exchange(
        url: str, *headers: tuple[str, str], body: bytes = b"", method: str = "GET", status: int = 200
    ) -> Exchange:
        return Exchange(method, url, Response(status, "OK", headers, body), "192.0.2.1", ttfb_ms=12.5)

    many = tuple((f"x{number}", "") for number in range(limits.HEADER_FIELDS - 1))
    exchanges = (
        exchange("https://a.example/", ("Content-Type", "text/html"), ("Set-Cookie", "a=1"), body=b"<!doctype html>"),
        exchange("https://a.example/?q=1", ("Set-Cookie", "a=1"), ("X", "y"), ("Set-Cookie", "b=2"), body=b"first"),
        exchange("https://a.example/?q=1", ("Location", "https://b.example/"), status=302),
        exchange("https://a.example/film", ("Content-Range", "bytes 0-3/9"), body=b"film", status=206),
        exchange("https://a.example/film", ("Content-Range", "bytes 4-8/9"), body=b"s end", status=206),
        exchange("https://a.example/film", ("ETag", '"tag"'), status=304),
        exchange("https://b.example:8080/form", ("Alt-Svc", "clear"), body=b"posted", method="POST"),
        exchange("https://a.example/head", ("Content-Length", "7"), method="HEAD"),
        exchange("https://a.example/many", *many),
        exchange("https://a.example/long", ("X", "v" * (limits.HEADER_BYTES - 100))),
    )
    return write_site(Recording(exchanges[0].url, exchanges, {"tool": "test"}), folder)
