"""`eyelevel history`: many comparisons become series by date, with an alarm where B has become slower; what does not
belong together is told apart, and what cannot be read is refused."""

import json
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
    assert [text.count("ALARM") for text in done.stdout.splitlines() if "LTE" in text] == [1, 0]
    document = json.loads((tmp_path / "history" / "history.json").read_text())
    lte, dsl = document["series"]
    # Both series share the false alarms.
    assert document["limit"] == cusum.limit(2 * 52 / 0.2)
    assert (lte["entries"], lte["alarm"], dsl["alarm"]) == (WEEKS, True, False)
    assert lte["slower_since"] == comparison(RISE, {})["begun_at"] <= lte["alarm_at"]
    assert lte["scatter_low"] < 0.01 < lte["scatter_high"] and lte["scatter"] < 0.015
    # Whoever accepts the new level begins anew; six entries are too few for an alarm.
    accepted = run(tmp_path, "--since", "2026-06-22")
    assert (accepted.exit_code, "2 of 2 series have at most 8 entries" in accepted.stdout) == (0, True)
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


def test_what_does_not_belong_together_is_shown_apart_or_left_out(tmp_path: Path) -> None:
    documents = weeks(12)
    documents[4] |= {"sites": ["shop"], "b": documents[4]["b"] | {"sites": {"shop": "cd34"}}}
    documents[5]["networks"] = {"lte": {"down_mbps": 5}, "dsl": {"down_mbps": 10}}
    documents[6]["contrasts"][0]["blocks"] = 3
    documents[7]["contrasts"][0]["change"] = None
    # Another build is what one wants to see.
    documents[8]["b"]["browser_settings"] = {"version": "149"}
    write(tmp_path, documents)
    document = as_json(tmp_path)
    assert [one["sites"] for one in document["comparisons"]] == [["news"], ["shop"]]
    lengths = {(row["comparison"], row["network"]): row["entries"] for row in document["series"]}
    assert lengths == {(1, "lte"): 8, (1, "dsl"): 11, (2, "lte"): 1, (2, "dsl"): 1}
    assert document["notes"] == [
        "lte in week-005 has other settings than before, and is left out",
        "lte in week-006 has less than half as many pairs, and is left out",
    ]


def spoilt(change: Callable[[dict[str, Any]], object]) -> str:
    document = comparison(0, {LTE: 0.1})
    change(document)
    return json.dumps(document)


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
