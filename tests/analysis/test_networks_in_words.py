"""Networks in words and drawings: every property has its words, and a drawing shows how a network changes over time."""

import json
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from analysis.figures import style
from analysis.figures.networks import draw, off_times, rate_series
from analysis.networks import further
from eyelevel.commands.networks import listed, main
from tuning import networks
from tuning.hops import Hop
from tuning.impairments.loss import GilbertElliott
from tuning.impairments.on_off import OnOff
from tuning.networks import Network
from tuning.queues import Queue

NETWORKS = networks.load()
PLAIN = NETWORKS["lte"]
# Each property with the words that a reader sees.
WORDS = {
    "up_delay_ms": (10, "10 ms of the round trip up"),
    "jitter_ms": (3, "jitter 3 ms"),
    "up_loss": (0.01, "loss 1 % up"),
    "down_loss": (0.0, "loss 0 % down"),
    "burst_packets": (3, "losses in bursts of 3 packets"),
    "gilbert_elliott": (
        GilbertElliott(0.1, 0.4, 0.5),
        "losses by Gilbert and Elliott (good to bad 0.1, back 0.4; loss 50 % and 0 %)",
    ),
    "up_queue": (Queue("codel", target_ms=5, ecn=True), "uplink queue codel, target_ms 5, ecn"),
    "down_queue": (Queue("pie"), "downlink queue pie"),
    "on_off": (OnOff(5, 0.5), "off for 0.5 s after 5 s, on average"),
    "up_on_off": (OnOff(5, 1, periodic=True), "off up for 1 s after 5 s, always"),
    "down_on_off": (OnOff(5, 1), "off down for 1 s after 5 s, on average"),
    "hop": (Hop("split", 30, loss=0.1), "hop (split, cubic, initial window 10), then 30 ms, loss 10 %"),
    "cross_traffic": (("cubic", "quic-cubic"), "background flows: cubic, quic-cubic"),
    "up_cross_traffic": (("bbr",), "background flows up: bbr"),
    "cross_traffic_on_off": (OnOff(5, 1), "off background flows for 1 s after 5 s, on average"),
    "drop_up_packets": ((7,), "packets 7 up dropped"),
    "drop_down_packets": ((7,), "packets 7 down dropped"),
    "drop_up_at_ms": ((7.5,), "a packet up dropped at 7.5 ms"),
    "drop_down_at_ms": ((7.5,), "a packet down dropped at 7.5 ms"),
    "up_trace": ("/a/b.trace", "rate up by mean, after b.trace"),
    "down_trace": ("/a/b.trace", "rate down by mean, after b.trace"),
    "up_conditions": ("/a/b.csv", "delay and loss up over time, after b.csv"),
    "down_conditions": ("/a/b.csv", "delay and loss down over time, after b.csv"),
    "retransmit_ms": (60, "the link repairs losses, 60 ms a try"),
}
# Properties without their own words: readers see them in columns, or in the words of other properties.
NONE = {"name", "min_rtt_ms", "up_mbps", "down_mbps", "loss", "queue_ms", "quiet_ms"}
WITH_OTHERS = {"reorder", "loss_on", "retransmit_tries", "retransmit_reorder"}


@pytest.mark.parametrize("key", WORDS)
def test_a_property_has_its_words(key: str) -> None:
    value, text = WORDS[key]
    assert further(asdict(replace(PLAIN, **{key: value}))) == [text]  # type: ignore[arg-type]


def test_every_property_has_words() -> None:
    settable = {field.name for field in fields(Network) if "derived" not in field.metadata}
    assert settable == {*WORDS, *NONE, *WITH_OTHERS}
    repaired = replace(PLAIN, loss=0.1, retransmit_ms=8, retransmit_tries=4, retransmit_reorder=True, loss_on="up")
    assert further(asdict(repaired)) == [
        "loss on the uplink alone",
        "the link repairs losses, 8 ms a try, 4 tries, out of order",
    ]
    assert further(asdict(replace(PLAIN, jitter_ms=3, reorder=True))) == ["jitter 3 ms with reordering"]
    assert further(asdict(replace(PLAIN, up_queue=Queue("pie"), down_queue=Queue("pie")))) == ["queues pie"]
    assert further(asdict(PLAIN)) == []


def test_a_rate_changes_when_its_trace_does() -> None:
    series = rate_series(NETWORKS["starlink"], "down", 60)
    assert series
    at_s, mbps = series
    steps = [at for at, (before, after) in zip(at_s[1:], pairwise(mbps), strict=False) if abs(after - before) > 2]
    assert steps == [15, 30, 45]
    assert rate_series(PLAIN, "up", 60)[1].tolist() == [2.8, 2.8]  # type: ignore[index]
    assert rate_series(NETWORKS["delay10"], "up", 60) is None


def test_times_off_are_drawn_if_they_are_always_the_same() -> None:
    assert off_times(NETWORKS["starlink"], "up", 31) == [(14.9, 15.0), (29.9, 30.0)]
    assert off_times(replace(PLAIN, on_off=OnOff(5, 1)), "up", 60) == []


def test_each_network_has_a_panel_for_its_rates_and_one_for_its_delays() -> None:
    chosen = [NETWORKS[name] for name in ("lte", "starlink", "delay10")]
    panels = [axes for axes in draw(chosen, 30).axes if axes.get_visible()]
    names = ["LTE\nMbit/s", "starlink\nMbit/s", "delay10\nMbit/s"]
    assert [axes.get_title("left") for axes in panels[::2]] == names
    assert len(panels) == 6


@pytest.mark.parametrize("columns", [80, 200])
def test_the_command_lists_each_network_or_grid_in_one_line(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Drawings are not written, since the layout of so many panels takes seconds. One with few panels is written below.
    monkeypatch.setattr(style, "save", lambda *_: None)
    done = CliRunner().invoke(main, ["--into", str(tmp_path), "--seconds", "1"], env={"COLUMNS": str(columns)})
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    begin = next(number for number, line in enumerate(lines) if "\N{BOX DRAWINGS LIGHT HORIZONTAL}" in line)
    assert [line.split()[0] for line in lines[begin + 1 : begin + 1 + len(listed(NETWORKS))]] == list(listed(NETWORKS))
    assert all(len(line) <= columns for line in lines[: begin + len(listed(NETWORKS))])
    assert any(line.split()[:4] == ["longlook", "5-100", "5-100", "12-112"] for line in lines)


def test_the_command_shows_the_sources_of_the_networks_that_are_named_and_draws_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--net", "lte,starlink", "--into", str(tmp_path), "--seconds", "20"])
    assert done.exit_code == 0, done.output
    assert f"starlink: {NETWORKS.sources['starlink']}" in done.output.splitlines()
    assert (tmp_path / "networks.png").stat().st_size > 20_000
    assert f"{tmp_path / 'networks'}.png" in done.output


def test_other_programs_get_every_network_with_all_settings() -> None:
    listed_as_json = json.loads(CliRunner().invoke(main, ["--json"]).stdout)
    assert [one["name"] for one in listed_as_json] == list(NETWORKS)
    assert {one["name"]: one["source"] for one in listed_as_json}["starlink"] == NETWORKS.sources["starlink"]


@pytest.mark.parametrize("seconds", ["inf", "1e9"])
def test_more_time_than_can_be_drawn_is_refused(seconds: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--into", str(tmp_path), "--seconds", seconds])
    assert done.exit_code == 2
    assert "--seconds" in done.output
