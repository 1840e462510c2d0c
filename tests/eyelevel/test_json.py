"""Commands that print a table print JSON for other programs, and nothing else on the standard output."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.figure_layout import draw_nothing

from base.places import PROJECT
from eyelevel.program import program

NEAR, FAR = (str(PROJECT / "docs" / "first-hour" / name) for name in ("near", "far"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (["status", NEAR], {"planned", "done", "left", "running", "rejected"}),
        (["results", NEAR], {"means", "changes"}),
        (["compare", "--a", NEAR, "--b", FAR, "--into", "INTO"], {"outcome", "over_sites", "differences"}),
        (["combine", f"{NEAR},{FAR}", "--into", "INTO"], {"contrasts", "gains"}),
        (["networks", "--net", "lte"], {"name", "min_rtt_ms", "source"}),
        (["protocols", "--proto", "tcp"], {"name", "congestion_control", "source"}),
        (["devices"], {"name", "index", "source"}),
    ],
)
def test_a_table_is_json_for_other_programs(
    line: list[str], keys: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_nothing(monkeypatch)
    words = [str(tmp_path / "into") if word == "INTO" else word for word in line]
    done = CliRunner().invoke(program, [*words, "--json"])
    document = json.loads(done.stdout)
    assert keys <= set(document[0] if isinstance(document, list) else document)
