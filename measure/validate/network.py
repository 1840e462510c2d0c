"""Whether a network is as configured: round-trip time, rates, loss, queues, names (paper, Table 2)."""

import math
import sys
import tempfile
from collections.abc import Iterator

from base.errors import EyelevelError
from base.structure import from_json, to_json
from dataset.checks import Check, between, same, unchecked, within
from measure.validate.network_probe import (
    ECHOES,
    LARGE_BYTES,
    LOST_NUMBERS,
    UNLIMITED_WAIT_MS,
    Direction,
    NetworkMeasurement,
    is_managed,
    overload,
    probe_bytes,
)
from measure.validate.queues import expected
from record.site import Site
from replay import ReplaySpec, run
from replay.shells.registry import shells_named
from tuning import protocols
from tuning.conditions import DELAY
from tuning.defaults import DEFAULT_SHELLS
from tuning.impairments.contract import DOWN, UP
from tuning.networks import IMPAIRMENTS, Network

PROBE = (sys.executable, "-m", "measure.validate.network_probe")

# A program waits for the processor; of a long round trip, 1 %.
RTT_TOLERANCE_MS, RTT_TOLERANCE = 1.0, 0.01
# Mahimahi's shells reckon in whole milliseconds, in each direction.
WHOLE_MS_TOLERANCE = 2.0
PACKET_BITS = 1500 * 8
RATE_TOLERANCE = 0.02
# Of all packets together: a sender that a busy machine held up for longer than the queue lasted sent fewer.
MEAN_RATE_TOLERANCE = 0.05
TRACE_TOLERANCE = 0.01
# A binomial count of n lost packets is within this many times √n of what is expected, but once in 16,000: a validation
# of all networks makes a dozen such checks, and must not fail by chance.
LOSS_DEVIATIONS = 4.0
# So many make that 12 % of the loss; a quick look takes fewer.
LOST_PACKETS, LOST_PACKETS_QUICK = 1089, 100
QUEUE_TOLERANCE = 0.02
RESOLUTION_TOLERANCE_MS = 3.0
# What a repeat must cost to be told from delays of the machine.
LEAST_REPEAT_MS = 10.0
# A try may fail so often, and most packets whose first fails need but one more.
MOST_LOSS = 0.4
# Of the scatter of echoes; that of 100 is so far from that of all but once in 10,000.
SCATTER_TOLERANCE, SCATTER_TOLERANCE_MS = 0.25, 0.3
# What a queue does to a flow that a busy machine sends less evenly than a model does.
MANAGED_TOLERANCE, MANAGED_TOLERANCE_MS = 0.15, 1.0
DROPPED_TOLERANCE, MARKED_TOLERANCE = 0.003, 0.001
# PIE swings about its reference, at random.
PIE_TOLERANCE = 0.3
# Fewer outages say nothing of their length.
LEAST_OUTAGES = 3
OUTAGE_TOLERANCE = 0.02
# Of delays over time.
CONDITIONS_TOLERANCE_MS = 1.0


def measure_network(
    network: Network, site: Site, lost_packets: int = LOST_PACKETS, shells: str = DEFAULT_SHELLS
) -> NetworkMeasurement:
    """Measure `network`, as `shells` emulate it, between a client and the servers of `site`; of a loss, until
    `lost_packets` should be lost.

    Raises EyelevelError.
    """
    host, (address, *_) = next(iter(site.addresses.items()))
    protocol = protocols.load()["tcp"]
    spec = ReplaySpec(site.folder, network, protocol, monitor=(*PROBE, "peer", address), shells=shells)
    with tempfile.TemporaryFile("w+") as output:
        in_opportunities = str(int(shells_named(shells).in_opportunities))
        command = [*PROBE, "client", to_json(network), host, str(lost_packets), in_opportunities]
        outcome = run(spec, command, stdout=output.fileno())
        output.seek(0)
        answer = output.read()
    if outcome.status:
        raise EyelevelError(f"the probe of {network.name} failed (status {outcome.status}); see above")
    return from_json(answer, NetworkMeasurement, f"the answer of the probe of {network.name}")


