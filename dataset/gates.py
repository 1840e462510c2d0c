"""The kinds of rejections, by the gate that `runs.csv` names.

What a gate that is not listed has rejected is a load that failed, so that nothing is taken as harmless that may not be.
"""

# The load never ended or failed; another page was loaded than usual; the film was unfit, whose load was as good as any;
# the machine or the testbed was at fault, and nothing is said of the page.
LOAD, PAGE, FILM, MACHINE = KINDS = ("load", "page", "film", "machine")
# Of the gates that compare a run with the others of its site.
REQUEST_MISSED, EXCHANGE_UNUSED, LAST_FRAME_UNLIKE = PAGE_GATES = (
    "request_missed",
    "exchange_unused",
    "last_frame_unlike",
)
FILM_GATES = ("film_unclean", "visual_metrics_missing", "other_display")
MACHINE_GATES = ("replay", "company_missing", "machine_busy", "clock_shifted", "beyond_lane", "pace_not_kept")
KIND_OF_GATE = {
    **dict.fromkeys(PAGE_GATES, PAGE),
    **dict.fromkeys(FILM_GATES, FILM),
    **dict.fromkeys(MACHINE_GATES, MACHINE),
}
# No gate: a valid attempt that another one at its run has replaced.
SUPERSEDED = "superseded"
