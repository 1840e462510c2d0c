"""The results of all of the analysis of a campaign, as tables; nothing here draws or writes."""

from concurrent.futures import Executor
from dataclasses import asdict, dataclass

import pandas as pd

from analysis import diagnostics, sequential
from analysis.aggregate import mixed_models, over_sites
from analysis.comparison import ComparisonInputs, read_paper, side_by_side
from analysis.contrasts import contrasts
from analysis.gain import exclusions, gains, in_order, summary
from analysis.handshake import handshake_table
from analysis.hypotheses import Hypotheses, Pair
from analysis.outcomes import OPEN
from analysis.power import power_table
from analysis.runs import CANARY_PREFIX, CampaignTable, rows_of
from analysis.samples import Samples, samples_of
from analysis.sites import site_table
from base.errors import EyelevelError
from base.places import SITES
from record.site import INDEX, Site

KEY = ["reference", "compared", "network", "metric"]


@dataclass(frozen=True)
class Findings:
    """A campaign and the results of its analysis; each table is from the function of its name."""

    campaign: CampaignTable
    hypotheses: Hypotheses
    samples: Samples
    sites: pd.DataFrame
    sites_missing: tuple[str, ...]
    gains: pd.DataFrame
    summary: pd.DataFrame
    contrasts: pd.DataFrame
    over_sites: pd.DataFrame
    handshake: pd.DataFrame
    paper: pd.DataFrame
    power: pd.DataFrame
    stopping: pd.DataFrame
    residuals: pd.DataFrame
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
        return next((name for name in self.residuals if name.startswith(CANARY_PREFIX)), None)

    @property
    def comparisons(self) -> pd.DataFrame:
        """Every comparison of a pair, network, site and metric: the paper's statistics and those beyond it."""
        return self.gains.merge(self.contrasts, on=[*KEY, "site"], how="left") if len(self.contrasts) else self.gains

    def gains_of(self, pair: Pair) -> pd.DataFrame:
        """The gains of one pair."""
        return rows_of(self.gains, **asdict(pair))


def analyse(campaign: CampaignTable, declaration: Hypotheses, pool: Executor) -> Findings:
    """Analyse `campaign` under the hypotheses of `declaration`; a process of `pool` computes the longest part.

    Raises EyelevelError when there is no valid run.
    """
    samples = samples_of(campaign)
    if not samples.protocols:
        attempts = len(campaign.runs)
        raise EyelevelError(f"no run of the campaign {campaign.name} is valid ({attempts} tried): nothing to report")
    hypotheses = declaration.restricted_to(samples.protocols, samples.metrics)
    pending_models = pool.submit(mixed_models, samples, hypotheses)
    gain_table = gains(samples, hypotheses.comparisons)
    recordings, sites_missing = recorded_sites(campaign, samples.sites)
    one_server_sites = [site.name for site in recordings if len(site.servers) == 1]
    rtt_ms = {
        name: float(network["min_rtt_ms"])
        for name, network in campaign.document.networks.items()
        if "min_rtt_ms" in network
    }
    handshake = handshake_table(samples, one_server_sites, rtt_ms, hypotheses.confidence)
    bootstrap = over_sites(samples, hypotheses)
    inputs = ComparisonInputs(samples, gain_table, bootstrap, handshake, hypotheses.confidence)
    residuals = diagnostics.residuals(campaign.runs)
    aa_pairs = [
        pair
        for pair in diagnostics.same_protocols(campaign.document)
        if {pair.reference, pair.compared} <= set(samples.protocols)
    ]
    p_values = diagnostics.aa_p_values(samples, aa_pairs)
    contrast_table = contrasts(samples, hypotheses)
    models = pending_models.result()
    return Findings(
        campaign=campaign,
        hypotheses=hypotheses,
        samples=samples,
        sites=site_table(recordings) if recordings else pd.DataFrame(),
        sites_missing=sites_missing,
        gains=gain_table,
        summary=summary(gain_table),
        contrasts=contrast_table,
        over_sites=bootstrap.merge(models, on=KEY, how="left") if len(models) else bootstrap,
        handshake=handshake,
        paper=side_by_side(read_paper(), inputs),
        power=power_table(samples, hypotheses.significant_p),
        stopping=stopping(samples, hypotheses),
        residuals=residuals,
        drift=diagnostics.drift(residuals, campaign.machine_column),
        canaries=diagnostics.canaries(residuals),
        exclusions=exclusions(campaign.runs),
        exclusion_rates=in_campaign_order(diagnostics.exclusion_rates(campaign.runs), samples),
        aa_pairs=tuple(aa_pairs),
        aa_p_values=p_values,
        aa_calibration=diagnostics.aa_calibration(p_values, hypotheses.confidence),
        spread=in_campaign_order(diagnostics.spread(campaign.runs), samples),
    )


def in_campaign_order(table: pd.DataFrame, samples: Samples) -> pd.DataFrame:
    """`table` with its networks and protocols in the campaign's order, not that of measuring."""
    return in_order(in_order(table, "protocol", samples.protocols), "network", samples.networks)


def recorded_sites(campaign: CampaignTable, names: tuple[str, ...]) -> tuple[list[Site], tuple[str, ...]]:
    """The recordings of the campaign's sites on this machine, and the names of sites that are missing or changed."""
    settings = campaign.document.sites
    recordings, missing = [], []
    for name in names:
        site = Site.load(SITES / name) if (SITES / name / INDEX).exists() else None
        if site is not None and settings.get(name, {}).get("url") == site.url:
            recordings.append(site)
        else:
            missing.append(name)
    return recordings, tuple(missing)


def stopping(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """After how many runs `RUNS=auto`, which decides on the declared family, would have stopped.

    A row for each network and site that has all protocols; columns: network, site, runs (measured of each), enough
    (the runs after which the rule stops), decided and undecided (the number of pairs and metrics that are).
    """
    pairs = [(pair.reference, pair.compared) for pair in hypotheses.family]
    rows = []
    for n, network in enumerate(samples.networks):
        for s, site in enumerate(samples.sites):
            runs = {}
            for name in samples.protocols:
                values = samples.of(name)[n, s]
                complete = values[:, pd.notna(values).all(axis=0)]
                runs[name] = dict(zip(samples.metrics, complete.tolist(), strict=True))
            least = min((len(times[samples.metrics[0]]) for times in runs.values()), default=0)
            if not least or not pairs:
                continue
            decisions = sequential.decide(runs, pairs, hypotheses.family_metrics).decisions.values()
            looks = [decision.runs for decision in decisions if decision.outcome != OPEN]
            undecided = len(decisions) - len(looks)
            enough = least if undecided else max(looks, default=least)
            rows.append((network, site, least, enough, len(looks), undecided))
    return pd.DataFrame(rows, columns=["network", "site", "runs", "enough", "decided", "undecided"])
