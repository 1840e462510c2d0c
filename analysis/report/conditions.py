"""Sentences on the conditions under which a campaign was measured: lanes, timekeeping, and its servers."""

import statistics
from typing import Any

from analysis.text import label, listing, plural
from dataset.table import CampaignDocument
from tuning.defaults import DEFAULT_SHELLS, RECORDED


def of_conditions(document: CampaignDocument) -> list[str]:
    """All conditions that a reader must know."""
    return [*of_lanes(document), *of_timekeeping(document), *of_servers(document)]


def of_lanes(document: CampaignDocument) -> list[str]:
    """A warning that nobody knows whether the campaign's lanes disturbed each other; none if that was measured before,
    or if one run was made at a time."""
    machines = [name for name, record in document.lanes.items() if not record.get("calibration")]
    lanes, at_once = document.settings.lanes, document.settings.at_once
    how = [*([f"{lanes} runs were made at once, in lanes"] if lanes > 1 else [])]
    how += [f"{number} runs on {label(network)} shared processors" for network, number in at_once.items()]
    if not how or not machines:
        return []
    return [
        f"On {listing(machines)}, {listing(how)}, since LANES was given as a number. Whether they disturbed each other "
        "was not measured. Runs of a block are compared within their lane; do not compare their times with those of "
        "campaigns in other lanes. 'make lanes' measures it, for LANES=auto."
    ]


def lane_facts(document: CampaignDocument) -> dict[str, str]:
    """The number of lanes of each machine, and the reason for it; empty if there were no lanes and none were tried."""
    return {
        f"lanes of {name}": "; ".join((f"{record['count']}: {_lane_reason(record)}", *_sharing_facts(record)))
        for name, record in sorted(document.lanes.items())
    }


def _lane_reason(record: dict[str, Any]) -> str:
    calibration = record.get("calibration")
    return str(calibration.get("reason")) if isinstance(calibration, dict) else "a given number"


def _sharing_facts(record: dict[str, Any]) -> list[str]:
    """For each network whose loads shared processors: how many loads ran at once, and the reason for this number."""
    calibration = record.get("calibration")
    measured = calibration.get("sharing", {}) if isinstance(calibration, dict) else {}
    return [
        f"{number} at once on {network}: {measured.get(network, {}).get('reason', 'a given number')}"
        for network, number in record.get("at_once", {}).items()
    ]


def of_timekeeping(document: CampaignDocument) -> list[str]:
    """How far times may be from those with real-time priority; empty if the network had it.

    The numbers are from benchmarks/rootless/README.md.
    """
    if document.settings.shells != DEFAULT_SHELLS:
        version = document.versions.get(document.settings.shells, document.settings.shells)
        return [
            f"Networks were emulated by the shells of {version}, not by ours. These emulate in whole milliseconds, "
            "without real-time priority, and a link sends whole packets at the times of a trace "
            "(docs/contributors/mahimahi.md). "
            "It is unknown whether they were late. Compare these runs with each other."
        ]
    if document.has_real_time_priority:
        return []
    return [
        "The emulated network had no real-time priority. On another machine (two cores, 30 loads of demo-news on "
        "lte each) that changed page load times by +0.5 % over tcp+ and -0.4 % over quic, and the Speed Index by "
        "-0.1 % and +3.5 % (90 % intervals: up to 3 % either way, and 0.7 to 6.4 % for the last). Compare these runs "
        "with each other, and do not trust differences of this size. `setup/grant priority` grants it."
    ]


def of_servers(document: CampaignDocument) -> list[str]:
    """How far beyond the networks the servers are, and whether they have think times; empty if all servers are equally
    far and answer at once."""
    texts = []
    if sites := document.settings.extra_rtts_ms:
        extra_ms = [ms for servers in sites.values() for ms in servers.values()]
        how = {"file": "as set by a file", "recorded": "as recorded, beyond the nearest one"}.get(
            document.settings.server_rtts, f"as recorded ({document.settings.server_rtts})"
        )
        texts.append(
            f"Servers are farther away than in the networks' settings, {how}. Round trips to "
            f"{plural('server', len(extra_ms))} of {plural('site', len(sites))} are longer by {min(extra_ms):.3g} to "
            f"{max(extra_ms):.3g} ms (median {statistics.median(extra_ms):.3g} ms). Do not compare this campaign with "
            "one in which all are equally far away."
        )
    if document.settings.think_time == RECORDED:
        texts.append(
            "Servers took as long to answer as the recorded ones. Do not compare this campaign with one in which they "
            "answer at once."
        )
    if document.settings.certificates == RECORDED:
        texts.append(
            "Servers sent certificate chains as long as the recorded ones. Do not compare this campaign with one in "
            "which they are short."
        )
    if document.settings.alpn == RECORDED:
        texts.append(
            "Servers of which only HTTP/1.1 was recorded spoke HTTP/1.1 over TCP, and HTTP/3 over QUIC. There the "
            "protocols differ in more than the transport."
        )
    return texts
