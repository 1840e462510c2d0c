"""Video: the generated videos, the measurements of a play, why a play does not count, and the report's section."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from factories import ROW, campaign_document, rejected
from support.browser import Browser
from support.figures import smallest_type
from support.reports import accessible_report

from analysis.figures.style import SMALL, save
from base.errors import EyelevelError
from base.structure import structured, unstructured
from dataset.table import Row, Run, header, lines, write_document
from eyelevel.study_command import study_command
from measure.campaign.expectations import ENOUGH, RunOutcome, judge
from measure.campaign.single_load import REPEATS, measure_one, single_load
from measure.run.gates import is_of_machine
from measure.run.setting import Loading, Setting
from record.collection import choose_sites, load_site
from studies.study import Request
from studies.video import STUDY, media
from studies.video import pages as video
from studies.video.defaults import LADDER_BPS
from studies.video.figure import WAITING, shown, waiting
from studies.video.measure import VideoMethod, campaign
from studies.video.play import MARK, MEASURES, Gap, Play, Segment, fault, play_of
from studies.video.section import section
from tuning import networks, protocols

# A real play of 5 Mbit/s over HTTP/2, of 30 s, on a link of 7 Mbit/s that stopped for 10 s.
RECORDED = json.loads((Path(__file__).parent / "data" / "play.json").read_text())
STOPPED = structured(RECORDED, Play, "play.json")
HTTP2 = ("h2",)


def segment(number: int, quality: str = "hd720", *, ended_ms: float = 0.0, protocol: str = "h2") -> Segment:
    """A segment that arrived completely."""
    url = f"https://{video.SEGMENTS_HOST}/{quality}/{number}.m4s"
    size = Segment(url, 0, 0, 0, "", 0).bps * media.SEGMENT_S // 8
    return Segment(url, ended_ms - 100, ended_ms - 50, ended_ms, protocol, size)


def play(*qualities: str, first_frame_ms: float | None = 1000.0, **changes: Any) -> Play:
    """A play of 10 s whose segments had these qualities, without a rebuffer."""
    segments = tuple(
        segment(number, quality, ended_ms=500 * number) for number, quality in enumerate(qualities, start=1)
    )
    played_s = (10_000 - (first_frame_ms or 10_000)) / 1000
    until_s = float(media.SEGMENT_S * len(qualities))
    whole = Play(
        first_frame_ms=first_frame_ms,
        last_frame_ms=None if first_frame_ms is None else 9990.0,
        ended_ms=10_000.0,
        gaps=(),
        buffer=((0.0, 0.0, 0.0, 0), (1000.0, 0.0, 2.0, 0), (10_000.0, played_s, until_s, 0)),
        events=(),
        errors=(),
        segments=segments,
        frames=225,
        clock_shift_ms=0.3,
    )
    return replace(whole, **changes)


def measured(one: Play, segments: int = 20) -> dict[str, float | None]:
    return {measure.name: measure.read(one, segments) for measure in MEASURES}


def test_a_rebuffer_is_as_long_as_segments_and_buffer_say() -> None:
    ((began_ms, still_ms),) = STOPPED.rebuffers
    # The picture stands still from when everything that arrived before the stop has been played until more arrives.
    before = [one for one in STOPPED.pictures if one.ended_ms < began_ms]
    after = STOPPED.pictures[len(before)]
    assert STOPPED.first_frame_ms is not None
    exhausted_ms = STOPPED.first_frame_ms + 1000 * media.SEGMENT_S * len(before)
    assert began_ms == pytest.approx(exhausted_ms, abs=100)
    assert still_ms == pytest.approx(after.ended_ms - exhausted_ms, abs=100)
    assert fault(STOPPED, HTTP2) is None


def test_measures_of_a_play_are_those_of_their_definitions() -> None:
    of_play = measured(play("tiny", "tiny", "hd720", "medium", "medium", "hd2160"))
    # 9 s of five segments were played: 0.7, 0.7, 5, 2.5 Mbit/s, and half a segment of 2.5.
    assert of_play["first_frame_s"] == 1.0
    assert of_play["mean_mbps"] == pytest.approx((2 * (0.7 + 0.7 + 5 + 2.5) + 2.5) / 9)
    assert of_play["switches"] == 2
    assert of_play["switch_mbps"] == pytest.approx((4.3 + 2.5) / 2)
    assert of_play["loaded_s"] == 12
    assert of_play["share_loaded"] == pytest.approx(6 / 20)
    assert (of_play["rebuffers"], of_play["rebuffer_ratio"], of_play["in_vain"]) == (0, 0, 0)
    # Five segments could have been played in 10 s; half of the last was not.
    assert of_play["qoe"] == pytest.approx((0.7 + 0.7 + 5 + 2.5 + 2.5 / 2 - 4.3 - 2.5 - 3 * 1.0) / 5)


def test_rebuffers_beside_each_other_are_one_and_the_last_may_last_until_the_end() -> None:
    gaps = (Gap(2000, 3040, 1), Gap(3240, 3780, 1), Gap(6000, 6200, 2), Gap(7000, 7300, 1))
    stands = play(*["tiny"] * 5, gaps=gaps, last_frame_ms=9460.0)
    assert stands.rebuffers == ((2000, 1500.0), (7000, 260.0), (9460.0, 500.0))
    assert measured(stands)["rebuffer_s"] == pytest.approx(2.26)
    assert measured(stands)["rebuffers_per_s"] == pytest.approx(3 / (9 - 2.26))


def test_rates_are_of_the_segments_whose_pictures_came() -> None:
    # The last 3 of 9 played seconds had only sound.
    assert measured(play("tiny", "tiny", "medium"))["mean_mbps"] == pytest.approx(2 * (0.7 + 0.7 + 2.5) / 6)
    # The pictures of 2 to 4 s never arrived: those before stand still, and those after keep their times.
    whole = play("tiny", "tiny", "medium", "tiny", "tiny")
    times, rates = shown(replace(whole, segments=(whole.segments[0], *whole.segments[2:])), 10)
    at = dict(zip(times, rates, strict=True))
    assert np.isnan(at[0.75])
    assert (at[1.5], at[3.5], at[5.5], at[7.5]) == (0.7, 0.7, 2.5, 0.7)


def test_plays_of_one_quality_differ_by_no_rounding() -> None:
    """When each protocol had rounding errors of its own, equal rates appeared as a significant difference."""
    plays = [play(*["tiny"] * number, first_frame_ms=10_000 - 1990.0 * number) for number in range(1, 6)]
    assert {measured(one)["mean_mbps"] for one in plays} == {0.7}


def test_a_picture_is_waited_for_until_the_first_and_in_rebuffers() -> None:
    stands = play(*["tiny"] * 5, gaps=(Gap(2000, 3540, 1),))
    times, values = waiting(stands, 10)
    expected = [100.0 * (time < 1 or 2 <= time < 3.5) for time in times]
    assert list(values) == expected
    _, never = waiting(replace(stands, first_frame_ms=None, last_frame_ms=None, gaps=()), 10)
    assert set(never) == {100.0}


def test_a_rebuffer_is_a_stop_of_the_player_or_pictures_that_are_skipped() -> None:
    # Sound did not arrive either.
    assert STOPPED.stopped_s == STOPPED.rebuffer_s > 8
    # Either 9 s were played, with pictures standing still for 4 s of these; or no picture was skipped, and 5 s were
    # played.
    still = (Gap(2000, 6040, 1),)
    end = (10_000.0, 5.0, 10.0, 0)
    skips = play(*["tiny"] * 5, gaps=still)
    stops = replace(skips, buffer=(end,))
    assert [measured(one)["rebuffer_s"] for one in (skips, stops)] == [4.0, 4.0]
    assert [measured(one)["skipped_s"] for one in (skips, stops)] == [4.0, 0.0]
    assert [measured(one)["stopped_s"] for one in (skips, stops)] == [0.0, 4.0]
    # The score counts pictures; according to the player's clock nothing happened.
    assert measured(skips)["qoe"] == measured(stops)["qoe"]
    assert measured(skips)["qoe_by_clock"] == measured(play(*["tiny"] * 5))["qoe"]
    assert measured(stops)["qoe_by_clock"] == pytest.approx(measured(stops)["qoe"])


def test_the_lead_says_where_the_players_clock_has_another_verdict(tmp_path: Path) -> None:
    """On a link that was a little too slow, QUIC delivered more of the video than TCP, but had the worse score."""
    skips, stops = (Gap(2000, 2000 + still_ms + 40, 1) for still_ms in (7000, 5000))
    # Over QUIC the sound continued; over TCP the player stopped.
    quic = [play(*["hd720"] * 5, gaps=(skips,), first_frame_ms=1000.0 + number) for number in range(3)]
    ended = (10_000.0, 4.0, 10.0, 0)
    tcp = [play(*["hd720"] * 2, gaps=(stops,), buffer=(ended,), first_frame_ms=1000.0 + number) for number in range(3)]
    write_campaign(tmp_path, {"tcp+": tcp, "quic": quic})
    part = section(tmp_path)
    assert part is not None
    assert part.paragraphs[0].startswith(
        "On LTE, by the score of Yin et al., QUIC is worse than TCP+ for hd720 (3 plays each). By the player's "
        "clock it is better than TCP+ for hd720."
    )


def test_a_video_that_does_not_begin_has_waited_all_the_time() -> None:
    never = play(first_frame_ms=None, frames=0, buffer=((0.0, 0.0, 0.0, 0), (10_000.0, 0.0, 0.0, 0)))
    assert fault(never, HTTP2) is None
    assert measured(never)["first_frame_s"] is None
    assert measured(never)["mean_mbps"] is None
    # Such a play must not count as one without rebuffers, which would be the best possible result.
    assert (measured(never)["rebuffers"], measured(never)["rebuffer_s"]) == (None, None)
    assert measured(never)["qoe"] == pytest.approx(-3 * 10 / 5)


def test_frames_that_are_late_for_a_rebuffers_sake_are_not_the_machines() -> None:
    buffer = ((0.0, 0.0, 2.0, 0), (2500.0, 1.0, 1.0, 0), (4700.0, 2.0, 4.0, 30), (6000.0, 4.0, 6.0, 31))
    end = (10_000.0, 8.0, 10.0, 31)
    late = play(*["tiny"] * 5, gaps=(Gap(2600, 3640, 1),), buffer=(*buffer, end))
    assert late.dropped_frames == 1
    assert fault(late, HTTP2) is None
    assert replace(late, gaps=()).dropped_frames == 31


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"errors": ("no such thing",)}, "the player failed: no such thing"),
        ({"segments": (segment(1, protocol="h3"),)}, "a segment came over h3 instead of h2"),
        ({"segments": (segment(1, protocol=""),)}, "a segment came over an unknown protocol"),
        ({"clock_shift_ms": -9000.0}, "the player's clock differed from the machine's by -9.0 s"),
        ({"first_frame_ms": None, "buffer": ((5.0, 0.0, 8.0, 0),)}, "the video did not begin though it had come"),
        (
            {"buffer": ((0.0, 0.0, 2.0, 0), (1500.0, 0.5, 8.0, 3), (10_000.0, 9.0, 10.0, 3))},
            "3 of 225 frames were dropped",
        ),
        ({"first_frame_ms": 200.0}, "the video went 0.8 s less far than it had time for"),
        ({"gaps": (Gap(1100, 1800, 1),)}, "the picture stood still for 660 ms with 2.0 s in the buffer"),
    ],
)
def test_a_play_does_not_count_that(changes: dict[str, Any], reason: str) -> None:
    sound = play("tiny", "tiny", "tiny", "tiny", "tiny")
    assert fault(sound, HTTP2) is None
    text = fault(replace(sound, **changes), HTTP2)
    assert text is not None
    assert text.startswith(reason)


def test_a_page_without_a_report_does_not_count() -> None:
    assert fault(play_of({"browserScripts": [{"timings": {"userTimings": {"marks": []}}}]}), HTTP2) is not None


def test_a_protocol_that_brings_less_of_a_video_does_not_lose_its_plays() -> None:
    """On lossy links, TCP's plays requested a quarter fewer segments than QUIC's, and were rejected for it."""
    usual, slow = (RunOutcome(exchanges, 0, exchanges, None) for exchanges in (53, 39))
    assert list(judge([*[usual] * ENOUGH, slow])) == [ENOUGH]
    assert judge([*[usual] * ENOUGH, slow], expectations=VideoMethod().expectations()) == {}
    assert judge([*[usual] * ENOUGH, replace(slow, missed=5)], expectations=VideoMethod().expectations())


def test_names_say_what_is_played() -> None:
    for name in ("video-hd720-60s", "video-hd720-true-5s", "video-throughput-hls-60s", "video-bola-60s"):
        assert (page := video.page_named(name))
        assert page.name == name
    for name in ("video-bola-hls-60s", "video-huge-60s", "video-tiny-0s", "video-tiny"):
        assert video.page_named(name) is None
    # As an ordinary site, the page would be made repeatable, and its player's clock would stand still.
    with pytest.raises(EyelevelError):
        choose_sites("video-tiny-60s")


@pytest.mark.slow
def test_segments_have_the_bytes_of_their_rate_and_the_same_each_time() -> None:
    page = video.Video("medium", 2, "hls")
    recordings = [video.generate(page) for _ in range(2)]
    assert recordings[0] == recordings[1]
    bodies = {one.url.partition("example/")[2]: one.response.body for one in recordings[0].exchanges}
    for quality, bps in (("medium", 2_500_000), (video.SOUND, media.SOUND_BPS)):
        for number in range(1, page.segments + 1):
            assert 8 * len(body := bodies[f"{quality}/{number}.m4s"]) == bps * media.SEGMENT_S
            assert [kind for kind, _ in media.boxes(body)] == [b"free", b"moof", b"mdat"]
            # Compression in transit would not make it smaller.
            assert len({*body[8:2056]}) > 250
    assert "medium.m3u8" in bodies["main.m3u8"].decode()
    (pictures,) = media.pictures(1).segments
    for quality, bps in LADDER_BPS.items():
        assert 8 * len(media.padded(pictures, bps, quality)) == bps * media.SEGMENT_S
    with pytest.raises(EyelevelError, match="more than 8 bit/s make of 2 s"):
        media.padded(b"100", 8, "tiny/1")


def test_hls_has_one_rule(tmp_path: Path) -> None:
    options = {"videos": "bola", "player": "hls", "seconds": 2}
    with pytest.raises(EyelevelError, match="hls has no rule bola; choose among throughput, or --player dash"):
        campaign(Request(folder=tmp_path, options=options))
    done = CliRunner().invoke(study_command(STUDY), ["--videos", "huge", "--no-validate", "--results", str(tmp_path)])
    assert "huge" in str(done.exception)


def test_a_campaign_goes_on_with_what_it_has(tmp_path: Path) -> None:
    earlier = {"hdx": {"name": "hdx", "min_rtt_ms": 10.0}}
    document = campaign_document(
        networks=earlier, protocols={"tcp": {}}, sites={"video-tiny-5s": {}}, method={"seconds": 5}
    )
    options = {"videos": "small", "player": None, "seconds": None}
    more = campaign(Request(folder=tmp_path, net="lte", proto="quic", options=options, document=document)).campaign
    assert [*more.sites] == ["video-tiny-5s", "video-small-5s"]
    assert [*more.networks] == ["hdx", "lte"]
    assert [*more.protocols] == ["tcp", "quic"]
    assert not more.loading.repeatable
    # According to its document it has 3 runs, and it is resumed with these unless more are requested.
    assert (more.runs, more.seed) == (3, 1)
    plain = Request(folder=tmp_path, options=dict.fromkeys(options), document=document)
    assert [*campaign(plain).campaign.sites] == ["video-tiny-5s"]
    assert [campaign(replace(plain, runs=runs)).campaign.runs for runs in (2, 5)] == [3, 5]
    assert campaign(replace(plain, document=None, options={**options, "seconds": 5})).campaign.runs == 10


def write_campaign(folder: Path, plays: dict[str, list[Play]], rejections: Sequence[Row] = ()) -> None:
    """A campaign of one video on lte, with these plays over each protocol, and further attempts."""
    rows = [*rejections]
    for protocol, some in plays.items():
        for number, one in enumerate(some, start=1):
            place = f"runs/video-hd720-30s/lte/{protocol}/{number}-1"
            (folder / place).mkdir(parents=True)
            mark = {"name": MARK + json.dumps(unstructured(one)), "startTime": 1.0}
            scripts = [{"timings": {"userTimings": {"marks": [mark], "measures": []}}}]
            (folder / place / "browsertime.json").write_text(json.dumps([{"browserScripts": scripts}]))
            rows.append(replace(ROW, site="video-hd720-30s", protocol=protocol, run=number, folder=place))
    names = {name: {"transport": "tcp"} for name in plays}
    document = campaign_document(protocols=names, sites={"video-hd720-30s": {"sha256": "0"}})
    write_document(folder, replace(document, study={"name": STUDY.name}))
    (folder / "runs.csv").write_text(header() + lines(rows))


@pytest.mark.slow
def test_the_section_has_means_deviations_p_and_a_figure(tmp_path: Path) -> None:
    none = (replace(STOPPED, gaps=(), first_frame_ms=900.0 + number) for number in range(3))
    stops = [replace(STOPPED, first_frame_ms=2000.0 + 100 * number) for number in range(3)]
    write_campaign(tmp_path, {"tcp+": stops, "quic": list(none)})
    part = section(tmp_path)
    assert part is not None
    assert part.paragraphs[0] == (
        "On LTE, by the score of Yin et al., QUIC is better than TCP+ for hd720 (3 plays each). Better and worse: "
        "Welch's test, p < 0.01, without correction for 2 tests."
    )
    texts = part.tables[0].texts.set_index("measure")
    assert texts.loc["plays", "TCP+"] == "3"
    assert texts.loc["first frame [s]", "TCP+"] == "2.10 (0.10)"
    assert texts.loc["rebuffers", "TCP+"] == "1.0 (0.0)"
    assert "switches" not in texts.index
    assert float(texts.loc["first frame [s]", "p"]) < 0.01
    assert len(part.tables[2].texts) == 6
    of_means, over_time = (figure.draw(*figure.arguments) for figure in part.figures)
    for number, drawn in enumerate((of_means, over_time)):
        save(drawn, tmp_path, f"figure{number}")
        assert smallest_type(drawn) >= SMALL
        # Each figure states its number of plays.
        assert "3 plays each" in [axes.get_title(loc="right") for axes in drawn.axes]
    # A video with one quality has no figure of quality over time.
    assert [axes.get_ylabel() for axes in over_time.axes] == ["received\n[Mbit/s]", WAITING, "buffer\n[s]"]
    markers = [line for line in of_means.axes[0].get_lines() if line.get_marker() in ("D", "o")]
    assert [float(np.asarray(line.get_path().vertices)[0, 0]) for line in markers] == pytest.approx([2.1, 0.901])
    (empty := tmp_path / "empty").mkdir()
    assert section(empty) is None


@pytest.mark.needs_axe
def test_everybody_can_read_the_section(browser: Browser, tmp_path: Path) -> None:
    plays = {"tcp+": [STOPPED, replace(STOPPED, first_frame_ms=2100.0)], "quic": [replace(STOPPED, gaps=())] * 2}
    write_campaign(tmp_path, plays)
    assert accessible_report(browser, tmp_path) == []


def test_a_difference_of_plays_has_its_interval_and_says_how_many_have_a_value(tmp_path: Path) -> None:
    never = replace(STOPPED, first_frame_ms=None, last_frame_ms=None)
    slow = [replace(STOPPED, first_frame_ms=ms) for ms in (2000.0, 2100.0, 2200.0)]
    fast = [replace(STOPPED, first_frame_ms=ms) for ms in (900.0, 1000.0, 1100.0)]
    write_campaign(tmp_path, {"tcp+": [*slow, never], "quic": fast})
    part = section(tmp_path)
    assert part is not None
    texts = part.tables[0].texts.set_index("measure")
    assert texts.loc["first frame [s]", "TCP+"] == "2.10 (0.10), 3 of 4"
    # With 4 degrees of freedom t is 2.776; both means have a standard error of 0.1 / sqrt(3).
    assert texts.loc["first frame [s]", "difference"] == "-1.10 (-1.33 to -0.87)"
    # All values are equal, so there is no interval.
    assert texts.loc["rebuffers", "difference"] == "+0.0"


def test_the_section_says_of_each_protocol_what_does_not_count_and_why(tmp_path: Path) -> None:
    """TCP's plays were rejected more often than QUIC's, for reasons in the plays themselves, and the section did not
    show it."""
    lost = replace(ROW, site="video-hd720-30s", protocol="tcp+", run=2)
    rejections = [rejected(f"video: the player failed: {number}", lost, attempt=number) for number in (1, 2)]
    rejections.append(rejected("machine_busy: 30 ms late", lost, run=1, attempt=9))
    write_campaign(tmp_path, {"tcp+": [STOPPED], "quic": [STOPPED] * 2}, rejections)
    part = section(tmp_path)
    assert part is not None
    assert part.paragraphs[1] == (
        "1 of 2 plays over TCP+ count, 3 of 4 attempts rejected; 2 of 2 plays over QUIC count, none of 2 attempts "
        "rejected."
    )
    numbers = part.tables[1].texts.set_index("protocol")
    of_tcp = numbers.loc["TCP+", ["plays", "rejected", "by the gates"]].tolist()
    assert of_tcp == ["1 of 2", "3", "video 2, machine_busy 1"]
    assert numbers.loc["QUIC", "by the gates"] == "-"


def test_the_reference_is_the_first_protocol_though_none_of_its_plays_counts(tmp_path: Path) -> None:
    lost = replace(ROW, site="video-hd720-30s", protocol="tcp+")
    write_campaign(tmp_path, {"tcp+": [], "quic": [STOPPED] * 2}, [rejected("video: the player failed", lost)])
    part = section(tmp_path)
    assert part is not None
    assert part.paragraphs[0].startswith("On LTE, by the score of Yin et al., QUIC is not compared with TCP+ for")
    assert part.tables[0].texts.set_index("measure").loc["plays", "TCP+"] == "0"


def setting_of(page: str, protocol: str) -> Setting:
    loading = Loading(repeatable=False, filmed=False, quiet_ms=100, limit_s=60)
    return Setting(load_site(page), networks.load()["dsl"], protocols.load()[protocol], loading)


def assert_played(folder: Path, seconds: int, version: str) -> None:
    """Assert that a load played the video, was observed for `seconds`, and used this version of HTTP."""
    one = play_of(json.loads((folder / "browsertime.json").read_text())[0])
    assert one is not None
    assert one.first_frame_ms is not None
    # The page's clock, which is read twice, has a resolution of 0.1 ms.
    assert 100 < one.first_frame_ms < 1000 * seconds <= one.ended_ms + 0.2
    assert {part.protocol for part in one.segments if part.is_whole} == {version}
    assert {part.quality for part in one.segments} == {"small", video.SOUND}
    assert len(one.buffer) > 2


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.timing  # a busy machine drops frames, and plays that drop some do not count
def test_a_video_plays_over_quic_and_counts() -> None:
    with single_load(setting_of("video-small-3s", "quic"), VideoMethod(seconds=3)) as folder:
        assert_played(folder, 3, "h3")


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_a_video_plays_over_tcp_in_another_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Beside other tests, frames are dropped and late. (Tests above show that such plays do not count.)
    for limit in ("MOST_DROPPED", "MOST_STILL_S", "MOST_LAG_S", "MOST_CLOCK_SHIFT_MS", "PLAYABLE_S"):
        monkeypatch.setattr(f"studies.video.play.{limit}", math.inf)
    # On a busy machine, seconds pass before it plays.
    setting, method = setting_of("video-small-hls-12s", "tcp+"), VideoMethod(seconds=12)
    row = measure_one(Run(setting.site.name, "dsl", "tcp+", 1), setting, method, tmp_path, REPEATS)
    assert row.valid or is_of_machine(row.reason), row.reason
    assert_played(tmp_path / row.folder, 12, "h2")
