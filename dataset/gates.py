"""The kinds of rejections, by the gate that `runs.csv` names.

A rejection by a gate that is not listed counts as a failed load, the most serious kind.
"""

from dataset.table import WITHDRAWN

# The subject of a rejection. load: the load failed or never ended. page: it differs from the site's other loads. film:
# the film is unusable, but the load is as good as any. machine: the machine or the testbed was at fault. withdrawn: by
# those who declared the campaign, or by a gate that was given up, so it says nothing about the load.
LOAD, PAGE, FILM, MACHINE = "load", "page", "film", "machine"
KINDS = (LOAD, PAGE, FILM, MACHINE, WITHDRAWN)
# The names of the expectations (`measure.campaign.expectations`).
REQUEST_MISSED, EXCHANGE_UNUSED, LAST_FRAME_UNLIKE = PAGE_GATES = (
    "request_missed",
    "exchange_unused",
    "last_frame_unlike",
)
FILM_GATES = ("film_unclean", "film_incomplete", "visual_metrics_missing", "other_display")
MACHINE_GATES = ("replay", "cross_traffic_missing", "machine_busy", "clock_shifted", "beyond_lane", "pace_not_kept")
KIND_OF_GATE = {
    **dict.fromkeys(PAGE_GATES, PAGE),
    **dict.fromkeys(FILM_GATES, FILM),
    **dict.fromkeys(MACHINE_GATES, MACHINE),
    # This gate was given up for loads of pages (`measure.campaign.expectations`); old campaigns have its rejections.
    **dict.fromkeys((WITHDRAWN, REQUEST_MISSED), WITHDRAWN),
}
# This is not a gate: it marks a valid attempt at a run that a later attempt at the same run has replaced.
SUPERSEDED = "superseded"
