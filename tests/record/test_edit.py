"""Variants of sites contain the results of their edits, and must differ from their original."""

from pathlib import Path

import pytest
from support.own_servers import exchange, ok, stored

from base.errors import EyelevelError
from record.content import encode
from record.edit import EDITS, ORIGINAL, Edit, require_think_time, variant
from record.names import require_site_name
from record.site import Site, write_site

PAGE, FONT, STYLE = "https://a.example/", "https://f.example/a.woff2", "https://a.example/a.css"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    exchanges = (
        exchange("GET", PAGE, ok(b"<html>", ("Content-Type", "text/html"))),
        exchange("GET", FONT, ok(b"font")),
        exchange("GET", STYLE, ok(encode(b"a {}", "gzip"), ("Content-Encoding", "gzip"))),
    )
    return Site.load(stored(tmp_path, *exchanges))


def edited(site: Site, *edits: Edit) -> Site:
    return write_site(variant(site, "0" * 64, edits), site.folder.with_name("site@edited"))


def test_every_kind_of_edit_is_in_the_variant_and_named_there(site: Site, tmp_path: Path) -> None:
    (tmp_path / "new.css").write_bytes(b"b {}")
    result = edited(
        site,
        Edit.parse("drop", "*.woff2"),
        Edit.parse("replace", f"{STYLE} -> {tmp_path / 'new.css'}"),
        Edit.parse("delay", f"{STYLE} -> 250"),
        Edit.parse("header", "*.css -> Cache-Control: no-store"),
        Edit.parse("hint", f"{PAGE} -> </a.css>; rel=preload; as=style"),
    )
    assert [one.url for one in result.exchanges] == [PAGE, STYLE]
    page, style = (result.recorded(one).response for one in result.exchanges)
    assert page.header("link") == "</a.css>; rel=preload; as=style"
    assert (style.body, style.header("cache-control")) == (encode(b"b {}", "gzip"), "no-store")
    assert b"X-Original-Wait-Ms: 250" in (result.folder / result.exchanges[1].file).read_bytes()
    assert result.recorder[ORIGINAL] == "site"
    assert result.recorder[EDITS].count("; ") >= 4
    assert len(site.exchanges) == len(Site.load(site.folder).exchanges) == 3
    with pytest.raises(EyelevelError, match="THINK_TIME"):
        require_think_time(result, think_time=False)
    require_think_time(result, think_time=True)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("drop", "*.png", "matches no response"),
        ("drop", "*", "no exchange"),
        ("drop", PAGE, "start page"),
        ("replace", f"{STYLE} -> missing.css", "cannot be read"),
        ("delay", f"{STYLE} -> -5", "takes whole ms"),
        ("header", f"{STYLE} -> nothing", "takes a field"),
        ("header", f"{STYLE} -> Content-Length: 5", "servers' own"),
        ("hint", STYLE, "takes 'PATTERN -> VALUE'"),
    ],
)
def test_what_cannot_be_made_is_refused(site: Site, kind: str, text: str, message: str) -> None:
    with pytest.raises(EyelevelError, match=message):
        edited(site, Edit.parse(kind, text))
    assert not site.folder.with_name("site@edited").exists()


@pytest.mark.parametrize(
    "pattern", [STYLE.upper(), STYLE.replace("https:", "http:"), STYLE.partition("://")[2], f"{STYLE}/", f"{STYLE}?v=2"]
)
def test_a_pattern_that_matches_nothing_is_answered_with_a_similar_url(site: Site, pattern: str) -> None:
    with pytest.raises(EyelevelError) as raised:
        edited(site, Edit.parse("drop", pattern))
    assert str(raised.value) == f"--drop {pattern}: it matches no response of site; {STYLE} is similar"


def test_an_edit_that_changes_nothing_says_so(site: Site, tmp_path: Path) -> None:
    (tmp_path / "same").write_bytes(b"font")
    with pytest.raises(EyelevelError, match="it changes none of the responses of site that it matches"):
        edited(site, Edit.parse("replace", f"{FONT} -> {tmp_path / 'same'}"))


@pytest.mark.case("edit-square-brackets")
@pytest.mark.parametrize(
    ("pattern", "dropped"),
    [
        ("*/p[1].png", "p[1].png"),
        ("*/p[!1].png", "p[!1].png"),
        ("*/p[[1].png", "p[[1].png"),
        ("*/p].png", "p].png"),
        ("*/[a-z]1.png", None),
        ("*/p\\1.png", None),
        ("*/P1.png", None),
        ("*/p?.png", "p1.png p].png"),
        ("*/p[?].png", "p[1].png"),
    ],
)
def test_only_stars_and_question_marks_stand_for_other_letters(
    tmp_path: Path, pattern: str, dropped: str | None
) -> None:
    names = ("", "p1.png", "p[1].png", "p[!1].png", "p[[1].png", "p].png")
    site = Site.load(stored(tmp_path, *(exchange("GET", PAGE + name, ok(b"content")) for name in names)))
    edit = Edit.parse("drop", pattern)
    if dropped is None:
        with pytest.raises(EyelevelError, match="matches no response"):
            edited(site, edit)
    else:
        urls = {one.url for one in variant(site, "0" * 64, [edit]).exchanges}
        assert {PAGE + name for name in names} - urls == {PAGE + name for name in dropped.split()}


def test_a_variant_has_a_name_that_says_of_what() -> None:
    assert require_site_name("shop@no-fonts") == "shop@no-fonts"
    for name in ("@no-fonts", "shop@", "shop@a@b"):
        with pytest.raises(EyelevelError, match="not a name for a site"):
            require_site_name(name)
