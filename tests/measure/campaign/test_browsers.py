"""A campaign with several browsers: its plan, its files, its resumption, and which runs are compared."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from factories import ROW
from support.scripted import SOUND, measured, scripted_campaign

from analysis import runs as tables
from analysis.samples import samples_of
from base.errors import EyelevelError
from browsers import registry
from browsers.chromium_browser import Chromium
from dataset.clients import Client
from dataset.plan import read_plan
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Row, Run, header, lines, read_rows, require_document
from eyelevel.commands.campaign import chosen_browsers
from films.visual_metrics import VisualMetrics
from measure.campaign.campaign import Campaign
from measure.campaign.plan import plan, seed_of
from measure.campaign.review import Review
from measure.campaign.status import rejections, status
from measure.run.evidence import Evidence, RequestCounts
from measure.run.setting import Setting

BROWSERS = ("chromium", "toy")


class Toy(Chromium):
    """A browser with another name."""

    name = "toy"


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = {**registry.all_browsers(), "toy": Toy()}
    monkeypatch.setattr(registry, "all_browsers", lambda: known)
    yield


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Two blocks of one site over two settings of TCP, in two browsers, whose loads are simulated."""
    return scripted_campaign(tmp_path, further_browsers=("toy",))


def go(campaign: Campaign) -> list[Setting]:
    """Measure; Chromium requests ten exchanges, the toy five. Returns the loaded settings, in order."""
    loaded: list[Setting] = []

    def script(setting: Setting, _: Path) -> Evidence:
        loaded.append(setting)
        is_toy = setting.loading.browser == "toy"
        counts = RequestCounts(5, 5, 0, 5) if is_toy else RequestCounts(10, 10, 0, 10)
        return replace(SOUND, request_counts=counts, visual=VisualMetrics(500, 900, 700, 650 * (2 if is_toy else 1)))

    measured(campaign, script=script)
    return loaded


def test_a_block_has_all_protocols_in_all_browsers_in_random_order() -> None:
    blocks = plan("ab", ["lte"], ["tcp", "quic"], 20, 1, browsers=BROWSERS)
    for block in blocks:
        assert len({run.cell for run in block}) == 1
        assert Counter((run.protocol, run.browser) for run in block) == Counter(
            [(protocol, browser) for protocol in ("tcp", "quic") for browser in BROWSERS]
        )
    firsts = Counter((block[0].protocol, block[0].browser) for block in blocks)
    assert len(firsts) == 4 and max(firsts.values()) <= 20


def test_runs_in_the_usual_browser_are_called_and_seeded_as_before_there_were_others() -> None:
    assert str(Run("s", "lte", "tcp", 1)) == str(Run("s", "lte", "tcp", 1, "chromium")) == "s lte tcp run 1"
    assert str(Run("s", "lte", "tcp", 1, "toy")) == "s lte tcp toy run 1"
    assert seed_of(Run("s", "lte", "tcp", 1), 7) == Random("7/s lte tcp run 1").getrandbits(62)
    assert plan("s", ["lte"], ["tcp"], 1, 1) == plan("s", ["lte"], ["tcp"], 1, 1, browsers=["chromium"])


def test_every_run_is_loaded_in_its_browser_and_kept_with_it(campaign: Campaign) -> None:
    loaded = go(campaign)
    rows = read_rows(campaign.folder)
    assert [(one.protocol.name, one.loading.browser) for one in loaded] == [(row.protocol, row.browser) for row in rows]
    assert Counter((row.protocol, row.browser) for row in rows) == {
        (protocol, browser): 2 for protocol in ("tcp", "tcp+") for browser in BROWSERS
    }
    assert len({row.folder for row in rows}) == len(rows) and all(
        (campaign.folder / row.folder).is_dir() for row in rows
    )
    assert {row.of for row in rows} == {run for block in read_plan(campaign.folder) for run in block}
    document = require_document(campaign.folder)
    assert document.settings.browsers == BROWSERS
    of_first = {name: value for name, value in document.settings.browser.items() if name != "name"}
    assert of_first and document.settings.further_browsers["toy"] == of_first
    assert status(campaign.folder).done == 8
    # Resuming makes nothing twice.
    assert go(campaign) == []
    index = Review(campaign.folder).index()
    assert "browser=toy" in index and "browser=chromium" in index and '<th scope="col">browser' in index


