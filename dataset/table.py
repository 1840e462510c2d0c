"""The format of a campaign's files `runs.csv` and `campaign.json`, for code that writes or reads them.

A table has the columns of every run, the metrics, and any columns of instruments, which `campaign.json` describes
(`CampaignDocument.columns`). If it lacks a metric that this version knows, the metric's cells count as empty. Nothing
here knows how a run is made.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.errors import EyelevelError
from base.files import write_json
from base.structure import from_json, structured
from base.text import printable
from base.words import plural
from dataset.metrics import metric_names
from dataset.reading import read_object, read_text
from dataset.reasons import Reason
from dataset.settings import CampaignSettings
from tuning.defaults import DEFAULT_BROWSER

# As in `base.structure`, cattrs is imported only by what converts.
if TYPE_CHECKING:
    from cattrs import Converter

RUNS = "runs.csv"
DOCUMENT = "campaign.json"

# The folder of an attempt's evidence, relative to the campaign's folder
# (`measure.campaign.store.FolderStore.run_folder`).
ATTEMPT_FOLDER = re.compile(r"runs(?:/(?!\.\.?(?:/|$))[^/\0]+){1,4}")

# Separates the name of a machine from a number, for runs that were made before the campaign was resumed from its
# package (`measure.campaign.resuming`). The evidence of these runs is elsewhere.
EARLIER_MACHINE = "~"

# Settings that may be extended in an existing campaign.
GROWING = ("sites", "networks", "protocols", "further_browsers")

# The names of a site and of its network.
Cell = tuple[str, str]
# The names of a network and of a protocol. Apart from these, the runs of a block differ only in their browser, and in
# the variant of their site.
Condition = tuple[str, str]


@dataclass(frozen=True)
class Run:
    """One run of a campaign; `number` counts from 1 within its setting."""

    site: str
    network: str
    protocol: str
    number: int
    browser: str = DEFAULT_BROWSER

    @property
    def cell(self) -> Cell:
        """The names of the site and of its network."""
        return self.site, self.network

    def __str__(self) -> str:
        # The usual browser is not named.
        browser = "" if self.browser == DEFAULT_BROWSER else f"{self.browser} "
        return f"{self.site} {self.network} {self.protocol} {browser}run {self.number}"


@dataclass(frozen=True)
class Row:
    """One attempt at a run.

    `valid` and `reason`: whether it counts, and why not. `metrics`: by name. `requests` to `unrecorded`: the requests
    that the servers received. `block`: its number in the plan. `canary_…`: how long the canaries of the `machine` took
    (ms). `quiet_ms`: how long the page had requested nothing when it counted as finished. `lane`: its number, if the
    machine had lanes. `concurrent_loads`: how many loads shared its processors on average, itself included.
    `sitting`: the number of the uninterrupted stretch of measuring in which it was made (1, 2, …).
    `next_prepared_ms`: when, after this run's navigation, the preparation of the next run began
    (`measure.campaign.preparer`). `h3_request_share`, `h3_byte_share`: the shares of requests and of response bytes
    over HTTP/3, if servers also spoke another version. `readings`: the cells of all other columns, which belong to
    instruments (`measure.instruments`) or to earlier versions.
    """

    site: str
    network: str
    protocol: str
    run: int
    attempt: int
    valid: bool
    reason: Reason | None
    metrics: Mapping[str, float | None]
    requests: int
    served: int
    missed: int
    exchanges: int
    unrecorded: int
    started_at: str
    seconds: float
    folder: str
    block: int = 0
    machine: str = ""
    canary_cpu_ms: float | None = None
    canary_page_ms: float | None = None
    quiet_ms: float | None = None
    lane: int | None = None
    concurrent_loads: float | None = None
    sitting: int | None = None
    browser: str = DEFAULT_BROWSER
    next_prepared_ms: float | None = None
    h3_request_share: float | None = None
    h3_byte_share: float | None = None
    readings: Mapping[str, str | float | None] = field(default_factory=dict)

    @property
    def gate(self) -> str:
        """The gate that rejected the attempt; empty if the attempt counts."""
        return self.reason.gate if self.reason else ""

    @property
    def is_of_earlier_machine(self) -> bool:
        """Whether the attempt was made before the campaign was resumed from its package."""
        return EARLIER_MACHINE in self.machine

    @property
    def of(self) -> Run:
        """The run of this attempt."""
        return Run(self.site, self.network, self.protocol, self.run, self.browser)


_FIELDS = {one.name: one for one in fields(Row) if one.name != "readings"}
# The columns that a table must have; columns with a default were added in later versions.
_REQUIRED = [name for name, one in _FIELDS.items() if name != "metrics" and one.default is MISSING]
# The columns of the processor's share in a load.
PROCESSOR_COLUMNS = tuple(
    f"{role}_cpu_ms" for role in ("browser", "renderer", "network", "gpu", "servers", "emulator", "film")
)
PROCESSOR_WAIT = "processor_wait_ms"


def columns() -> tuple[str, ...]:
    """The columns that every `runs.csv` has, in order, including the metrics'."""
    return tuple(column for name in _FIELDS for column in (metric_names() if name == "metrics" else (name,)))


