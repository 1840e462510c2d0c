"""Turns the log of a film that a campaign keeps into a film that other programs play. This is done after the load."""

import subprocess
from pathlib import Path

from base.errors import EyelevelError
from base.files import sync
from base.places import tool
from base.processes import last_line_of
from dataset.run_files import FILM, FILM_LOG, SMALL_FILM
from films.decoding import streamed

# Browsertime encodes its own films in the same way.
LOSSLESS = ("-c:v", "libx264rgb", "-crf", "0", "-preset", "ultrafast")
SMALL = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "28", "-pix_fmt", "yuv420p")
# Each picture keeps its own time, to the µs. Otherwise FFmpeg would guess a frame rate, which the film does not have,
# and round times to it.
EXACT = ("-fps_mode", "passthrough", "-enc_time_base", "1:1000000", "-video_track_timescale", "1000000")


def make_playable(folder: Path, *, small: bool) -> None:
    """Replace the film's log in a run's folder by an MP4: FILM, which is lossless, or SMALL_FILM, which has about a
    twentieth of its size.

    The MP4's time begins with its first picture. The times of all pictures are those of the log, exact to the µs.
    Raises EyelevelError and OSError.
    """
    film = folder / (SMALL_FILM if small else FILM)
    scratch = film.with_name(f".{film.name}")
    encoding: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y", "-f", "matroska", "-i", "-"]
    encoding += [*(SMALL if small else LOSSLESS), *EXACT, "-movflags", "+faststart", "-f", "mp4", scratch]
    try:
        with streamed(folder / FILM_LOG, "--to-end") as recorder:
            done = subprocess.run(encoding, stdin=recorder.stdout, capture_output=True, check=False)
            assert recorder.stdout and recorder.stderr
            recorder.stdout.close()
            messages = done.stderr + recorder.stderr.read()
            if recorder.wait() or done.returncode:
                reason = last_line_of(messages.decode(errors="replace"))
                raise EyelevelError(f"{film} cannot be made: {reason}")
        sync(scratch)
        scratch.replace(film)
    finally:
        scratch.unlink(missing_ok=True)
    sync(folder)
    (folder / FILM_LOG).unlink()


def shrunk(film: Path, small: Path) -> bool:
    """Write a `small` copy of the lossless `film`, which every browser can play; returns whether that was possible."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y", "-f", "mp4", "-i", film, "-an"]
    command += [*SMALL, *EXACT, "-movflags", "+faststart", "-f", "mp4", small]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        small.unlink(missing_ok=True)
        return False
    return True
