"""Films that other programs play, made of a film's log once the load is over: for those that a campaign keeps."""

import subprocess
from pathlib import Path

from base.errors import EyelevelError
from base.files import sync
from base.places import tool
from base.processes import last_line_of
from dataset.run_files import FILM, FILM_LOG, SMALL_FILM
from films.decoding import streamed

# As Browsertime's own films are encoded.
LOSSLESS = ("-c:v", "libx264rgb", "-crf", "0", "-preset", "ultrafast")
SMALL = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "28", "-pix_fmt", "yuv420p")
# Each picture at its own time, to the µs. Without a rate, FFmpeg would guess one, and round times to it.
EXACT = ("-fps_mode", "passthrough", "-enc_time_base", "1:1000000", "-video_track_timescale", "1000000")


def make_playable(folder: Path, *, small: bool) -> None:
    """Put an MP4 of the film in the folder of a run in the place of its log: FILM, lossless, or SMALL_FILM, about a
    twentieth as large. Its time begins with the film's first picture; its pictures have the log's times (µs). Raises
    EyelevelError, OSError."""
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
    """Make of the lossless `film` a `small` one that every browser plays; returns whether that was possible."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y", "-f", "mp4", "-i", film, "-an"]
    command += [*SMALL, *EXACT, "-movflags", "+faststart", "-f", "mp4", small]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        small.unlink(missing_ok=True)
        return False
    return True
