"""Conditions files: valid ones are read as meant, and others are refused with the faulty line."""

import tomllib
from pathlib import Path

import pytest

from base.errors import EyelevelError
from base.places import PROJECT
from tuning import networks
from tuning.conditions import DELAY, LOSS, RATE, parse_conditions, read_conditions
from tuning.impairments.contract import DOWN, UP
from tuning.impairments.rate import read_trace

VECTORS = PROJECT / "tests" / "vectors" / "opportunities.txt"
# Generated, not from a measured network.
ALL = "time_s,rate_mbps,delay_ms,loss\n0,10,0,0\n1,20,15.5,0.1\n3,1,0,0\n"
NETWORK = """
[mine]
min_rtt_ms = 40
queue_ms = 100
up_mbps = 5
{lines}
"""


def test_a_row_holds_until_the_next_and_all_begins_anew_after_the_last() -> None:
    conditions = parse_conditions("# generated\ntime_s,delay_ms\n0,20\n1,30\n3,99\n")
    assert [conditions.at(DELAY, at_ms) for at_ms in (0, 999, 1000, 2999, 3000, 4000)] == [20, 20, 30, 30, 20, 30]
    assert conditions.period_ms == 3000
    assert conditions.mean(DELAY) == pytest.approx((20 + 2 * 30) / 3)
    assert (conditions.largest(DELAY), conditions.largest(LOSS), conditions.at(LOSS, 5)) == (30, 0, 0)


def test_a_rate_becomes_opportunities_as_in_the_shells() -> None:
    blocks = [block for block in VECTORS.read_text().split("\n\n") if block.strip()]
    assert len(blocks) >= 5
    for block in blocks:
        text, _, expected = block.partition("=> ")
        assert parse_conditions(text).opportunities_ms() == [int(word) for word in expected.split()]


def test_the_shortest_round_has_a_hundred_packets_however_floats_are_rounded(tmp_path: Path) -> None:
    rows = "".join(f"{number * 0.015625:g},9.6\n" for number in range(9))
    (tmp_path / "a.csv").write_text("time_s,rate_mbps\n" + rows)
    assert read_conditions(tmp_path / "a.csv").packets() == 100
    assert len(read_trace(tmp_path / "a.csv")) == 100


def test_opportunities_have_the_rate_and_end_with_the_period() -> None:
    conditions = parse_conditions(ALL)
    opportunities = conditions.opportunities_ms()
    assert opportunities[-1] == 3000
    assert len(opportunities) * 12_000 / 3 / 1e6 == pytest.approx(conditions.mean(RATE), rel=0.001)
    first = [at_ms for at_ms in opportunities if at_ms <= 1000]
    assert len(first) * 12_000 / 1e6 == pytest.approx(10, rel=0.002)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "it is empty"),
        ("time_s,delay_ms\n", "fewer than 2 rows"),
        ("time_s,delay_ms\n0,1\n", "fewer than 2 rows"),
        ("delay_ms\n1\n", "line 1: give time_s and at least one"),
        ("time_s\n0\n1\n", "line 1: give time_s and at least one"),
        ("time_s,delay\n0,1\n", "line 1: 'delay' is not one of"),
        ("time_s,loss,loss\n", "line 1: give time_s and at least one of .*, each once"),
        ("# x\ntime_s,delay_ms\n1,1\n2,1\n", "line 3: the first time is not 0"),
        ("time_s,delay_ms\n0,1\n2,1\n1,1\n", "line 4: its time is not later"),
        ("time_s,delay_ms\n0,-1\n", "line 2: delay_ms is '-1'"),
        ("time_s,delay_ms\n0,nan\n", "line 2: delay_ms is 'nan'"),
        ("time_s,loss\n0,1.5\n", "line 2: loss is '1.5', and must be a number from 0 to 1"),
        ("time_s,loss\n0\n", "line 2: 1 values for 2 columns"),
        ("time_s,rate_mbps\n0,9\n1,9\n1.0005,0\n", "line 4: .* must be in whole milliseconds"),
        ("time_s,rate_mbps\n0,0\n1,0\n", "its rates let 0 packets through"),
        ("time_s,rate_mbps\n0,11.88\n0.1,0\n0.2,0\n", "its rates let 99 packets through"),
        ("time_s,rate_mbps\n0,0.5\n0.1,0\n", "its rates let 4 packets through .* must let through 100 to"),
        ("time_s,rate_mbps\n0,100000\n10000,0\n", "must let through 100 to 50000000"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=fault):
        read_conditions(tmp_path / "a.csv")


