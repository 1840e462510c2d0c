"""The first screen states how compared protocols differ besides their transports, in this campaign's own numbers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.validations import KNOWN, entry, seen, write_validation

from analysis.diagnostics import spread
from analysis.report.level_ground import level_ground
from analysis.report.sections.measured import setting_tables
from analysis.runs import CampaignTable, Observation, load
from analysis.statistics.hypotheses import Pair
from base.errors import EyelevelError
from base.structure import unstructured
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from eyelevel.simulate import Truth, write
from measure.campaign.server_choices import choices_of_server
from tuning import networks

STOCK, LEVEL = Pair("tcp+", "quic"), Pair("tcp+level", "quic+1con")
NETWORKS = networks.load()


def campaign(
    observations: Iterable[Mapping[str, Mapping[str, Any]]],
    names: Iterable[str],
    on: Iterable[str] = ("dsl", "lte", "da2gc", "mss"),
) -> CampaignTable:
    """A campaign of the protocols `names`. `observations` has one element for each machine: protocol → observation."""
    protocols = json.loads(json.dumps({name: unstructured(KNOWN[name]) for name in names}))
    nets = {name: unstructured(NETWORKS[name]) for name in on}
    on_machines = tuple(
        Observation(f"machine {number}", setting, kept.seen[setting["name"]])
        for number, of in enumerate(observations)
        for kept in [entry(of)]
        for setting in json.loads(json.dumps(kept.passed))
    )
    choices = {name: choices_of_server(KNOWN[name]) for name in names}
    document = CampaignDocument(settings=CampaignSettings(protocols=protocols, networks=nets), server_choices=choices)
    return CampaignTable(pd.DataFrame(), document, observations=on_machines)


def paragraph(pair: Pair, *observations: Mapping[str, Mapping[str, Any]], on: Iterable[str] = ("dsl", "mss")) -> str:
    """The paragraph about `pair`."""
    (text,) = level_ground(campaign(observations, pair, on), [pair])
    return text


def both(pair: Pair) -> dict[str, dict[str, Any]]:
    return {name: seen(name) for name in pair}


def test_tcp_plus_and_quic_differ_in_back_off_and_order_in_the_machines_numbers() -> None:
    assert paragraph(STOCK, both(STOCK), on=("dsl", "lte", "da2gc", "mss")) == (
        "QUIC and TCP+ differ in round trips before the first request (1.1 against 2.1), and besides the transport in "
        "window kept after one loss, bytes in front of an urgent response, bytes sent against priority, incremental "
        "responses sent in turns and other responses sent in turns. "
        "Measured before the first run: window kept after one loss "
        "(0.85 against 0.70); bytes in front of an urgent response (2 kB against 548 kB); bytes sent against priority"
        " (0 % against 33 %); incremental responses sent in turns (76 % against 0 %); other responses sent in turns "
        "(89 % against 0 %). Matched in everything else that was measured: congestion control, initial window, pacing "
        "of a flight, window after a pause and pictures asked for at once. Set differently, but not measured in this "
        "campaign: "
        "whether the browser knows beforehand what servers speak (yes against no); backup connections of the browser "
        "(none against after 250 ms without an answer). The window kept matters where packets are lost: on DA2GC "
        "(3.3 %) and MSS (6 %)."
    )


def test_a_level_pair_is_level_in_everything_that_was_measured() -> None:
    text = paragraph(LEVEL, both(LEVEL))
    assert text.startswith(
        "quic+1con and tcp+level differ in round trips before the first request (1.1 against 2.1), and are matched in "
        "everything else that was measured: congestion control, window kept after one loss, bytes in front of an "
        "urgent response, bytes sent against priority, incremental responses sent in turns, other responses sent in "
        "turns, initial window, pacing of a flight, window after a pause and pictures asked for at once."
    )
    assert "Set differently" not in text
    assert "differ besides" not in text and "where packets are lost" not in text


# Changes to the observations of QUIC+1con, and the words that each must produce: each number has a sentence of its own.
CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"loss_response": {"before": 200.0, "after": 169.0}}, "window kept after one loss (0.84 against 0.70)"),
    ({"in_front_bytes": 1_368_000}, "bytes in front of an urgent response (1,368 kB against 45 kB)"),
    ({"against_priority": 0.41}, "bytes sent against priority (41 % against 0 %)"),
    ({"turns_incremental": 0.8}, "incremental responses sent in turns (80 % against 0 %)"),
    ({"turns_others": 0.84}, "other responses sent in turns (84 % against 0 %)"),
    ({"pictures_at_once": 6}, "pictures asked for at once (6 of 8 against 8 of 8)"),
    ({"congestion_control": "bbr"}, "congestion control (bbr against cubic)"),
    ({"request_after_s": 0.312}, "differ in round trips before the first request (3.1 against 2.1), and "),
    ({"flights": [[[0, 7000], [0.03, 8000]], [[0, 150_000], [0.03, 150_000]]]}, "initial window (15 kB against 46 kB)"),
    (
        {"flights": [[[0, 23_000], [0, 23_000]], [[0, 150_000], [0.03, 150_000]]]},
        "pacing of a flight (over 0 % of a round trip against over 47 % of a round trip)",
    ),
    ({"flights": [[[0, 23_000], [0.03, 23_000]], [[0, 46_000]]]}, "window after a pause (46 kB against 401 kB)"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES, ids=[next(iter(change)) for change, _ in CHANGES])
def test_each_number_that_is_not_level_is_told(change: dict[str, Any], sentence: str) -> None:
    level = paragraph(LEVEL, both(LEVEL))
    assert sentence not in level
    of_quic = seen("quic+1con")
    numbers = of_quic["order_of_service"]["numbers"]
    (numbers if change.keys() <= numbers.keys() else of_quic).update(change)
    text = paragraph(LEVEL, {**both(LEVEL), "quic+1con": of_quic})
    assert sentence in text
    # The text mentions no other difference, apart from the transports' numbers of round trips, which it always
    # mentions. The name of a difference is also in the first sentence.
    named = 0 if sentence.startswith("differ in round trips") else 1 + sentence.partition(" (")[0].count(" against ")
    assert text.count(" against ") == level.count(" against ") + named


@pytest.mark.parametrize("name", ["loss_response", "order_of_service", "flights", "request_after_s"])
def test_what_was_not_looked_at_is_told_by_its_setting(name: str) -> None:
    settings = {
        "loss_response": "answer to a loss (cubic as 2 connections against cubic as 1 connection)",
        "order_of_service": "order of service (urgency against as written to the kernel's send buffer)",
    }
    observed = both(STOCK)
    del observed["quic"][name]
    text = paragraph(STOCK, observed)
    unmeasured = text[text.index("Set differently, but not measured in this campaign: ") :]
    assert (settings[name] in unmeasured) if name in settings else all(s not in text for s in settings.values())
    assert "answer to a loss" not in unmeasured or "on MSS (6 %)" in unmeasured


def test_a_campaign_without_validation_says_that_nothing_was_measured_and_has_no_numbers() -> None:
    text = paragraph(STOCK, on=("dsl", "lte"))
    assert text == (
        "How QUIC and TCP+ differ besides the transport was not measured in this campaign. By their settings: "
        "answer to a loss (cubic as 2 connections against cubic as 1 connection); order of service (urgency against as "
        "written to the kernel's send buffer); whether the browser knows beforehand what servers speak (yes against "
        "no); backup connections of the browser (none against after 250 ms without an answer). The window kept matters "
        "where packets are lost, which here are only those that a full queue drops."
    )


def test_a_link_that_repairs_its_losses_loses_nothing_and_chosen_packets_are_lost() -> None:
    table = campaign([both(STOCK)], STOCK, ["da2gc", "mss", "lte"])
    table.document.settings.networks["da2gc"]["retransmit_ms"] = 65
    table.document.settings.networks["lte"]["drop_down_packets"] = [120]
    assert level_ground(table, [STOCK])[0].endswith("are lost: on MSS (6 %) and LTE (chosen packets).")


def test_settings_that_were_not_kept_are_not_known() -> None:
    table = campaign([both(STOCK)], STOCK)
    imported = replace(table, document=CampaignDocument())
    (text,) = level_ground(imported, [STOCK])
    assert text == (
        "How QUIC and TCP+ differ besides the transport is not known: the campaign does not keep their settings."
    )


def test_what_was_seen_of_another_setting_of_that_name_is_no_measurement() -> None:
    table = campaign([both(STOCK)], STOCK)
    table.document.settings.protocols["quic"]["emulated_connections"] = 1
    assert "was not measured in this campaign" in level_ground(table, [STOCK])[0]


def test_of_several_machines_all_numbers_are_told() -> None:
    other = both(STOCK)
    other["tcp+"]["order_of_service"]["numbers"]["in_front_bytes"] = 538_000
    assert "(2 kB against 538 kB to 548 kB);" in paragraph(STOCK, both(STOCK), other)


def test_protocols_of_one_transport_differ_in_their_own_keys() -> None:
    text = paragraph(Pair("tcp", "tcp+"), {name: seen(name) for name in ("tcp", "tcp+")})
    assert text.startswith("TCP+ and TCP differ in bytes in front of an urgent response, ")
    assert ". Measured before the first run: bytes in front" in text
    assert "initial window (46 kB against 14 kB)" in text and "window after a pause (401 kB against 14 kB)" in text
    assert "net.ipv4.tcp_rmem in client_sysctls (4096 1048576 16777216 against 4096 131072 6291456)" in text
    assert "tcp_slow_start_after_idle" not in text


def test_what_is_deployed_is_not_on_level_ground() -> None:
    pair = Pair("deployed-cold", "tcp+")
    known = campaign((), pair)
    shares = {"network": ["dsl", "dsl", "mss"], "h3_request_share": [0.4, 0.5, 0.2], "h3_byte_share": [0.1, 0.3, 0.0]}
    runs = pd.DataFrame({"protocol": "deployed-cold", "valid": True, **shares})
    (text,) = level_ground(replace(known, runs=runs), [pair])
    assert text == (
        "TCP+ and deployed-cold are compared as the web is deployed. Their settings are not matched. The servers of "
        "deployed-cold speak HTTP/2 and HTTP/3; the browser learns this from their responses (Alt-Svc) while it loads "
        "the page, and chooses. It used HTTP/3 for 45.0 % of requests and 20.0 % of bytes on DSL and 20.0 % "
        "of requests and 0.0 % of bytes on MSS, on average over the runs that count."
    )


def test_the_report_says_how_much_of_each_page_came_over_http3() -> None:
    known = campaign((), ["tcp+", "deployed-warm"], on=["dsl"])
    runs = pd.DataFrame(
        [
            ("news", "deployed-warm", True, 0.5, 0.2),
            ("news", "deployed-warm", True, 1.0, 0.6),
            ("news", "deployed-warm", False, 0.0, 0.0),
            ("light", "deployed-warm", True, 0.25, 0.75),
            ("news", "tcp+", True, None, None),
        ],
        columns=["site", "protocol", "valid", "h3_request_share", "h3_byte_share"],
    ).assign(network="dsl")
    spread_of_none = spread(runs)
    settings = setting_tables(replace(known, runs=runs), ["tcp+", "deployed-warm"], ["dsl"], spread_of_none)
    (shares,) = (table for table in settings if table.name == "http3_shares")
    assert shares.texts.to_numpy().tolist() == [
        [
            "DSL",
            "news",
            "deployed-warm",
            "visit-before",
            "2",
            "75.0 %",
            "50.0 %",
            "100.0 %",
            "40.0 %",
            "20.0 %",
            "60.0 %",
        ],
        ["DSL", "light", "deployed-warm", "visit-before", "1", *["25.0 %"] * 3, *["75.0 %"] * 3],
    ]
    assert settings[0].texts["server"].tolist() == ["nginx", "nginx and quic_server"]
    only_tcp = runs[runs["protocol"] == "tcp+"]
    settings = setting_tables(replace(campaign((), ["tcp+"]), runs=only_tcp), ["tcp+"], ["dsl"], spread_of_none)
    assert "http3_shares" not in [table.name for table in settings]


def test_a_protocol_against_itself_needs_no_paragraph() -> None:
    table = campaign([], ["tcp"])
    table.document.settings.protocols["tcp~2"] = {**table.document.settings.protocols["tcp"], "name": "tcp~2"}
    assert level_ground(table, [Pair("tcp", "tcp~2")]) == []


def test_it_is_read_from_the_campaigns_folder(tmp_path: Path) -> None:
    truth = Truth(sites=1, networks=("dsl",), protocols=STOCK, runs=2)
    folder = write(tmp_path / "c", truth)
    write_validation(folder, STOCK)
    (text,) = level_ground(load(folder), [STOCK])
    assert "window kept after one loss (0.85 against 0.70)" in text
    entries = json.loads((folder / "validation.json").read_text())
    entries[0]["passed"] = []
    (folder / "validation.json").write_text(json.dumps(entries))
    assert "was not measured" in level_ground(load(folder), [STOCK])[0], "what failed is no measurement"
    entries[0]["passed"] = [{}]
    (folder / "validation.json").write_text(json.dumps(entries))
    with pytest.raises(EyelevelError, match=r"validation\.json is broken"):
        load(folder)
