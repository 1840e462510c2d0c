"""The first lines of a campaign's page: what was asked, and how much of it is answered."""

import pandas as pd

from analysis.findings import Findings
from analysis.outcomes import VERDICTS
from analysis.text import label, listing, pair_label, percent, plural, share


def question(findings: Findings) -> str:
    """What the declared hypotheses ask."""
    declared = findings.declared
    if not (declared.family and declared.family_metrics):
        return "Nothing: the campaign has no pair of protocols and no metric that a hypothesis was declared of."
    others: dict[str, list[str]] = {}
    for pair in declared.family:
        others.setdefault(label(pair.reference), []).append(label(pair.compared))
    pairs = [f"{listing(compared)} as fast as {reference}" for reference, compared in others.items()]
    metrics, networks = ([label(name) for name in names] for names in (declared.family_metrics, findings.networks))
    tests = declared.family_size(len(findings.networks))
    return (
        f"Is {listing(pairs)}, by {listing(metrics)}, behind {listing(networks)}, on average over the sites? "
        f"{plural('contrast', tests)}; the probability that any “faster” or “slower” among them is false is below "
        f"{100 * declared.significant_p:g} %."
    )


def answer(findings: Findings) -> list[str]:
    """The verdicts on the declared hypotheses: a sentence for each pair."""
    sentences = []
    for (reference, compared), rows in findings["confirmatory"].groupby(["reference", "compared"], sort=False):
        texts = []
        for verdict in VERDICTS:
            gains = rows.loc[rows["verdict"] == verdict, "gain"]
            if len(gains):
                count = f"all {len(rows)}" if 1 < len(rows) == len(gains) else f"{len(gains)} of {len(rows)}"
                measured = list(dict.fromkeys(percent(gain) for gain in sorted(gains.dropna())))
                ends = list(dict.fromkeys([*measured[:1], *measured[-1:]]))
                texts.append(f"{verdict} in {count}" + (f" ({' to '.join(ends)})" if ends else ""))
        sentences.append(f"{pair_label(str(compared), str(reference))}: {', '.join(texts)}.")
    return sentences


def success(rates: pd.DataFrame) -> str:
    """The share of each protocol's runs that count, from the table of `success_rates`."""
    texts = []
    for network, rows in rates.groupby("network", sort=False):
        shares = [f"{label(row['protocol'])} {share(row['success'])}" for row in rows.to_dict("records")]
        texts.append(f"behind {label(str(network))} {listing(shares)}")
    return f"{'; '.join(texts)}."
