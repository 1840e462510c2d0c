"""The table that `eyelevel site-info` prints, and its files."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from eyelevel.commands import site_info
from record.http1 import Response
from record.site import Exchange, Recording, write_site


def recorded(folder: Path, *bodies: bytes) -> None:
    exchanges = tuple(
        Exchange("GET", f"https://{folder.name}.example/{place}", Response(200, "OK", (), body), f"192.0.2.{place}")
        for place, body in enumerate(bodies, start=1)
    )
    write_site(Recording(exchanges[0].url, exchanges, {"tool": "test"}), folder)


def test_sites_are_printed_by_size_and_kept_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path / "sites" / "large", b"x" * 1_500_000, b"x" * 60_000)
    recorded(tmp_path / "sites" / "small", b"x" * 70_000)
    monkeypatch.setattr(site_info, "SITES", tmp_path / "sites")
    done = CliRunner().invoke(site_info.main, ["--into", str(tmp_path / "info")])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()]
    # Exchanges, MB, servers, hosts, third parties, the largest resource in kB; nothing that only loads show.
    small, large = ["small", "1", "0.07", "1", "1", "0", "70"], ["large", "2", "1.56", "2", "1", "0", "1500"]
    assert [row for row in rows if row[:1] in (["small"], ["large"])] == [small, large]
    assert "next: make close SITES=small,large" in done.stderr
    assert {path.name for path in (tmp_path / "info").iterdir()} == {"sites.csv", "figure1.png", "figure1.pdf"}
