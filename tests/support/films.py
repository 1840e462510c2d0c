"""Films as the recorder logs them, of pictures that a test makes."""

import json
import shutil
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dataset.run_files import FILM, FILM_LOG, NAVIGATION, SMALL_FILM, VISUAL
from films.decoding import Pixels
from films.log import HEAD, MAGIC, RECORD
from films.playable import make_playable
from measure.run.evidence import analyse_film

WIDTH, HEIGHT = 320, 240
ORANGE = (0xDE, 0x64, 0x0D)
WHITE = (255, 255, 255)
# When these films begin, by both clocks (µs).
BEGAN_US, BEGAN_EPOCH_US = 5_000_000_000, 1_700_000_000_000_000
# How long these films continue after their last picture.
TAIL_US = 500_000

# A picture, and for how long it is shown (ms).
Scene = tuple[Pixels, int]


def frame(colour: tuple[int, int, int], width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    return np.full((height, width, 3), colour, dtype=np.uint8)


def page(share: float) -> Pixels:
    """A white page, the upper `share` of which is painted."""
    painted = frame(WHITE)
    painted[: int(HEIGHT * share)] = np.random.default_rng(1).integers(0, 200, (int(HEIGHT * share), WIDTH, 3))
    return painted


def film(folder: Path, scenes: Sequence[Scene], counts: dict[str, float] | None = None) -> Path:
    """Write a log of `scenes` to the `folder` of a run; returns its path. The page was navigated to when the orange
    disappeared; without orange, at the second scene."""
    scenes = [(picture, shown_ms) for picture, shown_ms in scenes if shown_ms]
    times_us = [BEGAN_US + 1000]
    for _, shown_ms in scenes[:-1]:
        times_us.append(times_us[-1] + 1000 * shown_ms)
    orange = [place for place, (picture, _) in enumerate(scenes) if (picture == ORANGE).all()][:1]
    # The times since the first picture must not be whole ms: Browsertime's script rounds down to ms, and its arithmetic
    # may turn 301 ms into 300.999 ms. So they are half a ms more than the scenes say, like times of the recorder.
    times_us[0] -= 500
    zero_us = times_us[min(orange[0] + 1 if orange else 1, len(scenes) - 1)]
    navigate(folder, zero_us)
    return write_log(folder / FILM_LOG, [picture for picture, _ in scenes], times_us, counts)


def navigate(folder: Path, at_us: float) -> None:
    """Store that the page of a film was navigated to at `at_us` (monotonic clock of these films)."""
    at_ms = (at_us - BEGAN_US + BEGAN_EPOCH_US) / 1000
    (folder / NAVIGATION).write_text(json.dumps({"began_ms": at_ms - 0.2, "begun_ms": at_ms + 0.2, "page_ms": at_ms}))


def write_log(
    path: Path, pictures: Sequence[Pixels], times_us: Sequence[int], counts: dict[str, float] | None = None
) -> Path:
    """Write a log of `pictures` (rows by columns by RGB) that were drawn at `times_us`; returns its path. Like the
    recorder, this leaves out a picture that equals the one before."""
    height, width = pictures[0].shape[:2]
    log = bytearray(HEAD.pack(MAGIC, width, height, 0, BEGAN_US, BEGAN_EPOCH_US))
    before = np.zeros((height, width, 3), dtype=np.uint8)
    for picture, time_us in zip(pictures, times_us, strict=True):
        changed = (picture != before).any(axis=2)
        is_first = len(log) == HEAD.size
        if not (changed.any() or is_first):
            continue
        rows, columns = (np.flatnonzero(changed.any(axis=axis)) for axis in (1, 0))
        top, bottom, first, last = (
            (0, height, 0, width) if is_first else (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1)
        )
        difference = (picture ^ before)[top:bottom, first:last, ::-1]
        pixels = np.pad(difference, ((0, 0), (0, 0), (0, 1)))  # blue, green, red, unused
        packed = literals(pixels.tobytes())
        log += RECORD.pack(time_us, time_us, 1, first, top, last, bottom, len(packed)) + packed
        before = picture
    text = json.dumps(counts or {"missed_pixels": 0, "thinned_out": 0, "drawn_over": 0}).encode()
    ended_us = times_us[-1] + TAIL_US
    path.write_bytes(log + RECORD.pack(ended_us, ended_us, 0, 0, 0, 0, 0, len(text)) + text)
    return path


def literals(content: bytes) -> bytes:
    """`content` as an LZ4 block without compression: a token, the length, and the content as literals."""
    rest, more = len(content) - 15, bytearray()
    while rest >= 0:
        more.append(min(rest, 255))
        rest -= 255
        if more[-1] < 255:
            break
    return struct.pack("B", min(len(content), 15) << 4) + bytes(more) + content


def keep_film_in(folders: Iterable[Path], scenes: Sequence[Scene]) -> None:
    """Put the film that a campaign keeps, and what is known of it, into each of the `folders` of runs."""
    with TemporaryDirectory() as temporary:
        kept_film(Path(temporary), scenes)
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            for name in (FILM, VISUAL):
                shutil.copyfile(Path(temporary) / name, folder / name)


def kept_film(folder: Path, scenes: Sequence[Scene], *, small: bool = False) -> Path:
    """Make the film that a campaign keeps of a run, in the run's `folder`, and store its analysis; returns its path."""
    film(folder, scenes)
    analyse_film(folder)
    make_playable(folder, small=small)
    return folder / (SMALL_FILM if small else FILM)
