"""Grids: their pages, their presets, the cells that are left out, and one grid that is really measured."""

import gzip
import io
import json
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from factories import ROW, rejected
from PIL import Image
from support.browser import Browser

from base.errors import EyelevelError
from dataset.table import Run, columns, read_rows
from eyelevel.commands.campaign import main as campaign_command
from eyelevel.commands.report import main as report
from eyelevel.commands.results import main as analysis
from eyelevel.study_command import study_command
from measure.campaign import slot
from measure.campaign.store import FolderStore
from measure.host.canary import Canary
from record import collection
from record.noise_picture import noise_picture
from record.site import write_site
from studies.grid import STUDY
from studies.grid import measure as grid
from studies.grid.defaults import PRESETS
from studies.grid.pages import Page, generate, page_named, read_size
from studies.grid.presets import Series, read_preset
from tuning import networks, protocols
from tuning.defaults import REPEATS
from tuning.hops import NONE, Hop
from tuning.impairments.rate import TRACE_LINE_BYTES, read_trace
from tuning.networks import Network
from tuning.settings import choose
from tuning.varying import varying_trace

NETWORKS = networks.load()
PROTOCOLS = protocols.load()
# Around the size of one chunk of padding, and the sizes of the presets except the largest.
SIZES = (79, 100, 1000, 5000, 65_614, 65_615, 65_626, 65_627, 65_628, 300_000, 10_000_000)


@pytest.mark.parametrize("size", SIZES)
def test_an_image_has_exactly_its_size_and_is_valid(size: int) -> None:
    data = noise_picture(size, "some page")
    assert len(data) == size
    with Image.open(io.BytesIO(data)) as picture:
        picture.verify()
    with Image.open(io.BytesIO(data)) as picture:
        assert (picture.size, picture.getpixel((0, 0))) == ((1, 1), 255)


def test_an_image_is_incompressible_and_follows_from_its_seed() -> None:
    data = noise_picture(100_000, "some page")
    assert len(zlib.compress(data, 9)) > 99_900
    assert data == noise_picture(100_000, "some page")
    assert data != noise_picture(100_000, "another")
    assert zlib.crc32(data) == 0x237ECEB0


def test_an_image_that_would_be_too_small_is_refused() -> None:
    with pytest.raises(EyelevelError, match="at least 79 bytes, not 78"):
        noise_picture(78, "")


def test_the_browser_shows_the_images(browser: Browser, tmp_path: Path) -> None:
    for size in (100, 10_000, 10_000_000):
        (tmp_path / f"{size}.png").write_bytes(noise_picture(size, "shown"))
    tags = "".join(f'<img src="{path.name}">' for path in tmp_path.glob("*.png"))
    (tmp_path / "page.html").write_text(f"<!doctype html>{tags}")
    browser.open((tmp_path / "page.html").as_uri())
    pixels = "return [...document.images].map((one) => one.complete && one.naturalWidth * one.naturalHeight)"
    assert browser.run(pixels) == [1, 1, 1]
    decode = "await Promise.all([...document.images].map((one) => one.decode())); return 'all';"
    assert browser.eventually(decode) == "all"


def test_a_page_is_its_images_spread_over_its_servers_and_nothing_else(tmp_path: Path) -> None:
    site = write_site(generate(Page(5, 1000, 2)), tmp_path / "grid-5x1KB-2s")
    html, *images = (site.recorded(exchange) for exchange in site.exchanges)
    assert html.response.header("content-type") == "text/html"
    assert b"script" not in html.response.body
    assert html.response.body.count(b"<img ") == 5
    assert [exchange.url.encode() in html.response.body for exchange in images] == [True] * 5
    assert {len(exchange.response.body) for exchange in images} == {1000}
    assert len({exchange.response.body for exchange in images}) == 5
    assert [exchange.recorded_ip for exchange in (html, *images)] == [f"192.0.2.{n}" for n in (1, 1, 2, 1, 2, 1)]
    for exchange in (html, *images):
        assert exchange.response.header("cache-control") == "no-store"
        assert exchange.response.header("content-encoding") is None
    assert generate(Page(5, 1000, 2)) == generate(Page(5, 1000, 2))


