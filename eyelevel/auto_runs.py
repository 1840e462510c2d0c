"""The announcement of a campaign of `RUNS=auto`."""

from itertools import product

from analysis.auto_runs import Plan, expectation, expected_lines
from analysis.earlier import expected_behind
from analysis.hypotheses import parse
from analysis.runs import network_in
from dataset.declaration import HYPOTHESES
from dataset.metrics import time_names
from measure.campaign.campaign import Campaign
from measure.host.machine import machine


def announcement(campaign: Campaign) -> list[str]:
    """The lines that are printed before `campaign`, one of `RUNS=auto`. Raises EyelevelError when its declaration is
    broken."""
    hypotheses = parse(campaign.hypotheses, campaign.folder / HYPOTHESES)
    hypotheses = hypotheses.restricted_to(tuple(campaign.protocols), time_names())
    if not hypotheses.family:
        return ["RUNS=auto cannot save runs of a campaign of one protocol: there is nothing to compare"]
    plan = plan_of(campaign)
    notes: list[str] = []
    results = campaign.folder.parent
    host = str(machine()["host"])
    expected = expected_behind(campaign.networks, hypotheses, results, campaign.folder, host, notes.append)
    everywhere = {place: expected[name] for place, name in places_of(campaign).items()}
    lines = expected_lines(expectation(plan, hypotheses, everywhere), expected)
    return [*lines, *(f"  note: {note}" for note in notes)]


def plan_of(campaign: Campaign) -> Plan:
    """The part of `campaign` that the simulation needs."""
    model = campaign.run_model()
    places = places_of(campaign)
    return Plan(
        tuple(campaign.sites),
        {place: campaign.networks[name].path_rtt_ms for place, name in places.items()},
        tuple(campaign.protocols),
        campaign.runs,
        {(site, place): model.load_s((site, places[place])) for site, place in product(campaign.sites, places)},
        {
            (site, place): model.forecast((site, places[place])).seconds
            for site, place in product(campaign.sites, places)
        },
        campaign.lanes.count,
    )


def places_of(campaign: Campaign) -> dict[str, str]:
    """Each network in each browser, as the analysis names it → the network."""
    pairs = product(campaign.browsers, campaign.networks)
    return {network_in(name, browser, campaign.loading.browser): name for browser, name in pairs}
