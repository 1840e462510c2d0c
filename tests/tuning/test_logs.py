"""Logs in common formats are read without changing any number, or refused in one line."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from base.errors import EyelevelError
from eyelevel.commands.convert_trace import main
from tuning.conditions import DELAY, RATE, Conditions, parse_conditions, read_conditions
from tuning.converting import Column, Converted, from_cellreplay, from_delivery_trace, from_log, text_of

COLUMNS = ("--time", "time", "--rate", "rate")


def converted(folder: Path, log: str | bytes, columns: Sequence[str] = COLUMNS) -> tuple[Result, Conditions]:
    """The output of the program for a log, and the conditions that it makes of it. Raises EyelevelError."""
    (folder / "log.csv").write_bytes(log.encode() if isinstance(log, str) else log)
    words = [str(folder / "log.csv"), *columns, "--into", str(folder / "out.csv")]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done, read_conditions(folder / "out.csv")


def refusal(folder: Path, log: str | bytes, columns: Sequence[str] = COLUMNS) -> str:
    with pytest.raises(EyelevelError) as raised:
        converted(folder, log, columns)
    assert not (folder / "out.csv").exists() and "\n" not in str(raised.value)
    return str(raised.value).removeprefix(str(folder / "log.csv"))


def of_times(times: Sequence[str]) -> str:
    """A log in which each row's rate is its number, so that exchanged rows are noticed."""
    return "time;rate\n" + "".join(f"{time};{number}\n" for number, time in enumerate(times, start=1))


@pytest.mark.case("log-dates-with-dots")
@pytest.mark.parametrize(
    "times",
    [
        ("2026.03.01_23.59.59", "2026.03.02_00.00.00", "2026.03.02_00.00.30"),
        ("2026-03-01T23:59:59Z", "2026-03-02T00:00:00Z", "2026-03-02T00:00:30Z"),
        ("2026-03-01T23:59:59.000+00", "2026-03-02T01:00:00.000+01:00", "2026-03-01T19:00:30.000-0500"),
        ("2026/3/1 23:59:59", "2026/3/2 0:00:00", "2026/3/2 0:00:30"),
        ("3/1/2026, 11:59:59 PM", "3/2/2026, 12:00:00 AM", "3/2/2026, 12:00:30 AM"),
        ("20260301235959", "20260302000000", "20260302000030"),
        ("20260301T235959Z", "20260302T000000Z", "20260302T000030Z"),
        ("28.02.2026 23:59:59,00", "01.03.2026 00:00:00,00", "01.03.2026 00:00:30,00"),
        ("23:59:59", "00:00:00", "00:00:30"),
        ("11:59:59 pm", "12:00:00 am", "12:00:30 am"),
        ("1700000000", "1700000001", "1700000031"),
    ],
)
def test_dates_are_read_in_each_notation_of_the_documents(tmp_path: Path, times: Sequence[str]) -> None:
    _, conditions = converted(tmp_path, of_times(times))
    assert (conditions.at_ms, conditions.columns) == ((0, 1000, 31_000), {RATE: (1, 2, 3)})


@pytest.mark.case("log-dates-with-dots")
@pytest.mark.parametrize(
    ("times", "fault"),
    [
        (("Sunday", "Monday"), "'Sunday', which is not a number, and no date as docs/contributors/traces.md has them"),
        (("01/03/26 10:00:00", "01/03/26 10:00:01"), "which is not a number, and no date"),
        (("2026-03-01 10:00:00", "2026-03-01 10:00:60"), "line 3: .* '2026-03-01 10:00:60', which is not a date of"),
        (("2026-02-29 10:00:00", "2026-03-01 10:00:00"), "line 2: .* is not a date of the calendar"),
        (("2026-03-01 13:00 PM", "2026-03-01 01:00 PM"), "line 2: .* not a time of day"),
        (("2026-03-01 10:00:00", "2026-03-01 10:00:01Z"), "line 3: .* is not written as '2026-03-01 10:00:00' is"),
        (("0", "1", "2026-03-01 10:00:01"), "line 4: .* is not a number"),
        (("10:00:01", "10:00:00"), "line 3: .* is earlier than the row's before"),
        (("10:00:00", "23:00:00"), "line 3: .* or half a day later; give dates, too"),
    ],
)
def test_times_that_cannot_be_read_are_named(tmp_path: Path, times: Sequence[str], fault: str) -> None:
    with pytest.raises(EyelevelError, match=fault):
        converted(tmp_path, of_times(times))


