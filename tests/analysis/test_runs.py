"""How a campaign is kept in tables (`analysis.runs`)."""

from pathlib import Path

import pandas as pd
from support.known_campaigns import write

from analysis import hypotheses
from analysis.report.conclusion import findings_of
from analysis.runs import load

OPTION = "mode.string_storage"


def test_texts_are_pythons_and_a_notebook_keeps_its_options(tmp_path: Path) -> None:
    before = pd.get_option(OPTION)
    write(tmp_path, "null")
    campaign = load(tmp_path)
    findings = findings_of(campaign, hypotheses.load())
    for table in (campaign.runs, findings["contrasts"]):
        assert {kind.storage for kind in table.dtypes if isinstance(kind, pd.StringDtype)} == {"python"}
    assert pd.get_option(OPTION) == before != "python"