@pytest.mark.parametrize("page", [Page(1, 100), Page(200, 10_000), Page(1, 210_000_000), Page(64, 300_000, 4)])
def test_a_name_says_what_a_page_is(page: Page) -> None:
    assert page_named(page.name) == page


@pytest.mark.parametrize(
    "name", ["grid-0x1KB", "grid-1x1MB", "grid-1x1KB-0s", "demo-news", "grid-1x1KB-", "grid-01x1KB"]
)
def test_another_name_is_no_page(name: str) -> None:
    assert page_named(name) is None


@pytest.mark.parametrize("page", [Page(2, 1000, 3), Page(300, 1000, 255)])
def test_a_page_with_servers_that_it_cannot_have_is_refused(page: Page) -> None:
    with pytest.raises(EyelevelError, match=f"{page.name}: a page has at most 254 servers, and an image from each"):
        generate(page)


def test_sizes_are_read() -> None:
    assert [read_size("100B"), read_size("300KB")] == [100, 300_000]
    with pytest.raises(EyelevelError, match="100B or 10KB, not '1MB'"):
        read_size("1MB")


def test_a_page_is_kept_in_the_cache_and_made_anew_when_it_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path))
    first = collection.load_site("grid-2x100B")
    assert first.folder == tmp_path / "grid" / "grid-2x100B"
    made_at = first.folder.stat().st_ctime_ns
    assert collection.load_site("grid-2x100B").folder.stat().st_ctime_ns == made_at
    for file in first.folder.glob("*.json"):
        file.write_text("{")
    assert collection.load_site("grid-2x100B").exchanges == first.exchanges


def test_a_page_of_a_study_is_chosen_by_its_name_for_other_studies_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path))
    chosen = collection.choose_sites("grid-2x100B downloads-1000")
    assert [site.name for site in chosen] == ["grid-2x100B", "downloads-1000"]
    with pytest.raises(EyelevelError, match="unknown site 'grid-none'"):
        collection.choose_sites("grid-none")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_names_what_there_is(name: str) -> None:
    preset = read_preset(name)
    assert choose("network", preset.networks, NETWORKS)
    assert len(choose("protocol", preset.protocols, PROTOCOLS)) >= 2


def test_the_presets_have_the_factors_of_the_studies() -> None:
    controlled = read_preset("controlled")
    assert {(page.count, page.size_bytes) for page in controlled.pages()} == {
        (count, size) for count in (2, 64, 128) for size in (100, 1000, 10_000, 300_000)
    }
    assert (controlled.runs, len(controlled.networks)) == (5, 3)
    longlook = read_preset("longlook")
    pages = longlook.pages()
    sizes = (5, 10, 100, 200, 500, 1000, 10_000, 210_000)
    assert {page.size_bytes for page in pages if page.count == 1} == {1000 * size for size in sizes}
    assert {page.count for page in pages if page.size_bytes == 10_000} == {1, 2, 5, 10, 100, 200}
    assert len(pages) == 8 + 5
    assert longlook.runs == 10
    names = [network.name for network in choose("network", longlook.networks, NETWORKS)]
    assert len(names) == 4 * 3 * 3 + 3 + 1
    assert NETWORKS["longlook-jitter-10mbps"].reorder
    both = read_preset("longlook-0rtt").protocols
    assert [PROTOCOLS[protocol].early_data for protocol in both] == [False, True]


@pytest.mark.parametrize(
    ("line", "fault"),
    [("limit_s = 3\nlimit = 3", " has an unknown key 'limit'"), ("", ": the key 'limit_s' is missing")],
)
def test_a_wrong_preset_is_told(line: str, fault: str, tmp_path: Path) -> None:
    preset = f'title = "t"\nnetworks = ["lte"]\nprotocols = ["tcp"]\nruns = 1\n{line}\nseries = []\n'
    (tmp_path / "odd.toml").write_text(preset)
    with pytest.raises(EyelevelError, match=f"odd.toml{fault}"):
        read_preset("odd", tmp_path)


