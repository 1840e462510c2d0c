"""How a campaign deviates from what it declared before its first run, and what that means for its verdicts."""

from collections.abc import Callable, Mapping

import pandas as pd

from analysis.hypotheses import Hypotheses
from analysis.runs import CampaignTable
from analysis.text import label, listing, plural
from dataset.declaration import declaration_of
from dataset.table import read_given_up


def warnings(campaign: CampaignTable, hypotheses: Hypotheses, rates: pd.DataFrame) -> list[str]:
    """What a reader must know of it; `hypotheses` are those on the campaign, `rates` is `losses.success_rates`.

    Hypotheses that the campaign did not declare are post hoc as a whole. Raises EyelevelError.
    """
    declared = declaration_of(campaign.document, campaign.folder)
    texts = []
    if not hypotheses.origin.is_post_hoc:
        alone = "of their own, corrected alone"
        texts = [
            f"{_names(added, write)} {'was' if len(added) == 1 else 'were'} added after the first run: {consequence}."
            for added, write, consequence in (
                (declared.sites, str, "the means over sites are over these, too, which were not declared"),
                (
                    declared.networks,
                    label,
                    f"the contrasts of an added network are a family {alone}",
                ),
                (declared.further_browsers, label, f"its contrasts are a family {alone}"),
                (
                    declared.protocols,
                    label,
                    "no comparison with an added protocol is among the declared hypotheses",
                ),
            )
            if added
        ]
    if len(declared.runs) > 1:
        texts.append(
            f"After the first run the number of runs was raised: {' to '.join(map(str, declared.runs))}. The verdicts "
            "take each of these for a planned look; other p values and intervals do not allow for it."
        )
    if (missing := runs_missing(campaign, rates)) > 0:
        texts.append(
            f"The campaign is not over: {plural('planned run', missing)} {'was' if missing == 1 else 'were'} not "
            "tried. Verdicts hold only if it does not end here because of what they say."
        )
    return texts


def runs_missing(campaign: CampaignTable, rates: pd.DataFrame) -> int:
    """How many planned runs were never tried, of a campaign whose number of runs is fixed; without those of sites that
    were given up. `rates` is `losses.success_rates`."""
    given_up = sum(entry.runs for entry in read_given_up(campaign.folder))
    return int((rates["planned"] - rates["tried"]).fillna(0).sum()) - given_up


def _names(added: Mapping[str, str], write: Callable[[str], str]) -> str:
    names = [write(name) for name in added][:5]
    return listing(names + ([f"{len(added) - 5} more"] if len(added) > 5 else []))