def read_lines(folder: Path) -> str:
    """The complete lines of `runs.csv` in a campaign's `folder`. A last line without a line end is left out: it is
    still being written, or a power cut interrupted the writing. Raises EyelevelError."""
    try:
        text = read_text(folder / RUNS)
    except FileNotFoundError:
        raise EyelevelError(f"{folder} is not a campaign: {RUNS} is missing") from None
    return text[: text.rfind("\n") + 1]


def read_rows(folder: Path) -> list[Row]:
    """The rows of `runs.csv` in a campaign's `folder`, from complete lines only. Raises EyelevelError."""
    return read_table(folder)[1]


def read_table(folder: Path) -> tuple[tuple[str, ...], list[Row]]:
    """The columns and the rows of `runs.csv` in a campaign's `folder`, from complete lines only. Raises
    EyelevelError."""
    path = folder / RUNS
    reader = csv.DictReader(io.StringIO(read_lines(folder)))
    present = tuple(reader.fieldnames or ())
    if missing := [name for name in _REQUIRED if name not in present]:
        raise EyelevelError(f"{path} lacks the columns {', '.join(missing)}; use a new campaign")
    try:
        names, readings = metric_names(), reading_names(present)
        return present, [_row(cells, names, readings) for cells in reader]
    except (ValueError, TypeError, csv.Error) as error:
        raise EyelevelError(f"{path} is broken: {error}") from None


def reading_names(present: Iterable[str]) -> tuple[str, ...]:
    """The columns of instruments among the columns `present` in a table."""
    known = columns()
    return tuple(name for name in present if name not in known)


def header(readings: Sequence[str] = ()) -> str:
    """The first line of `runs.csv`, with the columns of `readings` at the end."""
    return ",".join((*columns(), *readings)) + "\n"


def lines(rows: Iterable[Row], readings: Sequence[str] = ()) -> str:
    """`rows` as lines of `runs.csv`, with the columns of `readings` at the end."""
    text = io.StringIO()
    writer = csv.DictWriter(text, (*columns(), *readings), extrasaction="ignore", lineterminator="\n")
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in {**vars(row), **row.metrics, **row.readings}.items()})
    return text.getvalue()


def _row(cells: Mapping[str, str], metrics: Iterable[str], readings: Iterable[str]) -> Row:
    # The files in this folder are read, shown and removed, and results may come from strangers.
    if not ATTEMPT_FOLDER.fullmatch(cells["folder"]):
        raise ValueError(f"{cells['folder']!r} is not a folder of an attempt")
    nested = {
        "metrics": {name: cells.get(name, "") for name in metrics},
        "readings": {name: cells[name] for name in readings},
    }
    return _converter().structure({**cells, **nested}, Row)


