"""The set `web`: its numbers are those of today's web, everybody has the same pages, and they are complete."""

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from fontTools.ttLib import TTFont
from support.campaigns import run_of_each

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.table import read_rows
from eyelevel.commands import export, site_info
from record import web
from record.collection import choose_site, choose_sites
from record.content import decode
from record.names import site_folder
from record.page_sources import SOURCES
from record.recorder.targets import read_targets
from record.site import Exchange, Recording, Site
from record.web.build import digest, recording
from record.web.draw import KINDS
from record.web.facts import facts
from record.web.fonts import LATIN, font
from record.web.manifest import manifest
from record.web.plan import plan
from record.web.quantiles import LEVELS, marginals
from record.web.spec import specs
from record.web.table import POSITIVE, Row, correlation, percentiles, rows

PAGES = {name: entry["facts"] for name, entry in manifest().items()}
# Two light ones: from a server of its own alone, and with third parties.
LIGHT = ("web-text-5", "web-news-5")
FOLDER = PROJECT / "record" / "web"
MOST_BYTES = 1_000_000


@functools.cache
def generated(name: str) -> Recording:
    """A page of the set. It takes seconds, and the load, which may run in a process of its own, needs only one."""
    return recording(specs()[name])


@pytest.fixture(scope="module")
def light() -> dict[str, Recording]:
    return {name: generated(name) for name in LIGHT}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def text_of(exchange: Exchange) -> str:
    body = decode(exchange.response.body, exchange.response.header("content-encoding") or "")
    return body.decode(errors="replace")


def test_each_number_is_within_ten_percent_or_one_unit_of_the_published_one() -> None:
    unlike = [(row.title, row.published, row.ours) for row in rows(PAGES) if row.marginal.fit and not row.fits]
    assert unlike == []


def test_a_row_that_is_far_off_is_seen() -> None:
    none = dict.fromkeys(("lcp_preload", "js_br", "image_avif"), 0)
    heavy = {name: {**page, "bytes": 1.5 * page["bytes"], **none} for name, page in PAGES.items()}
    assert [row.name for row in rows(heavy) if row.marginal.fit and not row.fits] == ["bytes", *none]


def test_numbers_that_go_together_on_the_web_go_together_here() -> None:
    assert [pair for pair in POSITIVE if correlation(PAGES, *pair) < 0.2] == []


def test_each_marginal_names_its_source_and_its_year_or_says_that_it_is_a_guess() -> None:
    for marginal in marginals().values():
        assert marginal.guess or (
            re.search(r"\b20[12]\d\b", marginal.source) and marginal.address.startswith("https://")
        )


def test_equally_spaced_draws_have_the_percentiles_they_are_drawn_from() -> None:
    size = marginals()["bytes"]
    drawn = [size.value((place + 0.5) / 40) for place in range(40)]
    assert percentiles(drawn, LEVELS) == pytest.approx(size.values, rel=0.02)


def test_the_set_has_the_pages_of_each_kind_that_were_drawn() -> None:
    assert list(specs()) == list(manifest()) == web.page_names()
    assert [spec.kind for spec in specs().values()] == [kind for kind, count in KINDS.items() for _ in range(count)]
    assert len({spec.language for spec in specs().values()}) >= 10


def test_every_plan_asks_for_each_url_once_and_for_as_many_as_drawn() -> None:
    for spec in specs().values():
        planned = plan(spec)
        urls = [item.url for item in planned.page.all()]
        assert len(urls) == len(set(urls))
        assert abs(len(urls) - spec.requests) <= 0.05 * spec.requests + 2
        assert all(urlsplit(url).netloc.endswith(".example") for url in urls)


def test_a_page_has_the_bytes_and_numbers_of_the_manifest(light: dict[str, Recording]) -> None:
    for name, page in light.items():
        assert digest(page) == manifest()[name]["sha256"]
        assert facts(page) == PAGES[name]


def test_every_url_of_a_page_is_written_in_the_response_that_causes_it(light: dict[str, Recording]) -> None:
    for name, page in light.items():
        texts = {exchange.url: text_of(exchange) for exchange in page.exchanges if exchange.response.status == 200}
        locations = {exchange.url: exchange.response.header("location") or "" for exchange in page.exchanges}
        for item in plan(specs()[name]).page.all():
            for child in item.children:
                named = [texts.get(item.url, ""), locations[item.url], texts[page.url]]
                assert any(child.url in text for text in named), child.url


def test_no_script_reads_a_clock_or_draws_a_number(light: dict[str, Recording]) -> None:
    for page in light.values():
        for exchange in page.exchanges:
            assert not re.search(r"Math\.random|new Date|Date\.now|performance\.now", text_of(exchange)), exchange.url


def test_pages_are_chosen_by_name_or_as_a_set_and_kept(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site,) = choose_sites(LIGHT[0])
    assert (site.name, site.folder.parents[1]) == (LIGHT[0], cache / "web")
    assert choose_site(LIGHT[0]) == site
    assert capsys.readouterr().err == f"generating {LIGHT[0]}\n", "once"
    with pytest.raises(EyelevelError, match="unknown site 'web-text-99'"):
        choose_sites(["web-text-99", "web"])


