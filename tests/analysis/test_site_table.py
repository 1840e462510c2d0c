"""What is told of the recorded sites."""

from pathlib import Path

from matplotlib.patches import Rectangle

from analysis.figures import figure1
from analysis.sites import site_table
from measure.site_facts import facts_of
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site


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
            "third_party_hosts": 1,  # co.uk is nobody's domain
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
