"""Writes the measurement of a path as a network's table for `networks.toml`, with how well each number is known."""

import re
import socket
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from scipy import stats

from base.errors import EyelevelError
from base.files import require_writable, write_file
from base.ownership import give_to_caller
from base.text import printable
from measure.probe.flows import LARGE_BYTES
from measure.probe.path import PathMeasurement, Way
from tuning import networks
from tuning.impairments.contract import DOWN, UP
from tuning.networks import Network
from tuning.queues import PACKET_BYTES

CONFIDENCE = 0.95
# A rate is steady if the rates of groups of packets differ by at most this share, from the lowest to the highest.
STEADY_SHARE = 0.2
# Losses come in bursts if a packet after a lost one is lost this much more often than by chance.
BURST_SHARE = 0.2
NAME = re.compile("[A-Za-z0-9_-]+")


def name_of(host: str) -> str:
    """The default name of the profile of the path to `host`."""
    return "-".join(NAME.findall(host)) or "path"


def require_place(file: Path, name: str) -> None:
    """Raises EyelevelError when no profile with this `name` can be added to `file`."""
    if not NAME.fullmatch(name):
        raise EyelevelError(f"{printable(name)!r} is not a name of a profile; use letters, digits, - and _")
    if file.name != networks.FILENAME:
        raise EyelevelError(f"{file} must be called {networks.FILENAME}, so that TUNING finds it")
    require_writable(file.parent, "--into names another file")
    if file.exists() and not file.is_file():
        raise EyelevelError(f"{file} cannot have a profile added to it; --into names another file")
    known = networks.load(file) if file.exists() else networks.load()
    ours = networks.load()
    if any(name in catalogue or name in catalogue.groups for catalogue in (known, ours)):
        raise EyelevelError(f"there is already a network {name!r}; choose another name (--name)")


def add(profile: str, file: Path) -> None:
    """Add `profile` to `file`, which is created if it is missing, in one step. Raises EyelevelError."""
    folder_is_new = not file.parent.exists()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = f"{file.read_text().rstrip()}\n\n" if file.exists() else ""
    except OSError as error:
        raise EyelevelError(f"{file} cannot be written: {error.strerror}") from None
    write_file(file, before + profile)
    give_to_caller(file, file.parent if folder_is_new else None)


def read_back(profile: str, name: str) -> Network:
    """The network in `profile`, as campaigns read it. Raises EyelevelError when it is not valid."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / networks.FILENAME
        file.write_text(profile)
        return networks.load(file)[name]


def profile_of(measured: PathMeasurement, host: str, name: str) -> str:
    """`measured` as a TOML table with this `name`, with comments."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    version = "IPv6" if measured.is_v6 else "IPv4"
    here = socket.gethostname()
    source = f"Measured by 'eyelevel probe-network' on {when}, from {here} to {host} and back."
    comments = [
        f"{measured.address}, port {measured.port}, {version}; {measured.up_bytes / 1e6:.1f} MB up, "
        f"{measured.down_bytes / 1e6:.1f} MB down, in {measured.seconds:.0f} s. All bytes count from the IP header on.",
        f"Round trip: the least of {measured.echoes} echoes ({measured.echoes_sent} sent), without the time to send a "
        f"packet; median {measured.median_rtt_ms:.4g} ms, 95 % below {measured.late_rtt_ms:.4g} ms, a jitter that is "
        "not in the profile.",
        *(f"{way}: {text}" for way, one in ((UP, measured.up), (DOWN, measured.down)) for text in _comments(one)),
        *(f"Beware: {text}" for text in warnings(measured)),
    ]
    lines = [*(f"# {printable(comment)}" for comment in comments), f"[{name}]", f"source = {_toml(source)}"]
    lines += [f"{way}_mbps = {one.mbps:.4g}" for way, one in ((UP, measured.up), (DOWN, measured.down))]
    lines += [f"min_rtt_ms = {measured.min_rtt_ms:.4g}"]
    for way, one in ((UP, measured.up), (DOWN, measured.down)):
        lines += [f"{way}_loss = {one.lost / one.sent:.3g}", f"{way}_queue = {_queue(one)}"]
    return "\n".join(lines) + "\n"


