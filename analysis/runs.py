"""Reads a campaign's folder into tables."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.networks import path_rtt_ms
from base.errors import EyelevelError
from dataset.clients import Client, client_name, clients_of
from dataset.metrics import metric_names, time_names
from dataset.reasons import gate_name
from dataset.schema import fields
from dataset.settings import CampaignSettings
from dataset.site_facts import SiteFacts, parse_facts
from dataset.table import (
    ATTEMPT_FOLDER,
    DOCUMENT,
    PROCESSOR_COLUMNS,
    PROCESSOR_WAIT,
    RUNS,
    CampaignDocument,
    Cell,
    GivenUp,
    read_given_up,
    read_lines,
    require_document,
)
from dataset.validation import kept_entries
from tuning.defaults import DEFAULT_BROWSER

KEYS = ("site", "network", "protocol", "run", "valid", "reason")
# The columns of the machine and of the lane that made a run, if a campaign has several.
MACHINE, LANE = "machine", "lane"
# Columns of whole numbers by which runs are paired. An empty cell reads as 0, which means unknown.
WHOLE_NUMBERS = ("run", "attempt", "block", LANE, "sitting")
# The column of how many loads shared a run's processors on average, itself included.
CONCURRENT_LOADS = "concurrent_loads"
# The column of the number of the stretch of measuring.
SITTING = "sitting"
# A check of a network or protocol (subject) on a machine (host), by its name.
VALIDATION_COLUMNS = ["host", "subject", "name", "configured", "measured", "tolerance", "passed"]
# Columns that show how busy the machine was begin with this.
CANARY_PREFIX = "canary"
# The facts of a site's loads, as opposed to its recording's → the columns of runs.
LOADED = {"loaded_requests": "requests", "loaded_bytes": "content_bytes", "contacted_servers": "servers_contacted"}
# The column of the browser's name. The analysis treats a network in each further browser as another network
# (`dataset.clients`), so everything that is compared on a network is compared within a browser.
BROWSER = "browser"
# The column of the time for which a page had requested nothing when its run ended (ms).
QUIET = "quiet_ms"


@dataclass(frozen=True)
class Observation:
    """A validation's observations of the network or protocol with this `setting` (its document), on machine `host`."""

    host: str
    setting: Mapping[str, Any]
    seen: Mapping[str, Any]


