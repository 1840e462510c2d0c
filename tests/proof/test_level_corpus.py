"""For every available recording, all servers send every exchange alike, and as recorded."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.level import differences
from support.material import recording_names, recording_path
from support.programs import served_protocols

from record.formats import read_recording
from record.site import write_site
from tuning.protocols import Protocol

# The protocol with which all others are compared, and which is compared with the recording.
REFERENCE = "tcp"

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_corpus]


@pytest.mark.parametrize("protocol", served_protocols())
@pytest.mark.parametrize("source", recording_names())
def test_every_exchange_comes_back_alike_and_as_recorded(
    source: str, protocol: Protocol, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    site = write_site(read_recording(recording_path(source)), tmp_path / "site")
    record_property("exchanges", len(site.exchanges))
    assert differences(site, tmp_path, tuple(dict.fromkeys((REFERENCE, protocol.name)))) == []
