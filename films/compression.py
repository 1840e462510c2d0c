"""Lossy films, for campaigns that keep small ones."""

import subprocess
from pathlib import Path

from base.files import sync
from base.places import tool
from dataset.run_files import SMALL_FILM


def shrink(film: Path) -> None:
    """Put a lossy film of the same times and size in the place of `film`, under another name (`SMALL_FILM`).

    A film that cannot be read stays as it is.
    """
    small = film.with_name(f".{SMALL_FILM}")
    if shrunk(film, small):
        sync(small)
        small.replace(film.with_name(SMALL_FILM))
        sync(film.parent)
        film.unlink()


def shrunk(film: Path, small: Path) -> bool:
    """Make of `film` the lossy film `small`, about a twentieth as large; returns whether that was possible."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y", "-i", film, "-an", "-f", "mp4"]
    command += ["-c:v", "libx264", "-preset", "veryfast", "-crf", "28", "-pix_fmt", "yuv420p"]
    if subprocess.run([*command, "-movflags", "+faststart", small], capture_output=True, check=False).returncode:
        small.unlink(missing_ok=True)
        return False
    return True