def write(folder: Path, lines: str, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    file = folder / networks.FILENAME
    file.write_text(NETWORK.format(lines=lines))
    return file


def test_a_network_follows_a_file_of_which_it_has_the_mean_rate_and_the_fingerprint(tmp_path: Path) -> None:
    network = networks.load(write(tmp_path, 'down_trace = "a.csv"\ndown_conditions = "a.csv"', a=ALL))["mine"]
    assert network.down_mbps == pytest.approx((10 + 2 * 20) / 3)
    assert network.down_conditions == str(tmp_path / "a.csv")
    assert network.down_conditions_sha256 == network.down_trace_sha256 and network.down_trace_sha256
    assert network.follows_clock
    conditions = network.conditions_of(DOWN)
    assert conditions and conditions.at(LOSS, 1500) == 0.1
    assert network.conditions_of(UP) is None
    assert len(read_trace(tmp_path / "a.csv")) == len(parse_conditions(ALL).opportunities_ms())
    assert "delay or loss over time" in str(network)


def test_what_a_trace_is_does_not_depend_on_its_name(tmp_path: Path) -> None:
    file = write(tmp_path, 'down_trace = "delivery.csv"')
    (tmp_path / "delivery.csv").write_text("".join(f"{ms}\n" for ms in range(1, 1001)))
    assert networks.load(file)["mine"].down_mbps == pytest.approx(12.032)
    (tmp_path / "delivery.csv").write_text("# rates\ntime_s,rate_mbps\n0,12\n1,0\n")
    (tmp_path / "delivery.csv").rename(tmp_path / "rates.down")
    assert networks.load(write(tmp_path, 'down_trace = "rates.down"'))["mine"].down_mbps == 12


@pytest.mark.parametrize(
    ("lines", "text", "fault"),
    [
        ('down_trace = "a.csv"', ALL, "has delays or losses, too, which down_conditions applies"),
        ('down_mbps = 9\ndown_conditions = "a.csv"', ALL, "has rate_mbps, too, which down_trace applies"),
        ('down_trace = "a.csv"', "time_s,loss\n0,0\n1,0\n", "has no rate_mbps; name it by down_conditions alone"),
        (
            'down_trace = "a.csv"\ndown_conditions = "a.csv"',
            "time_s,rate_mbps\n0,5\n1,0\n",
            "has neither delay_ms nor loss; name it by down_trace alone",
        ),
        ('down_mbps = 9\ndown_conditions = "b.csv"', ALL, "down_conditions: .*b.csv: .*No such file"),
        ('down_mbps = 9\ndown_conditions = "a.csv"', "time_s,loss\n0,x\n", "down_conditions: .*a.csv: line 2: loss"),
        ('down_mbps = 9\ndown_trace = "a.csv"', ALL, "give down_mbps or down_trace, not both"),
        (
            'down_mbps = 9\nloss = 0.1\nretransmit_ms = 5\ndown_conditions = "a.csv"',
            "time_s,loss\n0,0.1\n1,0\n",
            "has losses, which retransmit_ms does not repair",
        ),
    ],
)
def test_what_a_network_would_leave_out_is_refused(lines: str, text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=fault):
        networks.load(write(tmp_path, lines, a=text))
    assert tomllib.loads((tmp_path / networks.FILENAME).read_text())
