"""What `RUNS=auto` saves: expected before a campaign, from simulated ones to which its own rule is applied
(`analysis.confirmatory`), and counted after it.

The simulation knows of a campaign its plan, its hypotheses and the times that its pages take at least. How much runs
scatter and how large gains are it takes from `analysis.earlier`, so its result is as good as that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from analysis.confirmatory import confirmatory
from analysis.earlier import GAIN_SD, SITE_SD, Expected, expected_behind
from analysis.hypotheses import Hypotheses, parse
from analysis.runs import network_and_browser, network_in
from analysis.samples import Array, Samples
from analysis.stopping import looks_until
from analysis.text import listing, span
from base.words import in_words
from dataset.declaration import HYPOTHESES
from dataset.metrics import time_names
from dataset.plan import read_plan
from dataset.table import Cell, read_given_up, read_rows, require_document
from films.policy import FilmPolicy
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import RunModel, forecast
from tuning.networks import IN_BROWSER

SEED = 17
# Of simulated campaigns; fewer of large ones, of which so many contrasts of single sites take ten seconds.
MOST_CAMPAIGNS = 200
LEAST_CAMPAIGNS = 30
MOST_CONTRASTS = 40_000
# The quantiles of the interval.
QUANTILES = (0.1, 0.9)
# Most of a run's noise is common to its metrics; so much of it is each one's own.
OWN_NOISE = 1 / 3


@dataclass(frozen=True)
class Range:
    """The mean of simulated campaigns, and an interval in which 8 of 10 lie."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """What is to be measured: sites, network (in each browser) → its round-trip time (ms), protocols, the most runs of
    each setting, for each cell how long its page takes to load and a run of it altogether (s), and how many runs are
    measured at once."""

    sites: Sequence[str]
    rtt_ms: Mapping[str, float]
    protocols: Sequence[str]
    runs: int
    load_s: Mapping[Cell, float]
    run_s: Mapping[Cell, float]
    lanes: int = 1

    @property
    def total_runs(self) -> int:
        """The number of runs without the rule."""
        return len(self.sites) * len(self.rtt_ms) * len(self.protocols) * self.runs

    def round_s(self, network: str) -> float:
        """How long one block of every site behind `network` takes in one lane."""
        return len(self.protocols) * sum(self.run_s[site, network] for site in self.sites)


@dataclass(frozen=True)
class Expectation:
    """What a campaign of `RUNS=auto` is expected to take, beside what it would without; `campaigns` were simulated."""

    runs: Range
    seconds: Range
    total_runs: int
    total_s: float
    campaigns: int


def expectation(plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], seed: int = SEED) -> Expectation:
    """What a campaign of this `plan` will take, its `hypotheses` those on its protocols, when behind each network it is
    as `expected`."""
    campaigns = number_of_campaigns(plan, hypotheses)
    stops = simulated_stops(plan, hypotheses, expected, campaigns, seed)
    runs = stops.sum(axis=1) * len(plan.sites) * len(plan.protocols)
    round_s = np.array([plan.round_s(network) for network in plan.rtt_ms]) / plan.lanes
    return Expectation(
        _range(runs), _range(stops @ round_s), plan.total_runs, float(plan.runs * round_s.sum()), campaigns
    )


def number_of_campaigns(plan: Plan, hypotheses: Hypotheses) -> int:
    """How many campaigns are simulated."""
    contrasts = hypotheses.family_size(len(plan.rtt_ms)) * len(plan.sites)
    return int(np.clip(MOST_CONTRASTS // max(1, contrasts), LEAST_CAMPAIGNS, MOST_CAMPAIGNS))


def simulated_stops(
    plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], campaigns: int, seed: int
) -> Array:
    """After how many blocks of every site each network ended: simulated campaigns x networks."""
    networks, looks = tuple(plan.rtt_ms), looks_until(plan.runs)
    stops = np.full((campaigns, len(networks)), plan.runs)
    # The rule's own level of a campaign: its networks stand one after the other here, as if they were of one.
    level = hypotheses.significant_p / max(1, hypotheses.family_size(len(networks)))
    values = simulated_values(plan, hypotheses, expected, campaigns, seed)
    names = tuple(f"{place:05} {network}" for place in range(campaigns) for network in networks)
    rtt_ms = {name: plan.rtt_ms[name.partition(" ")[2]] for name in names}
    protocols = tuple(dict.fromkeys(name for pair in hypotheses.family for name in pair))
    going_on = np.arange(len(names))
    for look in looks[:-1]:
        here = tuple(names[place] for place in going_on)
        samples = Samples(values[going_on][..., :look], here, tuple(plan.sites), protocols, hypotheses.family_metrics)
        table = confirmatory(samples, hypotheses, rtt_ms, looks)
        if table.empty:
            break
        is_decided = ((table["p"] < level) | (table["equivalence_p"] < level)).groupby(table["network"]).all()
        ended = np.array([is_decided[name] for name in here], dtype=bool)
        stops.reshape(-1)[going_on[ended]] = look
        going_on = going_on[~ended]
        if not len(going_on):
            break
    # A network goes on in all browsers until it is decided in each.
    browsers = [name.partition(IN_BROWSER)[2] for name in networks if IN_BROWSER in name]
    of_place = np.array([network_and_browser(name, browsers)[0] for name in networks])
    return np.stack([stops[:, of_place == name].max(axis=1) for name in of_place], axis=1)


def simulated_values(
    plan: Plan, hypotheses: Hypotheses, expected: Mapping[str, Expected], campaigns: int, seed: int
) -> Array:
    """Times in ms of the family's protocols and metrics: (campaigns x networks) x sites x protocols x metrics x blocks.

    All metrics take as long as the load does at least. What the runs of a block have in common cancels in their ratio,
    and is left out.
    """
    draw = np.random.default_rng(seed)
    protocols = list(dict.fromkeys(name for pair in hypotheses.family for name in pair))
    metrics, sites = hypotheses.family_metrics, len(plan.sites)
    values = np.empty((campaigns, len(plan.rtt_ms), sites, len(protocols), len(metrics), plan.runs))
    for n, network in enumerate(plan.rtt_ms):
        known = expected[network]
        page = np.log([1000 * plan.load_s[site, network] for site in plan.sites])
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


def announcement(campaign: Campaign) -> list[str]:
    """What is printed before `campaign`, which is of `RUNS=auto`. Raises EyelevelError when it declares something
    broken."""
    hypotheses = parse(campaign.hypotheses, campaign.folder / HYPOTHESES)
    hypotheses = hypotheses.restricted_to(tuple(campaign.protocols), time_names())
    if not hypotheses.family:
        return ["RUNS=auto saves nothing of a campaign of one protocol, which compares nothing"]
    model = campaign.run_model()
    first = campaign.loading.browser
    places = {network_in(name, browser, first): name for browser, name in product(campaign.browsers, campaign.networks)}
    plan = Plan(
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
    notes: list[str] = []
    results = campaign.folder.parent
    expected = expected_behind(campaign.networks, hypotheses, results, campaign.folder, notes.append)
    everywhere = {place: expected[name] for place, name in places.items()}
    lines = expected_lines(expectation(plan, hypotheses, everywhere), expected)
    return [*lines, *(f"  note: {note}" for note in notes)]


def expected_lines(expectation: Expectation, expected: Mapping[str, Expected]) -> list[str]:
    """What is printed before a campaign: what it is expected to take, and what that assumes."""
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


@dataclass(frozen=True)
class Saving:
    """What the rule has saved: the runs of the plan that it made unnecessary, how long they would have taken, how many
    were made and how long these took, and for each network that ended how many runs of a setting it has had.

    Times are those in all lanes at once."""

    runs: int
    seconds: float
    made_runs: int
    made_s: float
    ends: Mapping[str, tuple[int, int]]


def saving(folder: Path, decided: Collection[Cell]) -> Saving:
    """What the rule has saved of the campaign in `folder`, whose `decided` cells need no more runs; nothing where there
    is no plan. Raises EyelevelError."""
    planned = [run for block in read_plan(folder) for run in block]
    if not planned:
        return Saving(0, 0.0, 0, 0.0, {})
    rows = read_rows(folder)
    attempted = {row.of for row in rows}
    given_up = {(entry.site, entry.network) for entry in read_given_up(folder)}
    spared = [run for run in planned if run.cell in decided and run.cell not in given_up and run not in attempted]
    lanes = require_document(folder).lane_count
    spared_s = forecast(spared, rows, folder, RunModel({}, {}, FilmPolicy("none"))).in_lanes(lanes).seconds
    numbers: dict[Cell, set[int]] = {}
    for run in attempted:
        numbers.setdefault(run.cell, set()).add(run.number)
    ends: dict[str, list[int]] = {}
    for cell in dict.fromkeys(run.cell for run in spared):
        ends.setdefault(cell[1], []).append(len(numbers.get(cell, ())))
    return Saving(
        len(spared),
        spared_s,
        len(attempted),
        sum(row.seconds for row in rows) / lanes,
        {network: (min(counts), max(counts)) for network, counts in ends.items()},
    )


def saved_line(saving: Saving) -> str:
    """The same for a reader."""
    if not saving.runs:
        return "RUNS=auto has saved nothing: no network was decided before its last run"
    total, total_s = saving.runs + saving.made_runs, saving.seconds + saving.made_s
    ends = listing(
        [f"{network} after {span(*numbers)} runs of each setting" for network, numbers in saving.ends.items()]
    )
    return (
        f"RUNS=auto saved {saving.runs} of {total} runs ({100 * saving.runs / total:.0f} %), about "
        f"{in_words(saving.seconds)} of {in_words(total_s)}: {ends}"
    )
