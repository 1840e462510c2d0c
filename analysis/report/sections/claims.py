"""The paper's claims."""

from analysis.findings import Findings
from analysis.paper.claims import balance_of
from analysis.report.section import Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import tables_of


def section(findings: Findings) -> Section:
    """The section of the claims."""
    balance = balance_of(findings["claims"], len(findings.campaign.valid), len(findings.samples.sites))
    tables = tables_of(findings, "claims", "claim_numbers", "metric_agreement")
    return Section("claims", "Claims", tables=tables, values={"balance": balance})


SECTION = CampaignSection("claims", place=40, of=section)
