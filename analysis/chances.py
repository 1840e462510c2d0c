"""The chance of each verdict before the first run: what a plan can show if it is true, and what it cannot.

The chances follow from the plan, from the declared hypotheses and their level at the plan's last look, and from the
scatter of runs that is expected on each network (`analysis.earlier`). They are those of Student's t on normal log
ratios.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.auto_runs import Plan
from analysis.earlier import Expected
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.planning import SCATTERS
from analysis.statistics.spending import levels, looks_of_plan

# The true differences (shares) whose chance is stated.
DIFFERENCES = (0.05, 0.1)
# Chromium draws a picture this often, so a page cannot appear at other times.
FRAME_MS = 1000 / 60


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
    """The chances on each client of `plan`. `hypotheses`: those on its protocols; `expected`: by network."""
    error = hypotheses.significant_p / max(1, hypotheses.family_size(len(plan.clients)))
    looks = looks_of_plan([plan.runs], len(plan.sites))
    one_sided, two_sided = (levels(looks.blocks, looks.planned, share)[-1] for share in (error, error / 2))
    sites, freedom = len(plan.sites), len(plan.sites) * (plan.runs - 1)
    result = []
    for name, client in plan.clients.items():
        times_ms = 1000 * np.array([plan.load_s[site, client.network] for site in plan.sites])
        added_ms = hypotheses.equivalence_round_trips * plan.rtt_ms[client.network]
        shares = added_ms / times_ms if added_ms else np.full(sites, hypotheses.equivalence_margin)
        of_mean = expected[client.network].scatter / np.sqrt(sites * plan.runs)
        difference, equivalent = (0.0,) * len(DIFFERENCES), 0.0
        if freedom:
            bound = stats.t.isf(two_sided, freedom)
            shift = np.log1p(DIFFERENCES) / of_mean
            exact = stats.nct.sf(bound, freedom, shift)
            # The noncentral t cannot be computed far out; there it equals the normal distribution.
            difference = tuple(np.where(np.isfinite(exact), exact, stats.norm.sf(bound - shift)).tolist())
            # The estimated error varies, too: these are equally likely values of it.
            places = (np.arange(SCATTERS) + 0.5) / SCATTERS
            errors = np.sqrt(stats.chi2.ppf(places, freedom) / freedom)
            room = np.log1p(shares).mean() / of_mean - stats.t.isf(one_sided, freedom) * errors
            equivalent = float(np.maximum(0, 2 * stats.norm.cdf(room) - 1).mean())
        margin_ms = added_ms or float((shares * times_ms).mean())
        result.append(Chances(name, difference, equivalent, margin_ms))
    return result


def chance_lines(all_chances: list[Chances], runs: int) -> list[str]:
    """The lines to print before a campaign of this number of `runs`."""
    lines = [f"chances of a verdict after {runs} runs of each, if what is stated is true:"]
    for one in all_chances:
        differences = ", ".join(
            f"a difference of {100 * share:.0f} % {_percent(chance)}"
            for share, chance in zip(DIFFERENCES, one.difference, strict=True)
        )
        fine = f", finer than one picture of the browser ({FRAME_MS:.0f} ms)" if one.margin_ms < FRAME_MS else ""
        none = f"no difference {_percent(one.equivalent)} (less than {one.margin_ms:.0f} ms{fine})"
        lines.append(f"  {one.network}: {differences}, {none}")
    return lines


def _percent(chance: float) -> str:
    return f"{100 * min(chance, 0.99):.0f} %" if chance >= 0.01 else "below 1 %"