@pytest.mark.case("log-day-first")
@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ("05/03/2026", "06/03/2026", "dates are day/month/year"),
        ("03/05/2026", "03/06/2026", "dates are month/day/year"),
        ("12/02/2026", "13/02/2026", ""),
        ("02/12/2026", "02/13/2026", ""),
        ("31.01.2026", "01.02.2026", ""),
    ],
)
def test_days_and_months_are_told_apart_by_all_rows_together(
    tmp_path: Path, before: str, after: str, note: str
) -> None:
    done, conditions = converted(tmp_path, of_times((f"{before} 23:59:30", f"{before} 23:59:40", f"{after} 00:00:00")))
    assert (conditions.at_ms, conditions.columns) == ((0, 10_000, 30_000), {RATE: (1, 2, 3)})
    assert note in done.stderr and bool(note) == ("dates are" in done.stderr)


@pytest.mark.case("log-day-first")
def test_days_that_may_be_months_are_refused_where_it_matters(tmp_path: Path) -> None:
    fault = refusal(tmp_path, of_times(("03/04/2026 10:00:00", "03/09/2026 10:00:00")))
    assert fault.startswith(", line 2: time is '03/04/2026 10:00:00', which can be read as day/month/year and as month")
    _, conditions = converted(tmp_path, of_times(("03/04/2026 10:00:00", "03/04/2026 10:00:01")))
    assert conditions.at_ms == (0, 1000)


@pytest.mark.case("log-decimal-comma")
@pytest.mark.parametrize("delimiter", [";", "\t", "|", " ", ","])
def test_decimal_commas_are_read(tmp_path: Path, delimiter: str) -> None:
    text = io.StringIO()
    rows = [("time", "rate"), ("0", "10"), ("1,5", "10,5"), ("2", "1,1e1")]
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    done, conditions = converted(tmp_path, text.getvalue())
    assert (conditions.at_ms, conditions.columns) == ((0, 1500, 2000), {RATE: (10, 10.5, 11)})
    assert done.stderr.startswith("written: ")


@pytest.mark.case("log-decimal-comma")
@pytest.mark.parametrize(
    ("rates", "fault"),
    [
        (("10", "1,500"), ", line 3: rate is '1,500', which may have a decimal comma, or one between thousands"),
        (("10.5", "11,5"), ", line 2: rate is '10.5', which is not a number with a decimal comma, as others have,"),
        (("1.234,5", "11,5"), ", line 2: rate is '1.234,5', which is not a number"),
        (("1,234,567", "1"), ", line 2: rate is '1,234,567', which is not a number"),
        (("10", "timeout"), ", line 3: rate is 'timeout', which is not a number, and must be empty where nothing was"),
        (("10", "5 Mbit/s"), ", line 3: rate is '5 Mbit/s', which is not a number"),
        (("10", "1_0"), ", line 3: rate is '1_0', which is not a number"),
        (("10", "inf"), ", line 3: rate is 'inf', which is not a number"),
        (("10", "\u0661"), ", line 3: rate is '\u0661', which is not a number"),
    ],
)
def test_the_first_value_that_is_no_number_is_named(tmp_path: Path, rates: Sequence[str], fault: str) -> None:
    rows = "".join(f"{second};{rate}\n" for second, rate in enumerate(rates))
    assert refusal(tmp_path, f"time;rate\n{rows}").startswith(fault)


@pytest.mark.case("log-empty")
@pytest.mark.parametrize(
    ("log", "fault"),
    [
        ("", " has no table: it is empty, or has comments alone"),
        ("# measured in the train\n\n", " has no table: it is empty, or has comments alone"),
        ("time,rate\n", " has no value in the column 'time'"),
        ("time,rate\n0,-\n1,\n", " has no value in the column 'rate'"),
        ("time,rate\n0,1\n", " has fewer than 2 times in 'time'"),
        (b"time,rate\n0,\xff\n", " is not text in UTF-8; save it as such"),
        ("time,rate\n0,1\n".encode("utf-16"), " is not text in UTF-8; save it as such"),
        ('time,rate\n0,"1\n', ": '0,\"1' is not a row of a table: unexpected end of data"),
    ],
)
def test_a_log_without_a_table_is_refused(tmp_path: Path, log: str | bytes, fault: str) -> None:
    assert refusal(tmp_path, log) == fault


