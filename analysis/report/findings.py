"""Everything that the analysis finds in a campaign, as tables; nothing here draws or writes."""

from concurrent.futures import Executor
from dataclasses import dataclass

import pandas as pd

from analysis import diagnostics, sequential
from analysis.aggregate import mixed_models, over_sites
from analysis.comparison import Evidence, read_paper, side_by_side
from analysis.contrasts import contrasts
from analysis.gain import exclusions, gains, in_order, means, summary
from analysis.handshake import handshake_table
from analysis.hypotheses import Hypotheses, Pair
from analysis.power import power_table
from analysis.runs import CANARY_PREFIX, CampaignTable
from analysis.samples import Samples, samples
from analysis.sites import site_table
from base.errors import EyelevelError
from base.places import SITES
from record.site import INDEX, Site

# As campaign.json calls a network's smallest round-trip time.
RTT = "min_rtt_ms"


@dataclass(frozen=True)
class Findings:
    """A campaign and what is found in it; each table is what the function of its name returns."""

    campaign: CampaignTable
    hypotheses: Hypotheses
    samples: Samples
    sites: pd.DataFrame
    sites_missing: tuple[str, ...]
    means: pd.DataFrame
    gained: pd.DataFrame
    summary: pd.DataFrame
    contrasts: pd.DataFrame
    over_sites: pd.DataFrame
    handshake: pd.DataFrame
    paper: pd.DataFrame
    power: pd.DataFrame
    stopping: pd.DataFrame
    off: pd.DataFrame
    drift: pd.DataFrame
    canaries: pd.DataFrame
    exclusions: pd.DataFrame
    exclusion_rates: pd.DataFrame
    aa_pairs: tuple[Pair, ...]
    aa_p_values: pd.DataFrame
    aa_calibration: pd.DataFrame
    spread: pd.DataFrame

    @property
    def canary(self) -> str | None:
        """The campaign's first canary column."""
        return next((name for name in self.off if name.startswith(CANARY_PREFIX)), None)


def find(campaign: CampaignTable, declared: Hypotheses, apart: Executor) -> Findings:
    """Analyse `campaign` under the hypotheses `declared`; the longest part is computed by `apart`, another process.

    Raises EyelevelError when there is no valid run.
    """
    measured = samples(campaign)
    if not measured.protocols:
        tried = len(campaign.runs)
        raise EyelevelError(f"no run of the campaign {campaign.name} is valid ({tried} tried): nothing to report")
    hypotheses = declared.fitted(measured.protocols)
    mixed = apart.submit(mixed_models, measured, hypotheses)
    gained = gains(measured, hypotheses.comparisons)
    recorded, missing = recorded_sites(campaign, measured.sites)
    single = [site.name for site in recorded if len(site.servers) == 1]
    rtt_ms = {
        name: float(network[RTT])
        for name, network in campaign.document["settings"]["networks"].items()
        if isinstance(network, dict) and RTT in network
    }
    handshake = handshake_table(measured, single, rtt_ms, hypotheses.confidence)
    aggregated = over_sites(measured, hypotheses)
    evidence = Evidence(measured, gained, aggregated, handshake, hypotheses.confidence)
    off = diagnostics.residuals(campaign.runs)
    aa_pairs = [
        pair
        for pair in diagnostics.same_protocols(campaign.document)
        if {pair.reference, pair.compared} <= set(measured.protocols)
    ]
    p_values = diagnostics.aa_p_values(measured, aa_pairs)
    contrasted = contrasts(measured, hypotheses)
    key = ["reference", "compared", "network", "metric"]
    modelled = mixed.result()
    return Findings(
        campaign=campaign,
        hypotheses=hypotheses,
        samples=measured,
        sites=site_table(recorded) if recorded else pd.DataFrame(),
        sites_missing=missing,
        means=means(campaign.runs),
        gained=gained,
        summary=summary(gained),
        contrasts=contrasted,
        over_sites=aggregated.merge(modelled, on=key, how="left") if len(modelled) else aggregated,
        handshake=handshake,
        paper=side_by_side(read_paper(), evidence),
        power=power_table(measured, hypotheses.significant_p),
        stopping=stopping(measured, hypotheses),
        off=off,
        drift=diagnostics.drift(off, campaign.machine_column),
        canaries=diagnostics.canaries(off),
        exclusions=exclusions(campaign.runs),
        exclusion_rates=ordered(diagnostics.exclusion_rates(campaign.runs), measured),
        aa_pairs=tuple(aa_pairs),
        aa_p_values=p_values,
        aa_calibration=diagnostics.aa_calibration(p_values, hypotheses.confidence),
        spread=ordered(diagnostics.spread(campaign.runs), measured),
    )


def ordered(table: pd.DataFrame, measured: Samples) -> pd.DataFrame:
    """`table` with its networks and protocols in the campaign's order, not that in which they were measured."""
    return in_order(in_order(table, "protocol", measured.protocols), "network", measured.networks)


def recorded_sites(campaign: CampaignTable, names: tuple[str, ...]) -> tuple[list[Site], tuple[str, ...]]:
    """The recordings of the campaign's sites, and the names of those that are not on this machine (any more)."""
    told = campaign.document["settings"].get("sites", {})
    found, missing = [], []
    for name in names:
        site = Site.load(SITES / name) if (SITES / name / INDEX).exists() else None
        if site is not None and isinstance(told, dict) and told.get(name, {}).get("url") == site.url:
            found.append(site)
        else:
            missing.append(name)
    return found, tuple(missing)


def stopping(measured: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """When `RUNS=auto`, which asks about the declared family, would have stopped.

    A row for each network and site that has all protocols; columns: network, site, runs (measured of each), enough
    (after so many the rule stops), decided and undecided (of each pair, in each metric).
    """
    names = measured.protocols
    pairs = [(pair.reference, pair.compared) for pair in hypotheses.family]
    rows = []
    for n, network in enumerate(measured.networks):
        for s, site in enumerate(measured.sites):
            runs = {}
            for name in names:
                values = measured.of(name)[n, s]
                whole = values[:, pd.notna(values).all(axis=0)]
                runs[name] = dict(zip(measured.metrics, whole.tolist(), strict=True))
            least = min((len(runs[name][measured.metrics[0]]) for name in names), default=0)
            if not least or not pairs:
                continue
            verdict = sequential.decide(runs, pairs, hypotheses.family_metrics)
            decided = [one for one in verdict.decisions.values() if one.outcome != sequential.OPEN]
            still = len(verdict.decisions) - len(decided)
            enough = least if still else max((one.runs for one in decided), default=least)
            rows.append((network, site, least, enough, len(decided), still))
    return pd.DataFrame(rows, columns=["network", "site", "runs", "enough", "decided", "undecided"])
