"""Whether one direction loses, repeats and drops the right packets."""

import math
from collections.abc import Iterator

from dataset.checks import Check
from measure.probe.emulated import ECHOES, LOST_NUMBERS
from measure.validate.network.contract import LOSS_DEVIATIONS, RTT_TOLERANCE, RTT_TOLERANCE_MS, Judge, OneWay
from tuning.impairments.contract import DOWN, UP

# A repeat that costs less than this, in ms, cannot be distinguished from the machine's delays.
LEAST_REPEAT_MS = 10.0
# If at most this share of tries fails, most packets whose first try fails need only one more.
MOST_LOSS = 0.4


def _loss(way: OneWay) -> Iterator[Check]:
    """The share of packets that were lost; some of these may have been chosen to be dropped."""
    loss, seen, bursts = way.loss, way.seen, way.network.bursts_of(way.direction)
    if way.is_blurred and way.is_off_at_times:
        why = "times off cannot be distinguished from it where packets overtake each other before they are lost"
        yield way.unchecked("loss", why, 100 * loss, "%")
        return
    name, share, measured = f"loss of {seen.sent} packets", loss, 100 * seen.lost / seen.sent
    if conditions := seen.conditions:
        # Losses over time come in addition to the others, and are independent of them.
        share = 1 - (1 - loss) * (1 - conditions.expected_loss)
        tolerance = LOSS_DEVIATIONS * (math.sqrt(loss * (1 - loss) / seen.sent) + conditions.loss_sd)
        name = f"{name}, over time"
    else:
        tolerance = LOSS_DEVIATIONS * math.sqrt(loss * (1 - loss) * _inflation(way) / seen.sent)
    tolerance += way.chosen / seen.sent
    yield way.within(name, 100 * share, measured, 100 * tolerance, "%")
    if not loss or conditions:
        return
    name = "loss behind a lost packet"
    if way.is_blurred:
        yield way.unchecked(name, "packets overtake each other before they are lost")
        return
    again = bursts.loss_after_loss if bursts else loss
    # Bernstein's bound, since a normal distribution would be too narrow: if few packets are lost after a lost one,
    # chance adds more of them than it takes away.
    lost = max(seen.lost, 1)
    tolerance = LOSS_DEVIATIONS * math.sqrt(again * (1 - again) * _inflation(way) / lost)
    tolerance += LOSS_DEVIATIONS**2 / (6 * lost) + way.chosen / lost
    behind = 100 * seen.lost_behind_lost / lost
    yield way.within(f"{name} of {seen.lost}", 100 * again, behind, 100 * tolerance, "%")


def _inflation(way: OneWay) -> float:
    """The factor by which losses in bursts vary more: the variance of the mean of a process with memory."""
    bursts = way.network.bursts_of(way.direction)
    together = (bursts.loss_after_loss - way.loss) / (1 - way.loss) / (1 - bursts.memory) if bursts else 0.0
    return 1 + 2 * together


def _repairs(way: OneWay) -> Iterator[Check]:
    """Whether a link that retransmits loses only packets whose tries all failed, and whether it delays as many of the
    others as it would lose without retransmission."""
    network, loss = way.network, way.loss
    cost_ms, lasting = network.retransmit_ms or 0, network.lasting_loss_of(way.direction)
    tolerance = LOSS_DEVIATIONS * math.sqrt(lasting * (1 - lasting) / way.seen.sent) + way.chosen / way.seen.sent
    name, measured = f"loss of {way.seen.sent} packets, repaired", 100 * way.seen.lost / way.seen.sent
    yield way.within(name, 100 * lasting, measured, 100 * tolerance, "%")
    if not (seen := way.seen.repairs) or not loss:
        return
    # The share of repeated packets among those that arrived.
    loss = (loss - lasting) / (1 - lasting)
    if cost_ms < LEAST_REPEAT_MS or network.jitter_ms or way.trace:
        why = f"{cost_ms:g} ms cannot be distinguished from other delays"
        yield way.unchecked("packets repeated", why, 100 * loss, "%")
        return
    free = max(seen.free, 1)
    tolerance = LOSS_DEVIATIONS * math.sqrt(loss * (1 - loss) / free)
    yield way.within(f"packets repeated of {seen.free}", 100 * loss, 100 * seen.late / free, 100 * tolerance, "%")
    if seen.repeat_ms is not None and loss < MOST_LOSS:
        tolerance_ms = 3 * max(RTT_TOLERANCE_MS, RTT_TOLERANCE * network.min_rtt_ms)
        yield way.within("delay of a repeat", cost_ms, seen.repeat_ms, tolerance_ms, "ms")


def _drops(way: OneWay) -> Iterator[Check]:
    """Whether the chosen packets were dropped, as far as the probe can know their numbers."""
    network, name = way.network, "packets dropped"
    numbers, times_ms = network.chosen_of(way.direction)
    if times_ms:
        yield way.unchecked(f"{name} by time", "the probe knows too roughly when the emulator began")
    if not numbers:
        return
    is_lossy = {each: network.lasting_loss_of(each) or network.on_off_of(each) for each in (UP, DOWN)}
    # The probe sent echoes before the packets whose losses are known.
    known = range(ECHOES + 1, ECHOES + 1 + way.seen.sent)
    dropped = [number for number in sorted(numbers) if number in known][:LOST_NUMBERS]
    if times_ms or is_lossy[way.direction]:
        yield way.unchecked(name, "others are lost, too")
    elif way.direction == DOWN and (is_lossy[UP] or any(network.chosen_of(UP))):
        yield way.unchecked(name, "what is lost on the uplink has no answer, which changes the numbers")
    elif not dropped:
        yield way.unchecked(name, f"the probe knows what is lost of {known[0]} to {known[-1]} alone")
    else:
        yield way.same(name, dropped, [known[number] for number in way.seen.lost_numbers])


LOSSES = (Judge(_loss, lambda way: not way.repeats), Judge(_repairs, lambda way: way.repeats))
DROPS = Judge(_drops)
