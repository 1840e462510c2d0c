"""Networks in words, from their settings as `campaign.json` keeps them."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from analysis.text import level


def further(network: Mapping[str, Any]) -> list[str]:
    """The properties of a network that those of the paper do not have, each in a few words."""
    texts = []
    for direction in ("up", "down"):
        if trace := network.get(f"{direction}_trace"):
            texts.append(f"rate {direction} by mean, after {PurePath(trace).name}")
        if conditions := network.get(f"{direction}_conditions"):
            texts.append(f"delay and loss {direction} over time, after {PurePath(conditions).name}")
    if network.get("up_delay_ms") is not None:
        texts.append(f"{network['up_delay_ms']:g} ms of the round trip up")
    if network.get("jitter_ms"):
        texts.append(f"jitter {network['jitter_ms']:g} ms" + (" with reordering" if network.get("reorder") else ""))
    queues = {direction: _queue(network.get(f"{direction}_queue")) for direction in ("up", "down")}
    if queues["up"] == queues["down"] and queues["up"]:
        texts.append(f"queues {queues['up']}")
    else:
        texts += [f"{direction}link queue {queue}" for direction, queue in queues.items() if queue]
    texts += _losses(network)
    for name, where in (("cross_traffic", ""), ("up_cross_traffic", " up")):
        if kinds := network.get(name):
            texts.append(f"background flows{where}: {', '.join(kinds)}")
    for name, where in (
        ("on_off", ""),
        ("up_on_off", " up"),
        ("down_on_off", " down"),
        ("cross_traffic_on_off", " background flows"),
    ):
        if times := network.get(name):
            how = "always" if times.get("periodic") else "on average"
            texts.append(f"off{where} for {times['off_s']:g} s after {times['on_s']:g} s, {how}")
    texts += [_hop(hop)] if (hop := network.get("hop")) else []
    for direction in ("up", "down"):
        if packets := network.get(f"drop_{direction}_packets"):
            texts.append(f"packets {', '.join(map(str, packets))} {direction} dropped")
        if times_ms := network.get(f"drop_{direction}_at_ms"):
            texts.append(f"a packet {direction} dropped at {', '.join(f'{time_ms:g}' for time_ms in times_ms)} ms")
    return texts


def path_rtt_ms(network: Mapping[str, Any]) -> float | None:
    """The least round-trip time between browser and servers, of both halves where there is a hop; None if unknown."""
    near_ms, hop = network.get("min_rtt_ms"), network.get("hop")
    return near_ms + hop["min_rtt_ms"] if near_ms is not None and hop else near_ms


def _hop(hop: Mapping[str, Any]) -> str:
    """A hop and the half behind it: `hop (split, cubic, initial window 10), then 30 ms`."""
    sender = f", {hop['congestion_control']}, initial window {hop['initial_window_packets']}"
    text = f"hop ({hop['kind']}{sender if hop['kind'] != 'none' else ''}), then {hop['min_rtt_ms']:g} ms"
    if hop.get("down_mbps") is not None:
        text += f", {hop['up_mbps']:g} up and {hop['down_mbps']:g} Mbit/s down"
    text += f", jitter {hop['jitter_ms']:g} ms" if hop.get("jitter_ms") else ""
    return text + (f", loss {level(hop['loss'])}" if hop.get("loss") else "")


def _losses(network: Mapping[str, Any]) -> list[str]:
    """How packets are lost, beside how many."""
    texts = []
    if network.get("loss") and network.get("loss_on", "both") != "both":
        texts.append(f"loss on the {network['loss_on']}link alone")
    one_way = {direction: network.get(f"{direction}_loss") for direction in ("up", "down")}
    if given := [f"{level(loss)} {direction}" for direction, loss in one_way.items() if loss is not None]:
        texts.append(f"loss {', '.join(given)}")
    if network.get("burst_packets"):
        texts.append(f"losses in bursts of {network['burst_packets']:g} packets")
    if model := network.get("gilbert_elliott"):
        states = f"good to bad {model['good_to_bad']:g}, back {model['bad_to_good']:g}"
        losses = f"loss {level(model['loss_in_bad'])} and {level(model['loss_in_good'])}"
        texts.append(f"losses by Gilbert and Elliott ({states}; {losses})")
    if network.get("retransmit_ms"):
        tries = f", {network['retransmit_tries']} tries" if network.get("retransmit_tries") else ""
        order = ", out of order" if network.get("retransmit_reorder") else ""
        texts.append(f"the link repairs losses, {network['retransmit_ms']:g} ms a try{tries}{order}")
    return texts


def _queue(queue: Mapping[str, Any] | None) -> str:
    """A queue's kind and what is given of it: `codel, target_ms 5, ecn`."""
    if not queue:
        return ""
    given = {name: value for name, value in queue.items() if name != "kind" and value not in (None, False)}
    words = [name if value is True else f"{name} {value:g}" for name, value in given.items()]
    return ", ".join([queue["kind"], *words])
