"""Pictures of last frames may come from strangers: no program is started for them, and they use little memory."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from dataset.last_frames import MOST_BLOCKS, all_digests, read_last_frame, write_last_frame
from dataset.run_files import LAST

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
BLOCKS = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)


def test_the_blocks_that_were_written_are_read(tmp_path: Path) -> None:
    write_last_frame(BLOCKS, tmp_path)
    frame = read_last_frame(tmp_path)
    assert frame is not None and np.array_equal(frame, BLOCKS)


def test_no_program_is_started_for_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gs").write_text(f"#!/bin/sh\necho $0 $@ >>{tmp_path}/started\n")
    (programs / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (tmp_path / LAST).write_bytes(POSTSCRIPT)
    assert read_last_frame(tmp_path) is None
    assert not (tmp_path / "started").exists()


def large(folder: Path) -> None:
    """A picture of 20,000 by 20,000 pixels, which would take 1.2 GB."""
    Image.new("1", (20_000, 20_000)).save(folder / LAST)


def somewhat_large(folder: Path) -> None:
    Image.new("L", (MOST_BLOCKS // 1000 + 1, 1000)).save(folder / LAST)


def of_long_texts(folder: Path) -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("a", "b" * (100 << 20), zip=True)
    Image.new("L", (8, 8)).save(folder / LAST, pnginfo=texts)


def link(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    write_last_frame(BLOCKS, folder / "elsewhere")
    (folder / LAST).symlink_to(folder / "elsewhere" / LAST)


def pipe(folder: Path) -> None:
    os.mkfifo(folder / LAST)


def hole(folder: Path) -> None:
    write_last_frame(BLOCKS, folder)
    os.truncate(folder / LAST, 1 << 32)


@pytest.mark.parametrize("make", [large, somewhat_large, of_long_texts, link, pipe, hole])
def test_a_picture_that_is_none_of_ours_counts_as_missing_and_takes_little_memory(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    tracemalloc.start()
    try:
        assert read_last_frame(tmp_path) is None
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert all_digests(tmp_path, ["."]) == {}