def test_a_series_is_narrowed_where_it_varies() -> None:
    of_sizes, of_counts = Series((1,), ("5KB", "10KB")), Series((1, 2, 5), ("10KB",))
    assert of_sizes.narrowed((1, 50), ("100B",)) == Series((1,), ("100B",))
    assert of_counts.narrowed((1, 50), ("100B",)) == Series((1, 50), ("10KB",))
    assert of_counts.narrowed((), ()) == of_counts


def test_the_rate_that_varies_is_drawn_evenly_every_second() -> None:
    file = Path(NETWORKS["longlook-varying"].down_trace or "")
    assert [int(ms) for ms in read_trace(file)] == varying_trace(50, 150, 30, 2017)
    times = [int(line) for line in gzip.decompress(file.read_bytes()).split()]
    lines = Counter((ms - 1) // 1000 for ms in times)
    rates = [lines[second] * TRACE_LINE_BYTES * 8 / 1e6 for second in range(30)]
    assert times[-1] == 30_000
    assert all(49.9 < rate < 150.1 for rate in rates)
    assert min(rates) < 70
    assert max(rates) > 130


def test_what_one_direction_loses_the_other_does_not() -> None:
    network = NETWORKS["controlled-100ms"]
    assert (network.loss_of("up"), network.loss_of("down")) == (0.02, 0)


def test_a_cell_that_no_protocol_can_finish_in_time_is_left_out() -> None:
    slow, fast = NETWORKS["longlook-5mbps-12ms-0loss"], NETWORKS["longlook-100mbps-12ms-0loss"]
    page = Page(1, 210_000_000)
    # 210 MB are 1680 Mbit: 336 s at 5 Mbit/s, 16.8 s at 100 Mbit/s.
    assert grid.least_s(page, slow) == pytest.approx(336.024)
    assert grid.least_s(page, fast) == pytest.approx(16.824)
    (one,) = grid.impossible([page, Page(1, 5000)], [slow, fast], 60)
    assert (one.site, one.network, one.of) == ("grid-1x210000KB", slow.name, grid.NO_TIME)
    assert one.reason == "takes at least 336 s, may take 60 s"


def test_a_cell_behind_a_hop_is_left_out_by_its_whole_path() -> None:
    page, near = Page(1, 2_500_000), Network("near", min_rtt_ms=100, up_mbps=20, down_mbps=20, queue_ms=50)
    hop = Hop(NONE, min_rtt_ms=400, up_mbps=2, down_mbps=2, queue_ms=50)
    # 20 Mbit at 2 Mbit/s, a handshake with the hop, and a request along the whole path.
    assert grid.least_s(page, replace(near, hop=hop)) == pytest.approx(10 + 0.1 + 0.5)
    assert grid.least_s(page, replace(near, hop=replace(hop, down_mbps=None))) == pytest.approx(1 + 0.1 + 0.5)


def test_a_budget_holds_as_many_cells_as_possible() -> None:
    expected_s = {("a", "n"): 50.0, ("b", "n"): 10.0, ("c", "n"): 30.0, ("d", "n"): 20.0}
    out = grid.beyond_budget(expected_s, 60)
    assert [(one.site, one.of, one.reason) for one in out] == [("a", grid.NO_BUDGET, "would take about 50 s")]
    assert grid.beyond_budget(expected_s, 110) == []


def test_objects_are_spread_over_as_many_servers_as_there_are_objects() -> None:
    grid_of_counts = grid.narrowed(read_preset("longlook"), "1,10", "5KB,10KB", "1,4")
    assert [page.name for page in grid_of_counts.pages()] == [
        *("grid-1x5KB", "grid-1x10KB", "grid-10x10KB", "grid-10x10KB-4s"),
    ]
    # A combination without a page is reported.
    assert grid.too_few_lines(grid_of_counts) == ["one object cannot be spread over 4 servers"]
    with pytest.raises(EyelevelError, match="no page of this grid can be measured: one object cannot be spread over 4"):
        grid.narrowed(read_preset("lossy-bulk"), None, None, "4")


def test_further_servers_are_measured_over_the_protocols_that_are_named_after_them() -> None:
    named = [one.name for one in grid.served_by("caddy, quinn quinn-reno", PROTOCOLS)]
    assert named == ["caddy-h2", "caddy-h3", "quinn-h3", "quinn-reno"]
    with pytest.raises(EyelevelError, match=r"further servers \(caddy, quinn\) or their protocols, not 'nginx'"):
        grid.served_by("nginx", PROTOCOLS)
    with pytest.raises(EyelevelError, match="are spread with --spread"):
        grid.served_by("4", PROTOCOLS)


def test_a_grid_of_one_protocol_is_refused(tmp_path: Path) -> None:
    options = ["--preset", "controlled", "--proto", "quic", "--results", str(tmp_path)]
    done = CliRunner().invoke(study_command(STUDY), options)
    assert str(done.exception) == "a grid compares protocols, and quic is one alone; name more with --proto"
    assert not list(tmp_path.iterdir())


def campaign(folder: Path, budget_s: float | None) -> Any:
    pages = [Page(1, 5000), Page(1, 1_000_000), Page(1, 210_000_000)]
    chosen = [NETWORKS["longlook-10mbps-12ms-0loss"]]
    over = [PROTOCOLS["tcp+"], PROTOCOLS["quic"]]
    return grid.grid_campaign(folder, "longlook", pages, chosen, over, 10, 1, 60, budget_s)


def test_a_budgeted_grid_says_what_it_leaves_out_and_goes_on_with_the_same(tmp_path: Path) -> None:
    # Twenty loads of 5 KB take about a minute; those of 1 MB take 16 s longer, 0.8 s each at 10 Mbit/s.
    first = campaign(tmp_path, 70)
    assert list(first.sites) == ["grid-1x5KB"]
    assert not first.loading.filmed
    reasons = {one["site"]: one["of"] for one in first.study["left_out"]}
    assert reasons == {"grid-1x1000KB": grid.NO_BUDGET, "grid-1x210000KB": grid.NO_TIME}
    (tmp_path / "campaign.json").write_text(json.dumps(first.document().content()))
    assert campaign(tmp_path, None).study["left_out"] == first.study["left_out"]
    more = campaign(tmp_path, 300)
    assert list(more.sites) == ["grid-1x5KB", "grid-1x1000KB"]
    assert {one["of"] for one in more.study["left_out"]} == {grid.NO_TIME}


def test_a_cell_whose_loads_take_too_long_gets_no_more_rounds(tmp_path: Path) -> None:
    late = rejected("over_time: not loaded within 60 s")
    failed = rejected("load_failed: no")
    assert grid.too_slow([late, failed, ROW]) == set()
    assert grid.too_slow([late, ROW, replace(late, protocol="quic")]) == {("s", "lte")}
    # A load that took too long is not repeated, regardless of the limit for others.
    assert FolderStore(tmp_path, [late]).is_given_up(ROW.of, REPEATS)
    assert not FolderStore(tmp_path, [failed]).is_given_up(ROW.of, REPEATS)


def test_what_is_left_out_now_gets_no_more_rounds_though_it_was_planned_before(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(",".join(columns()) + "\n")
    assert set(grid.no_more_rounds({("b", "n")})(tmp_path)) == {("b", "n")}


# The computed least time of 700 KB is 4.8 s (4 s at the link's rate, and two round trips), below the limit of 5 s, so
# the page is measured. Headers, a further round trip and slow start take it beyond the limit. 100 bytes take 1.6 s.
FAR_RTT_MS = 400
FAR = f"[far]\nup_mbps = 1.4\ndown_mbps = 1.4\nmin_rtt_ms = {FAR_RTT_MS}\nqueue_ms = 200\n"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grid of two cells, measured once over both protocols."""
    folder = tmp_path_factory.mktemp("results")
    (folder / networks.FILENAME).write_text(FAR)
    options = ["--preset", "controlled", "--counts", "1", "--sizes", "100B,700KB", "--net", "far"]
    options += ["--runs", "1", "--limit", "5", "--no-validate", "--results", str(folder), "--campaign", "tiny"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EYELEVEL_TUNING", str(folder))
        patch.setattr(slot, "time_canary", lambda _: Canary(50.0, 800.0))
        done = CliRunner().invoke(study_command(STUDY), options)
    assert done.exit_code == 0, done.output
    assert "grid-1x700KB on far cannot finish in its time (5 s)" in done.output
    return folder / "tiny"


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_grid_is_measured_over_both_protocols(measured: Path) -> None:
    rows = read_rows(measured)
    cells = {(row.site, row.network, row.protocol): row for row in rows if row.site == "grid-1x100B"}
    assert len(cells) == 2
    for row in cells.values():
        assert row.valid, row.reason
        assert (row.requests, row.served, row.exchanges) == (2, 2, 2)
        plt_ms = row.metrics["plt"]
        assert plt_ms is not None
        # At least three round trips.
        assert 3 * FAR_RTT_MS < plt_ms < 5000
        assert (row.metrics["fvc"], row.metrics["si"]) == (None, None)
        files = {path.name for path in (measured / row.folder).iterdir()}
        assert "browsertime.har.gz" in files
        assert not any("film" in name for name in files)
    document = json.loads((measured / "campaign.json").read_text())
    assert document["settings"]["filmed"] is False
    assert document["settings"]["browser"]["quiet_ms"] == 100
    assert document["study"]["preset"] == "controlled"


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_load_that_takes_too_long_says_so_and_is_not_repeated(measured: Path) -> None:
    late = [row for row in read_rows(measured) if (row.site, row.network) == ("grid-1x700KB", "far")]
    assert sorted(row.protocol for row in late) == ["quic", "tcp+"]
    assert {str(row.reason) for row in late} == {"over_time: not loaded within 5 s"}
    assert {row.of for row in late} == {Run("grid-1x700KB", "far", name, 1) for name in ("tcp+", "quic")}


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_grid_does_not_become_another(measured: Path) -> None:
    options = ["--preset", "longlook", "--campaign", "tiny", "--results", str(measured.parent)]
    done = CliRunner().invoke(study_command(STUDY), options)
    assert str(done.exception).endswith(
        "tiny is a campaign of the grid controlled; name another for longlook with --campaign"
    )


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_grid_is_told_from_a_campaign_of_sites(measured: Path) -> None:
    done = CliRunner().invoke(campaign_command, ["--campaign", "tiny", "--results", str(measured.parent)])
    assert "tiny is a grid; to resume it: make grid CAMPAIGN=tiny RESULTS=" in str(done.exception)
    CliRunner().invoke(analysis, [str(measured)], catch_exceptions=False)


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_the_report_of_a_grid_is_a_page_of_its_own(measured: Path, browser: Browser) -> None:
    done = CliRunner().invoke(report, [str(measured)])
    assert done.exit_code == 0, done.output
    browser.open((measured / "report" / "index.html").as_uri())
    assert browser.console() == []
    text = browser.run("return document.body.innerText")
    assert "2 pages on 1 network over TCP+ and QUIC" in text
    assert "1 cell cannot finish in the 5 s that a load may take." in text
    assert browser.run("return [...document.images].filter((one) => one.src && !one.naturalWidth).length") == 0
    files = {path.name for path in (measured / "report").glob("*/*")}
    assert {"heatmap_quic.pdf", "heatmap_quic.png", "grid_cells.csv", "grid_cells.tex", "settings.csv"} <= files
