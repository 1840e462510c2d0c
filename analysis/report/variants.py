"""The changes from sites to their variants, in sentences."""

from collections.abc import Mapping
from typing import Any

from analysis.findings import Findings
from analysis.report.answer_sentences import ends
from analysis.report.sentences import HEADLINE
from analysis.runs import records, rows_of
from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.text import label, level, listing, percent, plural
from record.names import original_of

FORMS = {FASTER: "{size} sooner than", SLOWER: "{size} later than", EQUIVALENT: "about as soon as"}


def of_variants(findings: Findings) -> list[str]:
    """When a variant appears, compared with its original: a sentence for each variant and network. Empty if no site of
    the campaign is a variant."""
    if all(site == original_of(site) for site in findings.samples.sites):
        return []
    table = rows_of(findings["variants"], metric=HEADLINE)
    texts = []
    for names, rows in table.groupby(["network", "variant", "original"], sort=False):
        network, variant, original = map(str, names)
        forms = [_form(row, original, findings.declared.confidence) for row in records(rows)]
        decided = [text for text, row in zip(forms, records(rows), strict=True) if row["verdict"] != NOT_DECIDED]
        undecided = [text for text in forms if text not in decided]
        if decided:
            others = f"; not decided {listing(undecided)}" if undecided else ""
            texts.append(f"On {label(network)}, {variant} appears {listing(decided)}{others}.")
        else:
            texts.append(
                f"On {label(network)}, it is not decided whether {variant} appears sooner than {original} "
                f"{listing(undecided)}."
            )
    return texts


def _form(row: Mapping[str, Any], original: str, confidence: float) -> str:
    """The change of a `row` of the table of variants over its protocol, with the interval."""
    size = percent(abs(row["change"])).lstrip("+")
    how = f"{FORMS[row['verdict']].format(size=size)} {original} " if row["verdict"] in FORMS else ""
    interval = ends(row["low"], row["high"])
    if interval and not how and row["low"] * row["high"] > 0:
        interval += " sooner" if row["high"] < 0 else " later"
    known = f"{level(confidence)} interval {interval}" if interval else "too few for an interval"
    return f"{how}over {label(row['protocol'])} ({known}, {plural('pair', row['pairs'])})"
