"""The announcement of a campaign: what it can show, and how long it is expected to take if it may end early."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from analysis.earlier import GAIN_SD, SITE_SD, Expected, expected_on
from analysis.forecast import DIFFERENCES, SEED, Chances, Plan, chances, number_of_campaigns, simulated_stops
from analysis.hypotheses import parse
from analysis.statistics.hypotheses import Hypotheses
from analysis.text import level
from base.words import in_words, plural
from dataset.declaration import HYPOTHESES
from dataset.metrics import time_names
from measure.campaign.campaign import Campaign
from measure.host.machine import machine

# Chromium draws a picture this often, so a page cannot appear at other times.
FRAME_MS = 1000 / 60
# The quantiles between which 8 of 10 simulated campaigns are.
QUANTILES = (0.1, 0.9)


def announcement(campaign: Campaign) -> list[str]:
    """The lines to print before `campaign`.

    Raises EyelevelError when the declaration of the campaign is broken.
    """
    hypotheses = parse(campaign.hypotheses, campaign.folder / HYPOTHESES)
    hypotheses = hypotheses.restricted_to(tuple(campaign.protocols), time_names())
    if not hypotheses.family:
        one_protocol = "RUNS=auto cannot save runs of a campaign of one protocol: there is nothing to compare"
        return [one_protocol] if campaign.auto else []
    plan = plan_of(campaign)
    notes: list[str] = []
    results = campaign.folder.parent
    host = str(machine()["host"])
    expected = expected_on(campaign.networks, hypotheses, results, campaign.folder, host, notes.append)
    lines = chance_lines(chances(plan, hypotheses, expected), plan.runs, hypotheses)
    if campaign.auto:
        lines += length_lines(plan, hypotheses, expected)
    return [*lines, *(f"  note: {note}" for note in notes)]


def plan_of(campaign: Campaign) -> Plan:
    """The part of `campaign` that the simulation needs."""
    model = campaign.run_model()
    cells = list(product(campaign.sites, campaign.networks))
    return Plan(
        tuple(campaign.sites),
        {name: network.path_rtt_ms for name, network in campaign.networks.items()},
        tuple(campaign.protocols),
        campaign.runs,
        {cell: model.load_s(cell) for cell in cells},
        {cell: model.forecast(cell).seconds / campaign.lanes.runs_at_once(cell[1]) for cell in cells},
        tuple(campaign.browsers),
    )


def chance_lines(all_chances: list[Chances], runs: int, hypotheses: Hypotheses) -> list[str]:
    """The lines to print before a campaign of this number of `runs`, for its `hypotheses`."""
    margin = "" if hypotheses.equivalence_round_trips else f"{level(hypotheses.equivalence_margin)}, "
    lines = [f"chances after {plural('run', runs)} of each that a test shows the true difference, if it is as stated:"]
    for one in all_chances:
        differences = ", ".join(
            f"{_percent(chance)} to show a difference of {100 * share:.0f} %"
            for share, chance in zip(DIFFERENCES, one.difference, strict=True)
        )
        fine = f", finer than one picture of the browser ({FRAME_MS:.0f} ms)" if one.margin_ms < FRAME_MS else ""
        none = f"{_percent(one.equivalent)} to show that there is none (less than {margin}{one.margin_ms:.0f} ms{fine})"
        lines.append(f"  {one.network}: {differences}, {none}")
    return lines


def _percent(chance: float) -> str:
    return f"{100 * min(chance, 0.99):.0f} %" if chance >= 0.01 else "below 1 %"


def length_lines(plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], seed: int = SEED) -> list[str]:
    """The lines to print before a campaign with `RUNS=auto`: how long it will be until its own rule stops it, of
    simulated campaigns, and the assumptions."""
    campaigns = number_of_campaigns(plan, hypotheses)
    runs, seconds = plan.length(simulated_stops(plan, hypotheses, expected, campaigns, seed))
    total_runs, total_s = (float(one[0]) for one in plan.length(np.full((1, len(plan.clients)), plan.runs)))
    (least, most), (least_s, most_s) = np.quantile(runs, QUANTILES), np.quantile(seconds, QUANTILES)
    lines = [
        f"RUNS=auto: about {runs.mean():.0f} of {total_runs:.0f} runs ({least:.0f} to {most:.0f} in 8 of 10 of "
        f"{campaigns} simulated campaigns), {in_words(seconds.mean())} ({in_words(least_s)} to {in_words(most_s)}) of "
        f"{in_words(total_s)}"
    ]
    for source in dict.fromkeys(known.source for known in expected.values()):
        of_source = {network: known.scatter for network, known in expected.items() if known.source == source}
        scatters = ", ".join(f"{network} {100 * scatter:.1f} %" for network, scatter in of_source.items())
        if source:
            lines.append(
                f"  assumed, from the campaign {source} on this machine: its changes, and the scatter of a block's "
                f"ratios ({scatters})"
            )
        else:
            lines.append(
                f"  assumed, since no earlier campaign ran on this machine: the scatter of a block's ratios "
                f"({scatters}), of mean changes ({100 * GAIN_SD:.0f} %), and of sites around these "
                f"({100 * SITE_SD:.0f} %)"
            )
    return lines