def judge_network(network: Network, measured: NetworkMeasurement, shells: str = DEFAULT_SHELLS) -> list[Check]:
    """`measured` against what `network` should be, as `shells` emulate it."""
    in_opportunities = shells_named(shells).in_opportunities
    rtt_tolerance_ms = max(RTT_TOLERANCE_MS, RTT_TOLERANCE * network.min_rtt_ms) + network.jitter_ms
    least_ms = network.min_rtt_ms
    # Of many echoes, one is early in both directions.
    early_ms = rtt_tolerance_ms + network.jitter_ms
    changing = [conditions for way in (UP, DOWN) if (conditions := network.conditions_of(way))]
    if changing and network.retransmit_ms is None:
        # What waits for the next line of a trace comes on top of what changes over time.
        most_ms = least_ms + network.queue_wait_ms(UNLIMITED_WAIT_MS) * bool(network.up_trace or network.down_trace)
        most_ms += sum(conditions.largest(DELAY) for conditions in changing) + early_ms
        checks = [between(network.name, "minimum RTT", least_ms - early_ms, measured.rtt_min_ms, most_ms, "ms")]
    elif network.up_trace or network.down_trace:
        # A packet waits for the next line of the trace, even where nothing else does.
        most_ms = least_ms + network.queue_wait_ms(UNLIMITED_WAIT_MS)
        checks = [between(network.name, "minimum RTT", least_ms - early_ms, measured.rtt_min_ms, most_ms, "ms")]
    elif in_opportunities:
        checks = [*_judge_rtt_in_opportunities(network, measured, max(rtt_tolerance_ms, WHOLE_MS_TOLERANCE))]
    else:
        checks = [within(network.name, "minimum RTT", least_ms, measured.rtt_min_ms, early_ms, "ms")]
        if network.retransmit_ms is None:
            tolerance_ms = 3 * rtt_tolerance_ms
            checks.append(within(network.name, "median RTT", least_ms, measured.rtt_median_ms, tolerance_ms, "ms"))
        else:
            why = "echoes wait for what the link repeats"
            checks.append(unchecked(network.name, "median RTT", why, least_ms, "ms"))
    checks += [within(network.name, "name resolution", 0, measured.resolution_ms, RESOLUTION_TOLERANCE_MS, "ms")]
    if network.jitter_ms:
        checks.append(_judge_jitter(network, measured))
    for direction, way in ((UP, measured.up), (DOWN, measured.down)):
        checks += [*_judge_delay(network, direction, way, rtt_tolerance_ms), *_judge_order(network, direction, way)]
        checks += [*_judge_on_off(network, direction, way), *_judge_conditions(network, direction, way)]
        if network.retransmit_ms is None:
            checks += [*_judge_link(network, direction, way, in_opportunities=in_opportunities)]
            checks += [*_judge_loss(network, direction, way)]
        else:
            checks += [*_judge_link_unsteady(network, direction, way), *_judge_repairs(network, direction, way)]
        checks += _judge_drops(network, direction, way)
    return [*checks, *_judge_further(network, measured)]


def _judge_further(network: Network, measured: NetworkMeasurement) -> Iterator[Check]:
    """The checks of impairments that have a judge of their own."""
    for judgement in (one for impairment in IMPAIRMENTS for one in impairment.judge(network, measured)):
        yield within(network.name, **vars(judgement))


def _judge_rtt_in_opportunities(network: Network, measured: NetworkMeasurement, tolerance_ms: float) -> Iterator[Check]:
    """The round-trip time where a packet waits for the next opportunity to send one, in each direction."""
    least_ms = network.min_rtt_ms
    wait_ms = sum(PACKET_BITS / mbps / 1e3 for mbps in (network.up_mbps, network.down_mbps) if mbps)
    for name, value_ms, further_ms in (
        ("minimum RTT", measured.rtt_min_ms, tolerance_ms),
        ("median RTT", measured.rtt_median_ms, 3 * tolerance_ms),
    ):
        most_ms = least_ms + wait_ms + further_ms
        yield between(network.name, name, least_ms - tolerance_ms, value_ms, most_ms, "ms")


