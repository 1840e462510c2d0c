"""When the page of a load was navigated to, which is the zero of its times."""

from dataclasses import dataclass
from pathlib import Path

from base.bounded import read_json_value
from dataset.run_files import NAVIGATION

# A browser's own start of a navigation is that much later than the script that navigates, at most. A page that goes on
# to another one needs a round trip for it, which no network of the paper has in less.
SAME_NAVIGATION_MS = 10


@dataclass(frozen=True)
class Navigation:
    """The beginning of a load's navigation (ms since 1970), and how much later the page was navigated to that is there
    in the end: more than 0 where the first page went on to it by itself (ms)."""

    began_ms: float
    followed_ms: float


def read_navigation(folder: Path) -> Navigation | None:
    """The navigation of the load in `folder`; None where nobody could ask the page."""
    try:
        times = read_json_value(folder / NAVIGATION)
        began_ms, page_ms = float(times["began_ms"]), float(times["page_ms"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if page_ms - began_ms < SAME_NAVIGATION_MS:
        return Navigation(page_ms, 0.0)  # the browser's own time is exact
    return Navigation(began_ms, page_ms - began_ms)