def warnings(measured: PathMeasurement) -> Iterator[str]:
    """The properties of a path that the numbers of its profile do not show, one per line."""
    for way, one in ((UP, measured.up), (DOWN, measured.down)):
        if one.high_mbps - one.low_mbps > STEADY_SHARE * one.mbps:
            yield (
                f"the rate {way} varied from {one.low_mbps:.3g} to {one.high_mbps:.3g} Mbit/s within seconds; the "
                "profile has one rate, so probe at other times, too"
            )
        if one.is_managed:
            yield (
                f"the queue {way} drops packets before it is full (AQM?): its length is the one under this load; "
                "write its kind if you know it (docs/networks.md)"
            )
        elif not one.fills:
            yield f"the queue {way} did not fill: it is longer than {one.wait_ms:.4g} ms"
        elif one.wait_ms < _least_ms(one):
            yield f"packets {way} are dropped with hardly any queue (a policer?); the profile has the shortest one"
        if one.counts_packets:
            yield f"the queue {way} is as long in packets, not in bytes: short packets wait less than the profile says"
        if _again(one) > BURST_SHARE:
            yield f"losses {way} come in bursts: {one.behind_lost} of {one.lost} right after another (burst_packets)"


def _comments(way: Way) -> Iterator[str]:
    low, high = interval(way.lost, way.sent, _again(way))
    yield (
        f"{way.mbps:.4g} Mbit/s, {way.low_mbps:.4g} to {way.high_mbps:.4g} in 80 % of groups of packets one after the "
        f"other; {way.wait_ms:.4g} ms in a full queue, {way.low_wait_ms:.4g} to {way.high_wait_ms:.4g} for 80 % of "
        f"those that met it full, of {way.packets} packets"
    )
    yield (
        f"{way.lost} of {way.sent} packets lost without load, {way.behind_lost} of them right after another: "
        f"{100 * low:.2g} to {100 * high:.2g} % ({100 * CONFIDENCE:g} % confidence)"
    )


def _queue(way: Way) -> str:
    if way.counts_packets:
        packets = round(way.wait_ms * way.mbps * 1e3 / 8 / LARGE_BYTES)
        return f'{{kind = "droptail", limit_packets = {max(packets, 1)}}}'
    return f'{{kind = "droptail", limit_ms = {max(way.wait_ms, _least_ms(way)):.4g}}}'


def _least_ms(way: Way) -> float:
    """The shortest queue that a network may have, in ms: one full-sized packet, with an allowance for rounding."""
    return 1.01 * PACKET_BYTES * 8 / way.mbps / 1e3


def _again(way: Way) -> float:
    """How losses cluster: 0 if a packet after a lost one is lost no more often than any other, 1 if it always is."""
    if way.lost < 2 or way.lost == way.sent:
        return 0.0
    loss = way.lost / way.sent
    return max(0.0, (way.behind_lost / way.lost - loss) / (1 - loss))


def interval(lost: int, sent: int, again: float) -> tuple[float, float]:
    """The confidence interval of the loss rate, given `lost` of `sent` packets (Clopper and Pearson, 1934).

    Losses in bursts carry less information. They are counted as fewer independent packets, by the variance of the mean
    of a process with the autocorrelation `again` from one packet to the next.
    """
    inflation = (1 + again) / (1 - again)
    some, all_of = lost / inflation, sent / inflation
    beside = (1 - CONFIDENCE) / 2
    low = float(stats.beta.ppf(beside, some, all_of - some + 1)) if lost else 0.0
    high = float(stats.beta.ppf(1 - beside, some + 1, all_of - some)) if lost < sent else 1.0
    return low, min(high, 1.0)


def _toml(text: str) -> str:
    """`text` as a TOML string."""
    quoted = '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert tomllib.loads(f"text = {quoted}")
    return quoted
