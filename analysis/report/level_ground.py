"""How compared protocols differ besides their transports, in sentences. The campaign's validation measured every
number, on the machines that made its runs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.aspects import ASPECTS, BACK_OFF, DECISIONS, FURTHER_KEYS, ROUND_TRIPS, Aspect, Choices, Seen, protocol_of
from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Pair
from analysis.text import label, level, listing, share
from tuning.protocols import ALT_SVC, HTTPS_RECORD, VISIT_BEFORE, Protocol

# The columns of the shares of a load that used HTTP/3, if the browser could choose (docs/networks.md).
SHARES = {"requests": "h3_request_share", "bytes": "h3_byte_share"}
# How the browser learns of HTTP/3, by a protocol's `discovery`.
FINDS = {
    ALT_SVC: "learns this from their responses (Alt-Svc) while it loads the page, and chooses",
    VISIT_BEFORE: "knows this from an earlier visit, and chooses",
    HTTPS_RECORD: "learns this from the name server (HTTPS records), and chooses",
}
# Kernel settings that are covered by the measured window after a pause.
MEASURED_SYSCTLS = {"net.ipv4.tcp_slow_start_after_idle"}
# The observations of both protocols of a pair on one machine.
BothSeen = tuple[Seen, Seen]


def level_ground(campaign: CampaignTable, pairs: Iterable[Pair]) -> list[str]:
    """A paragraph for each of `pairs`, except pairs of one protocol under two names."""
    return [text for pair in pairs if (text := _paragraph(campaign, pair))]


def _paragraph(campaign: CampaignTable, pair: Pair) -> str:
    documents = [campaign.settings.protocols.get(name, {}) for name in (pair.compared, pair.reference)]
    if all(documents) and _nameless(documents[0]) == _nameless(documents[1]):
        return ""
    names = f"{label(pair.compared)} and {label(pair.reference)}"
    if deployed := [
        (name, document["discovery"])
        for name, document in zip((pair.compared, pair.reference), documents, strict=True)
        if document.get("alternative")
    ]:
        sentences = [f"{names} are compared as the web is deployed. Their settings are not matched."]
        return " ".join([*sentences, *(_as_deployed(campaign, *one) for one in deployed)])
    # Two unknown transports do not count as the same transport.
    one_transport = all(documents) and documents[0].get("transport") == documents[1].get("transport")
    differ = "differ" if one_transport else "differ besides the transport"
    protocols = [protocol_of(document) for document in documents]
    choices = [campaign.document.server_choices.get(name, {}) for name in (pair.compared, pair.reference)]
    both_seen = _both_seen(campaign, documents)
    if not both_seen and None in protocols:
        return f"How {names} {differ} is not known: the campaign does not keep their settings."
    measured = {aspect: values for aspect in ASPECTS if (values := _values(aspect, both_seen))}
    uneven = {aspect: values for aspect, values in measured.items() if any(aspect.differ(*value) for value in values)}
    decided = {aspect.decision for aspect in measured} | (set() if one_transport else {ROUND_TRIPS})
    unmeasured = [decision for decision in DECISIONS if decision not in decided]
    settings = {decision: text for decision in unmeasured if (text := _set(decision, protocols, choices))}
    differences = [*settings.values(), *(_further(documents) if one_transport else [])]
    if measured:
        sentences = _measured(names, differ, measured.keys(), uneven, one_transport)
        if differences:
            sentences.append(f"Set differently, but not measured in this campaign: {'; '.join(differences)}.")
    else:
        by_settings = f"By their settings: {'; '.join(differences)}." if differences else "Their settings are matched."
        sentences = [f"How {names} {differ} was not measured in this campaign.", by_settings]
    if BACK_OFF in uneven or BACK_OFF.decision in settings:
        sentences.append(_where_packets_are_lost(campaign))
    return " ".join(sentences)


def _as_deployed(campaign: CampaignTable, protocol: str, discovery: str) -> str:
    """The share of the loads over `protocol` that used HTTP/3, which its servers also speak."""
    text = f"The servers of {label(protocol)} speak HTTP/2 and HTTP/3; the browser {FINDS[discovery]}"
    runs = campaign.valid[campaign.valid["protocol"] == protocol]
    if not set(SHARES.values()) <= set(runs):
        return f"{text}."
    shares = []
    for network, some in runs.groupby("network", sort=False):
        requests, sizes = (some[column].astype(float).mean() for column in SHARES.values())
        if not math.isnan(requests):
            shares.append(f"{share(requests)} of requests and {share(sizes)} of bytes on {label(network)}")
    return f"{text}. It used HTTP/3 for {listing(shares)}, on average over the runs that count."


def _discoveries(campaign: CampaignTable) -> dict[str, str]:
    """Each protocol whose servers also speak another one → how the browser finds the other one."""
    return {
        name: settings["discovery"]
        for name, settings in campaign.settings.protocols.items()
        if settings.get("alternative")
    }


def http3_shares(campaign: CampaignTable) -> pd.DataFrame:
    """The shares of requests and of response bytes that used HTTP/3, over the runs that count.

    Columns: network, site, protocol, discovery, runs, and for requests and bytes the mean, least and most share
    (`requests`, `requests_least`, `requests_most`, `bytes`, …). No rows if no protocol of the campaign has an
    alternative.
    """
    found_by = _discoveries(campaign)
    runs = campaign.valid
    if not found_by or not set(SHARES.values()) <= set(runs):
        return pd.DataFrame()
    runs = runs[runs["protocol"].isin(found_by)].astype(dict.fromkeys(SHARES.values(), float))
    aggregated = {
        f"{what}{suffix}": (column, how)
        for what, column in SHARES.items()
        for suffix, how in (("", "mean"), ("_least", "min"), ("_most", "max"))
    }
    keys = ["network", "site", "protocol"]
    table = runs.groupby(keys, sort=False).agg(runs=(SHARES["requests"], "count"), **aggregated)
    table = table.reset_index()
    table.insert(len(keys), "discovery", table["protocol"].map(found_by))
    return table


def _measured(
    names: str,
    differ: str,
    measured: Iterable[Aspect],
    uneven: Mapping[Aspect, Sequence[tuple[Any, Any]]],
    one_transport: bool,
) -> list[str]:
    """The sentences on the aspects that were measured of both protocols: first the `uneven` aspects, then the level
    ones."""
    texts = {aspect: _against(aspect, values) for aspect, values in uneven.items()}
    different = "; ".join(text for aspect, text in texts.items() if one_transport or aspect.name != ROUND_TRIPS)
    of_transport = "" if one_transport else next((texts[one] for one in texts if one.name == ROUND_TRIPS), "")
    levels = [aspect.name for aspect in measured if aspect not in uneven]
    if different:
        which = listing([one.name for one in texts if one_transport or one.name != ROUND_TRIPS])
        how = f"differ in {of_transport}, and besides the transport in" if of_transport else f"{differ} in"
        sentences = [f"{names} {how} {which}.", f"Measured before the first run: {different}."]
        return [*sentences, *([f"Matched in everything else that was measured: {listing(levels)}."] if levels else [])]
    if not of_transport:
        return [f"{names} are matched in everything that was measured: {listing(levels)}."] if levels else []
    matched = f", and are matched in everything else that was measured: {listing(levels)}" if levels else ""
    return [f"{names} differ in {of_transport}{matched}."]


def _both_seen(campaign: CampaignTable, documents: Sequence[Mapping[str, Any]]) -> list[BothSeen]:
    """The observations of both protocols on each machine that has both; the last observation of each counts."""
    seen: dict[str, dict[int, Seen]] = {}
    for observation in campaign.observations:
        for place, document in enumerate(documents):
            if document and _nameless(observation.setting) == _nameless(document):
                seen.setdefault(observation.host, {})[place] = observation.seen
    return [(of_host[0], of_host[1]) for of_host in seen.values() if len(of_host) == 2]


def _values(aspect: Aspect, both_seen: Iterable[BothSeen]) -> list[tuple[Any, Any]]:
    """The values of both protocols, for each machine that has both."""
    pairs = [(aspect.measured(one), aspect.measured(other)) for one, other in both_seen]
    return [(one, other) for one, other in pairs if one is not None and other is not None]


def _against(aspect: Aspect, values: Sequence[tuple[Any, Any]]) -> str:
    """The aspect with both protocols' values: those of one machine, or the range over several machines."""
    ends = ((min(of_one), max(of_one)) for of_one in zip(*values, strict=True))
    texts = (" to ".join(dict.fromkeys(map(aspect.text, pair))) for pair in ends)
    return f"{aspect.name} ({' against '.join(texts)})"


