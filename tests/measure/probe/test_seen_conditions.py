"""Delay and loss over time: measurements that follow the file pass, and those that follow another file do not."""

from random import Random

import numpy as np
import pytest

from measure.probe.conditions import LetThrough, let_through, seen_conditions
from tuning.conditions import DELAY, LOSS, Conditions, parse_conditions

# Generated.
DELAYS = "time_s,delay_ms,loss\n0,0,0\n0.4,20,0.2\n0.9,5,0\n1.6,40,0.05\n2,0,0\n"
# The same conditions, a little later or a little larger.
SHIFTED = "time_s,delay_ms,loss\n0,0,0\n0.9,20,0.2\n1.4,5,0\n1.7,40,0.05\n2,0,0\n"
LONGER = "time_s,delay_ms,loss\n0,2,0\n0.4,22,0.2\n0.9,7,0\n1.6,42,0.05\n2,0,0\n"


def fared(conditions: Conditions, began_ms: float) -> tuple[dict[int, float], dict[int, float]]:
    """When packets were sent, and how late they arrived, in a network that began this much later than assumed."""
    draws = Random(1)
    sent_ms = {number: 100 + 2.0 * number for number in range(1500)}
    delayed_ms, last_ms = {}, 0.0
    for number, at_ms in sent_ms.items():
        if draws.random() >= conditions.at(LOSS, at_ms - began_ms):
            last_ms = max(last_ms, at_ms + conditions.at(DELAY, at_ms - began_ms))
            delayed_ms[number] = last_ms - at_ms + draws.uniform(0, 0.2)
    return sent_ms, delayed_ms


@pytest.mark.parametrize("began_ms", [0, 7, 23])
def test_delays_are_compared_from_when_the_network_began(began_ms: float) -> None:
    sent_ms, delayed_ms = fared(parse_conditions(DELAYS), began_ms)
    seen = seen_conditions(parse_conditions(DELAYS), sent_ms, delayed_ms, 0.0)
    assert seen.off_ms < 0.3
    assert seen.delay_ms == pytest.approx(seen.expected_delay_ms, abs=0.4)
    assert 1 - len(delayed_ms) / len(sent_ms) == pytest.approx(seen.expected_loss, abs=4 * seen.loss_sd)
    shifted = seen_conditions(parse_conditions(SHIFTED), sent_ms, delayed_ms, 0.0)
    assert shifted.off_ms > 1
    longer = seen_conditions(parse_conditions(LONGER), sent_ms, delayed_ms, 0.0)
    assert abs(longer.delay_ms - longer.expected_delay_ms) > 1


# One second of 9.6 Mbit/s, half a second of outage, and one second with 60 opportunities at once every 50 ms.
BURSTS = [*range(1, 801), *(ms for ms in range(1301, 2301, 50) for _ in range(60))]


@pytest.mark.parametrize("began_ms", [0, 7, 43])
@pytest.mark.parametrize("behind", [None, parse_conditions(DELAYS)], ids=["alone", "delays and losses behind it"])
def test_rates_are_compared_from_when_the_network_began(began_ms: float, behind: Conditions | None) -> None:
    draws = Random(2)
    due_ms = [number * BURSTS[-1] + at_ms for number in range(9) for at_ms in BURSTS]
    arrived_ms, last_ms = [], 0.0
    for at_ms in due_ms[3000:12_000]:
        last_ms = max(last_ms, at_ms + (behind.at(DELAY, at_ms) if behind else 0))
        if draws.random() >= 0.02 and draws.random() >= (behind.at(LOSS, at_ms) if behind else 0):
            arrived_ms.append(last_ms + began_ms + draws.uniform(0, 0.3))
    seen_mbps = (len(arrived_ms) - 1) * 1500 * 8e-3 / (arrived_ms[-1] - arrived_ms[0])

    def let(lines_ms: list[int]) -> LetThrough:
        return let_through(lines_ms, np.array(arrived_ms), 1500, 1.0, behind, 0.02, 20.0)

    expected = let(BURSTS)
    assert expected.mbps == pytest.approx(seen_mbps, abs=0.001 * seen_mbps + 4 * expected.sd_mbps)
    assert expected.sd_mbps < 0.005 * expected.mbps
    faster = let([*BURSTS[:-1], *BURSTS[-45:]])
    assert abs(faster.mbps - seen_mbps) > 0.01 * seen_mbps + 4 * faster.sd_mbps
