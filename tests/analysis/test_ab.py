"""Two settings of one campaign: a known change is shown in all that blocks pair, with the declared verdict."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.browser import Browser
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.ab import SettingsChange, Side, as_protocols, compare
from analysis.campaign_changes import LOST
from analysis.report.ab import INDEX, caveats, document, result, summary, write
from analysis.runs import CampaignTable
from analysis.statistics.outcomes import FASTER, SLOWER
from analysis.statistics.planning import POWER, detectable_difference
from base.errors import EyelevelError

QUESTION = hypotheses.load(hypotheses.DECLARED.with_name("ab.toml"))
SITES = tuple(f"s{number:02}" for number in range(4))
A, B = (Side(f"PROTO={name}", name, "chromium", SITES) for name in ("tcp", "quic"))
# FCP and LCP are metrics of the family that no run of these worlds has.
MEASURED = ("si", "plt")


def world(effect: float = 0.0, **further: Any) -> CampaignTable:
    truth = World(sites=len(SITES), protocols=("tcp", "quic"), effects={"quic": effect})
    table = campaign(replace(truth, **further), 1)
    return replace(table, runs=table.runs.assign(browser="chromium"))


def changed(effect: float, worse_than: float | None = None, **further: Any) -> SettingsChange:
    return compare(world(effect, **further), A, B, QUESTION, worse_than)


def in_browsers(table: CampaignTable) -> CampaignTable:
    """`table` with another browser in place of the second protocol, as `analysis.runs.load` reads it."""
    is_b = table.runs["protocol"] == "quic"
    network = np.where(is_b, table.runs["network"] + "@firefox", table.runs["network"])
    runs = table.runs.assign(protocol="tcp", browser=np.where(is_b, "firefox", "chromium"), network=network)
    settings = replace(
        table.settings, protocols={"tcp": {}}, browser={"name": "chromium"}, further_browsers={"firefox": {}}
    )
    return replace(table, runs=runs, document=replace(table.document, settings=settings))


def in_variants(table: CampaignTable) -> CampaignTable:
    """`table` with variants of the sites in place of the second protocol."""
    is_b = table.runs["protocol"] == "quic"
    runs = table.runs.assign(protocol="tcp", site=np.where(is_b, table.runs["site"] + "@lean", table.runs["site"]))
    sites: dict[str, dict[str, Any]] = {f"{site}{end}": {} for site in SITES for end in ("", "@lean")}
    settings = replace(table.settings, protocols={"tcp": {}}, sites=sites)
    return replace(table, runs=runs, document=replace(table.document, settings=settings))


def test_a_setting_that_is_slower_is_worse_unless_a_threshold_allows_it() -> None:
    change = changed(0.2)
    rows = change.answerable
    assert set(rows["metric"]) == set(MEASURED) and set(rows["network"]) == {"dsl", "lte"}
    assert set(rows["verdict"]) == {SLOWER} and rows["worse"].all() and change.is_worse and change.is_decided
    assert rows["change"].to_numpy() == pytest.approx(0.2, abs=0.06)
    assert result(change).startswith("B is worse than A: slower on DSL (SI +")
    assert changed(0.2, 0.05).is_worse
    allowed = changed(0.2, 0.4)
    assert not allowed.is_worse and allowed.is_decided and allowed.answerable["within"].all()
    assert any(text.startswith("Worse: slower, and not shown to be equivalent; or more") for text in caveats(change))
    assert any(text.startswith("Worse: slower by more than 40 % (WORSE_THAN); or more") for text in caveats(allowed))
    # So far from 0, and so near to the threshold, nothing is decided.
    near = changed(0.2, 0.2)
    assert set(near.answerable["verdict"]) == {SLOWER} and not (near.is_worse or near.is_decided)


def test_what_changes_nothing_or_helps_is_not_worse() -> None:
    same, faster = changed(0.0), changed(-0.2)
    assert not same.is_worse and not faster.is_worse and faster.is_decided
    assert set(faster.answerable["verdict"]) == {FASTER}
    assert result(faster).startswith("B is faster than A on DSL (SI -")
    equal = changed(0.0, scatter=0.01, runs=30)
    assert result(equal).startswith("A and B are equivalent on DSL (")


def test_the_tables_of_the_page_fit_a_window(browser: Browser, tmp_path: Path) -> None:
    change = changed(0.02, scatter=0.6)
    into = write(replace(change, campaign=replace(change.campaign, folder=tmp_path)))
    browser.narrow(1400)
    browser.open((into / INDEX).as_uri())
    hidden = "return [...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth)"
    assert browser.run(hidden) == [0, 0]


def test_browsers_and_variants_are_compared_as_protocols_are() -> None:
    table = world(0.1)
    expected = compare(table, A, B, QUESTION).contrasts
    browsers = in_browsers(table), replace(A, protocol="tcp"), replace(B, protocol="tcp", browser="firefox")
    variants = in_variants(table), A, replace(B, protocol="tcp", sites=tuple(f"{site}@lean" for site in SITES))
    for campaign_of, a, b in (browsers, variants):
        pd.testing.assert_frame_equal(compare(campaign_of, a, b, QUESTION).contrasts, expected)
        assert as_protocols(campaign_of, a, b).protocols == ("A", "B")


def test_lost_loads_make_a_setting_worse_that_is_not_slower() -> None:
    change = changed(0.0, lost={"quic": 0.4})
    assert set(change.shares.loc[change.shares["worse"], "kind"]) == {LOST}
    assert not change.contrasts["worse"].any() and change.is_worse
    assert "more lost loads on DSL (0 of 40 in A, " in result(change)
    # If no load of B ends, there is no pair, and B is worse all the same.
    every = changed(0.0, lost={"quic": 1.0})
    assert every.is_worse and not every.contrasts["blocks"].any()


def test_without_a_load_that_counts_there_is_nothing_to_compare() -> None:
    with pytest.raises(EyelevelError, match=r"^there is nothing to compare: no block of .*'make status CAMPAIGN="):
        changed(0.0, lost={"quic": 1.0, "tcp": 1.0})


@pytest.mark.parametrize("freedom", [9.0, np.inf])
def test_a_detectable_difference_is_found_as_often_as_planned(freedom: float) -> None:
    error, level = 0.02, 0.01
    difference = detectable_difference(error, freedom, level)
    # The error of the mean is known as well as that of a campaign; its true value is drawn anew for each.
    draw = np.random.default_rng(1)
    true_error = error * np.sqrt(freedom / draw.chisquare(freedom, 20_000)) if np.isfinite(freedom) else error
    means = draw.normal(difference, true_error, 20_000)
    seen = true_error * (np.sqrt(draw.chisquare(freedom, 20_000) / freedom) if np.isfinite(freedom) else 1)
    share = np.mean(means / seen > stats.t.isf(level / 2, freedom))
    assert share == pytest.approx(POWER, abs=0.01)
    assert np.isnan(detectable_difference(0.0, freedom, level)) and np.isnan(detectable_difference(np.nan, 1, level))


def test_names_of_strangers_are_plain_text_in_the_summary() -> None:
    table = world(0.2, busy=0.2)
    runs = table.runs
    reason = runs["reason"].where(runs["valid"], "busy: <img src=x> | `code`\n# heading")
    change = compare(replace(table, runs=runs.assign(reason=reason)), A, B, QUESTION)
    lines = summary(change).splitlines()
    assert r"\<img src=x\> \| \`code\` \# heading" in "\n".join(lines)
    assert not [line for line in lines if line.startswith("#") and not line.startswith("### B is worse")]
    assert document(change)["excluded"]
