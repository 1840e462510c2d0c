"""The last pictures of runs are read once, and identical ones are stored once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import ROW
from PIL import Image

from dataset.last_frames import read_last_frame
from dataset.run_files import LAST
from dataset.table import Row
from measure.campaign import outcomes
from measure.campaign.outcomes import LastFrame, RunOutcomes

WHITE = np.full((9, 16, 3), 255, dtype=np.uint8)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runs whose pictures were decoded."""
    folders: list[Path] = []

    def read(folder: Path) -> LastFrame:
        folders.append(folder)
        return read_last_frame(folder)

    monkeypatch.setattr(outcomes, "read_last_frame", read)
    return folders


def is_like(frame: LastFrame, look: np.ndarray) -> bool:
    return frame is not None and np.array_equal(frame, look)


def run_of(campaign: Path, number: int, look: np.ndarray | None) -> Row:
    folder = campaign / f"runs/s/lte/tcp/{number}-1"
    folder.mkdir(parents=True)
    if look is not None:
        Image.fromarray(look).save(folder / LAST)
    return replace(ROW, run=number, folder=str(folder.relative_to(campaign)))


def test_a_picture_is_decoded_once_and_the_same_one_is_the_same_object(tmp_path: Path, reads: list[Path]) -> None:
    known = RunOutcomes(tmp_path)
    rows = [run_of(tmp_path, number, WHITE) for number in (1, 2)] + [run_of(tmp_path, 3, WHITE // 2)]
    first, second, third = (known.of(row) for row in rows)
    assert (first.requests, first.missed, first.exchanges) == (ROW.requests, ROW.missed, ROW.exchanges)
    assert first.last_frame is second.last_frame
    assert is_like(first.last_frame, WHITE)
    assert is_like(third.last_frame, WHITE // 2)
    for row in rows:
        known.of(row)
    assert len(reads) == 2


def test_a_run_without_a_picture_or_with_a_broken_one_has_none(tmp_path: Path) -> None:
    known = RunOutcomes(tmp_path)
    without, broken = (run_of(tmp_path, number, None) for number in (1, 2))
    (tmp_path / broken.folder / LAST).write_bytes(b"no picture")
    assert known.of(without).last_frame is None
    assert known.of(broken).last_frame is None


def test_what_does_not_fit_is_read_again(tmp_path: Path, reads: list[Path]) -> None:
    known = RunOutcomes(tmp_path, most_bytes=WHITE.nbytes)
    rows = [run_of(tmp_path, number, WHITE // number) for number in (1, 2, 3)]
    for _ in range(2):
        for number, row in enumerate(rows, start=1):
            assert is_like(known.of(row).last_frame, WHITE // number)
    assert len(reads) == 5, "one is kept, two are read twice"
