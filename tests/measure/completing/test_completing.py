"""Completing a recording: requests that the recording cannot answer are reported by URL, and kept with the site."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from analysis.sites import site_table
from base.errors import EyelevelError
from measure.completing.completing import Completing, complete, fetch_missing, font_warnings, summary, warnings
from measure.completing.fonts import without_fonts
from measure.sites import completeness
from measure.sites.completeness import (
    UNREACHABLE,
    Completeness,
    Reason,
    RequestedUrl,
    jaccard,
    missed_urls,
    reasons_for_unused,
    summarise,
)
from measure.sites.facts import facts_of
from record.demo import generate
from record.http1 import Response
from record.recorder.addresses import AddressPolicy
from record.recorder.spec import RecordSpec
from record.site import Exchange, Recording, Site, write_site
from tuning import networks, protocols

DSL = networks.load()["dsl"]


def completing(*names: str) -> Completing:
    known = protocols.load()
    return Completing(loads=1, network=DSL, protocols={name: known[name] for name in names})


def small_site(folder: Path) -> Site:
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"<p>"), "192.0.2.1")
    return write_site(Recording(page.url, (page, replace(page, url=f"{page.url}b")), {"tool": "test"}), folder)


def url_request(kind: str, url: str, *askers: str, file: str = "") -> RequestedUrl:
    return RequestedUrl("GET", url, kind, file, askers)


def known(site: Site) -> Completeness:
    missed = missed_urls([[url_request("miss", "https://a.example/gone", "https://a.example/")]])
    loads = summarise(
        [[url_request("exact", "https://a.example/", file="a.example/00000-index"), url_request("miss", "/gone")]]
    )
    digest = completeness.digest(site)
    return Completeness(
        digest, "now", "dsl", True, {"chromium": "1"}, {"tcp": loads}, 1.0, missed, ("a.example/1",), {}
    )


@pytest.mark.needs_namespaces
def test_a_demo_site_is_complete_over_both_transports(tmp_path: Path) -> None:
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    before = completeness.digest(site)
    result = complete(site, completing("tcp", "quic"), fetch=False)
    assert result.served == result.jaccard == 1
    assert not result.missed
    assert [Path(file).name[6:] for file in result.unused] == ["favicon.ico"], "which is the browser's to ask for"
    assert result.protocols["tcp"] == result.protocols["quic"]
    assert result.protocols["tcp"].exact == result.protocols["tcp"].requested == len(site.exchanges) - 1
    assert completeness.read(site) == result
    assert completeness.digest(site) == before, "a campaign that was begun before can be resumed"


@dataclass(frozen=True)
class Little:
    """A site whose page requests a few things, one of which it lacks; and the data about it from one load."""

    site: Site
    page: Exchange
    result: Completeness


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Little:
    recording = generate("demo-light")
    text = "<!doctype html><meta charset=utf-8>" + "本页很小。" * 9
    # Chromium sends this query as it is, and the HAR has it with escapes.
    text += "<img src='/gone.jpg?sizes={1}|[2]#top'><script>fetch('/counted?visit=2')</script>"
    response = Response(200, "OK", (("content-type", "text/html"),), text.encode())
    page = replace(recording.exchanges[0], url="https://sync.example/", response=response)
    other = replace(page, url=f"{page.url}counted?visit=1")
    recording = replace(recording, url=page.url, exchanges=(page, other, *recording.exchanges))
    site = write_site(recording, tmp_path_factory.mktemp("little") / "demo-light")
    return Little(site, page, complete(site, completing("tcp"), fetch=False))


@pytest.mark.needs_namespaces
def test_what_a_recording_lacks_is_told_by_url_and_asker(little: Little) -> None:
    site, result, url = little.site, little.result, f"{little.page.url}gone.jpg?sizes={{1}}|[2]"
    (missed,) = result.missed
    assert (missed.method, missed.url, missed.loads) == ("GET", url, 1)
    assert missed.asked_by == (little.page.url,)
    loads = result.protocols["tcp"]
    assert (loads.requested, loads.exact, loads.prefix, loads.missed) == (3, 1, 1, 1)
    assert result.served == 1 - 1 / loads.requested
    assert f"missing in 1 of 1 load: GET {url}, requested by {little.page.url}" in summary(site.name, result)
    assert set(result.unused) == {exchange.file for exchange in site.exchanges[2:]}


@pytest.mark.parametrize("policy", [AddressPolicy.PUBLIC, AddressPolicy.ALL])
def test_what_is_fetched_for_a_site_obeys_the_user_not_the_site(policy: AddressPolicy, tmp_path: Path) -> None:
    specs: list[RecordSpec] = []

    def note(spec: RecordSpec) -> bool:
        specs.append(spec)
        return False

    # A site's URL may have come with the site, so unlike a URL that a user records, it permits no further addresses.
    plan = Completing(1, DSL, {}, record=note)
    plan = plan if policy is AddressPolicy.PUBLIC else replace(plan, address_policy=policy)
    assert fetch_missing(small_site(tmp_path / "site"), ["https://a.example/b"], plan) == []
    assert [(spec.address_policy, spec.also) for spec in specs] == [(policy, ("https://a.example/b",))]


def test_a_site_that_would_become_too_large_stays_as_it_is(tmp_path: Path) -> None:
    site = small_site(tmp_path / "site")

    def fetch(spec: RecordSpec) -> bool:
        page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"<p>"), "192.0.2.1")
        write_site(Recording(page.url, (page, replace(page, url=f"{page.url}c")), {"tool": "test"}), spec.folder)
        return True

    plan = Completing(1, DSL, {}, record=fetch, exchanges=2)
    with pytest.raises(EyelevelError, match="site with the fetched responses is larger than a site may be"):
        fetch_missing(site, ["https://a.example/c"], plan)
    assert len(Site.load(site.folder).exchanges) == 2
    assert fetch_missing(site, ["https://a.example/c"], replace(plan, exchanges=3)) == ["https://a.example/c"]
    assert len(Site.load(site.folder).exchanges) == 3


def test_completeness_is_kept_with_the_site_and_shown(tmp_path: Path) -> None:
    site, other = small_site(tmp_path / "site"), small_site(tmp_path / "other")
    assert completeness.read(site) is None
    known(site).write(site)
    assert completeness.read(site) == known(site)
    table = site_table({"site": facts_of(site), "other": facts_of(other)}).set_index("site")
    assert table.loc["site", ["served", "jaccard", "loads"]].tolist() == [0.5, 1.0, 1]
    assert table.loc["other", ["served", "jaccard", "loads"]].isna().all()


def test_what_is_known_of_another_recording_says_nothing(tmp_path: Path) -> None:
    site = small_site(tmp_path / "site")
    known(site).write(site)
    (site.folder / site.exchanges[0].file).write_bytes(b"HTTP/1.1 200 OK\r\n\r\nanother")
    assert completeness.read(site) is None
    small_site(site.folder)
    assert not (site.folder / completeness.FILE).exists(), "recorded again"


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1, "missed": 3}'])
def test_a_broken_file_is_told(tmp_path: Path, text: str) -> None:
    site = small_site(tmp_path / "site")
    (site.folder / completeness.FILE).write_text(text)
    with pytest.raises(EyelevelError, match=r"completeness\.json is broken"):
        completeness.read(site)


def test_a_file_that_is_longer_than_any_is_refused_and_not_written(tmp_path: Path) -> None:
    site = small_site(tmp_path / "a")
    path = site.folder / "completeness.json"
    path.touch()
    os.truncate(path, 1 << 27)
    with pytest.raises(EyelevelError, match=r"completeness\.json is broken \(it is longer than 64 MiB\); remove it"):
        completeness.read(site)
    path.unlink()
    with pytest.raises(EyelevelError, match="a requests too much"):
        replace(known(site), fetched=("u" * completeness.FILE_BYTES,)).write(site)
    assert completeness.read(site) is None


@pytest.mark.needs_namespaces
def test_a_page_that_uses_little_of_its_site_is_warned_of(little: Little) -> None:
    site, result, total = little.site, little.result, len(little.site.exchanges)
    assert set(result.unused_because.values()) == {Reason.NEVER}
    first, second = warnings(site, result)
    assert f"requests only 2 of {total} recorded exchanges" in first and little.page.url in first and "URL=" in first
    assert f"{total - 2} never asked for: {site.exchanges[2].url}, " in second
    texts = font_warnings(site, result)
    assert ["of its text (80.0 %), since this machine has no fonts" in text for text in texts] == [True] * len(texts)
    assert bool(texts) == bool(without_fonts([little.page.response]))
    assert completeness.read(Site.load(site.folder)) == result


@pytest.mark.parametrize(
    ("used", "unused", "warned"),
    [(5, 5, False), (4, 6, True), (1, 4, False), (1, 5, True)],
    ids=["half", "less", "a small page and its icons", "more than icons"],
)
def test_a_page_that_uses_half_of_its_site_or_has_icons_is_not_warned_of(
    used: int, unused: int, warned: bool, tmp_path: Path
) -> None:
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"<p>"), "192.0.2.1")
    others = [replace(page, url=f"{page.url}{number}") for number in range(1, used + unused)]
    site = write_site(Recording(page.url, (page, *others), {"tool": "test"}), tmp_path / "a")
    result = replace(known(site), unused=tuple(exchange.file for exchange in site.exchanges[used:]))
    assert [f"requests only {used} of {used + unused} recorded" in text for text in warnings(site, result)] == [
        True
    ] * warned


@pytest.mark.parametrize(
    ("recorded", "requested", "kind", "reason"),
    [
        ("t?ts=1", "t?ts=2", "prefix", Reason.OTHER_TIME),
        ("v12/a.js", "v13/a.js", "miss", Reason.OTHER_TIME),
        ("app-0123456789ab.js", "app-fedcba987654.js", "unreachable", Reason.OTHER_TIME),
        ("v12/a.js", "v13/a.js", "exact", Reason.NEVER),  # both were recorded, so their numbers differ in meaning
        ("a.webp?w=3", "a.jpg", "exact", Reason.OTHER_BROWSER),
        ("a.webp", "b.jpg", "exact", Reason.NEVER),
        ("a", "b", "miss", Reason.NEVER),
    ],
)
def test_the_reason_for_an_unused_exchange(
    recorded: str, requested: str, kind: str, reason: Reason, tmp_path: Path
) -> None:
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"<p>"), "192.0.2.1")
    other = replace(page, url=page.url + recorded)
    site = write_site(Recording(page.url, (page, other), {"tool": "test"}), tmp_path / "a")
    first = url_request("exact", page.url, file=site.exchanges[0].file)
    load = [first, url_request(kind, page.url + requested, file="x")]
    assert reasons_for_unused(site, [load]) == {site.exchanges[1].file: reason}


def test_loads_are_summed_up_by_how_urls_were_answered() -> None:
    one = [
        url_request("exact", "https://a.example/", file="a.example/0"),
        url_request("prefix", "https://a.example/x?1", file="a.example/1"),
        url_request("miss", "https://a.example/m?1"),
        url_request(UNREACHABLE, "https://b.example/"),
    ]
    two = [
        one[0],
        url_request("prefix", "https://a.example/x?2", file="a.example/1"),
        url_request("miss", "https://a.example/m?2"),
    ]
    loads = summarise([one, two])
    assert (loads.loads, loads.requested, loads.exact, loads.prefix, loads.missed) == (2, 7, 2, 2, 3)
    assert loads.jaccard == 1 / 6
    assert loads.jaccard_as_matched == 3 / 4
    assert next((m.url, m.loads) for m in missed_urls([one, two, two])) == ("https://a.example/m?2", 2)


def test_the_jaccard_index_is_the_mean_over_pairs() -> None:
    assert jaccard([{1, 2}, {1, 2}]) == 1
    assert jaccard([{1}, {2}]) == 0
    assert jaccard([{1, 2}, {1}, {1}]) == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert jaccard([{1}]) == jaccard([]) == 1


def test_the_file_is_json_that_others_can_read(tmp_path: Path) -> None:
    site = small_site(tmp_path / "site")
    known(site).write(site)
    values = json.loads((site.folder / completeness.FILE).read_text())
    assert values["protocols"]["tcp"]["missed"] == 1
    assert values["missed"] == [
        {"method": "GET", "url": "https://a.example/gone", "loads": 1, "asked_by": ["https://a.example/"]}
    ]
