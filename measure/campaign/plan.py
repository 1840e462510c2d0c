"""The order of a campaign's runs: randomised blocks.

One block is one run of every protocol for one site and network, so that slow drift of the machine cannot
favour a protocol (randomised complete block design). Every block is drawn from the seed on its own, so
that adding sites, networks or runs leaves the order of the others as it was.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from random import Random

from measure.table import Run

PlannedBlock = tuple[Run, ...]


def seed_of(run: Run, seed: int) -> int:
    """What the network draws the losses of `run` from, in a campaign with `seed`: other ones for each run.

    Protocols do not share them: the tests that compare these take their runs as independent.
    """
    return Random(f"{seed}/{run}").getrandbits(62)


def plan(
    sites: Iterable[str], networks: Iterable[str], protocols: Sequence[str], runs: int, seed: int
) -> list[PlannedBlock]:
    """All blocks in the order they are to be measured.

    The first run of every setting comes before the second of any, so that a campaign that is stopped
    halfway has about as many of each.
    """
    drawn = []
    for number, site, network in product(range(1, runs + 1), sites, networks):
        draw = Random(f"{seed}/{number}/{site}/{network}")
        place = draw.random()
        order = draw.sample(protocols, len(protocols))
        drawn.append((number, place, tuple(Run(site, network, protocol, number) for protocol in order)))
    return [block for _, _, block in sorted(drawn, key=lambda entry: entry[:2])]


def extended(planned: Iterable[PlannedBlock], wanted: Iterable[PlannedBlock]) -> list[PlannedBlock]:
    """`planned` as it is, and after it what `wanted` has beyond it, in the order of `wanted`.

    What has been planned keeps its place, so a protocol that is added later has blocks of its own.
    """
    known = list(planned)
    before = {run for block in known for run in block}
    added = (tuple(run for run in block if run not in before) for block in wanted)
    return [*known, *(block for block in added if block)]
