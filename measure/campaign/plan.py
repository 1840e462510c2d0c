"""The order of a campaign's runs: randomised blocks.

One block is one run of every protocol in every browser for one site and network, so that slow drift of the machine
cannot favour a protocol or a browser (randomised complete block design). A site and its variants, which are compared,
too, share their blocks. A study that compares networks has further conditions (each a network and a protocol) in the
blocks of a network. Every block is drawn from the seed on its own, so that adding sites, networks or runs leaves the
order of the others as it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from random import Random

from dataset.plan import PlannedBlock
from dataset.table import Condition, Run
from record.names import original_of
from tuning.defaults import DEFAULT_BROWSER

NO_COMPANIONS: Mapping[str, Sequence[Condition]] = {}


def seed_of(run: Run, seed: int) -> int:
    """The seed of the losses that the network draws for `run`, in a campaign with `seed`: another one for each run.

    Protocols do not share seeds: the tests that compare protocols take their runs as independent.
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
) -> list[PlannedBlock]:
    """All blocks in the order they are to be measured.

    The first run of every setting comes before the second of any, and a site is measured behind all networks before the
    next one, so that a campaign that is stopped anywhere has about as many of each, and sites with all networks.
    The order of the sites, and of a site's networks, is drawn anew for each round of runs.

    `companions`: network → conditions that its blocks have beside those of the network itself over `protocols`; each of
    its conditions is measured in all `browsers`.
    """
    variants: dict[str, list[str]] = {}
    for site in sites:
        variants.setdefault(original_of(site), []).append(site)
    blocks = []
    for number, original, network in product(range(1, runs + 1), variants, networks):
        draw = Random(f"{seed}/{number}/{original}/{network}")
        place = Random(f"{seed}/{number}/{original}").random(), draw.random()
        conditions = [*((network, protocol) for protocol in protocols), *companions.get(network, ())]
        each = list(product(variants[original], browsers, conditions))
        order = draw.sample(each, len(each))
        runs_of_block = (Run(site, *condition, number, browser) for site, browser, condition in order)
        blocks.append((number, place, tuple(runs_of_block)))
    return [block for _, _, block in sorted(blocks, key=lambda entry: entry[:2])]


def extended(first: Sequence[PlannedBlock], blocks: Iterable[PlannedBlock], begun: int) -> list[PlannedBlock]:
    """The `first` blocks, of which this many have `begun`, as they are, and the further runs of `blocks` after them.

    Planned blocks stay together, so a protocol, a browser or a variant that is added later has blocks of its own.
    Blocks that have begun keep their places, too. After that the rounds come in their order, so that later additions
    catch up before the others go on; in each round, blocks that were planned before come first.
    """
    runs = {run for block in first for run in block}
    more = (tuple(run for run in block if run not in runs) for block in blocks)
    to_come = [*first[begun:], *filter(None, more)]
    return [*first[:begun], *sorted(to_come, key=lambda block: min(run.number for run in block))]
