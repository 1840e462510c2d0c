"""The parts of a campaign: names, cores, canaries, films, forecasts."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from factories import ROW
from support.film_reference import frame_times_ms
from support.films import ORANGE, WHITE, film, frame, page

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.durations import mean_seconds
from dataset.run_files import FILM, LAST, NAVIGATION, SMALL_FILM, STRIP, VISUAL
from dataset.table import Run, read_rows
from films.policy import FilmPolicy
from measure.campaign.forecast import Forecaster, RunModel, require_space
from measure.campaign.slot import CANARY_MAX_AGE_S, Slot
from measure.host import topology
from measure.host.affinity import CORES_FOR_PLACES, layout
from measure.host.canary import DRIFT, RECENT, USUAL, Canary, drift, slowness, time_canary
from measure.host.sharing import ALONE, Sharing
from measure.run.aliases import base_name, choose_protocols
from measure.run.evidence import analyse_film
from record.demo import generate
from record.site import Site, write_site
from servers.registry import require_served
from tuning import networks, protocols


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("tcp,tcp", ["tcp", "tcp~2"]),
        ("quic tcp quic quic", ["quic", "tcp", "quic~2", "quic~3"]),
        (["tcp", "tcp~2"], ["tcp", "tcp~2"]),
        ("all,tcp", ["tcp", "tcp+", "tcp+bbr", "quic", "quic+bbr", "tcp~2"]),
    ],
)
def test_a_protocol_named_twice_is_measured_twice(wanted: str | list[str], names: list[str]) -> None:
    known = protocols.load()
    chosen = choose_protocols(wanted, known)
    assert [protocol.name for protocol in chosen] == names
    for protocol in chosen:
        (served,) = require_served([known[base_name(protocol.name)]])
        assert replace(protocol, name="") == replace(served, name="")


def test_an_unknown_protocol_is_told_under_any_name() -> None:
    with pytest.raises(EyelevelError, match="unknown protocol 'quick'"):
        choose_protocols("tcp,quick~2", protocols.load())


def test_with_enough_cores_each_part_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "PROCESSORS", tmp_path)  # if nothing is known about them, each counts as a core
    assert layout(range(CORES_FOR_PLACES - 1)) is None
    for count in (CORES_FOR_PLACES, 8, 12, 64):
        places = layout(range(count))
        assert places is not None
        each = [places.servers, places.emulator, places.browser, places.film, places.analysis]
        assert all(each)
        assert sorted(core for cores in each for core in cores) == list(range(count))


@pytest.mark.needs_browser
@pytest.mark.needs_namespaces
def test_the_canary_sings_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    canary = time_canary()
    assert canary.cpu_ms > 1
    assert canary.page_ms > 100
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_becomes_slower_is_told() -> None:
    usual, slow = Canary(50, 800), Canary(50 * DRIFT * 1.01, 800)
    assert slowness([usual] * USUAL) == 1
    assert slowness([*[usual] * USUAL, Canary(50, 1600)]) == 2
    assert drift([*[usual] * USUAL, *[slow] * (RECENT - 1)]) is None
    assert drift([usual] * (USUAL + RECENT)) is None
    assert "1.26 times" in (drift([*[usual] * USUAL, *[slow] * RECENT]) or "")


class CpuSlot(Slot):
    """A slot whose canaries take these times on the processor (ms), one after another; the last one repeats."""

    pause_s = 0.0

    def __init__(self, *cpu_ms: float, usual: int = USUAL, canary_s: float = 0.0) -> None:
        super().__init__([Canary(50, 800)] * usual, canary_s)
        self.coming = list(cpu_ms)

    def timed_canary(self) -> Canary:
        return Canary(self.coming.pop(0) if len(self.coming) > 1 else self.coming[0], 800)


def test_a_busy_machine_is_waited_for() -> None:
    messages = list[str]()
    here = CpuSlot(500, 400, 55, 500)
    assert here.circumstances(7, messages.append).canary == Canary(55, 800)
    assert len(messages) == 2
    assert "10.0 times as long as usual; waiting" in messages[0]
    here.patience_s = 0
    with pytest.raises(EyelevelError, match=r"has taken 10\.0 times as long as usual for too long"):
        here.circumstances(8, messages.append)


def test_a_canary_serves_for_as_long_as_it_may() -> None:
    here = CpuSlot(50, 51, canary_s=1000)
    rows = [here.circumstances(block, print) for block in (1, 2, 3)]
    assert [(row.block, row.canary) for row in rows] == [(1, Canary(50, 800)), (2, None), (3, None)]
    assert {row.slowness for row in rows} == {1.0}
    # Block 3 is measured again, since its runs did not count.
    assert here.circumstances(3, print).canary == Canary(51, 800)
    assert here.circumstances(4, print).canary is None
    old = CpuSlot(50)
    assert all(old.circumstances(block, print).canary for block in (1, 2))


def test_where_processors_are_shared_a_canary_serves_until_runs_do_not_count() -> None:
    here = CpuSlot(50, 51, 52)
    rows = [here.circumstances(block, print, shared=True) for block in (1, 2)]
    assert [row.canary for row in rows] == [Canary(50, 800), None]
    assert here.circumstances(2, print, shared=True).canary == Canary(51, 800)
    # A block that has the processors to itself has a canary of its own.
    assert here.circumstances(3, print).canary == Canary(52, 800)


def test_only_blocks_that_share_processors_heed_other_loads() -> None:
    sharing = Sharing()
    here = Slot([Canary(50, 800)] * USUAL, 1000.0, sharing=sharing)
    here.timed_canary = lambda: Canary(50, 800)  # type: ignore[method-assign]
    assert here.circumstances(1, print, shared=True).sharing is sharing
    assert here.circumstances(2, print).sharing is ALONE


def test_what_is_usual_is_known_as_soon_as_may_be() -> None:
    here = CpuSlot(50, usual=0, canary_s=CANARY_MAX_AGE_S)
    canaries = [here.circumstances(block, print).canary for block in range(USUAL + 2)]
    assert canaries == [*[Canary(50, 800)] * (USUAL + 1), None]


@pytest.fixture(scope="module")
def film_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a film, first orange, then blank, then something, and the data about it."""
    folder = tmp_path_factory.mktemp("film")
    film(folder, [(frame(ORANGE), 400), (frame(WHITE), 500), (page(1.0), 1)])
    analyse_film(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "run", "valid", "films"),
    [
        (FilmPolicy(), 2, True, {FILM}),
        (FilmPolicy("all", "small"), 2, True, {SMALL_FILM}),
        (FilmPolicy("sample"), 1, True, {FILM}),
        (FilmPolicy("sample"), 2, True, set()),
        (FilmPolicy("sample", "small"), 2, False, {SMALL_FILM}),
        (FilmPolicy("none"), 1, False, set()),
    ],
)
def test_films_are_kept_as_told_and_what_was_seen_always(
    film_folder: Path, tmp_path: Path, policy: FilmPolicy, run: int, valid: bool, films: set[str]
) -> None:
    filmed = shutil.copytree(film_folder, tmp_path / "run")
    for _ in range(2):  # the second time there is nothing to do
        policy.apply(filmed, run, valid=valid)
        assert {path.name for path in filmed.iterdir()} == {NAVIGATION, VISUAL, STRIP, LAST} | films
    for name in films:
        # Orange, blank, the page, and the page at the film's end.
        assert frame_times_ms(filmed / name) == [0, 400.5, 900.5, 1400.5]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return write_site(generate("demo-light"), tmp_path_factory.mktemp("sites") / "demo-light")


