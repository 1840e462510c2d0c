"""Simulates campaigns of `RUNS=auto`, to forecast how many runs one needs before its own rule stops it
(`analysis.statistics.confirmatory`).

A simulation uses the campaign's plan, its hypotheses and the least times that its pages take. It takes the scatter of
runs and the size of gains from `analysis.earlier`, so its result is as good as that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.earlier import GAIN_SD, SITE_SD, Expected
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.samples import Array, Samples
from analysis.stopping import interim_analyses_until
from base.words import in_words
from dataset.clients import Client, clients_of
from dataset.table import Cell

SEED = 17
# The number of simulated campaigns. It is lower for large ones: MOST_CONTRASTS contrasts of single sites take ten
# seconds.
MOST_CAMPAIGNS = 200
LEAST_CAMPAIGNS = 30
MOST_CONTRASTS = 40_000
# The quantiles of the interval.
QUANTILES = (0.1, 0.9)
# Most of a run's noise is common to its metrics; this share of it is each metric's own.
OWN_NOISE = 1 / 3


@dataclass(frozen=True)
class Range:
    """The mean of simulated campaigns, and an interval in which 8 of 10 lie."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """The planned measurement: its sites, network → its round-trip time (ms), protocols, the most runs of each setting,
    for each cell the time of its page load and of a whole run (s), the number of runs that are measured at once, and
    its browsers (Chromium unless given)."""

    sites: Sequence[str]
    rtt_ms: Mapping[str, float]
    protocols: Sequence[str]
    runs: int
    load_s: Mapping[Cell, float]
    run_s: Mapping[Cell, float]
    lanes: int = 1
    browsers: Sequence[str] = ()

    @cached_property
    def clients(self) -> dict[str, Client]:
        """Its networks in each browser, by name."""
        return clients_of(self.rtt_ms, self.browsers)

    @property
    def total_runs(self) -> int:
        """The number of runs without the rule."""
        return len(self.sites) * len(self.clients) * len(self.protocols) * self.runs

    def round_s(self, network: str) -> float:
        """How long one block of every site behind `network` takes in one lane."""
        return len(self.protocols) * sum(self.run_s[site, network] for site in self.sites)


@dataclass(frozen=True)
class Expectation:
    """The runs and seconds expected of a campaign with `RUNS=auto`, and both without it; `campaigns` were simulated."""

    runs: Range
    seconds: Range
    total_runs: int
    total_s: float
    campaigns: int


def expectation(plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], seed: int = SEED) -> Expectation:
    """The runs and the time that a campaign of this `plan` is expected to take. `hypotheses`: those on its protocols;
    `expected`: the values that are assumed on each network."""
    campaigns = number_of_campaigns(plan, hypotheses)
    stops = simulated_stops(plan, hypotheses, expected, campaigns, seed)
    runs = stops.sum(axis=1) * len(plan.sites) * len(plan.protocols)
    round_s = np.array([plan.round_s(client.network) for client in plan.clients.values()]) / plan.lanes
    return Expectation(
        _range(runs), _range(stops @ round_s), plan.total_runs, float(plan.runs * round_s.sum()), campaigns
    )


def number_of_campaigns(plan: Plan, hypotheses: Hypotheses) -> int:
    """How many campaigns are simulated."""
    contrasts = hypotheses.family_size(len(plan.clients)) * len(plan.sites)
    return int(np.clip(MOST_CONTRASTS // max(1, contrasts), LEAST_CAMPAIGNS, MOST_CAMPAIGNS))


def simulated_stops(
    plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], campaigns: int, seed: int
) -> Array:
    """After how many blocks of every site each client ended: simulated campaigns x clients."""
    networks = np.array([client.network for client in plan.clients.values()])
    interim = interim_analyses_until(plan.runs)
    stops = np.full((campaigns, len(networks)), plan.runs)
    # The rule's own level of a campaign: its networks stand one after the other here, as if they were of one.
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
    for blocks in interim[:-1]:
        here = tuple(names[place] for place in going_on)
        samples = Samples(values[going_on][..., :blocks], here, tuple(plan.sites), protocols, hypotheses.family_metrics)
        table = confirmatory(samples, hypotheses, rtt_ms, interim)
        if table.empty:
            break
        is_decided = ((table["p"] < level) | (table["equivalence_p"] < level)).groupby(table["network"]).all()
        ended = np.array([is_decided[name] for name in here], dtype=bool)
        stops.reshape(-1)[going_on[ended]] = blocks
        going_on = going_on[~ended]
        if not len(going_on):
            break
    # A network is measured in all browsers until it is decided in each.
    return np.stack([stops[:, networks == network].max(axis=1) for network in networks], axis=1)


def simulated_values(
    plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], campaigns: int, seed: int
) -> Array:
    """Times in ms of the family's protocols and metrics: (campaigns x networks) x sites x protocols x metrics x blocks.

    All metrics take at least as long as the load. Noise that the runs of a block share cancels in their ratio, and is
    left out.
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
                mean[:] = mean[:, :1]  # a protocol that is faster is so in all metrics
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
    """The lines that are printed before a campaign: its expected length, and what that assumes."""
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