@cache
def _converter() -> "Converter":
    """Converts a cell's text to a value of its type."""
    from cattrs import Converter

    converter = Converter(detailed_validation=False)
    converter.register_structure_hook(bool, lambda cell, _: _truth(cell))
    converter.register_structure_hook(float | None, lambda cell, _: float(cell) if cell else None)
    converter.register_structure_hook(str | float | None, lambda cell, _: _reading(cell))
    converter.register_structure_hook(int | None, lambda cell, _: int(cell) if cell else None)
    converter.register_structure_hook(Reason | None, lambda cell, _: Reason.parse(cell))
    return converter


def _reading(cell: str) -> str | float | None:
    """The value of a cell: instruments write numbers; other versions may have written texts."""
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell


def _truth(cell: str) -> bool:
    if cell.lower() not in ("true", "false"):
        raise ValueError(f"{cell!r} must be true or false")
    return cell.lower() == "true"


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    # Each row takes exactly one line, since a torn last row is recognised by its missing line end.
    return printable(" ".join(str(value).split())) if isinstance(value, str | Reason) else value


# This text is in the version of "timekeeping" if the emulated network ran with real-time priority
# (`measure.host.timekeeping`).
REAL_TIME_PRIORITY = "real-time priority"


@dataclass(frozen=True)
class CampaignDocument:
    """`campaign.json`: everything that results depend on (`settings`, `versions`), and further information for readers.

    `study`: the study's own description, with its `name`. `hypotheses`: which were declared before the first run
    (`dataset.declaration`). `site_facts`: each site in numbers (`dataset.site_facts`). `server_choices`: the behaviour
    of each protocol's server that no setting determines (`dataset.observations`). `lanes`: for each machine that
    measured in lanes, or found that it must not, its lanes and the reason (`measure.host.lanes.Lanes.record`).
    `columns`: the columns of instruments, as fields of a Table Schema by name. `further`: keys that this version does
    not know.
    """

    settings: CampaignSettings = CampaignSettings()  # noqa: RUF009 (frozen)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    films: dict[str, str] = field(default_factory=dict)
    begun_at: str = ""
    study: dict[str, Any] = field(default_factory=dict)
    hypotheses: dict[str, Any] = field(default_factory=dict)
    site_facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    server_choices: dict[str, dict[str, str]] = field(default_factory=dict)
    lanes: dict[str, dict[str, Any]] = field(default_factory=dict)
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    further: dict[str, Any] = field(default_factory=dict)

    @property
    def cores_of_a_run(self) -> int | None:
        """The number of processors of the smallest lane of all machines; without lanes, of the machine, if known."""
        sizes = [len(cores) for record in self.lanes.values() for cores in record.get("cores", ())]
        return min(sizes) if sizes else self.machine.get("cpus")

    @property
    def has_real_time_priority(self) -> bool:
        """Whether the emulated network ran with real-time priority; True if the document does not say."""
        return REAL_TIME_PRIORITY in self.versions.get("timekeeping", REAL_TIME_PRIORITY)

    @property
    def study_name(self) -> str:
        """The name of the campaign's study; empty for a campaign of pages."""
        return str(self.study.get("name", ""))

    def content(self) -> dict[str, Any]:
        """The keys and values of the file."""
        values = {name: value for name, value in vars(self).items() if value or name not in _OPTIONAL}
        further = values.pop("further")
        return {**values, "settings": self.settings.content(), **further}


# Keys of `campaign.json` that not every campaign has.
_OPTIONAL = ("study", "hypotheses", "site_facts", "server_choices", "lanes", "columns")