# Two tables are equal only if they are one object: tables of a million cells are neither compared nor hashed.
@dataclass(frozen=True, eq=False)
class CampaignTable:
    """A campaign's attempts, one per row, and its `campaign.json`.

    `validation` has a row for each check of a network or protocol (`VALIDATION_COLUMNS`); `observations` are those of
    the protocols and networks that passed. `kept`: tables that were computed from this one, by name; they go with it to
    other processes, but not into a copy with other runs (`dataclasses.replace`).
    """

    runs: pd.DataFrame
    document: CampaignDocument
    folder: Path = Path()
    validation: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=VALIDATION_COLUMNS))
    observations: tuple[Observation, ...] = ()
    kept: dict[str, pd.DataFrame] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.folder.resolve().name

    @property
    def settings(self) -> CampaignSettings:
        """The campaign's settings."""
        return self.document.settings

    @cached_property
    def clients(self) -> dict[str, Client]:
        """The campaign's clients by name, in its order; after them, the clients of networks that only the runs name."""
        known = clients_of(self.settings.networks, self.browsers)
        unknown = [] if self.runs.empty else [name for name in self.runs["network"].unique() if name not in known]
        return known | clients_of(unknown, self.browsers[:1])

    @property
    def networks(self) -> tuple[str, ...]:
        """The names of the clients whose networks are in the campaign's settings, in the campaign's order."""
        return tuple(self.network_settings)

    @cached_property
    def network_settings(self) -> dict[str, Mapping[str, Any]]:
        """Each client in `networks` → the settings of its network."""
        known = self.settings.networks
        return {name: known[client.network] for name, client in self.clients.items() if client.network in known}

    @property
    def browsers(self) -> tuple[str, ...]:
        """The names of the campaign's browsers, in its order."""
        return self.settings.browsers

    @property
    def rtt_ms(self) -> dict[str, float]:
        """The minimum round-trip time of each network that has one."""
        return {name: float(ms) for name, network in self.network_settings.items() if (ms := path_rtt_ms(network))}

    @property
    def protocols(self) -> tuple[str, ...]:
        """The names of the campaign's protocols, in its order."""
        return tuple(self.settings.protocols)

    @cached_property
    def known_sites(self) -> dict[str, SiteFacts]:
        """The facts of the campaign's sites, where known. Raises EyelevelError."""
        kept, where = self.document.site_facts, f"{self.folder / DOCUMENT} is broken: site_facts"
        return {name: parse_facts(kept[name], f"{where}.{name}") for name in self.settings.sites if name in kept}

    @cached_property
    def loaded(self) -> pd.DataFrame:
        """The medians of LOADED over the runs of each site that count, by site; NaN where no run has them."""
        numbers = self.valid.reindex(columns=[*LOADED.values()]).apply(pd.to_numeric, errors="coerce")
        return numbers.groupby(self.valid["site"]).median().set_axis([*LOADED], axis=1)

    @property
    def site_facts(self) -> dict[str, dict[str, float]]:
        """The `bytes`, `requests` (exchanges) and `servers` of each site's recording, and LOADED, as far as known."""
        facts: dict[str, dict[str, float]] = {name: row.dropna().to_dict() for name, row in self.loaded.iterrows()}
        for name, of in self.known_sites.items():
            facts[name] = {"bytes": of.bytes, "requests": of.exchanges, "servers": of.servers, **facts.get(name, {})}
        return facts

    @property
    def given_up(self) -> dict[Cell, GivenUp]:
        """The sites that were given up or withdrawn, by site and network in each browser. Raises EyelevelError."""
        entries, clients = read_given_up(self.folder), self.clients.items()
        return {(one.site, name): one for one in entries for name, client in clients if client.network == one.network}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics by which protocols are compared: those that are times and have a column in `runs.csv`."""
        return metrics_in(self.runs)

    @property
    def valid(self) -> pd.DataFrame:
        """The attempts that count."""
        return self.runs[self.runs["valid"]]

    @property
    def machine_column(self) -> str | None:
        """The column of the machine that made a run, if there was more than one machine."""
        return MACHINE if MACHINE in self.runs and self.runs[MACHINE].nunique() > 1 else None


def metrics_in(runs: pd.DataFrame) -> tuple[str, ...]:
    """The metrics that are times and that `runs` has columns for, in the order of `dataset.metrics`."""
    return tuple(metric for metric in time_names() if metric in runs)


def processor_columns_in(runs: pd.DataFrame) -> tuple[str, ...]:
    """Those columns of the processor's share in a load that `runs` has."""
    return tuple(name for name in (*PROCESSOR_COLUMNS, PROCESSOR_WAIT) if name in runs)


def gates(reasons: "pd.Series[str]") -> "pd.Series[str]":
    """The gate that each of `reasons` names."""
    # Thousands of attempts share a few reasons, so each reason is parsed once.
    return reasons.map({reason: gate_name(reason) for reason in reasons.unique()})


