"""Every page of the set `web` is complete: a load in Chromium asks for each of its URLs, over TCP and over QUIC."""

from pathlib import Path

import pytest
from support.campaigns import run_of_each

from dataset.table import read_rows
from record.collection import choose_site
from record.web import page_names

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser]


@pytest.mark.parametrize("name", page_names())
def test_a_load_asks_for_everything_of_a_page_and_for_nothing_else(name: str, tmp_path: Path) -> None:
    site = choose_site(name)
    loads = [
        (row.protocol, row.requests, row.missed)
        for row in read_rows(run_of_each(site, tmp_path / "results").folder)
        if row.valid
    ]
    assert sorted(loads) == [(protocol, len(site.exchanges), 0) for protocol in ("quic", "tcp")]
