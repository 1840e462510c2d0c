"""A film is copied while the programs that made it are still running."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from dataset.run_files import FILM_LOG
from measure.run.visit import RECORDED, keep_film


@pytest.mark.parametrize(("space_bytes", "kept"), [(100, b"film"), (3, b"fil")])
def test_no_more_is_copied_than_the_jails_folder_can_hold(
    space_bytes: int, kept: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file can claim any length."""
    results, folder = tmp_path / "results", tmp_path / "folder"
    (results / RECORDED).parent.mkdir(parents=True)
    (results / RECORDED).write_bytes(b"film")
    folder.mkdir()
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_blocks=space_bytes, f_frsize=1))
    keep_film(results, folder)
    assert (folder / FILM_LOG).read_bytes() == kept
