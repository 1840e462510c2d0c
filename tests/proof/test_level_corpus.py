"""For every recording at hand: both servers send every exchange alike, and as it was recorded."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from level import differences

from record.formats import read_recording
from record.site import write_site

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
RECORDINGS = sorted(str(path.relative_to(CORPUS)) for path in CORPUS.glob("*/*"))

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="replaying needs root")]


def test_there_are_recordings() -> None:
    if not RECORDINGS:
        pytest.skip("../shared/corpus is not here")


@pytest.mark.parametrize("source", RECORDINGS)
def test_every_exchange_comes_back_alike_and_as_recorded(
    source: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    site = write_site(read_recording(CORPUS / source), tmp_path / "site")
    record_property("exchanges", len(site.exchanges))
    assert differences(site, tmp_path) == []
