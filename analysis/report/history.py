"""A series of comparisons for readers: sentences, sparklines, the page, and JSON for continuous integration."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from analysis.history import CONFIDENCE, WHERE, History
from analysis.report.changes import plain_rows
from analysis.report.page import environment, page_basics, styles
from analysis.report.section import ReportTable, text_table
from analysis.report.write import write_tables
from analysis.runs import records
from analysis.text import label, level, listing, moment, number, percent, percent_interval, share, span
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller
from dataset.table import CampaignDocument

# The version of the JSON document (docs/contributors/json.md); it grows if a key changes its meaning or is removed.
FORMAT = 1
INDEX, JSON = "index.html", "history.json"
BLOCKS = "▁▂▃▄▅▆▇█"
# How many entries a sparkline in the terminal shows, and the size of one in the page with its edge.
MOST_BLOCKS = 52
WIDTH, HEIGHT, EDGE = 320, 48, 5


def _day(text: Any) -> str:
    return moment(text).partition(",")[0] if isinstance(text, str) else ""


def result(history: History) -> str:
    """The result in a sentence."""
    alarms = records(history.series[history.series["alarm"]])
    if alarms:
        several = len(history.comparisons) > 1
        places = [
            f"{label(row['metric'])} on {label(row['network'])} "
            + (f"in comparison {row['comparison']} " if several else "")
            + f"since {_day(row['slower_since'])} ({percent(row['before'])} before, {percent(row['since'])} until the "
            f"alarm, now {percent(row['latest'])})"
            for row in alarms
        ]
        return f"B has become slower against A: {listing(places)}"
    series, text = history.series, "No alarm"
    if short := int((series["entries"] < series["least_entries"]).sum()):
        text += f"; {short} of {len(series)} series have fewer entries than an alarm takes"
    if absent := int((~series["has_newest"]).sum()):
        text += f"; {absent} of {len(series)} series lack the newest entry"
    if history.without_series:
        text += f"; no pair counts in comparison {listing([*map(str, history.without_series)])}"
    return text


def titles(history: History) -> list[str]:
    """The heading of each comparison, with its number if there are several."""
    texts = []
    for number_of, one in enumerate(history.comparisons, 1):
        a, b = (one.document[side]["setting"] for side in "ab")
        start = f"Comparison {number_of}: " if len(history.comparisons) > 1 else ""
        texts.append(f"{start}B ({b}) against A ({a}), {', '.join(one.document['sites'])}")
    return texts


def caveats(history: History) -> list[str]:
    """Sentences that a reader must know before trusting the result."""
    least = history.series["least_entries"]
    return [
        f"Declared: {history.false_alarms:g} false alarms a year over all series of a comparison together, with "
        f"{history.per_year:g} entries a year. It holds if entries scatter alike and independently around one level.",
        f"An alarm takes at least {span(least.min(), least.max())} entries, and compares each with those before it. It "
        "stays until --since begins the series anew. One odd entry raises no alarm, but its scatter hides rises for "
        "months: move its ab.json elsewhere.",
        "A rise that was just found is overstated. An early or small one becomes the new normal, and may never be "
        "found.",
        "The alarm is about a rise. Each entry's own result is on the page of its campaign.",
        *(f"{note}." for note in history.notes),
    ]


def sparks(history: History) -> list[str]:
    """Each series as a line of blocks, of the latest entries: low is fast."""
    lines = []
    for _, rows in history.entries.groupby(WHERE, sort=False):
        values = rows["change"].to_numpy(dtype=float)[-MOST_BLOCKS:]
        length = np.ptp(values) or 1.0
        places = (values - values.min()) / length * (len(BLOCKS) - 1)
        lines.append("".join(BLOCKS[round(place)] for place in places))
    return lines


def drawing(rows: pd.DataFrame, text: str, since: str | None) -> Markup:
    """A series as SVG in the page's colours: up is slower; entries from `since` on, and their line, are marked; `text`
    is its text alternative."""
    changes = rows["change"].to_numpy(dtype=float)
    low, high = min(0.0, changes.min()), max(0.0, changes.max())
    ys = EDGE + (HEIGHT - 2 * EDGE) * (high - np.append(changes, 0.0)) / ((high - low) or 1.0)
    xs = np.linspace(EDGE, WIDTH - EDGE, len(changes)) if len(changes) > 1 else np.array([WIDTH / 2])
    begin = len(changes) if since is None else int((rows["begun_at"] == since).to_numpy().argmax())
    points = [f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys[:-1], strict=True)]
    parts = [f'<line class="zero" x1="0" x2="{WIDTH}" y1="{ys[-1]:.1f}" y2="{ys[-1]:.1f}"/>']
    parts.append(f'<polyline class="path" points="{" ".join(points)}"/>')
    for place, (point, row) in enumerate(zip(points, records(rows), strict=True)):
        x, y = point.split(",")
        kind = "rise" if place >= begin else "last" if place == len(points) - 1 else "entry"
        title = f"{_day(row['begun_at'])}, {row['campaign']}: {percent(row['change'])}"
        parts.append(Markup('<circle class="{}" cx="{}" cy="{}"><title>{}</title></circle>').format(kind, x, y, title))
    inside = Markup("").join(Markup(part) for part in parts)
    return Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}">{}</svg>').format(text, WIDTH, HEIGHT, inside)


def _alarm(is_alarm: bool, at: Any) -> str:
    return f"ALARM {_day(at)}" if is_alarm else "no"


def tables(history: History) -> list[ReportTable]:
    """The tables of the page."""
    place = {"comparison": "comparison", "network": ("network", label), "metric": ("metric", label)}
    series = text_table(
        history.series,
        {
            **place,
            "entries": "entries",
            "least_entries": "for an alarm",
            "latest": ("latest", percent),
            "scatter": ("scatter", share),
            ("scatter_low", "scatter_high"): ("interval", lambda low, high: f"{share(low)} to {share(high)}"),
            "correlation": ("correlation", number),
            "limit": ("limit", number),
            ("alarm", "alarm_at"): ("alarm", _alarm),
            "slower_since": ("slower since", _day),
            "before": ("before", percent),
            "since": ("until alarm", percent),
        },
    )
    entries = text_table(
        history.entries,
        {
            **place,
            "campaign": "campaign",
            "begun_at": ("begun", moment),
            "blocks": "pairs",
            "change": ("change", percent),
            ("low", "high"): ("interval", percent_interval),
            "worse": ("worse", lambda value: "WORSE" if value else ""),
            "sum": ("sum", number),
        },
    )
    return [
        ReportTable(
            "series",
            "Series",
            history.series,
            series,
            "Changes from A to B; negative is faster. Scatter: the standard deviation between entries before a rise, "
            f"with its {level(CONFIDENCE)} interval. Correlation: of each with the one before it. Before, until alarm: "
            "means.",
        ),
        ReportTable(
            "entries",
            "Entries",
            history.entries,
            entries,
            "Sum: of the test, which raises an alarm above the limit of its series.",
        ),
    ]


def document(history: History) -> dict[str, Any]:
    """The history as JSON (docs/contributors/json.md): unknown values are null, changes are shares."""
    return {
        "format": FORMAT,
        "outcome": "worse" if history.is_worse else "no alarm",
        "decided": history.is_decided,
        "result": result(history),
        "false_alarms": history.false_alarms,
        "per_year": history.per_year,
        "comparisons": [
            {
                **{side: one.document[side]["setting"] for side in "ab"},
                **{name: one.document[name] for name in ("sites", "networks", "machine")},
            }
            for one in history.comparisons
        ],
        "series": plain_rows(history.series),
        "entries": plain_rows(history.entries),
        "notes": list(history.notes),
    }


def _groups(history: History) -> list[dict[str, Any]]:
    """The comparisons, each with the rows of its series and their drawings."""
    groups: list[dict[str, Any]] = []
    for title in titles(history):
        groups.append({"title": title, "rows": []})
    parts = history.entries.groupby(WHERE, sort=False)
    for row, (_, rows) in zip(records(history.series), parts, strict=True):
        since = row["slower_since"] if row["alarm"] else None
        words = f"slower since {_day(since)}" if since else "no alarm"
        name = f"{label(row['network'])}, {label(row['metric'])}"
        changes = rows["change"]
        numbers = f"{percent(row['latest'])} ({percent_interval(changes.min(), changes.max())})"
        text = f"{name}: {words}; the latest of {len(rows)} changes, and their range: {numbers}"
        kind = "later" if since else "open"
        line = {"name": name, "kind": kind, "words": words, "numbers": numbers}
        groups[row["comparison"] - 1]["rows"].append(line | {"drawing": drawing(rows, text, since)})
    return groups


def write(history: History, into: Path) -> None:
    """Write the page, the JSON and the tables into the folder `into`, and replace older ones."""
    page_tables = tables(history)
    with replacing_folder(into, JSON) as new:
        (new / "tables").mkdir()
        write_tables(page_tables, new / "tables")
        html = (
            environment({})
            .get_template("history.html.j2")
            .render(
                **page_basics(CampaignDocument()) | {"css": styles("page.css", "answer.css", "history.css")},
                first=_day(history.entries["begun_at"].min()),
                last=_day(history.entries["begun_at"].max()),
                result=result(history),
                groups=_groups(history),
                warnings=caveats(history),
                tables=page_tables,
            )
        )
        (new / INDEX).write_text(html)
        write_json(new / JSON, document(history))
    give_to_caller(into)
