"""The forecast of a campaign before its first run: what it can show, and how many runs it will need.

Both forecasts use the campaign's plan and hypotheses, the shortest load times of its pages, and the scatter of runs and
size of gains that `analysis.earlier` expects, so they are as good as these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from analysis.earlier import GAIN_SD, Expected
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.planning import chance_of_difference, chance_of_equivalence
from analysis.statistics.samples import Array, Samples
from analysis.statistics.spending import last_level, looks_of_plan
from dataset.clients import Client, clients_of
from dataset.table import Cell

# The true differences (shares) whose chance is stated.
DIFFERENCES = (0.05, 0.1)
SEED = 17
# The number of simulated campaigns. Large campaigns get fewer: MOST_CONTRASTS contrasts of single sites take 10 s.
MOST_CAMPAIGNS = 200
LEAST_CAMPAIGNS = 30
MOST_CONTRASTS = 40_000
# A run's noise is mostly common to all its metrics. Each metric has noise of its own, with this share of the common
# noise's standard deviation.
OWN_NOISE = 1 / 3


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

    def loads_ms(self, network: str) -> Array:
        """How long the page load of each site on `network` takes."""
        return 1000 * np.array([self.load_s[site, network] for site in self.sites])

    def length(self, blocks: Array) -> tuple[Array, Array]:
        """The runs and the seconds of campaigns with these numbers of `blocks` (campaigns x clients) of every site."""
        round_s = [sum(self.run_s[site, client.network] for site in self.sites) for client in self.clients.values()]
        protocols = len(self.protocols)
        return blocks.sum(axis=1) * len(self.sites) * protocols, blocks @ np.array(round_s) * protocols


@dataclass(frozen=True)
class Chances:
    """The chances of the verdicts on one network, each between 0 and 1.

    `difference`: that of *faster* or *slower* for each of DIFFERENCES, if it is the true one. `equivalent`: that of
    *equivalent* if there is no difference. `margin_ms`: the difference below which protocols count as equivalent.
    """

    network: str
    difference: tuple[float, ...]
    equivalent: float
    margin_ms: float


def chances(plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected]) -> list[Chances]:
    """The chances on each client of `plan` at its last look, by Student's t on normal log ratios. `hypotheses`: those
    on its protocols; `expected`: by network."""
    error = hypotheses.significant_p / max(1, hypotheses.family_size(len(plan.clients)))
    sites, freedom = len(plan.sites), len(plan.sites) * (plan.runs - 1)
    result = []
    for name, client in plan.clients.items():
        times_ms = plan.loads_ms(client.network)
        added_ms = hypotheses.equivalence_round_trips * plan.rtt_ms[client.network]
        shares = added_ms / times_ms if added_ms else np.full(sites, hypotheses.equivalence_margin)
        of_mean = expected[client.network].scatter / np.sqrt(sites * plan.runs)
        difference, equivalent = np.zeros(len(DIFFERENCES)), 0.0
        if freedom:
            shifts = np.log1p(DIFFERENCES) / of_mean
            difference = chance_of_difference(shifts, freedom, 2 * last_level(plan.runs, error / 2))
            margin = np.log1p(shares).mean() / of_mean
            equivalent = chance_of_equivalence(margin, freedom, last_level(plan.runs, error))
        margin_ms = added_ms or float((shares * times_ms).mean())
        result.append(Chances(name, tuple(difference.tolist()), equivalent, margin_ms))
    return result


def number_of_campaigns(plan: Plan, hypotheses: Hypotheses) -> int:
    """How many campaigns to simulate."""
    contrasts = hypotheses.family_size(len(plan.clients)) * len(plan.sites)
    return int(np.clip(MOST_CONTRASTS // max(1, contrasts), LEAST_CAMPAIGNS, MOST_CAMPAIGNS))


def simulated_stops(
    plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], campaigns: int, seed: int = SEED
) -> Array:
    """The number of blocks of every site after which each client ended: simulated campaigns x clients. `hypotheses`:
    those on the plan's protocols; `expected`: the values assumed on each network."""
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
    names, protocols = np.array(list(rtt_ms)), _protocols(hypotheses)
    going_on = np.arange(len(names))
    for blocks in looks.blocks[:-1]:
        here = tuple(names[going_on].tolist())
        samples = Samples(values[going_on][..., :blocks], here, tuple(plan.sites), protocols, hypotheses.family_metrics)
        table = confirmatory(samples, hypotheses, rtt_ms, looks)
        if table.empty:
            break
        is_decided = ((table["p"] < level) | (table["equivalence_p"] < level)).groupby(table["network"]).all()
        ended = is_decided[list(here)].to_numpy(dtype=bool)
        stops.reshape(-1)[going_on[ended]] = blocks
        going_on = going_on[~ended]
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
    protocols, metrics, sites = _protocols(hypotheses), hypotheses.family_metrics, len(plan.sites)
    values = np.empty((campaigns, len(plan.clients), sites, len(protocols), len(metrics), plan.runs))
    for n, client in enumerate(plan.clients.values()):
        known = expected[client.network]
        level: dict[str, Array] = {}
        for pair in hypotheses.family:
            level.setdefault(pair.reference, np.zeros((campaigns, sites, len(metrics))))
            gains = [known.gains.get((pair, name), (0.0, GAIN_SD)) for name in metrics]
            errors = (error if np.isfinite(error) else GAIN_SD for _, error in gains)
            means = [draw.normal(gain, error, campaigns) for (gain, _), error in zip(gains, errors, strict=True)]
            mean = np.stack(means, axis=-1)
            if not any((pair, name) in known.gains for name in metrics):
                mean[:] = mean[:, :1]  # a protocol that is faster is faster in all metrics
            of_sites = mean[:, None] + draw.normal(0, known.site_sd, (campaigns, sites, 1))
            level.setdefault(pair.compared, level[pair.reference] + of_sites)
        run_sd = known.scatter / np.sqrt(2 * (1 + OWN_NOISE**2))
        shape = (campaigns, sites, len(protocols), len(metrics), plan.runs)
        noise = draw.normal(0, run_sd, (*shape[:3], 1, plan.runs)) + draw.normal(0, run_sd * OWN_NOISE, shape)
        levels = np.stack([level[name] for name in protocols], axis=2)[..., None]
        values[:, n] = np.exp(np.log(plan.loads_ms(client.network))[:, None, None, None] + levels + noise)
    return values.reshape((-1, *values.shape[2:]))


def _protocols(hypotheses: Hypotheses) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for pair in hypotheses.family for name in pair))
