"""Files in the folder of an attempt, by name."""

from pathlib import Path

# The pattern of every browser's network log.
NETWORK_LOGS = "netlog*.gz"
# It is written last, when the attempt was made in full.
ATTEMPT = "attempt.json"

# Browsertime's results, the page's requests as it saw them, and its output.
TIMINGS = "browsertime.json"
HAR = "browsertime.har.gz"
LOG = "browsertime.log"
# Times of the load's steps (s since 1970).
TIMES = "times.json"

# The film as the recorder logs it, and when the page was navigated to, by which the film's zero is known. A run
# keeps the film, or a smaller one in its place, and of every film its metrics, its last picture, and a strip.
FILM_LOG = "film.changes"
NAVIGATION = "navigation.json"
FILM = "film.mp4"
SMALL_FILM = "film-small.mp4"
VISUAL = "visual.json"
LAST = "last.png"
STRIP = "strip.jpg"

# The servers' log of requests, the replay's settings as they were read back, and the replay's output.
REQUEST_LOG = "requests.tsv"
REPLAY_EVIDENCE = "replay.json"
REPLAY_LOG = "replay.log"

# Connections of TCP that the browser asked for, the processor's share, and the pace of a device.
SYNS = "syns.json"
PROCESSOR = "processor.json"
DEVICE_PACE = "device.json"
# Background flows, and samples of them.
CROSS_TRAFFIC = "cross-traffic.json"
CROSS_TRAFFIC_SAMPLES = "cross-traffic.tsv"


def is_of_runs(path: Path, campaign: Path) -> bool:
    """Whether `path` is a file that lies among the runs of `campaign`, which may be somebody else's: no link, not of
    its folders either, leads to it from elsewhere."""
    return path.is_file() and path.resolve().is_relative_to(campaign.resolve() / "runs")


def is_film(path: Path, campaign: Path) -> bool:
    """Whether `path` is a film among the runs of `campaign`: FFmpeg takes other formats than MP4 for lists of files
    that it is to read."""
    if not is_of_runs(path, campaign):
        return False
    with path.open("rb") as file:
        return file.read(8).endswith(b"ftyp")  # ISO/IEC 14496-12, section 4.3