@pytest.mark.case("log-minus-one-for-lost")
@pytest.mark.parametrize("kind", ["rtt", "delay", "rate", "loss"])
def test_minus_one_is_no_value_and_any_other_negative_one_is_refused(tmp_path: Path, kind: str) -> None:
    columns = ("--time", "time", f"--{kind}", "value")
    share = 0.01 if kind == "loss" else 1
    log = f"time,value\n0,{40 * share}\n1,-1\n2,{44 * share}\n3,-1.0\n4,{46 * share}\n"
    done, conditions = converted(tmp_path, log, columns)
    (values,) = conditions.columns.values()
    assert conditions.at_ms == (0, 2000, 4000)
    assert values == {"rtt": (0, 2, 3), "delay": (0, 4, 6), "rate": (40, 44, 46), "loss": (0.4, 0.44, 0.46)}[kind]
    assert "2 rows without a value (or with -1)" in done.stderr and "min_rtt_ms = -" not in done.stderr
    (tmp_path / "out.csv").unlink()
    assert ", line 3: value is '-2', which cannot be" in refusal(tmp_path, "time,value\n0,1\n1,-2\n2,1\n", columns)


@pytest.mark.case("log-minus-one-for-lost")
def test_a_round_trip_that_takes_no_time_is_refused(tmp_path: Path) -> None:
    fault = refusal(tmp_path, "time,rtt\n0,40\n1,0\n2,44\n", ("--time", "time", "--rtt", "rtt"))
    assert fault == ", line 3: rtt is '0', which cannot be measured; leave it empty where nothing was"


@pytest.mark.case("log-minus-one-for-lost")
@pytest.mark.parametrize("line", ["450 -1 0 1", "-1 20", "450", "", "4_50 20", "450 20.5"])
def test_a_packet_without_an_answer_in_a_light_trace_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "heavy").write_text("".join(f"{ms}\n" for ms in range(1, 2001)))
    with pytest.raises(EyelevelError, match=r"log.csv, line 2: lines must begin with a time and a delay, in whole ms"):
        converted(tmp_path, f"0 20 0 1\n{line}\n2000 30\n", ("--heavy", str(tmp_path / "heavy")))


@pytest.mark.case("log-minus-one-for-lost")
@pytest.mark.parametrize("line", ["-1", "1_0", "x", "\ufeff1"])
def test_a_line_of_a_delivery_trace_that_is_no_time_is_named(tmp_path: Path, line: str) -> None:
    assert "is not a time in whole ms from 0 on" in refusal(tmp_path, f"{line}\n20\n30\n", ())


@pytest.mark.case("log-more-values-than-names")
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(("row", "count"), [("0,10,77", 3), ("0", 1)])
def test_rows_must_have_as_many_values_as_the_header_names(
    tmp_path: Path, delimiter: str, row: str, count: int
) -> None:
    log = f"time,rate\n1,9\n# comment\n{row}\n".replace(",", delimiter)
    assert refusal(tmp_path, log) == f", line 4: {count} values for 2 columns"


@pytest.mark.case("log-more-values-than-names")
def test_a_delimiter_at_the_end_of_lines_is_no_value(tmp_path: Path) -> None:
    for header in ("time,rate,", "time,rate"):
        _, conditions = converted(tmp_path, f"{header}\n0,10,\n1,11,\n2,12\n")
        assert conditions.columns == {RATE: (10, 11, 12)}


def test_a_name_that_two_columns_have_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "time,rate,rate\n0,1,2\n") == " has 2 columns 'rate'; give them different names"


@pytest.mark.case("log-times-not-read")
def test_rows_without_a_time_are_counted(tmp_path: Path) -> None:
    done, conditions = converted(tmp_path, "time,rate\nn/a,10\n1,11\n2,12\n,13\n4,14\n")
    assert done.stderr.startswith("2 rows without a time: left out\nwritten: ")
    assert (conditions.at_ms, conditions.columns) == ((0, 1000, 3000), {RATE: (11, 12, 14)})


def test_rows_of_one_time_are_counted(tmp_path: Path) -> None:
    done, conditions = converted(tmp_path, "time,rate\n0,10\n1,11\n1,13\n2,14\n")
    assert done.stderr.startswith("1 row with the time of another: their mean is used\nwritten: ")
    assert conditions.columns == {RATE: (10, 12, 14)}


@pytest.mark.case("log-with-bom")
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    _, conditions = converted(tmp_path, "time,rate\r\n0,10\r\n1,11\r\n".encode("utf-8-sig"))
    assert conditions.columns == {RATE: (10, 11)}


