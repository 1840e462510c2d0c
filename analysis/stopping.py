"""When a campaign with `RUNS=auto` has measured enough: a rule fixed beforehand, with the same test as the verdicts.

A network has enough blocks if each of its contrasts in the declared family is decided
(`analysis.statistics.confirmatory`), or after the last planned look. All its sites stop together, since a contrast is a
mean over them. A network ends at the first look at which the report, too, would give each of its contrasts a verdict.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.spending import Looks, looks_of_plan
from analysis.text import listing, span
from base.errors import EyelevelError
from base.words import in_words
from dataset.declaration import declaration_of
from dataset.plan import read_plan
from dataset.table import Cell, read_given_up, read_rows, require_document

# A site that was added to a decided network gets this many runs of each protocol.
FIRST_BLOCKS = 5


def planned_runs(campaign: CampaignTable) -> list[int]:
    """The numbers of runs of each setting that `campaign` has planned, the declared one first; empty without any."""
    runs = campaign.settings.runs
    return [*declaration_of(campaign.document, campaign.folder).runs, *([runs] if runs else [])]


def looks_of(campaign: CampaignTable) -> Looks | None:
    """The looks of `campaign`; None if it declared no number of runs."""
    planned, settings = planned_runs(campaign), campaign.settings
    return looks_of_plan(planned, len(settings.sites), may_end=settings.auto) if planned else None


def decided_cells(campaign: CampaignTable, declaration: Hypotheses) -> list[Cell]:
    """The cells that need no more runs. A network is decided if it is decided in all browsers.

    A site that was added to a decided network gets FIRST_BLOCKS runs of each protocol.
    """
    samples = samples_of(campaign)
    hypotheses = declaration.restricted_to(campaign.protocols, campaign.metrics)
    looks = looks_of(campaign)
    if not looks:
        raise EyelevelError(
            f"{campaign.folder} declares no number of runs, so nothing says when it has enough: give RUNS"
        )
    table = confirmatory(samples, hypotheses, campaign.rtt_ms, looks, campaign.networks)
    # No further run decides a metric that no run of both protocols has, such as one that a browser does not give.
    has_others = table.groupby(["reference", "compared", "network"])["blocks"].transform("max") > 0
    is_settled = table["verdict"].ne(NOT_DECIDED) | (table["blocks"].eq(0) & has_others)
    decided = is_settled.groupby(table["network"]).all()
    rounds = dict(zip(samples.networks, samples.rounds, strict=True))
    ended = [name for name in rounds if rounds[name] >= looks.blocks[-1] or decided.get(name, False)]
    going_on = {campaign.clients[name].network for name in campaign.networks if name not in ended}
    runs = campaign.runs.groupby(["site", "network", "protocol"])["run"].nunique().unstack("protocol")
    fewest = runs.reindex(columns=list(campaign.protocols)).fillna(0).min(axis=1)
    is_enough: dict[Cell, bool] = {}
    for name, site in product(ended, campaign.settings.sites):
        if (network := campaign.clients[name].network) not in going_on:
            has_first = bool(fewest.get((site, name), 0) >= FIRST_BLOCKS)
            is_enough[site, network] = is_enough.get((site, network), True) and has_first
    return [cell for cell, enough in is_enough.items() if enough]


@dataclass(frozen=True)
class Saving:
    """The runs that the rule saved.

    `runs`: how many planned runs were unnecessary; `seconds`: how long they would have taken. `made_runs`: how many
    runs were made; `made_s`: how long they took. `ends`: network that ended → the fewest and the most runs of one of
    its settings. Times are the elapsed times with all lanes in parallel.
    """

    runs: int = 0
    seconds: float = 0.0
    made_runs: int = 0
    made_s: float = 0.0
    ends: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def saving(folder: Path, decided: Collection[Cell]) -> Saving:
    """The runs that the rule saved in the campaign in `folder`, whose `decided` cells need no more runs. All zero if
    there is no plan. Raises EyelevelError."""
    # A report of a campaign without the rule loads nothing of what records pages.
    from dataset.durations import mean_seconds, pace_seconds

    planned = [run for block in read_plan(folder) for run in block]
    if not planned:
        return Saving()
    rows = read_rows(folder)
    attempted = {row.of for row in rows}
    given_up = {(entry.site, entry.network) for entry in read_given_up(folder)}
    saved = [run for run in planned if run.cell in decided and run.cell not in given_up and run not in attempted]
    settings = require_document(folder).settings
    run_s = mean_seconds(rows)
    saved_s = sum(run_s[run.cell] / settings.runs_at_once(run.network) for run in saved) + pace_seconds(saved)
    made_s = sum(row.seconds / settings.runs_at_once(row.network) for row in rows)
    ends: dict[str, list[int]] = {}
    for cell in dict.fromkeys(run.cell for run in saved):
        ends.setdefault(cell[1], []).append(len({run.number for run in attempted if run.cell == cell}))
    spans = {network: (min(numbers), max(numbers)) for network, numbers in ends.items()}
    return Saving(len(saved), saved_s, len(attempted), made_s, spans)


def saved_line(saving: Saving) -> str:
    """A sentence about `saving` for the report's reader."""
    if not saving.runs:
        return "RUNS=auto has saved nothing: no network was decided before its last run"
    total = saving.runs + saving.made_runs
    ends = [f"{network} after {span(*numbers)} runs of each setting" for network, numbers in saving.ends.items()]
    return (
        f"RUNS=auto saved {saving.runs} of {total} runs ({100 * saving.runs / total:.0f} %), about "
        f"{in_words(saving.seconds)} of {in_words(saving.seconds + saving.made_s)}: {listing(ends)}"
    )
