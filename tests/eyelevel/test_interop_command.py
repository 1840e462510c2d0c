"""`eyelevel interop` writes its table."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from eyelevel.commands.interop import main


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_the_table_names_the_versions_of_all_programs(tmp_path: Path) -> None:
    """A test that the server does not support needs no load."""
    into = tmp_path / "table.md"
    options = ["--server", "quic_server", "--browser", "chromium", "--test", "h2", "--into", str(into)]
    done = CliRunner().invoke(main, [*options, "--results", str(tmp_path / "results")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    written = into.read_text()
    assert "| quic_server | chromium | unsupported |" in written
    assert all(f"| {program} | " in written for program in ("chromium", "chromedriver", "quic_server", "browsertime"))
