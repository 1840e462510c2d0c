"""The form of numbers and names for readers: percentages, times, counts, and the names that the paper uses.

A value that is missing (NaN) is NOTHING.
"""

import math
from collections.abc import Callable, Sequence
from datetime import datetime

from base.words import plural as plural
from dataset import metrics
from dataset.schema import fields
from tuning.devices import IN_BROWSER, described

# The text for a missing value.
NOTHING = "-"
# Numbers with a unit have one digit after the point if they are below this.
TENTHS_BELOW = 10
# A mean of counts that is this close to a whole number is written as one.
NEARLY_WHOLE = 0.05
# The labels of protocols and networks in the paper; metrics have theirs in `dataset.metrics`.
LABELS = {
    **{"tcp": "TCP", "tcp+": "TCP+", "tcp+bbr": "TCP+BBR", "quic": "QUIC", "quic+bbr": "QUIC+BBR"},
    **{"dsl": "DSL", "lte": "LTE", "da2gc": "DA2GC", "mss": "MSS"},
}


def label(name: str) -> str:
    """The label of a protocol, metric or network for readers; a name without a label is unchanged.

    A network in another browser than a campaign's first (`dataset.clients`) is written like `LTE in Firefox`.
    """
    network, _, browser = name.rpartition(IN_BROWSER)
    if network:
        return f"{label(network)} in {described(browser)}"
    return LABELS.get(name) or _entry(name, "label") or name


def unit(metric: str) -> str:
    """The unit of a metric; empty without one."""
    return _entry(metric, "unit")


def _entry(metric: str, field: str) -> str:
    """A field of a metric's entry in `dataset.metrics`; empty without one."""
    return next((str(getattr(entry, field)) for entry in metrics.METRICS if entry.name == metric), "")


def label_with_title(metric: str) -> str:
    """A metric's label with its full title: `SI (Speed Index)`."""
    title = _entry(metric, "title")
    return f"{label(metric)} ({title})" if title else label(metric)


def label_with_unit(metric: str) -> str:
    """A metric's label with its unit: `SI [ms]`."""
    return f"{label(metric)} [{unit(metric)}]" if unit(metric) else label(metric)


def pair_label(compared: str, reference: str) -> str:
    """A comparison of two protocols: `QUIC against TCP+`."""
    return f"{label(compared)} against {label(reference)}"


def program(servers: str, browser: str) -> str:
    """The servers and the browser of a measurement: `nginx and quinn in Firefox`."""
    return f"{servers} in {described(browser)}"


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage with its sign; a value that rounds to 0 is +0, never -0."""
    return f"{round(100 * value, digits) + 0.0:+.{digits}f} %" if math.isfinite(value) else NOTHING


def whole_percent(gain: float) -> str:
    """A gain in percent with its sign (0 has none), for the cells of a drawing."""
    rounded = round(100 * gain)
    return f"{rounded:+d}" if rounded else "0"


def share(value: float) -> str:
    """A share as a percentage without a sign."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else NOTHING


def level(probability: float) -> str:
    """A declared share with all its digits: `95 %`, `99.5 %`."""
    return f"{100 * probability:g} %"


def ms(value: float, sign: str = "") -> str:
    """A time in ms; with the `sign` "+", positive numbers have one, too."""
    return f"{value:{sign}.{0 if abs(value) >= TENTHS_BELOW else 1}f}" if math.isfinite(value) else NOTHING


def signed_ms(value: float) -> str:
    """A difference in ms with its sign."""
    return ms(value, "+")


def p_value(value: float) -> str:
    """A p value with two significant digits; with three next to the usual threshold of 0.01, so that its side shows."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:#.3g}" if 0.00995 <= value < 0.0105 else f"{value:#.2g}" if value < 0.995 else "1"


def number(value: float) -> str:
    """A number with three significant digits."""
    return f"{value:.3g}" if math.isfinite(value) else NOTHING


def in_unit(value: float, metric: str) -> str:
    """The value of a metric with its significant digits after the point: one for a few ms and for means of counts that
    are not whole, three for metrics that have no unit and are not counts (CLS)."""
    if not math.isfinite(value):
        return NOTHING
    if fields().get(metric, {}).get("type") == "integer":
        digits = 0 if unit(metric) or abs(value - round(value)) < NEARLY_WHOLE else 1
    else:
        digits = 3 if not unit(metric) else int(abs(value) < TENTHS_BELOW)
    text = f"{value:,.{digits}f}"
    return text if text.strip("-0.") else "0"


def signed_in_unit(value: float, metric: str) -> str:
    """A difference in the form of `in_unit`, with its sign; 0 has none."""
    text = in_unit(value, metric)
    return text if text.startswith("-") or text == "0" else f"+{text}"


def _interval(write: Callable[..., str]) -> Callable[..., str]:
    """The form of an interval as its two ends (and the metric, if `write` needs one), each written by `write`."""

    def written(low: float, high: float, *metric: str) -> str:
        is_known = math.isfinite(low) and math.isfinite(high)
        return f"{write(low, *metric)} to {write(high, *metric)}" if is_known else NOTHING

    return written


percent_interval = _interval(percent)
number_interval = _interval(number)
ms_interval = _interval(signed_ms)
signed_interval_in_unit = _interval(signed_in_unit)


def yes_no(value: bool) -> str:
    """Whether something is so."""
    return "yes" if value else "no"


def whole_number(value: float) -> str:
    """A count; infinity stands for a count beyond the computed range (`analysis.statistics.planning`)."""
    return f"{value:.0f}" if math.isfinite(value) else (NOTHING if math.isnan(value) else "over a million")


def mean_count(value: float) -> str:
    """A mean of counts, with one digit after the point if it is not whole."""
    if not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if abs(value - round(value)) < NEARLY_WHOLE or value >= 1000 else f"{value:,.1f}"


def moment(text: str) -> str:
    """A time in ISO 8601 in the form `2 March 2026, 08:00 UTC`; any other text is unchanged."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{time.day} {time:%B %Y, %H:%M} {time.tzname() or ''}".rstrip()


def span(least: int | str, most: int | str) -> str:
    """One number, or the range between two: 31, or 5 to 31."""
    return f"{least}" if least == most else f"{least} to {most}"


def listing(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c."""
    return names[0] if len(names) < 2 else ", ".join(names[:-1]) + f" and {names[-1]}"


def size_label(size_bytes: float) -> str:
    """A number of bytes as the paper writes it: 1 KB, 10 MB."""
    for unit, factor in (("MB", 1_000_000), ("KB", 1000)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:g} {unit}"
    return f"{size_bytes:g} B"


def file_name(text: str) -> str:
    """`text` as a part of a file's name; protocol names contain a +."""
    return text.replace("+", "plus")
