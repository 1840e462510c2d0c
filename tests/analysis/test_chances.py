"""The chances of verdicts before the first run."""

from dataclasses import replace

import numpy as np
import pytest

from analysis import hypotheses
from analysis.earlier import Expected
from analysis.forecast import DIFFERENCES, Chances, Plan, chances
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUIVALENT, SLOWER
from analysis.statistics.samples import Samples
from analysis.statistics.spending import looks_of_plan
from eyelevel.announcement import chance_lines

PAIR = Pair("tcp", "quic")
LOAD_S = 1.0


def declared() -> Hypotheses:
    base = replace(hypotheses.load(), comparisons=(PAIR,), family=(PAIR,), family_metrics=("si",))
    return base.restricted_to(("tcp", "quic"), ("si",))


def plan_of(sites: int, runs: int, rtt_ms: float) -> Plan:
    names = tuple(f"s{number}" for number in range(sites))
    cells = {(site, "dsl"): LOAD_S for site in names}
    return Plan(names, {"dsl": rtt_ms}, ("tcp", "quic"), runs, cells, cells)


@pytest.mark.parametrize(
    ("sites", "runs", "scatter", "rtt_ms"), [(4, 10, 0.08, 100.0), (1, 31, 0.06, 60.0), (12, 12, 0.15, 200.0)]
)
def test_simulated_campaigns_reach_their_verdicts_as_often(
    sites: int, runs: int, scatter: float, rtt_ms: float
) -> None:
    (stated,) = chances(plan_of(sites, runs, rtt_ms), declared(), {"dsl": Expected(scatter)})
    campaigns, draw = 400, np.random.default_rng([sites, runs])
    looks = looks_of_plan([runs], sites)
    for gain, chance, verdict in (
        *((gain, chance, SLOWER) for gain, chance in zip(DIFFERENCES, stated.difference, strict=True)),
        (0.0, stated.equivalent, EQUIVALENT),
    ):
        times = 1000 * LOAD_S * np.exp(draw.normal(0, scatter / np.sqrt(2), (campaigns, sites, 2, 1, runs)))
        times[:, :, 1] *= 1 + gain
        names = tuple(f"n{number}" for number in range(campaigns))
        samples = Samples(times, names, tuple(f"s{site}" for site in range(sites)), ("tcp", "quic"), ("si",))
        table = confirmatory(samples, declared(), dict.fromkeys(names, rtt_ms), looks)
        # All campaigns are one family here; each has its own level.
        p = table["equivalence_p" if verdict == EQUIVALENT else "p"]
        assert (p < declared().significant_p).mean() == pytest.approx(chance, abs=0.09)


def test_one_run_shows_nothing() -> None:
    (stated,) = chances(plan_of(3, 1, 24), declared(), {"dsl": Expected(0.05)})
    assert (stated.difference, stated.equivalent) == ((0, 0), 0)


def test_a_margin_finer_than_a_picture_is_marked() -> None:
    coarse, fine = Chances("lte", (0.5, 0.999), 0.3, 37.0), Chances("dsl", (0.001, 0.2), 0.0, 12.0)
    ruler = "finer than one picture of the browser (17 ms)"
    assert chance_lines([coarse, fine], 5, declared()) == [
        "chances after 5 runs of each that a test shows the true difference, if it is as stated:",
        "  lte: 50 % to show a difference of 5 %, 99 % to show a difference of 10 %, 30 % to show that there is none "
        "(less than 37 ms)",
        "  dsl: below 1 % to show a difference of 5 %, 20 % to show a difference of 10 %, below 1 % to show that there "
        f"is none (less than 12 ms, {ruler})",
    ]
    in_percent = replace(declared(), equivalence_round_trips=0, equivalence_margin=0.05)
    assert chance_lines([coarse], 5, in_percent)[1].endswith("30 % to show that there is none (less than 5 %, 37 ms)")