def test_a_campaigns_own_runs_tell_best_how_long_the_rest_takes(site: Site, tmp_path: Path) -> None:
    model = RunModel({"demo-light": site.page_bytes, "other": site.page_bytes}, networks.load(), FilmPolicy())
    open_runs = [Run("demo-light", "lte", "tcp", number) for number in (2, 3)]
    rows = [replace(ROW, site="demo-light", run=run, seconds=10.0 * run) for run in (1, 2)]
    (tmp_path / ROW.folder).mkdir(parents=True)
    (tmp_path / ROW.folder / "film.mp4").write_bytes(bytes(5000))
    estimate = Forecaster(rows, tmp_path, model).forecast(open_runs)
    assert (estimate.seconds, estimate.bytes) == (30, 10_000)


def test_sites_that_take_longer_than_modelled_change_the_forecast_of_others_when_they_are_several(
    site: Site, tmp_path: Path
) -> None:
    model = RunModel(dict.fromkeys("abcd", site.page_bytes), networks.load(), FilmPolicy())
    usual_s = model.forecast(("d", "lte")).seconds
    rows = [replace(ROW, site=name, seconds=2 * usual_s, machine=name) for name in "abc"]
    for count, factor in ((1, 1.0), (2, 1.5), (3, 2.0)):
        scaled = Forecaster(rows[:count], tmp_path, model).forecast([Run("d", "lte", "tcp", 2)])
        assert scaled.seconds == pytest.approx(factor * usual_s)


@pytest.mark.parametrize("network", ["dsl", "lte", "da2gc"])
def test_the_forecast_of_a_small_page_is_what_one_of_its_size_took(site: Site, network: str) -> None:
    model = RunModel({site.name: site.page_bytes}, networks.load(), FilmPolicy())
    measured_s = mean_seconds(read_rows(PROJECT / "data" / "reference"))["Wikipedia", network]
    assert measured_s / 1.5 < model.forecast((site.name, network)).seconds < 1.5 * measured_s


def test_films_and_slow_networks_need_more(site: Site) -> None:
    lossless = RunModel({"s": site.page_bytes}, networks.load(), FilmPolicy())
    none = replace(lossless, films=FilmPolicy("none"))
    assert lossless.forecast(("s", "mss")).seconds > lossless.forecast(("s", "dsl")).seconds
    assert lossless.forecast(("s", "mss")).bytes > none.forecast(("s", "mss")).bytes


def test_a_disk_that_is_too_small_is_told_by_how_much(tmp_path: Path) -> None:
    require_space(0, tmp_path)
    with pytest.raises(EyelevelError, match=r"too little: the campaign needs 1000000.0 GB"):
        require_space(1e15, tmp_path)