def _judge_link(network: Network, direction: str, way: Direction, *, in_opportunities: bool) -> Iterator[Check]:
    """The rate and the queue of one direction of a link."""
    mbps, trace, queue_bytes = (
        network.rate_of(direction),
        network.trace_of(direction),
        network.queue_bytes_of(direction),
    )
    configured_mbps: float | None = (way.trace.mbps if way.trace else None) if trace else mbps
    if configured_mbps is not None and way.mbps is not None:
        tolerance = configured_mbps * (TRACE_TOLERANCE if trace else RATE_TOLERANCE)
        tolerance += LOSS_DEVIATIONS * way.trace.sd_mbps if way.trace else 0
        yield within(network.name, f"{direction}link rate", configured_mbps, way.mbps, tolerance, "Mbit/s")
    elif trace and in_opportunities:
        why = "when Mahimahi began the trace is not known"
        yield unchecked(network.name, f"{direction}link rate", why)
    if configured_mbps is not None and way.mean_mbps is not None and network.on_off_of(direction):
        why = "the direction is off at times"
        yield unchecked(network.name, f"{direction}link mean rate", why, configured_mbps, "Mbit/s")
    elif configured_mbps is not None and way.mean_mbps is not None:
        name, tolerance = f"{direction}link mean rate", configured_mbps * MEAN_RATE_TOLERANCE
        yield within(network.name, name, configured_mbps, way.mean_mbps, tolerance, "Mbit/s")
    queue = network.queue_of(direction)
    if queue and is_managed(queue):
        yield from _judge_managed(network, direction, way)
    elif queue_bytes is not None and way.queue_bytes is not None and _is_off(network, direction):
        why = "what waits in it goes while the direction is off"
        yield unchecked(network.name, f"{direction}link queue", why, queue_bytes, "bytes")
    elif queue_bytes is not None and way.queue_bytes is not None:
        # Nothing can wait but whole packets, and one is on the wire meanwhile.
        tolerance = QUEUE_TOLERANCE * queue_bytes + probe_bytes(queue_bytes, (mbps or 0) * overload(mbps or 0))
        if in_opportunities:  # and the first packet, from which waits are counted, may wait for a whole one
            tolerance = QUEUE_TOLERANCE * queue_bytes + 2 * LARGE_BYTES
        yield within(network.name, f"{direction}link queue", queue_bytes, way.queue_bytes, tolerance, "bytes")
    elif queue_bytes is not None and (trace or way.conditions):
        why = "what waits in it moves with the trace" if trace else "it cannot be told from a delay that changes"
        yield unchecked(network.name, f"{direction}link queue", why, queue_bytes, "bytes")


def _is_off(network: Network, direction: str) -> bool:
    """Whether the client's end of the uplink, in front of its queue, is off at times."""
    return direction == UP and network.on_off_of(UP) is not None


