"""A rebuffer caused by a link that stops for 10 s is measured within 0.3 s.

Real pictures of 1280x720 play like small ones.
"""

import json
from pathlib import Path

import pytest

from measure.campaign.single_load import single_load
from measure.run.setting import Loading, Setting
from record.collection import load_site
from studies.video.measure import VideoMethod
from studies.video.media import SEGMENT_S
from studies.video.play import Play, play_of
from tuning import networks, protocols
from tuning.networks import Network

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser, pytest.mark.loads, pytest.mark.timing]

# The video needs 5 Mbit/s plus overhead, so at 7 Mbit/s little is buffered. The file begins with the network, some
# seconds before the play.
RATES = "time_s,rate_mbps\n0,7\n14,0\n24,7\n120,7\n"
NETWORK = '[stops]\nmin_rtt_ms = 40\nup_mbps = 6\nqueue_ms = 200\ndown_trace = "rates.csv"\n'
MOST_ERROR_MS = 300


def played(name: str, network: Network, protocol: str) -> Play:
    video = load_site(name)
    seconds = int(name.rpartition("-")[2].rstrip("s"))
    loading = Loading(repeatable=False, filmed=False, quiet_ms=100, limit_s=seconds + 30)
    setting = Setting(video, network, protocols.load()[protocol], loading, seed=1)
    with single_load(setting, VideoMethod(seconds=seconds)) as folder:
        play = play_of(json.loads((folder / "browsertime.json").read_text())[0])
    assert play is not None
    return play


@pytest.mark.parametrize("protocol", ["tcp+", "quic"])
def test_a_provoked_rebuffer_is_counted(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text(RATES)
    (tmp_path / networks.FILENAME).write_text(NETWORK)
    play = played("video-hd720-30s", networks.load(tmp_path / networks.FILENAME)["stops"], protocol)
    assert play.first_frame_ms is not None
    # The rebuffer computed from the arrival of segments: it begins when all segments that have arrived are played, and
    # ends when those for the position of the sound have arrived.
    began_ms, still_ms = max(play.rebuffers, key=lambda one: one[1])
    before = sum(one.ended_ms < began_ms for one in play.pictures)
    exhausted_ms = play.first_frame_ms + 1000 * SEGMENT_S * before
    *_, position_s = (at for at_ms, at, *_ in play.buffer if at_ms < began_ms + still_ms)
    number = int((position_s + MOST_ERROR_MS / 1000) // SEGMENT_S) + 1
    came_ms = max(one.ended_ms for one in play.segments if one.is_whole and one.number == number)
    assert began_ms == pytest.approx(exhausted_ms, abs=MOST_ERROR_MS)
    assert still_ms == pytest.approx(came_ms - exhausted_ms, abs=MOST_ERROR_MS)
    assert still_ms > 5000


def test_true_pictures_are_played_as_small_ones() -> None:
    small, true = (
        played(f"video-{quality}-10s", networks.load()["lte"], "tcp+") for quality in ("hd720", "hd720-true")
    )
    assert small.first_frame_ms is not None
    assert true.first_frame_ms == pytest.approx(small.first_frame_ms, abs=200)
    assert (small.rebuffers, true.rebuffers) == ((), ())
    assert true.dropped_frames < 0.01 * true.frames
    assert abs(len(true.pictures) - len(small.pictures)) <= 1
