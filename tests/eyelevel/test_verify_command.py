"""`eyelevel verify` names each file of a package that is not as written."""

from pathlib import Path

import pytest
from support import known_campaigns

from eyelevel.package import write_package
from eyelevel.program import status_of


@pytest.fixture
def package(tmp_path: Path) -> Path:
    known_campaigns.write(tmp_path / "late", "late")
    return write_package(tmp_path / "late", tmp_path / "kept", "licence", lambda folder: (folder / "report").mkdir())


def test_a_package_as_written_is_all_right(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["verify", str(package)]) == 0
    assert capsys.readouterr().out == f"{package}: {len(list(package.glob('*.*'))) - 1} files, all as written\n"


def test_each_difference_is_named_and_fails(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "runs.csv").write_text((package / "runs.csv").read_text().replace("1", "2", 1))
    (package / "README.md").unlink()
    (package / "report" / "mine.html").write_text("mine")
    (package / "campaign.json").rename(package / "moved")
    (package / "campaign.json").symlink_to("moved")
    assert status_of(["verify", str(package)]) == 1
    printed = capsys.readouterr()
    assert sorted(printed.out.splitlines()) == [
        "added: moved",
        "added: report/mine.html",
        "changed: campaign.json",
        "changed: runs.csv",
        "missing: README.md",
    ]
    assert f"{package}: 5 differences from the " in printed.err


def test_a_folder_that_is_no_package_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["verify", str(tmp_path)]) == 1
    assert "is not a package" in capsys.readouterr().err