# Steps of time (ms), rates (kbit/s) and round trips (us) that a conditions file can represent exactly.
ROWS = st.lists(
    st.tuples(st.integers(200, 20_000), st.integers(2_000, 99_999), st.integers(1, 999_999)), min_size=5, max_size=12
)
BEGIN = datetime(2026, 2, 28, 23, 59, 50, tzinfo=UTC)
NOTATIONS = {
    "s": lambda ms: str(ms / 1000),
    "since 1970": lambda ms: str((BEGIN + timedelta(milliseconds=ms)).timestamp()),
    "year first": lambda ms: (BEGIN + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds"),
    "with dots": lambda ms: (BEGIN + timedelta(milliseconds=ms)).strftime("%Y.%m.%d_%H.%M.%S.%f"),
    "day first": lambda ms: (BEGIN + timedelta(milliseconds=ms)).strftime("%d/%m/%Y %H:%M:%S.%f"),
    "month first": lambda ms: (BEGIN + timedelta(milliseconds=ms)).strftime("%m-%d-%Y %I:%M:%S.%f %p"),
    "compact": lambda ms: (BEGIN + timedelta(milliseconds=ms)).strftime("%Y%m%d%H%M%S.%f"),
    "of the day": lambda ms: (BEGIN + timedelta(milliseconds=ms)).strftime("%H:%M:%S.%f"),
}


@pytest.mark.slow
@pytest.mark.parametrize("notation", NOTATIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(
    rows=ROWS,
    mark=st.sampled_from(".,"),
    delimiter=st.sampled_from(",;\t|"),
    bom=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_a_table_comes_back_as_it_was(
    tmp_path: Path, notation: str, rows: list[tuple[int, int, int]], mark: str, delimiter: str, bom: bool, end: str
) -> None:
    text, at_ms, expected = io.StringIO(), 0, []
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(("when", "down", "ping"))
    # At least one number does not have three digits after its comma.
    for step_ms, kbps, rtt_us in [(0, 15_500, 25_500), *rows]:
        at_ms += step_ms
        expected.append((at_ms, kbps / 1000, rtt_us / 1000))
        numbers = [f"{kbps / 1000:.4f}".replace(".", mark), f"{rtt_us / 1000:.4f}".replace(".", mark)]
        when = NOTATIONS[notation](at_ms)
        writer.writerow([when.replace(".", mark) if when.count(".") == 1 else when, *numbers])
    (tmp_path / "log").write_bytes(text.getvalue().encode("utf-8-sig" if bom else "utf-8"))
    columns = {"time": Column("when", "s"), "rate": Column("down", "Mbit/s"), "rtt": Column("ping", "ms")}
    conditions = parse_conditions(text_of(from_log(tmp_path / "log", columns), "log"))
    least_ms = min(rtt_ms for *_, rtt_ms in expected)
    for when_ms, mbps, rtt_ms in expected:
        assert conditions.at(RATE, when_ms) == mbps
        # A conditions file has delays to the microsecond.
        assert conditions.at(DELAY, when_ms) == pytest.approx((rtt_ms - least_ms) / 2, abs=0.000501)


SOUND = "# a log\ntime;rate;rtt\n" + "".join(f"{second};{10 + second},5;{30 + second}\n" for second in range(6))
LIGHT, HEAVY = "0 20 0 1\n450 35 0\n1000 20\n2000 30\n", "".join(f"{ms}\n" for ms in range(1, 400))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(
    place=st.integers(0, len(SOUND)),
    removed=st.integers(0, 12),
    added=st.one_of(st.binary(max_size=8), st.sampled_from([b";", b",", b"\n", b'"', b"-1", b"nan", b"e9", b"/"])),
    kind=st.sampled_from(["log", "light", "heavy", "delivery"]),
)
def test_any_change_of_a_sound_log_ends_in_a_trace_or_in_a_line(
    tmp_path: Path, place: int, removed: int, added: bytes, kind: str
) -> None:
    sound = {"log": SOUND, "light": LIGHT}.get(kind, HEAVY).encode()
    place %= len(sound)
    changed, light, heavy = (tmp_path / name for name in ("changed", "light", "heavy"))
    changed.write_bytes(sound[:place] + added + sound[place + removed :])
    light.write_text(LIGHT)
    heavy.write_text(HEAVY)
    columns = {"time": Column("time", "s"), "rate": Column("rate", "Mbit/s"), "rtt": Column("rtt", "ms")}
    convert: Mapping[str, Callable[[], Converted]] = {
        "log": lambda: from_log(changed, columns),
        "light": lambda: from_cellreplay(changed, heavy),
        "heavy": lambda: from_cellreplay(light, changed),
        "delivery": lambda: from_delivery_trace(changed),
    }
    try:
        text = text_of(convert[kind](), "changed")
    except EyelevelError as error:
        assert "\n" not in str(error)
    else:
        assert all(value >= 0 for values in parse_conditions(text).columns.values() for value in values)
