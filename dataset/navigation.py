"""When the page of a load was navigated to, which is the zero of its times."""

from dataclasses import dataclass
from pathlib import Path

from base.bounded import read_json_value
from dataset.run_files import NAVIGATION

# The browser's own time of a navigation lies between the times that the navigating script took before and after it, but
# for an error of clocks of less than this. If it is later, the page itself has navigated to another one: that takes a
# round trip, which is longer on all networks of the paper.
SAME_NAVIGATION_MS = 10


@dataclass(frozen=True)
class Navigation:
    """When a load's navigation began (ms since 1970), and how much later the navigation to the final page began (ms).
    The latter is more than 0 only if the first page navigated to another one by itself."""

    began_ms: float
    followed_ms: float


def read_navigation(folder: Path) -> Navigation | None:
    """The navigation of the load in `folder`; None if the page could not be asked for it."""
    try:
        times = read_json_value(folder / NAVIGATION)
        began_ms, begun_ms, page_ms = (float(times[name]) for name in ("began_ms", "begun_ms", "page_ms"))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if page_ms - begun_ms < SAME_NAVIGATION_MS:
        return Navigation(page_ms, 0.0)  # the browser's own time is exact
    return Navigation(began_ms, page_ms - began_ms)
