"""The distances of servers are as configured: none, as recorded, or as listed in a file."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.report.conditions import of_servers
from base.errors import EyelevelError
from dataset.settings import CampaignSettings
from measure.campaign.campaign import Campaign
from measure.campaign.results import changes
from measure.run.server_rtts import FILE, ServerRtts, kept_server_rtts, parse_server_rtts
from measure.run.setting import Loading
from record.connections import Connection
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from replay.shells.registry import require_emulated
from tuning import networks, protocols
from tuning.defaults import OFF, RECORDED

CLIENT_SIDE = """
["a"]
default = 3
"www.a.example" = 10.5
"198.18.0.3" = 120
"192.0.2.4" = 0
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Five servers, three of which have recorded round-trip times."""
    page = Exchange("GET", "https://www.a.example/", Response(200, "OK", (), b"<p>A"), "192.0.2.1")
    others = [replace(page, url=f"https://h{n}.a.example/", recorded_ip=f"192.0.2.{n}") for n in range(2, 6)]
    connections = [
        Connection(f"192.0.2.{n}", "www.a.example", handshake_ms)
        for n, handshake_ms in ((1, 22.0), (1, 20.5), (2, 12.0), (3, 92.25), (3, None))
    ]
    recording = Recording(page.url, (page, *others), {"tool": "test"}, connections=tuple(connections))
    return write_site(recording, tmp_path / "sites" / "a")


def file_with(folder: Path, text: str) -> str:
    path = folder / "rtts.toml"
    path.write_text(text)
    return str(path)


def test_servers_are_as_far_beyond_the_nearest_as_they_were_recorded(site: Site) -> None:
    recorded = parse_server_rtts("recorded").extra_ms(site)
    # A server without a recorded time is assumed to be as far away as the median of the others.
    assert recorded == {f"198.18.0.{n}": extra for n, extra in zip(range(1, 6), (8.5, 0, 80.25, 8.5, 8.5), strict=True)}
    beyond_15_ms = parse_server_rtts("recorded-15ms").extra_ms(site)
    assert list(beyond_15_ms.values()) == [5.5, 0, 77.25, 5.5, 5.5]
    assert list(parse_server_rtts("recorded-0ms").extra_ms(site).values())[:3] == [20.5, 12, 92.25]
    assert parse_server_rtts("off").extra_ms(site) == {}
    assert [str(parse_server_rtts(text)) for text in ("off", "recorded", "recorded-12.5ms")] == [
        OFF,
        RECORDED,
        "recorded-12.5ms",
    ]


def test_a_site_of_which_nothing_was_recorded_is_refused(site: Site) -> None:
    with pytest.raises(EyelevelError, match="a: no round-trip times of its servers were recorded; record it again"):
        parse_server_rtts("recorded").extra_ms(replace(site, connections=()))


def test_a_file_names_servers_by_host_ip_or_address(site: Site, tmp_path: Path) -> None:
    setting = parse_server_rtts(file_with(tmp_path, CLIENT_SIDE))
    assert list(setting.extra_ms(site).values()) == [10.5, 3, 120, 0, 3]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[b]\ndefault = 1", r"the file of --server-rtts has no \[a\]"),
        ('[a]\n"h9.a.example" = 1', r"\[a\] has h9.a.example, which is not one of its servers"),
        ('[a]\n"h2.a.example" = 1\n"198.18.0.2" = 2', "several values for the server 198.18.0.2"),
        ("[a]\ndefault = -1", "default must be from 0 to 10000 ms, not -1"),
        ("[a]\ndefault = true", "default must be from 0 to 10000 ms, not True"),
        ("[a]\ndefault = nan", "default must be from 0 to 10000 ms, not nan"),
        ("a = 1", "a is not a table of a site's servers"),
        ("[a", "rtts.toml: "),
    ],
)
def test_a_file_that_cannot_be_applied_is_refused(site: Site, tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(EyelevelError, match=fault):
        parse_server_rtts(file_with(tmp_path, text)).extra_ms(site)


def test_a_word_that_is_neither_a_setting_nor_a_file_is_refused() -> None:
    with pytest.raises(EyelevelError, match="recordet is neither off, recorded, recorded-12ms nor a file"):
        parse_server_rtts("recordet")


def campaign(site: Site, server_rtts: ServerRtts, *, think_time: str = OFF) -> Campaign:
    return Campaign(
        folder=site.folder,
        sites={site.name: site},
        networks={"lte": networks.load()["lte"]},
        protocols={"tcp": protocols.load()["tcp"]},
        runs=1,
        seed=1,
        loading=Loading(server_rtts=server_rtts, think_time=think_time),
    )


def test_a_campaign_keeps_how_far_its_servers_are_and_goes_on_with_no_others(site: Site, tmp_path: Path) -> None:
    usual = campaign(site, ServerRtts()).document()
    assert not usual.settings.content().keys() & {"server_rtts", "think_time", "certificates"}, "as usual"
    from_file = parse_server_rtts(file_with(tmp_path, CLIENT_SIDE))
    document = campaign(site, from_file, think_time=RECORDED).document()
    assert (document.settings.server_rtts, document.settings.think_time) == (FILE, RECORDED)
    assert document.settings.extra_rtts_ms == {"a": from_file.extra_ms(site)}
    (tmp_path / "rtts.toml").unlink()
    kept = kept_server_rtts(document.settings)
    assert kept.extra_ms(site) == from_file.extra_ms(site), "though the file has gone"
    assert changes(document, campaign(site, kept, think_time=RECORDED).document()) == []
    assert changes(usual, document) != [] != changes(document, usual)
    assert kept_server_rtts(usual.settings) == ServerRtts()
    other = parse_server_rtts(file_with(tmp_path, CLIENT_SIDE.replace("120", "121")))
    assert changes(document, campaign(site, other, think_time=RECORDED).document()) == [
        "settings/sites/a/extra_rtts_ms/198.18.0.3 was 120.0, is 121.0"
    ]


def test_the_recorder_s_access_is_kept_to_its_last_digit() -> None:
    setting = parse_server_rtts("recorded-12.3456789ms")
    assert kept_server_rtts(CampaignSettings(server_rtts=str(setting))) == setting
    assert str(parse_server_rtts("recorded-12ms")) == "recorded-12ms"


def test_a_report_says_how_far_servers_were(site: Site) -> None:
    assert of_servers(campaign(site, ServerRtts()).document()) == []
    recorded = campaign(site, parse_server_rtts("recorded"), think_time=RECORDED).document()
    distance, thinking = of_servers(recorded)
    assert "round trips to 5 servers of 1 site are longer by 0 to 80.2 ms (median 8.5 ms)" in distance
    assert "as long to answer as the recorded ones" in thinking


def test_shells_that_cannot_delay_single_servers_are_refused() -> None:
    with pytest.raises(EyelevelError, match="the shells mahimahi cannot delay single servers"):
        require_emulated("mahimahi", [], delayed_servers=True)