def parse_document(values: Mapping[str, Any], path: Path) -> CampaignDocument:
    """The document with the keys and values in `values`, read from the file `path`. Raises EyelevelError."""
    names = {one.name for one in fields(CampaignDocument)} - {"further"}
    known = {name: value for name, value in values.items() if name in names and value is not None}
    if "settings" not in known:
        raise EyelevelError(f"{path} is broken: it has no settings")
    known["settings"] = structured(known["settings"], CampaignSettings, f"{path} is broken: settings")
    for name in ("versions", "machine", "films", *_OPTIONAL):
        if not isinstance(known.get(name, {}), dict):
            raise EyelevelError(f"{path} is broken: {name} is not a table")
    for name in ("site_facts", "server_choices", "lanes", "columns"):
        for key, value in known.get(name, {}).items():
            if not isinstance(value, dict):
                raise EyelevelError(f"{path} is broken: {name}.{printable(key)}: is not a table")
    return CampaignDocument(**known, further={name: value for name, value in values.items() if name not in names})


def read_document(folder: Path) -> CampaignDocument | None:
    """The `campaign.json` in a campaign's `folder`; None if there is none. Raises EyelevelError."""
    path = folder / DOCUMENT
    try:
        return parse_document(read_object(path), path)
    except FileNotFoundError:
        return None


def require_document(folder: Path) -> CampaignDocument:
    """The `campaign.json` in a campaign's `folder`. Raises EyelevelError, also if there is none."""
    document = read_document(folder)
    if document is None:
        raise EyelevelError(f"{folder} is not a campaign: {DOCUMENT} is missing")
    return document


def write_document(folder: Path, document: CampaignDocument) -> None:
    """Write `document` to a campaign's `folder`."""
    write_json(folder / DOCUMENT, document.content())


# The folder of a user study in the campaign's folder.
USER_STUDY = "user-study"
# The file with the digests of the last frames of loads.
LAST_FRAMES = "last_frames.csv"

GIVEN_UP = "given_up.json"
# The gate in the reason for a cell that was withdrawn by those who declared the campaign.
WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class GivenUp:
    """A site on a network that gets no more runs, because its first blocks failed alike over all protocols, or because
    it was withdrawn.

    `reason`: the reason of the last attempt, or of the withdrawal; `runs`: the number of runs that are not made.
    """

    site: str
    network: str
    reason: str
    runs: int
    at: str

    @property
    def withdrawn(self) -> str | None:
        """Why it was withdrawn; None if it was not."""
        why = Reason.parse(self.reason)
        return why.text if why and why.gate == WITHDRAWN else None

    def __str__(self) -> str:
        rest = f"its {plural('open run', self.runs)} will not be made" if self.runs else "it has no open runs"
        if self.withdrawn is not None:
            return f"{self.site} {self.network} was withdrawn: {rest}; {self.withdrawn}"
        return f"{self.site} {self.network} fails over all protocols: {rest}; the last reason was {self.reason}"


def read_given_up(folder: Path) -> list[GivenUp]:
    """The sites and networks that the campaign in `folder` has given up. Raises EyelevelError."""
    path = folder / GIVEN_UP
    try:
        return list(from_json(read_text(path), tuple[GivenUp, ...], f"{path} is broken"))
    except FileNotFoundError:
        return []


def write_given_up(folder: Path, given_up: Iterable[GivenUp]) -> None:
    """Write the sites and networks that the campaign in `folder` has given up; removes the file if there are none."""
    entries = [vars(one) for one in given_up]
    if entries:
        write_json(folder / GIVEN_UP, entries)
    else:
        (folder / GIVEN_UP).unlink(missing_ok=True)


def valid_rows(folder: Path, study: str) -> list[Row]:
    """The rows that count in the campaign in `folder`, in the order of its settings. Empty if there is no campaign, or
    if it is not one of `study`. Raises EyelevelError."""
    document = read_document(folder)
    if document is None or document.study_name != study or not (folder / RUNS).exists():
        return []
    settings = document.settings
    groups = (settings.sites, settings.networks, settings.protocols, settings.browsers)
    places = [{name: place for place, name in enumerate(group)} for group in groups]

    def place(row: Row) -> tuple[int, ...]:
        names = (row.site, row.network, row.protocol, row.browser)
        return (*(order.get(name, len(order)) for order, name in zip(places, names, strict=True)), row.run)

    return sorted((row for row in read_rows(folder) if row.valid), key=place)
