"""Forecasts how many runs a campaign with `RUNS=auto` needs before its own rule stops it
(`analysis.statistics.confirmatory`).

The forecast simulates campaigns. A simulation uses the campaign's plan, its hypotheses and the shortest load times of
its pages. It takes the scatter of runs and the size of gains from `analysis.earlier`, so the forecast is as good as
these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from analysis.earlier import GAIN_SD, SITE_SD, Expected
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.samples import Array, Samples
from analysis.statistics.spending import looks_of_plan
from base.words import in_words
from dataset.clients import Client, clients_of
from dataset.table import Cell

SEED = 17
# The number of simulated campaigns. It is lower for large campaigns: MOST_CONTRASTS contrasts of single sites take ten
# seconds.
MOST_CAMPAIGNS = 200
LEAST_CAMPAIGNS = 30
MOST_CONTRASTS = 40_000
# The quantiles that bound the interval of a `Range`.
QUANTILES = (0.1, 0.9)
# A run's noise is mostly common to all its metrics. Each metric has noise of its own, with this share of the common
# noise's standard deviation.
OWN_NOISE = 1 / 3


@dataclass(frozen=True)
class Range:
    """The mean over simulated campaigns, and an interval that contains 8 of 10 of them."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """The planned measurement.

    `rtt_ms`: network → its round-trip time. `runs`: the most runs of each setting. `load_s`: how long the page load of
    each cell takes. `run_s`: by how much each of its runs prolongs the campaign: its whole duration, or a part of that
    where several runs are measured at once. `browsers`: Chromium unless given.
    """

    sites: Sequence[str]
    rtt_ms: Mapping[str, float]
    protocols: Sequence[str]
    runs: int
    load_s: Mapping[Cell, float]
    run_s: Mapping[Cell, float]
    browsers: Sequence[str] = ()

    @cached_property
    def clients(self) -> dict[str, Client]:
        """The plan's networks in each browser, by the client's name."""
        return clients_of(self.rtt_ms, self.browsers)

    @property
    def total_runs(self) -> int:
        """The number of runs if the rule never stops the campaign."""
        return len(self.sites) * len(self.clients) * len(self.protocols) * self.runs

    def round_s(self, network: str) -> float:
        """How long one block of every site on `network` takes."""
        return len(self.protocols) * sum(self.run_s[site, network] for site in self.sites)


@dataclass(frozen=True)
class Expectation:
    """The expected runs and seconds of a campaign with `RUNS=auto`; the total runs and seconds without the rule; and
    how many campaigns were simulated."""

    runs: Range
    seconds: Range
    total_runs: int
    total_s: float
    campaigns: int


def expectation(plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], seed: int = SEED) -> Expectation:
    """The runs and the time that a campaign of this `plan` is expected to take. `hypotheses`: those on its protocols;
    `expected`: the values assumed on each network."""
    campaigns = number_of_campaigns(plan, hypotheses)
    stops = simulated_stops(plan, hypotheses, expected, campaigns, seed)
    runs = stops.sum(axis=1) * len(plan.sites) * len(plan.protocols)
    round_s = np.array([plan.round_s(client.network) for client in plan.clients.values()])
    return Expectation(
        _range(runs), _range(stops @ round_s), plan.total_runs, float(plan.runs * round_s.sum()), campaigns
    )


def number_of_campaigns(plan: Plan, hypotheses: Hypotheses) -> int:
    """How many campaigns to simulate."""
    contrasts = hypotheses.family_size(len(plan.clients)) * len(plan.sites)
    return int(np.clip(MOST_CONTRASTS // max(1, contrasts), LEAST_CAMPAIGNS, MOST_CAMPAIGNS))


def simulated_stops(
    plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], campaigns: int, seed: int
) -> Array:
    """The number of blocks of every site after which each client ended: simulated campaigns x clients."""
    networks = np.array([client.network for client in plan.clients.values()])
    # Student's t stands for exchanges here, since these would take too long.
    looks = replace(looks_of_plan([plan.runs], len(plan.sites), may_end=True), exchanges=False)
    stops = np.full((campaigns, len(networks)), plan.runs)
    # The rule's threshold for the family of one campaign. `confirmatory` cannot correct for this family: below, it gets
    # the clients of all simulated campaigns at once, as if they belonged to one campaign.
    level = hypotheses.significant_p / max(1, hypotheses.family_size(len(networks)))
    values = simulated_values(plan, hypotheses, expected, campaigns, seed)
    rtt_ms = {
        f"{place:05} {name}": plan.rtt_ms[client.network]
        for place in range(campaigns)
        for name, client in plan.clients.items()
    }
    names = tuple(rtt_ms)
    protocols = tuple(dict.fromkeys(name for pair in hypotheses.family for name in pair))
    going_on = np.arange(len(names))
    for blocks in looks.blocks[:-1]:
        here = tuple(names[place] for place in going_on)
        samples = Samples(values[going_on][..., :blocks], here, tuple(plan.sites), protocols, hypotheses.family_metrics)
        table = confirmatory(samples, hypotheses, rtt_ms, looks)
        if table.empty:
            break
        is_decided = ((table["p"] < level) | (table["equivalence_p"] < level)).groupby(table["network"]).all()
        ended = np.array([is_decided[name] for name in here], dtype=bool)
        stops.reshape(-1)[going_on[ended]] = blocks
        going_on = going_on[~ended]
        if not len(going_on):
            break
    # A network is measured in all browsers until it is decided in each of them.
    return np.stack([stops[:, networks == network].max(axis=1) for network in networks], axis=1)


def simulated_values(
    plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], campaigns: int, seed: int
) -> Array:
    """Times in ms of the family's protocols and metrics: (campaigns x clients) x sites x protocols x metrics x blocks.

    All metrics start from the time of the load. Noise that the runs of a block share is left out, since it cancels in
    their ratio.
    """
    draw = np.random.default_rng(seed)
    protocols = list(dict.fromkeys(name for pair in hypotheses.family for name in pair))
    metrics, sites = hypotheses.family_metrics, len(plan.sites)
    values = np.empty((campaigns, len(plan.clients), sites, len(protocols), len(metrics), plan.runs))
    for n, client in enumerate(plan.clients.values()):
        known = expected[client.network]
        page = np.log([1000 * plan.load_s[site, client.network] for site in plan.sites])
        level: dict[str, Array] = {}
        for pair in hypotheses.family:
            level.setdefault(pair.reference, np.zeros((campaigns, sites, len(metrics))))
            mean = np.stack([_means(draw, known.gains.get((pair, name)), campaigns) for name in metrics], axis=-1)
            if not any((pair, name) in known.gains for name in metrics):
                mean[:] = mean[:, :1]  # a protocol that is faster is faster in all metrics
            of_sites = mean[:, None] + draw.normal(0, known.site_sd, (campaigns, sites, 1))
            level.setdefault(pair.compared, level[pair.reference] + of_sites)
        run_sd = known.scatter / np.sqrt(2 * (1 + OWN_NOISE**2))
        shape = (campaigns, sites, len(protocols), len(metrics), plan.runs)
        noise = draw.normal(0, run_sd, (*shape[:3], 1, plan.runs)) + draw.normal(0, run_sd * OWN_NOISE, shape)
        levels = np.stack([level[name] for name in protocols], axis=2)[..., None]
        values[:, n] = np.exp(page[:, None, None, None] + levels + noise)
    return values.reshape((-1, *values.shape[2:]))


def _means(draw: np.random.Generator, known: tuple[float, float] | None, campaigns: int) -> Array:
    centre, error = known or (0.0, GAIN_SD)
    return draw.normal(centre, error if np.isfinite(error) else GAIN_SD, campaigns)


def _range(values: Array) -> Range:
    low, high = np.quantile(values, QUANTILES)
    return Range(float(np.mean(values)), float(low), float(high))


def expected_lines(expectation: Expectation, expected: Mapping[str, Expected]) -> list[str]:
    """The lines to print before a campaign: its expected length, and the assumptions of the forecast."""
    runs, seconds = expectation.runs, expectation.seconds
    first = (
        f"RUNS=auto: about {runs.mean:.0f} of {expectation.total_runs} runs are expected ({runs.low:.0f} to "
        f"{runs.high:.0f} in 8 of 10 of {expectation.campaigns} simulated campaigns), {in_words(seconds.mean)} "
        f"({in_words(seconds.low)} to {in_words(seconds.high)}) of {in_words(expectation.total_s)}"
    )
    sources: dict[str, list[str]] = {}
    for network, known in expected.items():
        scatter = f"{network} {100 * known.scatter:.1f} %"
        sources.setdefault(known.source, []).append(scatter)
    lines = [first]
    for source, scatters in sources.items():
        if source:
            lines.append(
                f"  assumed as the campaign {source} measured here: gains, and how much the ratio of a block's runs "
                f"scatters ({', '.join(scatters)})"
            )
        else:
            lines.append(
                f"  assumed, since no earlier campaign here has measured it: the ratio of a block's runs scatters "
                f"({', '.join(scatters)}), mean gains differ by {100 * GAIN_SD:.0f} % from none, and those of single "
                f"sites by {100 * SITE_SD:.0f} % from them"
            )
    return lines
