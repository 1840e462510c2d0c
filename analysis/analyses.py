"""All analyses of a campaign: the name of each table, and the function that computes it from the findings so far.

Nothing here draws or writes; `analysis.report` shows the tables.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import pandas as pd

from analysis import balance, diagnostics, losses, processor, stability
from analysis.attempts import exclusions, tried_in
from analysis.findings import Findings, Table, submitted
from analysis.paper.claim_correlations import metric_agreements
from analysis.paper.claim_tests import ClaimInputs
from analysis.paper.claims import FIGURE_METRICS, claims
from analysis.paper.comparison import handshake_table, side_by_side
from analysis.runs import CampaignTable, plain_texts
from analysis.samples import samples_of
from analysis.sites import site_table
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.contrasts import contrasts, over_sites, unusual
from analysis.statistics.gain import gains, in_order
from analysis.statistics.heterogeneity import heterogeneity, shrunken
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.other_metrics import other_metrics
from analysis.statistics.planning import blocks_needed
from analysis.statistics.samples import Samples
from analysis.statistics.sensitivity import sensitivity
from analysis.stopping import looks_of
from base.errors import EyelevelError
from base.late import late

Analysis = Callable[[Findings], pd.DataFrame]

# Few campaigns have data for these analyses, so their modules are loaded when they are first used.
VARIANTS, WEB_METRICS = late("analysis.variants:variants"), late("analysis.web_metrics:web_metrics")

# These analyses need no other analysis, so they run in parallel; the longest stands first.
ANALYSES: Mapping[Table, Analysis] = {
    "contrasts": lambda findings: contrasts(findings.samples, findings.hypotheses, findings.campaign.rtt_ms),
    "confirmatory": lambda findings: confirmatory(
        findings.samples,
        findings.declared,
        findings.campaign.rtt_ms,
        looks_of(findings.campaign),
        findings.campaign.networks,
    ),
    "gains": lambda findings: gains(findings.samples, findings.hypotheses.comparisons),
    "power": lambda findings: blocks_needed(findings.samples, findings.declared, findings.campaign.networks),
    "sites": lambda findings: site_table(findings.campaign.known_sites, findings.samples.sites).merge(
        findings.campaign.loaded, "left", left_on="site", right_index=True
    ),
    "residuals": lambda findings: stability.residuals(findings.campaign),
    "aa_p_values": lambda findings: diagnostics.aa_p_values(findings.samples, findings.aa_pairs),
    "exclusions": lambda findings: exclusions(findings.campaign.runs),
    "success_rates": lambda findings: losses.success_rates(findings.campaign),
    "rejections": lambda findings: losses.rejection_tests(findings.campaign),
    "empty_settings": lambda findings: losses.empty_settings(findings.campaign),
    "pair_balance": lambda findings: balance.pair_balance(findings.campaign, findings.declared.comparisons),
    "places": lambda findings: balance.places(findings.campaign),
    "halves": lambda findings: stability.halves(findings.samples, findings.declared),
    "block_means": lambda findings: stability.block_means(findings.campaign),
    "carry_over": lambda findings: stability.carry_over(findings.campaign, findings.declared.family_metrics),
    "wandering": lambda findings: stability.wandering(findings.campaign, findings.samples, findings.declared),
    "sensitivity": lambda findings: sensitivity(findings.samples, findings.declared),
    "variants": lambda findings: VARIANTS(findings.campaign, findings.declared),
    "heterogeneity": lambda findings: heterogeneity(findings.samples, findings.declared),
    "shrunken": lambda findings: shrunken(findings.samples, findings.declared),
    "metric_agreement": lambda findings: metric_agreements(findings.samples, findings.hypotheses, FIGURE_METRICS),
    "link_use": lambda findings: _in_order(diagnostics.link_use(findings.campaign.runs), findings.samples),
    "web_metrics": lambda findings: WEB_METRICS(findings.campaign, findings.hypotheses),
    "spread": lambda findings: _in_order(diagnostics.spread(findings.campaign.runs), findings.samples),
}


def _claims(findings: Findings) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `claims` and `claim_numbers`. The paper has one browser, so the claims are tested only on runs in the
    campaign's first browser."""
    campaign = findings.campaign
    in_first = [name for name in findings.samples.networks if campaign.clients[name].network == name]
    samples = findings.samples.on(in_first)
    inputs = ClaimInputs(samples, findings.declared, findings["confirmatory"], campaign.rtt_ms, campaign.site_facts)
    return claims(inputs)


# These analyses read the tables of those above.
SUMMARIES: Mapping[Table, Analysis] = {
    "loss_bounds": lambda findings: losses.bounds(findings.campaign, findings.declared, findings["confirmatory"]),
    "processor_waits": lambda findings: processor.waits(findings.campaign, findings.declared, findings["confirmatory"]),
    "other_metrics": lambda findings: other_metrics(findings.samples, findings.declared, findings["confirmatory"]),
    "over_sites": lambda findings: over_sites(findings.comparisons, findings.hypotheses.confidence),
    "unusual": lambda findings: unusual(findings["contrasts"]),
    "handshake": handshake_table,
    "claims": lambda findings: _claims(findings)[0],
    "claim_numbers": lambda findings: _claims(findings)[1],
    "drift": lambda findings: stability.drift(findings["block_means"], findings.declared.confidence),
    "steps": lambda findings: stability.steps(findings.campaign, findings["block_means"]),
    "aa_calibration": lambda findings: diagnostics.aa_calibration(
        findings["aa_p_values"], findings.hypotheses.confidence
    ),
}
# In stages: those of a stage run in parallel, and read the tables of earlier stages.
STAGES: Sequence[Mapping[Table, Analysis]] = (ANALYSES, SUMMARIES, {"paper": side_by_side})


def analyse(campaign: CampaignTable, declaration: Hypotheses, pool: Executor) -> Findings:
    """Run all analyses of `campaign` under the hypotheses of `declaration` in `pool`, in STAGES.

    Raises EyelevelError if no run is valid.
    """
    findings = begun(campaign, declaration)
    # Computed here, this table goes to all processes with the campaign; each analysis there would compute its own.
    tried_in(campaign)
    for number, stage in enumerate(STAGES):
        jobs = submitted([partial(_table, number, name) for name in stage], findings, pool)
        tables = {name: job.result() for name, job in zip(stage, jobs, strict=True)}
        findings = replace(findings, tables={**findings.tables, **tables})
    return findings


@plain_texts()
def begun(campaign: CampaignTable, declaration: Hypotheses) -> Findings:
    """The findings on `campaign` before its tables. Raises EyelevelError if no run is valid."""
    samples = samples_of(campaign)
    if not samples.protocols:
        attempts = len(campaign.runs)
        raise EyelevelError(f"no run of the campaign {campaign.name} is valid ({attempts} tried): nothing to report")
    hypotheses = declaration.restricted_to(samples.protocols, samples.metrics)
    declared = declaration.restricted_to(campaign.protocols, campaign.metrics)
    return Findings(campaign, samples, hypotheses, declared)


def _table(stage: int, name: Table, findings: Findings) -> pd.DataFrame:
    return STAGES[stage][name](findings)


def _in_order(table: pd.DataFrame, samples: Samples) -> pd.DataFrame:
    """`table` with its networks and protocols in the campaign's order instead of the order of measuring."""
    return in_order(table, network=samples.networks, protocol=samples.protocols)
