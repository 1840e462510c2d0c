"""Whether a contrast of TCP and QUIC holds with other programs: other servers, and other browsers.

Each declared contrast of a TCP and a QUIC setting (`Contrast`) is measured with the programs of its own two settings,
in the campaign's first browser, and with others, one changed at a time (`variants`):
- its own pair, in each further browser;
- the pair of another server, in each browser. The pair has the server's first QUIC setting with the congestion control
  of the contrast's QUIC. A server without such a setting is represented by its first QUIC setting, in the first
  contrast only. The pair's TCP is the server's first TCP setting, or the contrast's own if the server has none.
  The pair is compared with the contrast's TCP and a QUIC setting of the contrast's server and congestion control: the
  one that differs from the other server's QUIC setting in the fewest other settings, such as the number of emulated
  connections. The effect of settings that still differ (`further_differences`) is not an effect of the program.

A contrast depends on a program if the contrast with another program differs from the one with its own. The difference
is taken within a block: ln(compared / reference) with the other program, less ln(compared / reference) with the
contrast's own. So page, machine and moment cancel, and so does a TCP that both contrasts share. The rest is as for the
contrasts themselves (`analysis.statistics.ratios`), and Holm's correction covers all these differences. A browser that
was added later has blocks of its own; its first block is compared with the others' first, and so on. Then only
influences on both settings of a contrast cancel. A server that was added later shares no block with the others, so it
is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from analysis.aspects import Decisions, decisions
from analysis.runs import CampaignTable, records
from analysis.statistics.contrast_table import GAIN, TESTS, contrast_columns, holm, judged
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUIVALENT, FASTER, PROGRAM_MARGIN, SLOWER
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import Array, Samples, counts
from dataset.clients import client_name
from tuning.defaults import DEFAULT_BROWSER

DEPENDS, INDEPENDENT = "depends", "does not depend"
SERVER, BROWSER = "server", "browser"
# The keys that a setting shares with the settings that may stand in for it.
KIND = ("transport", "server", "congestion_control")
# The columns that name a contrast and the programs of its measurement.
KEYS = ["reference", "compared", "network", "metric", "measured_reference", "measured_compared", "servers", "browser"]
GAINS = [*KEYS, "sites", "blocks", *GAIN]
DIFFERENCE = ("difference", "difference_low", "difference_high")
# The columns that name what a variant is compared with.
BEFORE = ["varies", "reference_before", "compared_before", "servers_before", "browser_before"]
DIFFERENCES = [*KEYS, *BEFORE, "sites", "blocks", *DIFFERENCE, "p", "p_corrected", "equivalence_p"]
DIFFERENCES += ["equivalence_p_corrected", "margin", "verdict"]

Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Variant:
    """The declared `contrast`, measured with `pair`, whose programs are `servers`, in `browser`.

    `before`: the variant with which this one is compared; both differ in one program, which `varies` names (a server or
    the browser). None for variants that others are compared with.
    """

    contrast: Pair
    pair: Pair
    servers: str
    browser: str
    varies: str = ""
    before: "Variant | None" = None


def variants(
    contrasts: Sequence[Pair], protocols: Settings, decided: Decisions, browsers: Sequence[str]
) -> list[Variant]:
    """All variants of the `contrasts` between a TCP and a QUIC setting, in a campaign with these `protocols` and
    `browsers`. A contrast that was measured with only one set of programs has no variants.

    `decided`: the decisions of the protocols.
    """
    of_both = [pair for pair in contrasts if [_key(protocols, name, "transport") for name in pair] == ["tcp", "quic"]]
    every = []
    for contrast in of_both:
        others = list(_other_servers(contrast, of_both, protocols))
        first: Variant | None = None
        for browser in browsers:
            here = Variant(contrast, contrast, _servers(protocols, contrast), browser, BROWSER if first else "", first)
            first = first or here
            every.append(here)
            for pair in others:
                near = Pair(contrast.reference, _nearest(contrast.compared, pair.compared, protocols, decided))
                beside = here if near == contrast else Variant(contrast, near, _servers(protocols, near), browser)
                every += [beside, Variant(contrast, pair, _servers(protocols, pair), browser, SERVER, beside)]
    every = list(dict.fromkeys(every))
    return [one for one in every if sum(other.contrast == one.contrast for other in every) > 1]


def _other_servers(contrast: Pair, contrasts: Sequence[Pair], protocols: Settings) -> Iterator[Pair]:
    """The pair of each other server that is compared with `contrast`, one of `contrasts`."""
    names: dict[str, dict[str, list[str]]] = {}
    for name in protocols:
        of_server = names.setdefault(_key(protocols, name, "server"), {})
        of_server.setdefault(_key(protocols, name, "transport"), []).append(name)
    del names[_key(protocols, contrast.compared, "server")]
    for of_server in names.values():
        for name in of_server.get("quic", ()):
            control = _key(protocols, name, "congestion_control")
            alike = [pair for pair in contrasts if _key(protocols, pair.compared, "congestion_control") == control]
            if contrast == (alike or contrasts)[0]:
                yield Pair(of_server.get("tcp", [contrast.reference])[0], name)
                break


def _nearest(first: str, other: str, protocols: Settings, decided: Decisions) -> str:
    """The QUIC setting, among those with the server and the congestion control of `first`, that differs from `other` in
    the fewest settings besides the server. `first` wins a tie; else the earliest setting does."""
    shared = [[_key(protocols, name, key) for key in KIND] for name in (first, *protocols)]
    alike = [name for name, kind in zip(protocols, shared[1:], strict=True) if name in decided and kind == shared[0]]
    return min([first, *alike], key=lambda name: len(further_differences(decided, name, other)))


def _key(protocols: Settings, name: str, key: str) -> str:
    return str(protocols.get(name, {}).get(key))


def _servers(protocols: Settings, pair: Pair) -> str:
    return " and ".join(dict.fromkeys(_key(protocols, name, "server") for name in pair))


def further_differences(decided: Decisions, one: str, other: str) -> list[str]:
    """The settings besides the server in which two protocols of one transport differ; empty if one is not `decided`."""
    both = [decided.get(name, {}) for name in (one, other)]
    return [name for name in both[0] if name in both[1] and both[0][name] != both[1][name]]


def pairs_beside(differences: pd.DataFrame) -> list[Pair]:
    """Each setting that was measured with another program, with the setting of the same transport that it is compared
    with. `differences` is the table of `program_differences`."""
    pairs = [
        Pair(str(row[f"{name}_before"]), str(row[f"measured_{name}"]))
        for row in records(differences)
        for name in ("compared", "reference")
    ]
    return list(dict.fromkeys(pair for pair in pairs if pair.reference != pair.compared))


def program_gains(campaign: CampaignTable, samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """The gain of every variant with its interval, by network and metric of the family; columns GAINS."""
    rows = [
        keys | _numbers(ratios, hypotheses.confidence, GAIN)
        for keys, _, ratios, _ in _measured(campaign, samples, hypotheses)
    ]
    return pd.DataFrame(rows, columns=GAINS)


def program_differences(campaign: CampaignTable, samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """Whether the contrasts depend on the programs; columns DIFFERENCES.

    difference: the share by which the variant's ratio exceeds that of the variant it is compared with; its interval is
    not corrected for the number of tests. varies: the program that was changed (server or browser). reference_before,
    compared_before, servers_before and browser_before: the settings and programs that the variant is compared with.
    margin: PROGRAM_MARGIN. verdict: depends, does not depend (by more than the margin), or not decided.
    """
    rows = []
    for keys, one, ratios, ratios_before in _measured(campaign, samples, hypotheses):
        if before := one.before:
            others = (one.varies, *before.pair, before.servers, before.browser)
            margin = float(np.log1p(PROGRAM_MARGIN))
            numbers = _numbers(ratios - ratios_before, hypotheses.confidence, DIFFERENCE, margin)
            rows.append(keys | dict(zip(BEFORE, others, strict=True)) | numbers)
    table = pd.DataFrame(rows, columns=[*KEYS, *BEFORE, "sites", "blocks", *DIFFERENCE, *TESTS])
    # Differences that could not be tested belong to the family, too; they are no evidence.
    table = judged(table, lambda p: holm(np.nan_to_num(p, nan=1.0)), hypotheses.significant_p, DIFFERENCE[0])
    words = {FASTER: DEPENDS, SLOWER: DEPENDS, EQUIVALENT: INDEPENDENT}
    return table.assign(margin=PROGRAM_MARGIN, verdict=table["verdict"].replace(words))[DIFFERENCES]


def _measured(
    campaign: CampaignTable, samples: Samples, hypotheses: Hypotheses
) -> Iterator[tuple[dict[str, str], Variant, Array, Array]]:
    """Each variant that has runs that count, on each network and in each metric: the values of KEYS, the variant, its
    log ratios (sites x blocks), and those of the variant that it is compared with (else its own)."""
    networks = dict.fromkeys(campaign.clients[name].network for name in samples.networks)
    # A protocol that was added later shares no block with the others.
    added = hypotheses.added_protocols
    protocols = {name: settings for name, settings in campaign.settings.protocols.items() if name not in added}
    browsers, first_browser = campaign.browsers or (DEFAULT_BROWSER,), campaign.settings.first_browser
    all_variants = variants(hypotheses.family, protocols, decisions(campaign.document), browsers)
    of_pair = cache(partial(block_ratios, samples))
    for network, metric, one in product(networks, hypotheses.family_metrics, all_variants):
        both = (one, one.before or one)
        places = [client_name(network, variant.browser, first_browser or DEFAULT_BROWSER) for variant in both]
        if set(places) <= set(samples.networks) and all(variant.pair.is_of(samples.protocols) for variant in both):
            keys = dict(zip(KEYS, (*one.contrast, network, metric, *one.pair, one.servers, one.browser), strict=True))
            ratios, before = (
                of_pair(variant.pair)[samples.networks.index(place), :, samples.metrics.index(metric)]
                for variant, place in zip(both, places, strict=True)
            )
            yield keys, one, ratios, before


def _numbers(ratios: Array, confidence: float, names: Sequence[str], margin: float | None = None) -> dict[str, float]:
    """The numbers of sites and blocks, and the columns of `contrast_columns`."""
    blocks, columns = counts(ratios), contrast_columns(mean_over_sites(ratios), confidence, names, margin)
    sizes = {"sites": int((blocks > 0).sum()), "blocks": int(blocks.sum())}
    return sizes | {name: float(values) for name, values in columns.items()}
