"""The order of a campaign's runs: randomised blocks.

A block has one run of every protocol in every browser for one site and network, so that slow drift of the machine
cannot favour a protocol or a browser (randomised complete block design). A site and its variants share their blocks,
since they are compared, too. A study that compares networks adds further conditions (each a network and a protocol) to
the blocks of a network. Each block is drawn from the seed independently, so adding sites, networks or runs leaves the
order of the others as it was.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from random import Random

from dataset.plan import PlannedBlock
from dataset.table import Condition, Run
from record.names import original_of
from tuning.defaults import DEFAULT_BROWSER

NO_COMPANIONS: Mapping[str, Sequence[Condition]] = {}


def seed_of(run: Run, seed: int) -> int:
    """The seed of the losses that the network draws for `run`, in a campaign with `seed`. Each run has a different
    seed.

    Protocols do not share seeds, because the tests that compare protocols assume independent runs.
    """
    return Random(f"{seed}/{run}").getrandbits(62)


def plan(
    sites: Iterable[str],
    networks: Iterable[str],
    protocols: Sequence[str],
    runs: int,
    seed: int,
    companions: Mapping[str, Sequence[Condition]] = NO_COMPANIONS,
    browsers: Sequence[str] = (DEFAULT_BROWSER,),
    shared: Collection[str] = (),
) -> list[PlannedBlock]:
    """All blocks in the order in which they are measured.

    Every setting has its first run before any has its second, and a site is measured on all networks before the next
    site. So a campaign that is stopped anywhere has about as many runs of each setting, and its sites have all
    networks. Each round of runs draws the order of the sites, and of each site's networks, anew.

    On `shared` networks, several blocks are measured at once (`measure.host.sharing`); a block of another network can
    begin only when all of these have ended. To make such waits rare, the first round has all its blocks of shared
    networks at its end, the next round at its beginning, and so on in turn.

    `companions`: network → conditions that its blocks have in addition to the network's own over `protocols`. Each
    condition is measured in all `browsers`.
    """
    variants: dict[str, list[str]] = {}
    for site in sites:
        variants.setdefault(original_of(site), []).append(site)
    blocks = []
    for number, original, network in product(range(1, runs + 1), variants, networks):
        draw = Random(f"{seed}/{number}/{original}/{network}")
        part = (network in shared) == bool(number % 2)
        place = part, Random(f"{seed}/{number}/{original}").random(), draw.random()
        conditions = [*((network, protocol) for protocol in protocols), *companions.get(network, ())]
        each = list(product(variants[original], browsers, conditions))
        order = draw.sample(each, len(each))
        runs_of_block = (Run(site, *condition, number, browser) for site, browser, condition in order)
        blocks.append((number, place, tuple(runs_of_block)))
    return [block for _, _, block in sorted(blocks, key=lambda entry: entry[:2])]


def extended(first: Sequence[PlannedBlock], blocks: Iterable[PlannedBlock], begun: int) -> list[PlannedBlock]:
    """The `first` blocks as they are, followed by the runs of `blocks` that are not in them; `begun` is the number of
    blocks that have begun.

    Planned blocks are not changed, so a protocol, a browser or a variant that is added later has blocks of its own.
    Blocks that have begun keep their places. The others are sorted by round, so that later additions catch up first;
    within a round, blocks that were planned earlier come first.
    """
    runs = {run for block in first for run in block}
    more = (tuple(run for run in block if run not in runs) for block in blocks)
    to_come = [*first[begun:], *filter(None, more)]
    return [*first[:begun], *sorted(to_come, key=lambda block: min(run.number for run in block))]
