"""The first lines of a campaign's page: what was asked, and how much of it is answered."""

from analysis.findings import Findings
from analysis.outcomes import VERDICTS
from analysis.text import label, listing, plural


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
        f"{plural('hypothesis', tests) if tests == 1 else f'{tests} hypotheses'}; the probability of a single false "
        f"“faster” or “slower” among them is below {100 * declared.significant_p:g} %."
    )


def answer(findings: Findings) -> str:
    """How many of the declared hypotheses have each verdict."""
    counts = findings["confirmatory"]["verdict"].value_counts()
    texts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts]
    return f"Of {len(findings['confirmatory'])}: {listing(texts)}." if texts else ""
