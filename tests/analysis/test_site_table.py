"""The table of the recorded sites, its figure, and the facts about them that a campaign keeps."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from pandas.testing import assert_frame_equal
from support.scripted import ScriptedCampaign

from analysis import runs as tables
from analysis.figures import figure1
from analysis.sites import site_table
from base.errors import EyelevelError
from base.files import read_json
from measure.campaign.results import opened
from measure.sites.completeness import Completeness, RequestedUrl, digest, summarise
from measure.sites.facts import facts_of
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from servers.matching import Kind
from tuning import networks, protocols


def site(folder: Path, *exchanges: tuple[str, bytes, str]) -> Site:
    recorded = tuple(Exchange("GET", url, Response(200, "OK", (), body), ip) for url, body, ip in exchanges)
    return write_site(Recording(recorded[0].url, recorded, {"tool": "test"}), folder)


def test_sites_are_counted_and_ordered_by_size(tmp_path: Path) -> None:
    large = site(
        tmp_path / "large",
        ("https://www.news.co.uk/", b"x" * 10, "192.0.2.1"),
        ("https://img.news.co.uk/a", b"x" * 500, "192.0.2.1"),
        ("https://other.co.uk/b", b"x" * 20, "192.0.2.2"),
    )
    small = site(tmp_path / "small", ("https://one.example/", b"x", "192.0.2.9"))
    table = site_table({one.name: facts_of(one) for one in (large, small)}).drop(columns=["served", "jaccard", "loads"])
    assert table.to_dict("records") == [
        {
            "site": "small",
            "exchanges": 1,
            "bytes": 1,
            "servers": 1,
            "hosts": 1,
            "third_party_hosts": 0,
            "largest_bytes": 1,
            "largest": "https://one.example/",
        },
        {
            "site": "large",
            "exchanges": 3,
            "bytes": 530,
            "servers": 2,
            "hosts": 3,
            "third_party_hosts": 1,  # co.uk is not a registrable domain
            "largest_bytes": 500,
            "largest": "https://img.news.co.uk/a",
        },
    ]


def test_the_figure_shows_the_table(tmp_path: Path) -> None:
    one = site(tmp_path / "one", ("https://one.example/", b"x" * 2_000_000, "192.0.2.9"))
    table = site_table({"one": facts_of(one)})
    size, servers = figure1.draw(table).axes
    assert [bar.get_bbox().height for bar in size.patches if isinstance(bar, Rectangle)] == [2.0]
    assert [bar.get_bbox().height for bar in servers.patches if isinstance(bar, Rectangle)] == [1]
    assert [label.get_text() for label in servers.get_xticklabels()] == ["one"]
    # A load has less than was recorded; the recording is a line beside it.
    size, servers = figure1.draw(table.assign(loaded_bytes=1e6, contacted_servers=np.nan)).axes
    assert [bar.get_bbox().height for bar in size.patches if isinstance(bar, Rectangle)] == [1.0]
    assert np.asarray(size.lines[0].get_ydata()).tolist() == [2.0]
    assert [bar.get_bbox().height for bar in servers.patches if isinstance(bar, Rectangle)] == [1]
    # The lines of today's web are named once.
    for axes in figure1.draw(table, {"bytes": [1e6, 2e6], "servers": [3, 4]}).axes:
        legend = axes.get_legend()
        assert legend and [text.get_text() for text in legend.get_texts()] == ["today's web"]


def campaign(folder: Path, recorded: Site) -> Path:
    """The folder of a campaign on the site `recorded`, which has begun and has no run."""
    known = protocols.load()
    begun = ScriptedCampaign(
        folder=folder,
        sites={recorded.name: recorded},
        networks={"lte": networks.load()["lte"]},
        protocols={name: known[name] for name in ("tcp", "quic")},
        runs=1,
        seed=1,
    )
    with opened(folder, begun.document()):
        return folder


@pytest.fixture
def one(tmp_path: Path) -> Site:
    """A site of two servers."""
    (tmp_path / "sites").mkdir()
    exchanges = (("https://one.example/", b"x" * 20, "192.0.2.9"), ("https://two.example/", b"y" * 7, "192.0.2.10"))
    return site(tmp_path / "sites" / "one", *exchanges)


def test_a_results_folder_alone_tells_what_its_sites_were(tmp_path: Path, one: Site) -> None:
    folder = campaign(tmp_path / "c", one)
    expected = site_table({"one": facts_of(one)})
    shutil.rmtree(one.folder)
    table = tables.load(folder)
    assert_frame_equal(site_table(table.known_sites, ["one", "else"]), expected)
    assert table.site_facts == {"one": {"bytes": 27, "requests": 2, "servers": 2}}


def test_facts_of_a_site_have_what_its_loads_had(tmp_path: Path, one: Site) -> None:
    table = tables.load(campaign(tmp_path / "c", one))
    rows = [("one", True, "3", 10.0), ("one", True, "5", 20.0), ("one", False, "9", 90.0), ("two", True, "", np.nan)]
    runs = pd.DataFrame(rows, columns=["site", "valid", "requests", "content_bytes"])
    facts = replace(table, runs=runs).site_facts
    assert facts["one"] == {"bytes": 27, "requests": 2, "servers": 2, "loaded_requests": 4, "loaded_bytes": 15}
    assert facts["two"] == {}


def test_how_complete_a_site_was_is_kept(tmp_path: Path, one: Site) -> None:
    loads = summarise([[RequestedUrl("GET", "https://one.example/", Kind.EXACT, "one.example/00000-index", ())]])
    known = Completeness(digest(one), "now", "dsl", True, {}, {"tcp": loads, "quic": loads}, 0.5, (), (), {})
    known.write(one)
    folder = campaign(tmp_path / "c", one)
    shutil.rmtree(one.folder)
    table = site_table(tables.load(folder).known_sites).set_index("site")
    assert table.loc["one", ["served", "jaccard", "loads"]].tolist() == [1.0, 0.5, 2]


def test_facts_of_another_version_are_read_and_broken_ones_are_told(tmp_path: Path, one: Site) -> None:
    folder = campaign(tmp_path / "c", one)
    document = read_json(folder / "campaign.json")
    document["site_facts"]["one"]["colour"] = "red"
    (folder / "campaign.json").write_text(json.dumps(document))
    assert tables.load(folder).known_sites == {"one": facts_of(one)}
    for broken, message in (({"bytes": "many"}, "bytes must be a whole number"), ("none", "is not a table")):
        document["site_facts"]["one"] = broken if isinstance(broken, str) else document["site_facts"]["one"] | broken
        (folder / "campaign.json").write_text(json.dumps(document))
        with pytest.raises(EyelevelError, match=rf"campaign\.json is broken: site_facts\.one: {message}"):
            _ = tables.load(folder).known_sites


def test_the_figure_shows_todays_web_if_asked_to(tmp_path: Path) -> None:
    one = site(tmp_path / "one", ("https://one.example/", b"x" * 2_000_000, "192.0.2.9"))
    table = site_table({"one": facts_of(one)})
    size, servers = figure1.draw(table, {"bytes": [600_000, 2_500_000], "servers": [3, 10]}).axes
    assert [np.unique(line.get_ydata()) for line in size.lines] == [0.6, 2.5]
    assert [np.unique(line.get_ydata()) for line in servers.lines] == [3, 10]
    assert list(figure1.draw(table).axes[0].lines) == []
