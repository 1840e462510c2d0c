"""Published traces become conditions files. All files here are generated, not measured."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from base.errors import EyelevelError
from eyelevel.commands.convert_trace import main
from tuning.conditions import DELAY, LOSS, RATE, read_conditions
from tuning.impairments.rate import read_trace


def convert(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def test_a_delivery_trace_and_back_keeps_its_rate(tmp_path: Path) -> None:
    # 12 Mbit/s for a second, 24 for another, none for half a second, then 12 again.
    times = [*range(1, 1001), *(ms for ms in range(1001, 2001) for _ in range(2)), *range(2501, 3001)]
    trace, conditions_file, back = tmp_path / "a.down", tmp_path / "a.csv", tmp_path / "b.down"
    trace.write_text("".join(f"{ms}\n" for ms in times))
    assert convert(trace, "--into", conditions_file).exit_code == 0
    conditions = read_conditions(conditions_file)
    assert [conditions.at(RATE, ms) for ms in (500, 1500, 2250, 2750)] == [12, 24, 0, 12]
    assert conditions.period_ms == 3000
    assert convert(conditions_file, "--into", back).exit_code == 0
    assert abs(len(read_trace(back)) - len(times)) <= 1
    assert read_trace(back)[-1] == b"3000"


def test_cellreplays_pair_has_the_rate_of_the_heavy_and_the_delay_of_the_light_trace(tmp_path: Path) -> None:
    light, heavy, conditions_file = tmp_path / "light", tmp_path / "heavy", tmp_path / "a.csv"
    light.write_text("0 20 0 1 1 2\n450 35 0 0 1\n1000 20 0 1\n2000 30 0\n")
    heavy.write_text("".join(f"{ms}\n" for ms in range(1, 3001)))
    done = convert(light, "--heavy", heavy, "--into", conditions_file)
    assert "min_rtt_ms = 40" in done.stderr and "left out" in done.stderr
    assert "the heavy trace is longer: its last 1 s are left out" in done.stderr
    conditions = read_conditions(conditions_file)
    assert [conditions.at(DELAY, ms) for ms in (0, 449, 451, 999, 1001)] == [0, 0, 15, 15, 0]
    assert {conditions.at(RATE, ms) for ms in (0, 500, 1500)} == {12}
    assert conditions.period_ms == 2000


def test_opportunities_at_the_beginning_count(tmp_path: Path) -> None:
    trace, conditions_file = tmp_path / "a.down", tmp_path / "a.csv"
    trace.write_text("0\n" * 60 + "100\n" * 60)
    assert convert(trace, "--into", conditions_file).exit_code == 0
    assert read_conditions(conditions_file).columns == {RATE: (14.4,)}


def test_a_light_trace_that_begins_later_is_not_moved_against_the_heavy_one(tmp_path: Path) -> None:
    light, heavy, conditions_file = tmp_path / "light", tmp_path / "heavy", tmp_path / "a.csv"
    light.write_text("40 20\n450 35\n2000 30\n")
    heavy.write_text("".join(f"{ms}\n" for ms in range(1, 2001)))
    assert convert(light, "--heavy", heavy, "--into", conditions_file).exit_code == 0
    conditions = read_conditions(conditions_file)
    assert [conditions.at(DELAY, ms) for ms in (0, 41, 449, 451)] == [0, 0, 0, 15]


def test_what_no_network_could_follow_is_not_written(tmp_path: Path) -> None:
    log, conditions_file = tmp_path / "log.csv", tmp_path / "a.csv"
    log.write_text("t,rate\n0,0\n1,0\n2,0\n")
    with pytest.raises(EyelevelError, match="let 0 packets through"):
        convert(log, "--time", "t", "--rate", "rate", "--into", conditions_file)
    assert not conditions_file.exists()


def test_a_log_has_its_columns_in_their_units(tmp_path: Path) -> None:
    log, conditions_file = tmp_path / "log.csv", tmp_path / "a.csv"
    log.write_text(
        "when;down (kbit/s);ping [ms];lost\n1700000002000;8000;50;10\n1700000000000;4000;40;0\n1700000001000;;60;5\n"
    )
    columns = ("--time", "when:ms", "--rate", "down (kbit/s):kbit/s", "--rtt", "ping [ms]", "--loss", "lost:percent")
    done = convert(log, *columns, "--into", conditions_file)
    assert "1 row without a value" in done.stderr and "min_rtt_ms = 40" in done.stderr
    conditions = read_conditions(conditions_file)
    assert conditions.columns == {RATE: (4, 4, 8), DELAY: (0, 10, 5), LOSS: (0, 0.05, 0.1)}
    assert (conditions.at_ms, conditions.period_ms) == ((0, 1000, 2000), 3000)


def test_times_may_be_dates_and_rows_that_change_nothing_are_left_out(tmp_path: Path) -> None:
    log, conditions_file = tmp_path / "log.csv", tmp_path / "a.csv"
    rows = [f"2026-11-23T10:00:{second:02}Z,{30 if second < 4 else 45}" for second in range(10)]
    log.write_text("\n".join(["time,delay", *rows]) + "\n")
    assert convert(log, "--time", "time", "--delay", "delay", "--into", conditions_file).exit_code == 0
    conditions = read_conditions(conditions_file)
    assert (conditions.at_ms, conditions.columns, conditions.period_ms) == ((0, 4000), {DELAY: (0, 15)}, 10_000)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("a.csv", "--time", "t", "--into", "b.csv"), "give --time and at least one of"),
        (("a.csv", "--time", "t", "--rtt", "x", "--delay", "x", "--into", "b.csv"), "give --time and at least one of"),
        (("a.csv", "--time", "t", "--rtt", "nothing", "--into", "b.csv"), "has no column 'nothing'; it has 't', 'x'"),
        (("a.csv", "--time", "t:h", "--rtt", "x", "--into", "b.csv"), "--time has the unit 'h'; it is one of"),
        (("a.csv", "--time", "t", "--loss", "x", "--into", "b.csv"), "loss must be from 0 to 1, in each row"),
        (("a.csv", "--into", "b.csv"), "is not a delivery trace of Mahimahi's"),
        (("none", "--into", "b.csv"), "No such file"),
        (("a.csv", "--into", "b.down"), "'t' is not one of time_s"),
        (("a.csv", "--time", "t", "--rtt", "x", "--into", "b.down"), "must end with .csv"),
        (("a.csv", "--heavy", "a.csv", "--time", "t", "--into", "b.csv"), "use one of them"),
        (("a.csv", "--heavy", "trace", "--into", "b.csv"), "lines must begin with a time and a delay"),
        (("a.csv", "--time", "t", "--rtt", "x", "--into", "nowhere/b.csv"), "nowhere/b.csv cannot be written"),
    ],
)
def test_what_cannot_be_converted_is_refused_in_a_line(
    words: tuple[str, ...], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("t,x\n0,5\n1,7\n")
    Path("trace").write_text("1\n2\n")
    with pytest.raises(EyelevelError, match=fault) as raised:
        convert(*words)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.glob("b.*"))
