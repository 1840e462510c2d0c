"""`python -m tuning.varying`: writes a trace in Mahimahi's format whose rate is drawn anew at regular intervals.

It made two traces. `further/traces/longlook-varying.gz`, after Kakhki et al. (IMC 2017): every second, uniformly from
50 to 150 Mbit/s. `further/traces/starlink-varying.gz`: every 15 s, uniformly within a third of 104.71 Mbit/s (--least
69.8 --most 139.6 --every 15 --seconds 60 --seed 15).
"""

import gzip
import random
from pathlib import Path

import click

from base.errors import reports_errors
from base.files import write_file
from tuning.impairments.rate import TRACE_LINE_BYTES

LINE_BITS = TRACE_LINE_BYTES * 8


def varying_trace(least_mbps: float, most_mbps: float, seconds: int, seed: int, every: int = 1) -> list[int]:
    """The times (ms) at which a packet may leave, in order, in a trace of `seconds`.

    Its rate (Mbit/s) is drawn anew every `every` seconds, uniformly between `least_mbps` and `most_mbps`.
    """
    rates = random.Random(seed)
    times, waiting_bits, bits_per_ms = [], 0.0, 0.0
    for second in range(seconds):
        if second % every == 0:
            bits_per_ms = rates.uniform(least_mbps, most_mbps) * 1000
        for ms in range(1, 1001):
            waiting_bits += bits_per_ms
            times += [1000 * second + ms] * int(waiting_bits // LINE_BITS)
            waiting_bits %= LINE_BITS
    return times


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--least", default=50.0, show_default=True, help="Mbit/s.")
@click.option("--most", default=150.0, show_default=True, help="Mbit/s.")
@click.option("--seconds", default=30, show_default=True, help="Until it repeats.")
@click.option("--every", default=1, show_default=True, help="For how many seconds a rate holds.")
@click.option("--seed", default=2017, show_default=True, help="The seed of the rates.")
def main(file: Path, least: float, most: float, seconds: int, every: int, seed: int) -> None:
    """Write such a trace, packed by gzip, to FILE.

    Example: python -m tuning.varying tuning/further/traces/longlook-varying.gz
    """
    text = "".join(f"{ms}\n" for ms in varying_trace(least, most, seconds, seed, every))
    write_file(file, gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    reports_errors(main)()