def test_the_norms_compare_within_a_browser(campaign: Campaign) -> None:
    go(replace(campaign, runs=8))
    # Half of all runs send half as many requests, and none is rejected for this.
    assert all(row.valid for row in read_rows(campaign.folder))


def test_a_campaign_of_one_browser_can_get_another(campaign: Campaign) -> None:
    one = replace(campaign, further_browsers=())
    go(one)
    assert go(one) == []
    loaded = go(campaign)
    assert {one.loading.browser for one in loaded} == {"toy"} and len(loaded) == 4
    assert len(read_rows(campaign.folder)) == 8
    with pytest.raises(EyelevelError, match="further_browsers include toy"):
        go(one)


def test_a_campaign_of_one_browser_has_the_names_of_its_networks_whichever_browser_it_is(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text(json.dumps({"settings": {"browser": {"name": "toy"}}}))
    (tmp_path / "runs.csv").write_text(header() + lines([replace(ROW, browser="toy")]))
    assert samples_of(tables.load(tmp_path)).networks == ("lte",)


def test_loads_of_two_browsers_are_in_no_cell_together(campaign: Campaign) -> None:
    go(campaign)
    table = tables.load(campaign.folder)
    samples = samples_of(table)
    assert table.networks == samples.networks == ("lte", "lte@toy")
    si = samples.values[:, 0, :, samples.metrics.index("si")]
    assert (si[0] == 650).all() and (si[1] == 1300).all()
    assert list(table.clients.values()) == [Client("lte", "chromium"), Client("lte", "toy")]
    assert set(table.rtt_ms) == {"lte", "lte@toy"}


def test_a_campaign_whose_network_has_the_name_of_one_in_a_browser_is_refused(tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text(json.dumps({"settings": {"networks": {"lte@home": {}}}}))
    (tmp_path / "runs.csv").write_text(header() + lines([replace(ROW, network="lte@home")]))
    with pytest.raises(EyelevelError, match=r"json is broken: settings: 'lte@home' is not a name for a network"):
        tables.load(tmp_path)


def test_rejected_attempts_are_counted_by_browser() -> None:
    rows = [replace(ROW, browser=name) for name in BROWSERS]

    def titles(some: Sequence[Row], width: int | None = None) -> list[str]:
        return [str(column.header) for column in rejections(some, [], width).columns]

    assert titles(rows) == titles(rows, 80) == ["rejected by", "all", "tcp chromium", "tcp toy"]
    assert titles(rows[:1]) == ["rejected by", "all", "tcp"]
    # On a narrow terminal, first the columns of browsers are left out, then those of protocols.
    assert titles(rows, 30) == ["rejected by", "all", "tcp"]
    assert titles(rows, 20) == ["rejected by", "all"]


def test_the_command_takes_a_list_and_keeps_the_order_of_the_campaign() -> None:
    new, old = CampaignDocument(), CampaignDocument(CampaignSettings(browser={"name": "chromium"}))
    both = CampaignDocument(CampaignSettings(browser={"name": "toy"}, further_browsers={"chromium": {}}))
    assert chosen_browsers(None, None, new) == chosen_browsers(None, None, old) == ["chromium"]
    assert chosen_browsers(None, None, both) == chosen_browsers("chromium,toy", None, both) == ["toy", "chromium"]
    with pytest.raises(EyelevelError, match="unknown browser 'opera'"):
        chosen_browsers("opera", None, new)


def test_devices_are_crossed_with_browsers() -> None:
    new = CampaignDocument()
    assert chosen_browsers(None, "desktop,phone-mid", new) == ["chromium", "chromium-on-phone-mid"]
    begun = CampaignDocument(CampaignSettings(browser={"name": "chromium-on-phone-mid"}))
    assert chosen_browsers(None, None, begun) == ["chromium-on-phone-mid"]
    assert chosen_browsers(None, "desktop,phone-mid", begun) == ["chromium-on-phone-mid", "chromium"]
    with pytest.raises(EyelevelError, match="unknown device 'fridge': there are desktop, phone-high, phone-mid, all"):
        chosen_browsers(None, "fridge", new)
