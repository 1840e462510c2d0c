"""The announcement of a campaign: what it can show, and how long it is expected to take if it may end early."""

from itertools import product

from analysis.earlier import expected_on
from analysis.forecast import Plan, chance_lines, chances, length_lines
from analysis.hypotheses import parse
from dataset.declaration import HYPOTHESES
from dataset.metrics import time_names
from measure.campaign.campaign import Campaign
from measure.host.machine import machine


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
    lines = chance_lines(chances(plan, hypotheses, expected), plan.runs)
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
