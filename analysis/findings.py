"""The findings of a campaign's analysis: its samples, the hypotheses on them, and a table of each analysis."""

import pickle
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, TypeVar

import pandas as pd

from analysis.diagnostics import aa_pairs
from analysis.runs import CANARY_PREFIX, CampaignTable
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.samples import OVER_SITES, Samples

# The names of the tables in `analysis.analyses`, so that mypy finds a misspelt one.
Table = Literal[
    "aa_calibration", "aa_p_values", "block_means", "carry_over", "claim_numbers", "claims", "confirmatory",
    "contrasts", "drift", "empty_settings", "exclusions", "gains", "halves", "handshake", "heterogeneity", "link_use",
    "loss_bounds", "metric_agreement", "other_metrics", "over_sites", "pair_balance", "paper", "places", "power",
    "processor_waits", "rejections", "residuals", "sensitivity", "shrunken", "sites", "spread", "steps",
    "success_rates", "unusual", "variants", "wandering", "web_metrics",
]  # fmt: skip
Result = TypeVar("Result")


# As a campaign's table, findings are equal only if they are one object.
@dataclass(frozen=True, eq=False)
class Findings:
    """A campaign, and the tables of its analyses by their names.

    `declared`: the hypotheses on the campaign as it was planned. `hypotheses`: those for which valid runs exist.
    """

    campaign: CampaignTable
    samples: Samples
    hypotheses: Hypotheses
    declared: Hypotheses
    tables: Mapping[Table, pd.DataFrame] = field(default_factory=dict)

    def __getitem__(self, name: Table) -> pd.DataFrame:
        """The table of the analysis `name`."""
        return self.tables[name]

    @property
    def single_run_metric(self) -> str:
        """The metric of figures of single runs: the Speed Index if the campaign has it."""
        metrics = self.samples.metrics
        return "si" if "si" in metrics else metrics[0]

    @property
    def aa_pairs(self) -> list[Pair]:
        """The pairs of one protocol under two names."""
        return aa_pairs(self.campaign.document, self.samples.protocols)

    @property
    def canary(self) -> str | None:
        """The campaign's first canary column."""
        return next((name for name in self["residuals"] if name.startswith(CANARY_PREFIX)), None)

    @property
    def comparisons(self) -> pd.DataFrame:
        """Every comparison of a pair in a metric at a site on a network: the tables `gains` and `contrasts`."""
        gains = self["gains"].rename(columns={"p": "anova_p", "verdict": "paper_verdict"})
        contrasts = self["contrasts"]
        return gains.merge(contrasts, on=[*OVER_SITES, "site"], how="left") if len(contrasts) else gains


def submitted(
    functions: Iterable[Callable[[Findings], Result]], findings: Findings, pool: Executor
) -> list[Future[Result]]:
    """Call each of `functions` with `findings` in `pool`. They must not change these: those in one process share them,
    since most take less time than unpickling a campaign."""
    sent = pickle.dumps(findings)
    digest = sha256(sent).digest()
    return [pool.submit(_called, function, sent, digest) for function in functions]


# The findings that this process received last, by the digest of their bytes, which are as large and not needed again.
_last: dict[bytes, Findings] = {}


def _called(function: Callable[[Findings], Result], sent: bytes, digest: bytes) -> Result:
    findings = _last.get(digest)
    if findings is None:
        _last.clear()
        findings = _last[digest] = pickle.loads(sent)
    return function(findings)
