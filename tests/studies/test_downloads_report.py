"""The calibration for the paper's Figure 2, for settings of any servers."""

from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest
from factories import ROW
from support.browser import Browser
from support.reports import accessible_report

from base.structure import structured
from dataset.run_files import REQUEST_LOG
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, header, lines, write_document
from studies.downloads import pages as downloads
from studies.downloads import section as sections
from studies.downloads.measure import STUDY
from tuning import protocols
from tuning.protocols import Protocol


def over(*servers: str) -> dict[str, Protocol]:
    """TCP+ and QUIC for each of `servers`, named after it, and TCP+ under a second name."""
    known = protocols.load()
    named = [known["tcp+"], replace(known["tcp+"], name="tcp+~2"), known["quic"]]
    for server in servers:
        named += [replace(known["tcp+"], name=f"{server}-h2", server=server)]
        named += [replace(known["quic"], name=f"{server}-h3", server=server)]
    return {protocol.name: protocol for protocol in named}


def test_each_server_has_a_line_less_the_round_trips_of_its_handshake() -> None:
    settings = over("caddy")
    rows = [
        # Besides two round trips of 10 ms over TCP, and one over QUIC, the file takes 10 ms, or 11 from Caddy.
        (name, size, repetition, 10 * protocol.round_trips_before_request + (11 if protocol.server == "caddy" else 10))
        for name, protocol in settings.items()
        for size in (1000, 10_000)
        for repetition in (1, 2, 3)
    ]
    table = pd.DataFrame(rows, columns=["protocol", "size_bytes", "repetition", "ms"])
    levels = sections.levels_table(sections.medians(table, 10.0, settings), settings)
    assert list(levels.texts["protocol"]) == ["tcp+~2", "QUIC", "caddy-h2", "caddy-h3"]
    assert list(levels.texts["server"]) == ["nginx", "quic_server", "caddy", "caddy"]
    assert set(levels.texts["against"]) == {"TCP+"}
    for size in ("level_1000", "level_10000"):
        assert levels.data[size].tolist() == pytest.approx([0, 0, 0.1, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize("only", [["quic"], ["tcp+~2"], ["quic", "other-h3"], ["tcp+", "quic", "other-h2", "other-h3"]])
def test_any_settings_have_a_section(only: list[str], tmp_path: Path) -> None:
    """Even settings that no file here contains any more have a section: campaign.json describes them."""
    write_campaign(tmp_path, only)
    section = sections.section(tmp_path)
    assert section is not None
    for figure in section.figures:
        figure.write(tmp_path)
    assert (tmp_path / "figure2.png").exists()
    levels, medians, every = section.tables
    assert len(every.data) == 3 * len(only) and len(medians.data) == len(only) * (len(only) - 1) / 2
    assert len(levels.data) == len(only) - 1


@pytest.mark.needs_axe
def test_everybody_can_read_the_section(browser: Browser, tmp_path: Path) -> None:
    write_campaign(tmp_path, ["tcp+", "quic", "other-h2", "other-h3"])
    assert accessible_report(browser, tmp_path) == []


def write_campaign(folder: Path, only: list[str]) -> None:
    """A campaign in `folder` of a page of downloads over these protocols."""
    settings = {name: asdict(protocol) for name, protocol in over("other").items() if name in only}
    site = downloads.page_name(1000)
    rows = [replace(ROW, site=site, network="delay10", protocol=name, folder=f"runs/{name}") for name in only]
    document = {"networks": {"delay10": {"min_rtt_ms": 10.0}}, "sites": {site: {}}, "protocols": settings}
    write_document(
        folder, CampaignDocument(structured(document, CampaignSettings, ""), study={"name": STUDY, "downloads": 3})
    )
    (folder / "runs.csv").write_text(header() + lines(rows))
    report = f"https://{downloads.HOST}{downloads.REPORT_PATH}?ms=31+32+33"
    for row in rows:
        (folder / row.folder).mkdir(parents=True)
        (folder / row.folder / REQUEST_LOG).write_text(f"exact\tGET\t{report}\treport\n")