def _judge_managed(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """What a queue that is not seen by its length did to packets, against a model of it."""
    subject, queue, mbps = network.name, network.queue_of(direction), network.rate_of(direction)
    name = f"{direction}link queue ({queue.kind if queue else ''})"
    if network.on_off_of(direction):
        yield unchecked(subject, name, "what is lost while the direction is off hides it")
        return
    if (seen := way.managed) is None or queue is None or mbps is None:
        yield unchecked(subject, name, "what waits in it moves with the trace, or with a delay that changes")
        return
    loss = network.loss_of(direction)
    # What the uplink loses never comes to its queue, and what the downlink loses has left it.
    offered_mbps = seen.flow.mbps * (1 - loss if direction == UP else 1)
    size_bytes = seen.flow.size_bytes
    model = expected(queue, mbps, network.min_rtt_ms, seen.flow.packets, size_bytes, offered_mbps)
    dropped = 1 - (1 - loss) * (1 - model.dropped)
    chance = LOSS_DEVIATIONS * math.sqrt(loss * (1 - loss) / seen.flow.packets)
    tolerance = max(MANAGED_TOLERANCE * dropped, DROPPED_TOLERANCE) + chance
    yield within(subject, f"{name}, packets dropped", 100 * dropped, 100 * seen.dropped, 100 * tolerance, "%")
    tolerance = max(MANAGED_TOLERANCE * model.marked, MARKED_TOLERANCE)
    yield within(subject, f"{name}, packets marked", 100 * model.marked, 100 * seen.marked, 100 * tolerance, "%")
    packet_ms = size_bytes * 8 / mbps / 1e3
    share = PIE_TOLERANCE if queue.kind == "pie" else MANAGED_TOLERANCE
    tolerance_ms = max(share * model.wait_ms, MANAGED_TOLERANCE_MS + packet_ms) + network.jitter_ms
    yield within(subject, f"{name}, wait", model.wait_ms, seen.wait_ms, tolerance_ms, "ms")
    if queue.kind == "fq_codel" and queue.flows != 1:
        most_ms = 2 * packet_ms + MANAGED_TOLERANCE_MS + network.jitter_ms
        yield between(subject, f"{name}, wait of another flow", 0, seen.sparse_wait_ms, most_ms, "ms")


def _judge_jitter(network: Network, measured: NetworkMeasurement) -> Check:
    """How much the round-trip times of echoes scatter: each way evenly, by up to the jitter."""
    sd_ms = math.sqrt(2 / 3) * network.jitter_ms
    tolerance_ms = SCATTER_TOLERANCE * sd_ms + SCATTER_TOLERANCE_MS
    return within(network.name, "standard deviation of RTT", sd_ms, measured.rtt_sd_ms, tolerance_ms, "ms")


def _judge_delay(network: Network, direction: str, way: Direction, tolerance_ms: float) -> Iterator[Check]:
    """The delay of one direction, where the two differ."""
    if network.up_delay_ms is None or way.least_ms is None:
        return
    name = f"{direction}link delay"
    if network.trace_of(direction):
        yield unchecked(network.name, name, "a packet waits for the trace's next line, too")
    else:
        yield within(network.name, name, network.delay_of(direction), way.least_ms, tolerance_ms, "ms")


def _judge_conditions(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """The delay of one direction over time, where it changes."""
    conditions = network.conditions_of(direction)
    if not conditions or not conditions.has(DELAY) or not (seen := way.conditions):
        return
    name = f"{direction}link delay over time"
    # A packet waits for a trace's next line, too.
    trace, mbps = network.trace_of(direction), network.rate_of(direction)
    line_ms = PACKET_BITS / mbps / 1e3 if trace and mbps else 0.0
    tolerance_ms = CONDITIONS_TOLERANCE_MS + network.jitter_ms + line_ms
    yield between(network.name, f"{name}, median deviation", 0, seen.off_ms, tolerance_ms, "ms")
    yield within(network.name, f"{name}, mean", seen.expected_delay_ms, seen.delay_ms, tolerance_ms, "ms")


def _judge_order(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """Whether packets overtake each other, where they might."""
    is_repeated = network.retransmit_ms is not None and network.loss_of(direction) > 0
    if not network.jitter_ms and not is_repeated:
        return
    changes = bool((network.jitter_ms and network.reorder) or (is_repeated and network.retransmit_reorder))
    name = f"{direction}link order"
    yield same(network.name, name, "changed" if changes else "kept", "kept" if way.in_order else "changed")


def _judge_on_off(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """For how long a direction was off and on."""
    if not (times := network.on_off_of(direction)):
        return
    name = f"{direction}link off"
    if _is_blurred(network, direction):
        yield unchecked(network.name, name, "packets overtake each other before they are lost", times.off_s, "s")
        return
    if not (seen := way.outages) or seen.least_s > times.off_s / 2:
        yield unchecked(network.name, name, "it cannot be told from losses", times.off_s, "s")
        return
    if seen.count < LEAST_OUTAGES:
        why = f"it was off and on again {seen.count} times only while the probe looked on"
        yield unchecked(network.name, name, why, times.off_s, "s")
        return
    for what, configured_s, measured_s in (("off", times.off_s, seen.off_s), ("on", times.on_s, seen.on_s)):
        deviations = math.copysign(LOSS_DEVIATIONS, measured_s - configured_s)
        chance = 0.0 if times.periodic else abs(_exponential_mean(seen.count, deviations) - 1)
        tolerance_s = (OUTAGE_TOLERANCE + chance) * configured_s + seen.least_s + 2 * network.jitter_ms / 1e3
        kind = "always" if times.periodic else "mean"
        yield within(network.name, f"{direction}link {what}, {kind}", configured_s, measured_s, tolerance_s, "s")


def _exponential_mean(count: int, deviations: float) -> float:
    """What the mean of `count` exponential times, in units of their distribution's mean, is as rarely beyond as a
    normal value is beyond so many standard deviations (Wilson and Hilferty 1931). A symmetric tolerance would pass any
    mean that is too small, as means of few are seldom known to their half."""
    return max(0.0, 1 - 1 / (9 * count) + deviations / (3 * math.sqrt(count))) ** 3


def _is_blurred(network: Network, direction: str) -> bool:
    """Whether packets that are lost together were not sent together: on the way down the jitter is in front of that."""
    return direction == DOWN and network.reorder and network.jitter_ms > 0


def _judge_loss(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """How many packets were lost, of which some may have been chosen, and whether one behind the other."""
    loss, bursts = network.loss_of(direction), network.bursts_of(direction)
    if _is_blurred(network, direction) and network.on_off_of(direction):
        why = "times off cannot be told from it where packets overtake each other before they are lost"
        yield unchecked(network.name, f"{direction}link loss", why, 100 * loss, "%")
        return
    chosen = sum(map(len, network.chosen_of(direction)))
    if seen := way.conditions:
        # Losses over time come beside those, and as they like.
        share = 1 - (1 - loss) * (1 - seen.expected_loss)
        tolerance = LOSS_DEVIATIONS * (math.sqrt(loss * (1 - loss) / way.sent) + seen.loss_sd) + chosen / way.sent
        name = f"{direction}link loss of {way.sent} packets, over time"
        yield within(network.name, name, 100 * share, 100 * way.lost / way.sent, 100 * tolerance, "%")
        return
    # Losses that come together scatter more: the variance of a mean of what has memory.
    together = (bursts.loss_after_loss - loss) / (1 - loss) / (1 - bursts.memory) if bursts else 0.0
    inflation = 1 + 2 * together
    tolerance = LOSS_DEVIATIONS * math.sqrt(loss * (1 - loss) * inflation / way.sent) + chosen / way.sent
    name = f"{direction}link loss of {way.sent} packets"
    yield within(network.name, name, 100 * loss, 100 * way.lost / way.sent, 100 * tolerance, "%")
    name = f"{direction}link loss behind a lost packet"
    if not loss:
        return
    if _is_blurred(network, direction):
        yield unchecked(network.name, name, "packets overtake each other before they are lost")
        return
    again = bursts.loss_after_loss if bursts else loss
    # Bernstein's bound: where few are lost behind each other, chance lets there be more of them rather than fewer.
    lost = max(way.lost, 1)
    tolerance = LOSS_DEVIATIONS * math.sqrt(again * (1 - again) * inflation / lost) + LOSS_DEVIATIONS**2 / (6 * lost)
    tolerance += chosen / lost
    yield within(
        network.name, f"{name} of {way.lost}", 100 * again, 100 * way.lost_behind_lost / lost, 100 * tolerance, "%"
    )


def _judge_link_unsteady(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """What of the rate and the queue cannot be seen where packets wait for what the link repeats, and go together."""
    mbps, queue_bytes = network.rate_of(direction), network.queue_bytes_of(direction)
    why = "packets wait for what the link repeats, and then go together"
    if mbps is not None:
        yield unchecked(network.name, f"{direction}link rate", why, mbps, "Mbit/s")
    if queue_bytes is not None:
        yield unchecked(network.name, f"{direction}link queue", why, queue_bytes, "bytes")


def _judge_repairs(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """Whether a link that retransmits loses what fails in all tries, and delays as many packets as it would lose."""
    cost_ms, loss = network.retransmit_ms or 0, network.loss_of(direction)
    chosen = sum(map(len, network.chosen_of(direction)))
    name = f"{direction}link loss of {way.sent} packets, repaired"
    lasting = network.lasting_loss_of(direction)
    tolerance = LOSS_DEVIATIONS * math.sqrt(lasting * (1 - lasting) / way.sent) + chosen / way.sent
    yield within(network.name, name, 100 * lasting, 100 * way.lost / way.sent, 100 * tolerance, "%")
    if not (seen := way.repairs) or not loss:
        return
    # Of those that arrived.
    loss = (loss - lasting) / (1 - lasting)
    name = f"{direction}link packets repeated"
    if cost_ms < LEAST_REPEAT_MS or network.jitter_ms or network.trace_of(direction):
        why = f"{cost_ms:g} ms cannot be told from other delays"
        yield unchecked(network.name, name, why, 100 * loss, "%")
        return
    share, tolerance = seen.late / max(seen.free, 1), LOSS_DEVIATIONS * math.sqrt(loss * (1 - loss) / max(seen.free, 1))
    yield within(network.name, f"{name} of {seen.free}", 100 * loss, 100 * share, 100 * tolerance, "%")
    if seen.repeat_ms is not None and loss < MOST_LOSS:
        tolerance_ms = 3 * max(RTT_TOLERANCE_MS, RTT_TOLERANCE * network.min_rtt_ms)
        yield within(network.name, f"{direction}link delay of a repeat", cost_ms, seen.repeat_ms, tolerance_ms, "ms")


def _judge_drops(network: Network, direction: str, way: Direction) -> Iterator[Check]:
    """Whether the chosen packets were dropped, as far as the probe can know which they are."""
    numbers, times_ms = network.chosen_of(direction)
    name = f"{direction}link packets dropped"
    if times_ms:
        yield unchecked(network.name, f"{name} by time", "the probe knows too roughly when the emulator began")
    if not numbers:
        return
    is_lossy = {each: network.lasting_loss_of(each) or network.on_off_of(each) for each in (UP, DOWN)}
    # Before the packets whose losses are known there were echoes.
    known = range(ECHOES + 1, ECHOES + 1 + way.sent)
    dropped = [number for number in sorted(numbers) if number in known][:LOST_NUMBERS]
    if times_ms or is_lossy[direction]:
        yield unchecked(network.name, name, "others are lost, too")
    elif direction == DOWN and (is_lossy[UP] or any(network.chosen_of(UP))):
        yield unchecked(network.name, name, "what is lost on the uplink has no answer, which changes the numbers")
    elif not dropped:
        yield unchecked(network.name, name, f"the probe knows what is lost of {known[0]} to {known[-1]} alone")
    else:
        yield same(network.name, name, dropped, [known[number] for number in way.lost_numbers])
