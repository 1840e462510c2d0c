"""The names of the files in the folder of an attempt."""

from pathlib import Path

# The pattern of the names of network logs, for every browser.
NETWORK_LOGS = "netlog*.gz"
# This file is written last, after the attempt was made completely.
ATTEMPT = "attempt.json"

# Browsertime's results, the page's requests as Browsertime saw them, and Browsertime's output.
TIMINGS = "browsertime.json"
HAR = "browsertime.har.gz"
LOG = "browsertime.log"
# The times of the load's steps (s since 1970).
TIMES = "times.json"

# The film as the recorder logs it, and when the page was navigated to, which is the film's zero. A run keeps the film,
# or a smaller film that replaces it. It also keeps the film's metrics, its last picture, and a strip of its pictures.
FILM_LOG = "film.changes"
NAVIGATION = "navigation.json"
FILM = "film.mp4"
SMALL_FILM = "film-small.mp4"
VISUAL = "visual.json"
LAST = "last.png"
STRIP = "strip.jpg"

# The servers' log of requests, the replay's settings as read back from the system, and the replay's output.
REQUEST_LOG = "requests.tsv"
REPLAY_EVIDENCE = "replay.json"
REPLAY_LOG = "replay.log"

# The TCP connections that the browser requested, the processor's share, the pace of a device, and the share of the
# processor that a study gave.
SYNS = "syns.json"
PROCESSOR = "processor.json"
DEVICE_PACE = "device.json"
DOSE = "dose.json"
# Background flows, and samples of these.
CROSS_TRAFFIC = "cross-traffic.json"
CROSS_TRAFFIC_SAMPLES = "cross-traffic.tsv"


def is_of_runs(path: Path, campaign: Path) -> bool:
    """Whether `path` is a file among the runs of `campaign`, which may come from a stranger. False if the file, or a
    folder on the way to it, is a link to another place."""
    return path.is_file() and path.resolve().is_relative_to(campaign.resolve() / "runs")


def is_film(path: Path, campaign: Path) -> bool:
    """Whether `path` is a film among the runs of `campaign`. Only MP4 counts: FFmpeg treats some other formats as lists
    of files to read."""
    if not is_of_runs(path, campaign):
        return False
    with path.open("rb") as file:
        return file.read(8).endswith(b"ftyp")  # ISO/IEC 14496-12, section 4.3
