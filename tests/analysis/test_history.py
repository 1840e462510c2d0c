"""`eyelevel history`: many comparisons become series by date, with an alarm where B has become slower; what does not
belong together is told apart, and what cannot be read is refused."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.axe import accessible
from support.browser import Browser
from support.histories import comparison, write

from analysis.history import ENTRIES, SERIES
from analysis.statistics import cusum
from base.errors import EyelevelError, Misuse
from base.places import PROJECT
from eyelevel.commands.compare import NOT_DECIDED_STATUS, WORSE_STATUS
from eyelevel.commands.history import main

LTE, DSL = ("lte", "si"), ("dsl", "si")
WEEKS, RISE = 30, 24


def weeks(number: int = WEEKS, rise: float = 0.0, **further: Any) -> list[dict[str, Any]]:
    """Weekly comparisons that scatter by 1 %; from week RISE on, B is slower by `rise` on LTE."""
    noise = np.random.default_rng(1).normal(0.02, 0.01, (number, 2)).tolist()
    return [
        comparison(week, {LTE: lte + (rise if week >= RISE else 0.0), DSL: dsl}, **further)
        for week, (lte, dsl) in enumerate(noise)
    ]


def run(folder: Path, *words: str) -> Result:
    return CliRunner(env={"MAKELEVEL": None}).invoke(main, [str(folder), *words], catch_exceptions=False)


def as_json(folder: Path, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(folder, "--json", *words).stdout)
    return document


def test_a_rise_is_an_alarm_that_stays_until_a_new_series_begins(tmp_path: Path) -> None:
    write(tmp_path, weeks(rise=0.05))
    done = run(tmp_path)
    last = done.stdout.splitlines()[-1]
    assert done.exit_code == WORSE_STATUS and last.startswith(
        "result: B has become slower against A: SI on LTE since 22 June 2026 (+1.9 % before, +7."
    )
    assert re.search(r" until the alarm, now \+\d\.\d %\) \(exit status 3\)$", last)
    assert [text.count("ALARM") for text in done.stdout.splitlines() if "LTE" in text] == [1, 0]
    document = json.loads((tmp_path / "history" / "history.json").read_text())
    lte, dsl = document["series"]
    # Both series share the false alarms.
    assert lte["limit"] == dsl["limit"] == cusum.limit(2 * 52 / 0.2)
    assert (lte["entries"], lte["alarm"], dsl["alarm"]) == (WEEKS, True, False)
    assert lte["slower_since"] == comparison(RISE, {})["begun_at"] <= lte["alarm_at"]
    assert lte["scatter_low"] < 0.01 < lte["scatter_high"] and lte["scatter"] < 0.015
    # Whoever accepts the new level begins anew; six entries are too few for an alarm.
    accepted = run(tmp_path, "--since", "2026-06-22")
    assert (accepted.exit_code, "2 of 2 series have fewer entries than" in accepted.stdout) == (0, True)
    assert run(tmp_path, "--since", "2026-06-22", "--decide").exit_code == NOT_DECIDED_STATUS


def test_no_rise_and_a_fall_are_no_alarm(tmp_path: Path) -> None:
    for name, rise in (("same", 0.0), ("faster", -0.1)):
        write(tmp_path / name, weeks(rise=rise))
        done = run(tmp_path / name, "--decide")
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "result: No alarm (exit status 0)")


def test_entries_are_in_the_order_of_their_dates_and_count_once(tmp_path: Path) -> None:
    documents = weeks(10)
    for number, document in enumerate(documents):
        document["campaign"] = f"c{9 - number}"
    write(tmp_path, documents)
    write(tmp_path / "copy", documents[:1])
    document = as_json(tmp_path)
    assert [row["campaign"] for row in document["entries"][:10]] == [f"c{9 - number}" for number in range(10)]
    assert [row["begun_at"] for row in document["entries"][:10]] == [document["begun_at"] for document in documents]
    [note] = document["notes"]
    assert note.endswith("c9/ab/ab.json, and counts once")


def of_side(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"b": document["b"] | changes}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda one: of_side(one, sites={"news": "cd34"}), "recordings"),
        (lambda one: of_side(one, protocol_settings={"mtu": 1200}), "B"),
        (lambda one: {"networks": {"lte": {"down_mbps": 5}, "dsl": {"down_mbps": 10}}}, "networks"),
        (lambda one: {"loading": {"server_rtts": "recorded"}}, "loading"),
        (lambda one: {"machine": one["machine"] | {"cpus": 4}}, "machine"),
    ],
)
def test_what_does_not_belong_together_is_another_comparison(
    tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], part: str
) -> None:
    documents = weeks()
    for document in documents[22:]:
        document |= change(document)
    write(tmp_path, documents)
    document = as_json(tmp_path)
    assert [row["entries"] for row in document["series"]] == [22, 22, 8, 8]
    assert document["notes"] == [f"Comparison 2 is another one than 1: it differs in {part}"]
    assert {row["limit"] for row in document["series"]} == {cusum.limit(2 * 52 / 0.2)}
    # No silent end: ten entries are needed.
    assert document["result"] == "No alarm; 2 of 4 series have fewer entries than an alarm takes"
    assert run(tmp_path, "--decide").exit_code == NOT_DECIDED_STATUS


def test_another_build_or_a_setting_without_a_value_is_the_same_comparison(tmp_path: Path) -> None:
    documents = weeks(12)
    for week, document in enumerate(documents[6:]):
        settings = {"mtu": 1500, "new": None, "newer": False, "program": [f"/builds/{week}/server", "--port"]}
        document |= of_side(document, browser_settings={"version": "149"}, protocol_settings=settings)
        document["networks"] = {name: {"down_mbps": 10, "new": None, "newer": {}} for name in ("lte", "dsl")}
        document["machine"] |= {"memory_kib": week}
    for document in documents[:6]:
        document |= of_side(document, protocol_settings={"mtu": 1500, "program": ["/builds/0/server", "--port"]})
    write(tmp_path, documents)
    document = as_json(tmp_path)
    assert ([row["entries"] for row in document["series"]], document["notes"]) == ([12, 12], [])


@pytest.mark.parametrize(("number", "status"), [(9, NOT_DECIDED_STATUS), (10, 0)])
def test_it_is_decided_once_an_alarm_is_possible(tmp_path: Path, number: int, status: int) -> None:
    write(tmp_path, weeks(number))
    assert run(tmp_path, "--decide").exit_code == status
    assert {row["least_entries"] for row in as_json(tmp_path)["series"]} == {10}


def test_it_is_not_decided_without_the_newest_entry(tmp_path: Path) -> None:
    documents = weeks(20)
    documents[-1]["contrasts"][0]["change"] = None
    write(tmp_path, documents)
    done = run(tmp_path, "--decide")
    assert (done.exit_code, "No alarm; 1 of 2 series lack the newest entry" in done.stdout) == (
        NOT_DECIDED_STATUS,
        True,
    )


def test_it_is_not_decided_where_no_pair_of_the_newest_comparison_counts(tmp_path: Path) -> None:
    documents = weeks(20)
    documents[-1]["loading"] = {"alpn": "recorded"}
    for row in documents[-1]["contrasts"]:
        row["change"] = None
    write(tmp_path, documents)
    done = run(tmp_path, "--decide")
    assert done.exit_code == NOT_DECIDED_STATUS
    assert "No alarm; no pair counts in comparison 2" in done.stdout


def test_the_alarm_names_its_comparison_and_an_unrelated_one_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, weeks(rise=0.05))
    alone = as_json(tmp_path)["series"]
    write(tmp_path / "other", [comparison(40, {LTE: 0.1}, sites=["shop"]) | {"loading": {"alpn": "recorded"}}])
    document = as_json(tmp_path)
    assert document["series"][:2] == alone
    assert "SI on LTE in comparison 1 since 22 June 2026" in document["result"]


def test_a_warning_says_that_entries_resemble_those_before_them(tmp_path: Path) -> None:
    documents = weeks()
    for week, document in enumerate(documents):
        document["contrasts"][0]["change"] += 0.03 * np.sin(week / 2)
    write(tmp_path, documents)
    [note] = as_json(tmp_path)["notes"]
    assert re.match(r"Entries of SI on LTE in comparison 1 resemble those before them \(correlation 0\.\d\d\)", note)
    assert f"{note}." in run(tmp_path).stdout


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, weeks(3))
    of_system = os.scandir

    def scandir(place: Any) -> Any:
        if str(place).endswith("week-001"):
            raise PermissionError(13, "Permission denied", str(place))
        return of_system(place)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(EyelevelError, match=r"week-001 cannot be read: Permission denied"):
        run(tmp_path)


def spoilt(change: Callable[[dict[str, Any]], object]) -> str:
    document = comparison(0, {LTE: 0.1})
    change(document)
    return json.dumps(document)


def spoilt_row(wrong: dict[str, Any]) -> str:
    return spoilt(lambda one: one["contrasts"][0].update(wrong))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "cannot be read"),
        ("[1]", "is broken: it holds no JSON object"),
        ("{}", "is not a comparison that 'eyelevel ab' wrote; move it elsewhere"),
        (spoilt(lambda one: one.update(format=2)), "cannot be read: its format is 2, not 1"),
        (spoilt(lambda one: one.update(begun_at="Monday")), "cannot be read: Invalid isoformat"),
        (spoilt(lambda one: one.update(begun_at=None)), "is not a comparison"),
        (spoilt(lambda one: one["contrasts"][0].update(change="1 %")), "is not a comparison"),
        (spoilt(lambda one: one["contrasts"][0].update(change=-1)), "is not a comparison"),
        (spoilt(lambda one: one["contrasts"][0].update(network="dsl")), "is not a comparison"),
        (spoilt(lambda one: one.update(a=[])), "is not a comparison"),
        (spoilt(lambda one: one.update(machine=None)), "is not a comparison"),
        (spoilt(lambda one: one["contrasts"].append(one["contrasts"][0])), "it has a metric on a network twice"),
        (spoilt(lambda one: one["contrasts"][0].pop("worse")), "is not a comparison"),
        *(
            (
                spoilt_row(wrong),
                "is not a comparison",
            )
            for wrong in (
                *({"worse": 1}, {"blocks": -1}, {"blocks": 3.5}, {"blocks": True}, {"blocks": 10**400}),
                *({"change": True}, {"change": 10**400}, {"change": float("inf")}, {"high": float("nan")}),
            )
        ),
    ],
)
def test_a_file_that_is_no_comparison_is_refused_in_a_line(tmp_path: Path, text: str, fault: str) -> None:
    write(tmp_path, weeks(3))
    (tmp_path / "ab.json").write_text(text)
    with pytest.raises(EyelevelError, match=rf"{tmp_path}/ab\.json .*{re.escape(fault)}") as caught:
        run(tmp_path)
    assert caught.value.status == 1 and "\n" not in str(caught.value) and not (tmp_path / "history").exists()


def test_a_folder_without_comparisons_and_rates_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"^there is no folder"):
        run(tmp_path / "none")
    with pytest.raises(EyelevelError, match=r"has no ab\.json; 'eyelevel ab' writes one"):
        run(tmp_path)
    write(tmp_path, weeks(3))
    with pytest.raises(EyelevelError, match=r"^no comparison since 2027-01-01 has pairs that count"):
        run(tmp_path, "--since", "2027-01-01")
    with pytest.raises(Misuse, match=r"^--false-alarms must be smaller than --per-year"):
        run(tmp_path, "--false-alarms", "12", "--per-year", "12")
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "mine").touch()
    with pytest.raises(EyelevelError, match=r"has no history\.json, so it is not replaced"):
        run(tmp_path)


def test_its_document_has_the_keys_that_are_described(tmp_path: Path) -> None:
    write(tmp_path, weeks(3))
    document = as_json(tmp_path)
    _, _, table = (PROJECT / "docs" / "contributors" / "json.md").read_text().partition("| `history.json` | |\n")
    described = re.findall(r"^\| (`[^|]*`) \| (.*) \|$", table.partition("\n\n")[0], re.MULTILINE)
    assert list(document) == [name for keys, _ in described for name in re.findall(r"`(\w+)`", keys)]
    keys = {name: re.findall(r"`(\w+)`", text) for name, text in described}
    assert keys["`series`"] == SERIES == list(document["series"][0])
    assert keys["`entries`"] == ENTRIES == list(document["entries"][0])


@pytest.mark.slow
@pytest.mark.needs_axe
def test_the_page_fits_and_is_accessible_with_names_of_strangers(browser: Browser, tmp_path: Path) -> None:
    documents = weeks(rise=0.05)
    for document in documents:
        document["a"]["setting"] = "<script>alert(1)</script>"
        document["campaign"] += "<b>"
    write(tmp_path, documents)
    run(tmp_path)
    page = tmp_path / "history" / "index.html"
    assert accessible(browser, page.as_uri()) == []
    for width in (1400, 390):
        browser.narrow(width)
        browser.open(page.as_uri())
        assert browser.run("return document.documentElement.scrollWidth - innerWidth") <= 0
    points = browser.run(
        "return [...document.querySelectorAll('svg')].map((one) => one.querySelectorAll('circle').length)"
    )
    assert points == [WEEKS, WEEKS]
    assert browser.run("return document.querySelectorAll('.rise').length") == WEEKS - RISE
    assert "<script>alert(1)" in browser.run("return document.querySelector('h2').textContent")
