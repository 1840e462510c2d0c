"""Whether a contrast holds with other programs: the pairs that are compared, and the results for known truths."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.known_campaigns import write
from support.validations import KNOWN

from analysis import hypotheses
from analysis.aspects import decisions
from analysis.programs import (
    DEPENDS,
    INDEPENDENT,
    pairs_beside,
    program_differences,
    program_gains,
    variants,
)
from analysis.report.sections.programs import sentences
from analysis.runs import CampaignTable, load
from analysis.samples import samples_of
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.samples import Samples
from base.structure import structured, unstructured
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from measure.campaign.server_choices import choices_of_server

QUIC, BBR = Pair("tcp+", "quic"), Pair("tcp+bbr", "quic+bbr")
CADDY = Pair("caddy-h2", "caddy-h3")
PROTOCOLS = {
    name: {"transport": transport, "server": server, "congestion_control": control}
    for name, transport, server, control in (
        ("tcp", "tcp", "nginx", "cubic"),
        ("tcp+", "tcp", "nginx", "cubic"),
        ("tcp+bbr", "tcp", "nginx", "bbr"),
        ("quic", "quic", "quic_server", "cubic"),
        ("quic+bbr", "quic", "quic_server", "bbr"),
        ("caddy-h2", "tcp", "caddy", "reno"),
        ("caddy-h3", "quic", "caddy", "reno"),
        ("quinn-h3", "quic", "quinn", "cubic"),
        ("quinn-h3-again", "quic", "quinn", "cubic"),
        ("quinn-h3+bbr", "quic", "quinn", "bbr"),
    )
}

Tables = tuple[CampaignTable, Samples, Hypotheses]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tables]:
    @cache
    def read(name: str) -> Tables:
        folder: Path = tmp_path_factory.mktemp("known") / name
        write(folder, name)
        campaign = load(folder)
        declared = hypotheses.of_campaign(folder, campaign.document)
        return campaign, samples_of(campaign), declared.restricted_to(campaign.protocols, campaign.metrics)

    return read


def test_each_server_has_a_pair_beside_the_contrast_of_its_congestion_control() -> None:
    every = variants([QUIC, BBR], PROTOCOLS, {}, ["chromium"])
    assert [(one.contrast, one.pair, one.servers) for one in every] == [
        (QUIC, QUIC, "nginx and quic_server"),
        # A server that has both transports is compared with itself; no other server has the same congestion control.
        (QUIC, Pair("caddy-h2", "caddy-h3"), "caddy"),
        # A server that has only QUIC is compared with the contrast's TCP; among equally close settings, the first is
        # used.
        (QUIC, Pair("tcp+", "quinn-h3"), "nginx and quinn"),
        (BBR, BBR, "nginx and quic_server"),
        (BBR, Pair("tcp+bbr", "quinn-h3+bbr"), "nginx and quinn"),
    ]


def test_one_program_changes_at_a_time() -> None:
    every = variants([QUIC], {name: PROTOCOLS[name] for name in (*QUIC, "quinn-h3")}, {}, ["chromium", "firefox"])
    changes = [
        (one.servers, one.browser, one.varies, one.before and (one.before.servers, one.before.browser)) for one in every
    ]
    assert changes == [
        ("nginx and quic_server", "chromium", "", None),
        ("nginx and quinn", "chromium", "server", ("nginx and quic_server", "chromium")),
        ("nginx and quic_server", "firefox", "browser", ("nginx and quic_server", "chromium")),
        ("nginx and quinn", "firefox", "server", ("nginx and quic_server", "firefox")),
    ]


def real(*names: str) -> dict[str, dict[str, Any]]:
    """The entries of `campaign.json` for these settings of the testbed."""
    return {name: unstructured(KNOWN[name]) for name in names}


def document_of(protocols: dict[str, dict[str, Any]]) -> CampaignDocument:
    """The document of a campaign of these protocols on LTE."""
    settings = {"networks": {"lte": {}}, "protocols": protocols, "browser": {"name": "chromium"}}
    choices = {name: choices_of_server(KNOWN[name]) for name in protocols if name in KNOWN}
    return CampaignDocument(structured(settings, CampaignSettings, ""), server_choices=choices)


def test_another_server_is_compared_with_the_nearest_setting() -> None:
    """quinn's Cubic behaves as one connection, like quic+1con's; quic+1con+2rtt needs another round trip."""
    protocols = real("tcp+", "quic", "quic+1con+2rtt", "quic+1con", "quic+1con+urgency", "quinn-h3", *CADDY)
    near = Pair("tcp+", "quic+1con")
    every = variants([QUIC], protocols, decisions(document_of(protocols)), [""])
    assert [(one.pair, one.varies, one.before and one.before.pair) for one in every] == [
        (QUIC, "", None),
        (near, "", None),
        (Pair("tcp+", "quinn-h3"), "server", near),
        (CADDY, "server", QUIC),
    ]


def differences_of(protocols: dict[str, dict[str, Any]], all_declared: Hypotheses | None = None) -> pd.DataFrame:
    """The differences between programs in a campaign of four blocks of one site on LTE."""
    times = np.exp(np.random.default_rng(1).normal(7, 0.2, (1, 1, len(protocols), 1, 4)))
    samples = Samples(times, ("lte",), ("s",), tuple(protocols), ("si",))
    declared = (all_declared or hypotheses.load()).restricted_to(samples.protocols, ["si"])
    return program_differences(CampaignTable(pd.DataFrame(), document_of(protocols)), samples, declared)


def test_in_what_else_than_programs_settings_differ_is_said() -> None:
    protocols = real("tcp+", "quic", "quinn-h3", *CADDY)
    table = differences_of(protocols)
    assert pairs_beside(table) == [Pair("quic", "quinn-h3"), Pair("quic", "caddy-h3"), Pair("tcp+", "caddy-h2")]
    (sentence,) = sentences(table, 0.95, decisions(document_of(protocols)))
    assert sentence.endswith(
        " Not the program alone: these settings also differ, quinn-h3 and QUIC in answer to a loss and order of "
        "service; caddy-h3 and QUIC in congestion control, answer to a loss and order of service; caddy-h2 and TCP+ "
        "in congestion control and answer to a loss."
    )
    level = real("tcp+", "quic", "quic+1con", "quinn-h3")
    (sentence,) = sentences(differences_of(level), 0.95, decisions(document_of(level)))
    assert sentence.endswith("these settings also differ, quinn-h3 and quic+1con in order of service.")
    same = real("tcp+", "quic") | {"again": {**unstructured(KNOWN["quic"]), "name": "again", "server": "unknown"}}
    assert "Not the program alone" not in sentences(differences_of(same), 0.95, decisions(document_of(same)))[0]


def test_a_setting_that_came_later_is_compared_with_nothing() -> None:
    protocols = real("tcp+", "quic", "quic+1con", "quinn-h3")
    declared = replace(hypotheses.load(), added_protocols={"quic+1con": "later"})
    assert set(differences_of(protocols)["compared_before"]) == {"quic+1con"}
    assert set(differences_of(protocols, declared)["compared_before"]) == {"quic"}


def test_one_set_of_programs_is_compared_with_nothing(known: Callable[[str], Tables]) -> None:
    assert variants([QUIC, BBR], {name: PROTOCOLS[name] for name in (*QUIC, *BBR)}, {}, ["chromium"]) == []
    # Two settings of TCP are not a contrast of TCP and QUIC.
    assert variants([Pair("tcp", "tcp+")], PROTOCOLS, {}, ["chromium", "firefox"]) == []
    differences = program_differences(*known("tenth"))
    assert differences.empty and program_gains(*known("tenth")).empty
    assert sentences(differences, 0.95, {}) == []


def test_what_a_browser_changes_is_found_and_what_a_server_does_not_change_is_not(
    known: Callable[[str], Tables],
) -> None:
    table = program_differences(*known("programs"))
    assert set(table["network"]) == {"dsl", "lte"} and set(table["metric"]) == {"si", "plt"}
    browsers, servers = (table[table["varies"] == name] for name in ("browser", "server"))
    assert len(browsers) == 4 and len(servers) == 8
    assert (browsers["verdict"] == DEPENDS).all()
    truth = 1.02 / 0.9 - 1
    assert ((browsers["difference_low"] < truth) & (truth < browsers["difference_high"])).all()
    assert servers["verdict"].isin((INDEPENDENT, NOT_DECIDED)).all() and (servers["verdict"] == INDEPENDENT).any()
    assert (table["sites"] == 12).all() and (table["blocks"] == 12 * 31).all()
    (sentence,) = sentences(table, 0.95, known("programs")[0].document.settings.protocols)
    assert "in 4 the difference depends on the program" in sentence and "12 comparisons of programs" in sentence


def test_programs_that_are_alike_are_said_to_be(known: Callable[[str], Tables]) -> None:
    table = program_differences(*known("programs-alike"))
    assert len(table) == 12 and (table["verdict"] != DEPENDS).all() and (table["verdict"] == INDEPENDENT).any()
    gains = program_gains(*known("programs-alike"))
    assert len(gains) == 16 and np.abs(gains["gain"] + 0.1).max() < 0.02
    assert ((gains["gain_low"] < gains["gain"]) & (gains["gain"] < gains["gain_high"])).all()


def test_a_difference_is_that_of_the_gains_and_a_common_reference_cancels() -> None:
    """One site, three blocks; with the other server, QUIC takes 1.2 times as long in each, whatever TCP does."""
    draw = np.random.default_rng(1)
    times = np.exp(draw.normal(7, 0.2, (3, 3)))
    times[2] = 1.2 * times[1]
    samples = Samples(times[None, None, :, None], ("lte",), ("s",), ("tcp+", "quic", "quinn-h3"), ("si",))
    protocols = {name: PROTOCOLS[name] for name in samples.protocols}
    declared = hypotheses.load().restricted_to(samples.protocols, ["si"])
    settings = {"networks": {"lte": {}}, "protocols": protocols, "browser": {"name": "chromium"}}
    campaign = CampaignTable(pd.DataFrame(), CampaignDocument(structured(settings, CampaignSettings, "")))
    (row,) = program_differences(campaign, samples, declared).to_dict("records")
    assert row["difference"] == pytest.approx(0.2) and row["difference_low"] == pytest.approx(0.2)
    ours, others = (row["gain"] for row in program_gains(campaign, samples, declared).to_dict("records"))
    assert (1 + others) / (1 + ours) == pytest.approx(1.2)


def test_what_was_measured_in_one_block_says_nothing(known: Callable[[str], Tables]) -> None:
    campaign, samples, declared = known("programs")
    few = program_differences(campaign, replace(samples, values=samples.values[..., :1]), declared)
    assert (few["verdict"] == NOT_DECIDED).all() and few["difference_low"].isna().all()
