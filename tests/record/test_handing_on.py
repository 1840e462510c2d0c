"""docs/contributors/formats.md states which properties of a site each export format keeps and loses."""

import gzip
from pathlib import Path

import pytest
from support.handing_on import OF_EXCHANGES, OF_SITES, handed_on, kept_by, survival

from record.connections import Connection
from record.formats import writable_formats
from record.http1 import Response
from record.site import Exchange, Recording, write_site

# None of our encoders would compress it in this way.
PACKED = gzip.compress(b"<p>" * 99, compresslevel=1, mtime=7)
HTML = (("Content-Type", "text/html"), ("Content-Encoding", "gzip"), ("Content-Length", str(len(PACKED))))
PAGE = Exchange("GET", "https://a.example/", Response(200, "Fine", HTML, PACKED), "192.0.2.1", 0.0, 12.345)
PICTURE = Exchange("GET", "https://b.example/1?x=y", Response(200, "OK", (), b"\0\xff"), "2001:db8::1", 3.125, 4.5)
CONNECTIONS = (
    Connection("192.0.2.1", "a.example", 20.5, 11.0, "h2", (1200, 800), ("a.example",)),
    Connection("2001:db8::1", "b.example", 40.0, 21.5, "h2", (900,), ("b.example",)),
)


@pytest.mark.parametrize("name", writable_formats())
def test_the_document_says_what_a_format_keeps_of_a_site_that_has_everything(name: str, tmp_path: Path) -> None:
    exchanges = (PAGE, PICTURE)
    recording = Recording(PAGE.url, exchanges, {"tool": "test"}, "Browser 1", (1366, 768), (), CONNECTIONS)
    site = write_site(recording, tmp_path / "site")
    form = writable_formats()[name]
    lost = survival(site, handed_on(site, form, tmp_path))
    assert set(lost) == {*OF_EXCHANGES, *OF_SITES}, "the site has everything"
    assert {what: not texts for what, texts in lost.items()} == kept_by(form), lost
