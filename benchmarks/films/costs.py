"""The processor time that filming a whole load takes."""

from pathlib import Path
from statistics import median

from benchmarks.films.loads import FFMPEG, NONE, RECORDER, FilmedLoad, load
from benchmarks.films.text import table

# Page and network → the goal: how many ms of processor time the film may take.
CASES = {("demo-news", "dsl"): 60, ("demo-news", "mss"): 70, ("spinner", "dsl"): 100}
SPINNER_QUIET_MS = 4000
# The time from the load's turn to its first request, with a film and without (goal: 200 ms).
WAITS = ("turn to request", "without a film")


def costs_table(folder: Path, loads: int, *, slow: bool) -> str:
    """A row for each page and network: the cost of the film. This is the processor time of the recorder or of FFmpeg
    and that of the X server, less the X server's in loads without a film."""
    rows = []
    for (site, network), goal_ms in CASES.items():
        if network == "mss" and not slow:
            continue
        quiet_ms = SPINNER_QUIET_MS if site == "spinner" else None
        done: dict[str, list[FilmedLoad]] = {way: [] for way in (NONE, RECORDER, FFMPEG)}
        for number in range(1 if network == "mss" else loads):
            for way, each in done.items():
                each.append(load(site, network, way, folder / f"{site}-{network}-{way}-{number}", quiet_ms=quiet_ms))
        display_ms = median(one.display_ms for one in done[NONE])
        cost = {way: median(one.film_ms for one in each) - display_ms for way, each in done.items()}
        pictures = median(one.counts["pictures"] for one in done[RECORDER])
        waits = [f"{median(one.to_request_ms for one in done[way]):.0f}" for way in (RECORDER, NONE)]
        ratio = f"{cost[FFMPEG] / cost[RECORDER]:.0f}"
        costs = [f"{cost[way]:.0f}" for way in (RECORDER, FFMPEG)]
        rows.append([site, network, *costs, ratio, f"{goal_ms}", f"{pictures:.0f}", *waits])
    return table(["page", "network", "recorder", "FFmpeg", "ratio", "goal", "pictures", *WAITS], rows)
