"""Ten loads of every available recording over each transport: what it lacks, and whether the loads were the same.

The recordings are from 2014 to 2020 and cannot be completed from today's web, so their pages request some URLs that
nobody recorded. The share that each serves, and the similarity of its loads, must not fall below earlier values. All
numbers are printed (`pytest -s`), with each missing URL and its initiator.
"""

from pathlib import Path

import pytest
from support.material import recording_names, recording_path

from measure.completing.completing import Completing, assess, summary
from measure.run.setting import Loading
from record.formats import read_recording
from record.site import write_site
from tuning import networks, protocols

LOADS = 10

# The share of a page's requested URLs that must be served, and the required similarity of its loads as matched (see
# `measure.sites.completeness.Loads`). The first is 99 %, except for pages that request what only the web of that time
# could give.
SERVED, JACCARD_AS_MATCHED = 0.99, 0.98
INCOMPLETE = {
    "Reddit": 0.83,
    "about": 0.93,
    "amazon": 0.89,
    "apple": 0.92,
    "ask": 0.92,
    "espn": 0.90,
    "fandango": 0.92,
    "finishline": 0.88,
    "http2.github.io": 0.88,  # its HAR lacks two bodies
    "imdb": 0.94,
    "imgur": 0.97,  # a tracking pixel and an error beacon, in 97 URLs
    "outbrain": 0.81,
    "stackoverflow": 0.86,
    "weather": 0.92,  # as for fonts, Firefox 35 used WOFF and Chromium requests WOFF 2
    "www.apple.com": 0.97,
}
# How much of the last picture may differ between loads: 0.5 % is a square of 70 pixels in a desktop window.
UNLIKE = 0.005
MOVING = {
    "ebay": 0.3,  # both show one picture after another
    "finishline": 0.6,
}

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_corpus]


# Two at once on two cores: on a machine that is too busy, a page's last picture would change.
@pytest.mark.loads(group="corpus", lanes=2)
@pytest.mark.parametrize("recording", recording_names())
def test_a_recording_serves_what_its_page_asks_for_and_loads_alike(recording: str, tmp_path: Path) -> None:
    """Ten filmed loads over TCP and ten over QUIC."""
    name = Path(recording).name.removesuffix(".warc.gz").removesuffix(".har")
    site = write_site(read_recording(recording_path(recording)), tmp_path / name)
    known = protocols.load()
    completing = Completing(
        LOADS, networks.load()["dsl"], {name: known[name] for name in ("tcp", "quic")}, loading=Loading()
    )
    result = assess(site, completing)
    print(f"\n{len(site.exchanges)} exchanges; {summary(name, result)}")
    assert result.served >= INCOMPLETE.get(name, SERVED)
    for loads in result.protocols.values():
        assert loads.jaccard_as_matched >= JACCARD_AS_MATCHED
        assert loads.last_frames_unlike is not None
        assert loads.last_frames_unlike <= MOVING.get(name, UNLIKE)