def _set(decision: str, protocols: Sequence[Protocol | None], choices: Sequence[Choices]) -> str:
    """A decision with both protocols' values, if these differ."""
    both = zip(protocols, choices, strict=True)
    compared, reference = (DECISIONS[decision](protocol, of_server) if protocol else "" for protocol, of_server in both)
    is_set = compared and reference and compared != reference
    return f"{decision} ({compared} against {reference})" if is_set else ""


def _further(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """Further keys in which two protocols of one transport differ, with their values."""
    compared, reference = map(_further_keys, documents)
    names = [name for name in compared | reference if compared.get(name) != reference.get(name)]
    both = ((name, *(one.get(name, "not set") or "none" for one in (compared, reference))) for name in names)
    return [f"{name} ({one} against {other})" for name, one, other in both]


def _further_keys(document: Mapping[str, Any]) -> dict[str, str]:
    """The values of FURTHER_KEYS as texts. A key of kernel settings is replaced by an entry for each of its settings,
    without MEASURED_SYSCTLS."""
    given = {key: value for key in FURTHER_KEYS if (value := document.get(key)) not in (None, False)}
    texts = {key: " ".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in given.items()}
    for sysctls in (key for key, value in given.items() if isinstance(value, Mapping)):
        del texts[sysctls]
        texts |= {
            f"{name} in {sysctls}": value for name, value in given[sysctls].items() if name not in MEASURED_SYSCTLS
        }
    return texts


def _where_packets_are_lost(campaign: CampaignTable) -> str:
    networks = [
        f"{label(name)} ({level(network['loss'])})"
        for name, network in campaign.network_settings.items()
        if network.get("loss") and network.get("retransmit_ms") is None
    ]
    networks += [
        f"{label(name)} (chosen packets)"
        for name, network in campaign.network_settings.items()
        if any(network.get(key) for key in network if key.startswith("drop_"))
    ]
    networks += [
        f"{label(name)} (off at times)"
        for name, network in campaign.network_settings.items()
        if any(network.get(key) for key in ("on_off", "up_on_off", "down_on_off"))
    ]
    if networks:
        return f"The window kept matters where packets are lost: on {listing(networks)}."
    return "The window kept matters where packets are lost, which here are only those that a full queue drops."


def _nameless(document: Mapping[str, Any]) -> dict[str, Any]:
    return {**document, "name": ""}