def rows_of(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows of `table` that have these values in the columns of these names, none of which lacks a value."""
    if not (values and len(table)):
        return table
    return table[np.logical_and.reduce([(table[name] == value).to_numpy() for name, value in values.items()])]


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of `table` as dictionaries: column → value."""
    return list(table.to_dict("records"))


@contextmanager
def plain_texts() -> Iterator[None]:
    """Let pandas keep the texts of new tables as Python's, for the duration of the block or of the decorated function.

    Tables here have thousands of short texts that are read one by one, which is slower with Arrow's arrays. A notebook
    that calls this code has options of its own, so the option does not outlast the block.
    """
    with pd.option_context("mode.string_storage", "python"):
        yield


@plain_texts()
def load(folder: Path) -> CampaignTable:
    """The campaign in `folder`. Unknown columns are kept; a metric may be absent.

    Raises EyelevelError if there is no campaign, or it is broken.
    """
    document = require_document(folder)
    runs = read_runs(folder)
    _require_one_quiet_time(runs, folder / RUNS)
    return CampaignTable(_by_client(runs, document), document, folder, *validation(folder))


def _by_client(runs: pd.DataFrame, document: CampaignDocument) -> pd.DataFrame:
    """The attempts of a campaign, with the client's name in place of the network's."""
    first = document.settings.first_browser or DEFAULT_BROWSER
    # A table may leave out the name of the first browser.
    browsers = runs[BROWSER].replace("", first) if BROWSER in runs else pd.Series(first, runs.index, dtype=str)
    pairs = zip(runs["network"].to_numpy(), browsers.to_numpy(), strict=True)
    return runs.assign(**{BROWSER: browsers, "network": [client_name(*pair, first) for pair in pairs]})


def _require_one_quiet_time(runs: pd.DataFrame, path: Path) -> None:
    """Raises EyelevelError if runs on one network were made with different quiet times: runs with a shorter quiet time
    have recorded less of the same page."""
    for network, times_ms in runs.groupby("network")[QUIET] if QUIET in runs else ():
        first, *others = [f"{value:g}" for value in sorted(times_ms.dropna().unique())] or [""]
        if others:
            raise EyelevelError(
                f"{path}: on {network}, runs ended after {first} ms without a request and after {others[0]} ms; "
                "these must not be compared: keep those of one quiet time"
            )


def read_runs(folder: Path) -> pd.DataFrame:
    """The attempts of the campaign in `folder`. Raises EyelevelError if there are none, or if they lack one of KEYS."""
    path = folder / RUNS
    # An empty cell means a missing number in a metric's column, and an empty text elsewhere.
    missing = {metric: [""] for metric in metric_names()}
    texts = dict.fromkeys(("site", "network", "protocol", "valid", "reason", MACHINE, BROWSER), str)
    try:
        runs = pd.read_csv(io.StringIO(read_lines(folder)), dtype=texts, keep_default_na=False, na_values=missing)
        runs = runs.astype({name: float for name in metric_names() if name in runs})
    except (ValueError, TypeError) as error:
        raise EyelevelError(f"{path} is broken: {error}") from None
    if absent := [name for name in KEYS if name not in runs]:
        raise EyelevelError(f"{path} lacks the columns {', '.join(absent)}")

    def require(is_sound: "pd.Series[bool]", rule: str) -> None:
        # Line numbers count the header as line 1.
        if not is_sound.all():
            raise EyelevelError(f"line {is_sound.idxmin() + 2} of {path}: {rule}")

    for column in [name for name in WHOLE_NUMBERS if name in runs]:
        cells = pd.to_numeric(runs[column].replace("", 0), errors="coerce")
        require(cells % 1 == 0, f"{column} must be a whole number")
        runs[column] = cells.astype(int)
    valid = runs["valid"].str.lower().map({"true": True, "false": False})
    require(valid.notna(), "valid must be true or false")
    runs["valid"] = valid.astype(bool)
    if "folder" in runs:
        is_folder = {name: not name or ATTEMPT_FOLDER.fullmatch(str(name)) is not None for name in runs["folder"]}
        require(runs["folder"].map(is_folder), "folder must be empty or the folder of an attempt")
    canaries = [name for name in runs if name.startswith(CANARY_PREFIX)]
    for column in (*canaries, *processor_columns_in(runs), *([QUIET] if QUIET in runs else [])):
        runs[column] = pd.to_numeric(runs[column], errors="coerce")
    return runs


def typed(runs: pd.DataFrame) -> pd.DataFrame:
    """`runs` with the types of `dataset.schema` in the columns that every campaign has. Every other column gets numbers
    if it has nothing but numbers and empty cells."""
    types = {name: column["type"] for name, column in fields().items()}
    return runs.assign(**{name: _typed(cells, types.get(name)) for name, cells in runs.items()})


def _typed(cells: "pd.Series[Any]", kind: str | None) -> "pd.Series[Any]":
    if kind in ("string", "boolean"):
        return cells.astype("string" if kind == "string" else "bool")
    numbers = pd.to_numeric(cells, errors="coerce")
    is_text = numbers.isna() & cells.notna() & (cells.astype(str) != "")
    if kind is None and is_text.any():
        return cells.astype("string")
    return numbers.astype("Int64" if kind == "integer" else "float64")


def validation(folder: Path) -> tuple[pd.DataFrame, tuple[Observation, ...]]:
    """The checks of networks and protocols before the runs in `folder`, and the observations of those that passed.
    Raises EyelevelError."""
    entries = kept_entries(folder)
    rows = [{"host": entry.on["host"], **vars(check)} for entry in entries for check in entry.checks]
    observations = tuple(
        Observation(entry.on["host"], setting, entry.seen.get(setting["name"], {}))
        for entry in entries
        for setting in entry.passed
    )
    return pd.DataFrame(rows, columns=VALIDATION_COLUMNS), observations