def test_another_process_generates_no_second_time(
    cache: Path, light: dict[str, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes the page between the first look and the lock."""
    folder = choose_site(LIGHT[0]).folder
    aside = folder.rename(cache / "aside")

    @contextmanager
    def slow(locked_folder: Path, *, wait: bool) -> Iterator[None]:
        assert (locked_folder, wait) == (folder.parent, True)
        aside.rename(folder)
        yield

    monkeypatch.setattr("record.collection.locked", slow)
    monkeypatch.setattr("record.web.build.recording", lambda spec: pytest.fail("generated again"))
    assert choose_site(LIGHT[0]).folder == folder


def test_checkouts_with_other_pages_do_not_replace_each_others(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = choose_site(LIGHT[0]).folder
    page = web.page(LIGHT[0])
    assert page
    other = replace(page, recorder={**page.recorder, "sha256": "0" * 64})
    monkeypatch.setitem(SOURCES, "web-", lambda name: other)
    site = choose_site(LIGHT[0])
    assert site.name == folder.name and site.folder != folder and folder.is_dir()


@pytest.mark.parametrize("name", ["web", LIGHT[0]])
def test_no_new_site_hides_behind_a_page_of_the_set(name: str) -> None:
    for refused in (lambda: site_folder(name), lambda: read_targets([f"{name} https://a.example/"])):
        with pytest.raises(EyelevelError, match=f"'{name}' is the name of generated pages; choose another name"):
            refused()


def test_the_readme_has_the_numbers_of_the_manifest() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert [line for line in map(in_readme, rows(PAGES)) if line and line not in readme] == []


def in_readme(row: Row) -> str:
    """The line of README's table for a row; empty if it is not in it."""
    one = row.marginal
    if not one.fit:
        return ""
    published, ours = (
        " ".join(f"{n:.4g}" if n < 1000 else f"{n:.0f}" for n in some) for some in (row.published, row.ours)
    )
    guess = ", a guess" * one.guess
    if not one.values:
        return f"| {one.title} | {one.of}{guess} | {published} | {ours} |"
    return f"| {one.title}{' (of all files or servers)' * (one.over == 'items')}{guess} | {published} | {ours} |"


def test_every_font_has_the_notices_of_its_licence() -> None:
    for face, words in (("DejaVuSans", "Bitstream"), ("STIXGeneral", "STI Pub Companies")):
        names = TTFont(BytesIO(font("latin", LATIN.index(face), 0)))["name"]
        assert (names.getDebugName(1), names.getDebugName(2)) == ("Webset", "Regular")
        assert words in names.getDebugName(0) and len(names.getDebugName(13)) > 1000


def test_a_machine_that_generates_other_bytes_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = web.page(LIGHT[0])
    assert page
    other = replace(generated(LIGHT[0]), user_agent=None, url="https://other.example/")
    monkeypatch.setattr("record.web.build.recording", lambda spec: other)
    with pytest.raises(EyelevelError, match="generates other bytes than those of"):
        page.generate()


def test_the_set_is_described_beside_todays_web(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light: dict[str, Recording]
) -> None:
    sites = small_set(tmp_path, light)
    monkeypatch.setattr("record.collection.choose_sites", lambda wanted: sites)
    monkeypatch.setattr(web, "page_names", lambda: [site.name for site in sites])
    done = CliRunner().invoke(site_info.main, ["--sites", "web", "--into", str(tmp_path / "info")])
    assert done.exit_code == 0, done.output
    assert "27 46 77 122 185" in done.stdout, done.stdout
    assert "rank correlation of requests and bytes: +1.00" in done.stdout
    table = (tmp_path / "info" / "marginals.csv").read_text().splitlines()
    assert table[0] == "marginal,percentile,today,pages,guess,source,address"
    assert table[1].startswith("requests,p10,27,")


def small_set(folder: Path, pages: dict[str, Recording]) -> list[Site]:
    """These pages as sites."""
    from record.site import write_site

    return [write_site(page, folder / name) for name, page in pages.items()]


def test_a_page_is_exported(cache: Path, tmp_path: Path) -> None:
    into = tmp_path / "page.har"
    done = CliRunner().invoke(export.main, [LIGHT[0], "--as", "har", "--into", str(into)])
    assert done.exit_code == 0, done.output
    assert into.stat().st_size > 100_000


def test_generators_and_lists_are_small() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads(group="web")
def test_a_load_asks_for_everything_of_a_page_and_for_nothing_else(tmp_path: Path) -> None:
    (site,) = small_set(tmp_path / "sites", {LIGHT[1]: generated(LIGHT[1])})
    campaign = run_of_each(site, tmp_path / "results", names=("quic",))
    (row,) = [row for row in read_rows(campaign.folder) if row.valid]
    assert (row.requests, row.missed) == (len(site.exchanges), 0)
