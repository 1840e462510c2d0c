"""One load from outside: why its replay failed."""

from dataclasses import replace
from pathlib import Path

import pytest

from measure.run.load import load
from measure.run.setting import Setting
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols


@pytest.mark.needs_root
@pytest.mark.needs_shells
def test_a_network_that_cannot_be_set_up_is_a_reason_with_what_the_shell_printed(tmp_path: Path) -> None:
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    network = replace(networks.load()["dsl"], down_trace="/nowhere/trace")
    reason = load(Setting(site, network, protocols.load()["tcp"]), tmp_path) or ""
    message, _, quotation = reason.partition("; the last line of replay.log: ")
    assert message.startswith("the emulated network could not be set up (status ")
    # `eyelevel status` prints the reason, and above it there is nothing.
    assert "/nowhere/trace" in quotation and "above" not in reason
