"""The rates of a network's directions: constant, or from a trace."""

import gzip
import hashlib
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tuning.conditions import DELAY, GZIP_MAGIC, LOSS, RATE, Conditions, is_conditions, read_conditions
from tuning.impairments.contract import DOWN, UP, Impairment, Path, Settings
from tuning.settings import DERIVED

# The bytes that one line of a Mahimahi trace allows (Winstein et al.). The same constant is in shells/src.
TRACE_LINE_BYTES = 1504


@dataclass(frozen=True, kw_only=True)
class Rate(Path):
    """The rate of a direction (Mbit/s) is constant, or comes from a trace file in Mahimahi's format; without either it
    has no limit.

    A trace's rate is its mean. A conditions file with rates (`tuning.conditions`) can be a trace, too.
    """

    up_mbps: float | None = None
    down_mbps: float | None = None
    up_trace: str | None = None
    down_trace: str | None = None
    up_conditions: str | None = None
    down_conditions: str | None = None
    up_trace_sha256: str | None = field(default=None, metadata=DERIVED)
    down_trace_sha256: str | None = field(default=None, metadata=DERIVED)

    def rate_of(self, direction: str) -> float | None:
        """The rate of one direction in Mbit/s, for a trace its mean; None if nothing limits it."""
        return self.up_mbps if direction == UP else self.down_mbps

    def trace_of(self, direction: str) -> str | None:
        """The trace file of one direction."""
        return self.up_trace if direction == UP else self.down_trace

    def conditions_file_of(self, direction: str) -> str | None:
        """The file with one direction's delays and losses over time (`tuning.impairments.over_time`)."""
        return self.up_conditions if direction == UP else self.down_conditions


def read_trace(path: pathlib.Path) -> list[bytes]:
    """The lines of a trace in Mahimahi's format, which may be compressed by gzip; a conditions file is converted to
    such lines.

    Raises OSError, EOFError, ValueError.
    """
    if is_conditions(path):
        return [b"%d" % at_ms for at_ms in read_conditions(path).opportunities_ms()]
    return _trace_content(path).split()


def conditions_in(path: str, key: str) -> Conditions:
    """The conditions in the file that `key` names. Raises ValueError."""
    try:
        return read_conditions(pathlib.Path(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"{key}: {path}: {error}") from None


def digest(path: str) -> str:
    """The digest that identifies a file."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def _check(network: Rate) -> None:
    for direction in (UP, DOWN):
        mbps, trace = network.rate_of(direction), network.trace_of(direction)
        if mbps is not None and trace is not None:
            raise ValueError(f"give {direction}_mbps or {direction}_trace, not both")
        if mbps is not None and mbps <= 0:
            raise ValueError(f"{direction}_mbps must be more than 0")


def _finish(network: Rate) -> Rate:
    for direction in (UP, DOWN):
        if path := network.trace_of(direction):
            mbps = _mean_mbps(network, direction, path)
            derived = {f"{direction}_trace_sha256": digest(path), f"{direction}_mbps": mbps}
            network = replace(network, **derived)  # type: ignore[arg-type]  # mypy takes all values as one type
    return network


def _mean_mbps(network: Rate, direction: str, path: str) -> float:
    key = f"{direction}_trace"
    try:
        if not is_conditions(pathlib.Path(path)):
            lines, period_ms = _extent(pathlib.Path(path))
            return lines * TRACE_LINE_BYTES * 8 / period_ms / 1e3
    except (OSError, EOFError) as error:
        raise ValueError(f"{key}: {path}: {error}") from None
    except (ValueError, IndexError, ZeroDivisionError):
        raise ValueError(f"{key}: {path} is not a Mahimahi trace") from None
    conditions = conditions_in(path, key)
    if not conditions.has(RATE):
        raise ValueError(f"{key}: {path} has no {RATE}; name it by {direction}_conditions alone")
    if (conditions.has(DELAY) or conditions.has(LOSS)) and network.conditions_file_of(direction) != path:
        raise ValueError(
            f"{key}: {path} has delays or losses, too, which {direction}_conditions applies: name it there, too, or "
            "take these columns out"
        )
    return conditions.mean(RATE)


def _trace_content(path: pathlib.Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content


def _extent(path: pathlib.Path) -> tuple[int, int]:
    """How many lines a trace in Mahimahi's format has, and the last line's time in ms.

    The text is not split: splitting half a million lines would take longer than reading all other settings. Raises
    OSError, EOFError, ValueError, IndexError.
    """
    content = _trace_content(path)
    is_plain = content.endswith(b"\n") and b"\n\n" not in content and not content.startswith(b"\n")
    return content.count(b"\n") if is_plain else len(content.split()), int(content.rsplit(maxsplit=1)[-1])


def _words(settings: Settings) -> Iterator[str]:
    for direction in (UP, DOWN):
        if trace := settings.get(f"{direction}_trace"):
            yield f"rate {direction} by mean, after {pathlib.PurePath(trace).name}"


def _label(settings: Settings) -> Iterator[str]:
    mbps = settings.get("down_mbps")
    text = "no rate limit" if mbps is None else f"{mbps:.3g} Mbit/s"
    yield f"varying, {text} by mean" if settings.get("down_trace") else text


IMPAIRMENT = Impairment(
    "rate",
    Rate,
    place=1,
    units={"up_mbps": "mbps", "down_mbps": "mbps", "up_trace": "", "down_trace": ""},
    files=("up_trace", "down_trace"),
    check=_check,
    finish=_finish,
    words=_words,
    label=_label,
)
