"""`python tests/proof/same_results.py [--sites FOLDER]... RESULTS...`: compare old results with this version.

Each of RESULTS is the folder of a campaign, or the folder of an earlier version's study, states or packets
(`<study>/<site>/…`). This judges every attempt's evidence again and compares the result with its row: all cells, and
for a reason only the gate. It writes a report of a copy, and compares its tables (CSV) with those of the old report:
all numbers, and no texts. Sites are searched for in the given folders, then where campaigns search.

The table of Figure 1 also states how complete sites are (`make close`), so it differs when a site has been closed
since.

pytest does not collect this file: it needs old results.
"""

import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pandas as pd

from analysis import hypotheses
from analysis.report.write import write_report
from base.errors import EyelevelError
from base.files import read_json
from base.structure import structured
from browsers.browsertime.configuration import QUIET_MS
from dataset.reasons import Reason
from dataset.table import (
    RUNS,
    CampaignDocument,
    Row,
    Run,
    columns,
    header,
    lines,
    parse_document,
    read_rows,
    require_document,
    write_document,
)
from eyelevel.sections import sections_of
from measure.campaign.expectations import judge
from measure.campaign.method import PAGES, Method
from measure.campaign.outcomes import RunOutcomes
from measure.campaign.plan import seed_of
from measure.run.setting import Loading, Setting
from record import collection
from record.site import Site
from studies.packets.measure import PacketsMethod
from studies.states.measure import StatesMethod
from tuning import networks, protocols
from tuning.networks import Network
from tuning.protocols import Protocol

METHODS: dict[str, Method] = {"states": StatesMethod(), "packets": PacketsMethod()}
TABLES = Path("report") / "tables"
# Equal results may differ by rounding, since numbers are read from text, and means are summed in another order.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Catalogue:
    """Finds the settings of old results: sites by their folders, networks and protocols by the values that they had."""

    folders: tuple[Path, ...]
    document: CampaignDocument

    def setting(self, run: Run, loading: Loading, seed: int) -> Setting:
        """The setting that `run` loaded. Raises EyelevelError."""
        known = protocols.load()
        protocol = known.get(run.protocol.partition("~")[0])
        if protocol is None:
            raise EyelevelError(f"there is no protocol {run.protocol} any more")
        values = self.document.settings.networks[run.network]
        network = networks.load().get(run.network) or structured(values, Network, run.network)
        return Setting(self._site(run.site), network, _named(protocol, run.protocol), loading, seed)

    def _site(self, name: str) -> Site:
        for folder in self.folders:
            if (folder / name).is_dir():
                return Site.load(folder / name)
        return collection.load_site(name)


def _named(protocol: Protocol, name: str) -> Protocol:
    return replace(protocol, name=name)


def loading_of(document: CampaignDocument) -> Loading:
    """How the campaign's pages were loaded."""
    settings = document.settings
    quiet_ms = settings.browser.get("quiet_ms", QUIET_MS)
    return replace(Loading.of(settings), quiet_ms=quiet_ms)


def judged_anew(folder: Path, rows: list[Row], catalogue: Catalogue, method: Method, loading: Loading) -> list[Row]:
    """The `rows` of the campaign in `folder`, as this version judges their evidence, expectations included."""
    seed = catalogue.document.settings.seed or 0
    anew = []
    for row in rows:
        setting = catalogue.setting(row.of, loading, seed_of(row.of, seed))
        fresh = method.judge(setting, row.of, row.attempt, folder / row.folder, folder)
        anew.append(fresh)
    for cell in dict.fromkeys((row.site, row.network) for row in anew):
        places = [n for n, row in enumerate(anew) if (row.site, row.network) == cell and row.valid]
        for place, reason in judge([RunOutcomes(folder).of(anew[n]) for n in places]).items():
            anew[places[place]] = replace(anew[places[place]], valid=False, reason=reason)
    return anew


def differences(old: Row, new: Row) -> Iterator[str]:
    """The cells in which two rows of an attempt differ; of reasons, only the gates are compared."""
    for column in (*columns(), *new.readings):
        before, after = (_cell(row, column) for row in (old, new))
        if before != after:
            yield f"{old.of}, attempt {old.attempt}: {column} was {before}, is {after}"


def _cell(row: Row, column: str) -> object:
    value = {**vars(row), **row.metrics, **row.readings}.get(column)
    if isinstance(value, Reason):
        return value.gate
    return float(f"{value:.10g}") if isinstance(value, float) else value


def converted(folder: Path, study: str, into: Path) -> tuple[list[Row], CampaignDocument]:
    """Convert the runs of a study of an earlier version, `folder`/`study`, to a campaign in `into`; return its rows."""
    values = read_json(folder / study / f"{study}.json")
    settings = {"filmed": False, **values["settings"]}
    document = parse_document({**values, "settings": settings, "study": {"name": study}}, folder)
    rows = []
    for file in sorted((folder / study).glob("*/*/*/**/run.json")):
        site, network, protocol, *rest = file.parent.relative_to(folder / study).parts
        number, _, attempt = rest[-1].partition("-")
        place = Path("runs") / site / network / protocol / f"{number}-{attempt or 99}"
        shutil.copytree(file.parent, into / place)
        run, attempt_record = read_json(file), read_json(file.parent / "attempt.json")
        reason = Reason.parse(run["reason"])
        failure = reason.text if reason and reason.gate == "replay" else None
        attempt_record = {"failure": failure, "block": 0, "machine": run["machine"], **attempt_record}
        (into / place / "attempt.json").write_text(json.dumps(attempt_record))
        rows.append(_row(Run(site, network, protocol, int(number)), int(attempt or 99), run, reason, str(place)))
    write_document(into, document)
    return rows, document


def _row(run: Run, attempt: int, document: Mapping[str, Any], reason: Reason | None, folder: str) -> Row:
    return Row(
        run.site, run.network, run.protocol, run.number, attempt, document["valid"], reason,
        {"plt": document.get("plt_ms")}, 0, 0, 0, 0, 0, document["started_at"], document["seconds"], folder,
    )  # fmt: skip


def check_campaign(folder: Path, sites: tuple[Path, ...], copy: Path) -> list[str]:
    """The differences between the rows of the campaign in `folder` and those that this version judges from its
    `copy`."""
    document = require_document(folder)
    catalogue, rows = Catalogue(sites, document), read_rows(folder)
    anew = judged_anew(copy, rows, catalogue, PAGES, loading_of(document))
    print(f"{folder.name}: {len(rows)} attempts judged anew")
    return [difference for old, new in zip(rows, anew, strict=True) for difference in differences(old, new)]


def check_study(folder: Path, study: str, sites: tuple[Path, ...], copy: Path) -> list[str]:
    """The same for a study of an earlier version, which becomes a campaign in `copy`."""
    rows, document = converted(folder, study, copy)
    anew = judged_anew(copy, rows, Catalogue(sites, document), METHODS[study], Loading(filmed=False))
    (copy / RUNS).write_text(header() + lines(anew))
    print(f"{folder.name}: {len(rows)} attempts of {study} judged anew")
    differences = []
    for old, new in zip(rows, anew, strict=True):
        verdicts = [(row.valid, row.reason.gate if row.reason else "") for row in (old, new)]
        if verdicts[0] != verdicts[1]:
            differences.append(f"{old.of}: was {verdicts[0]}, is {verdicts[1]}")
        if old.valid and old.metrics["plt"] not in (None, new.metrics["plt"]):
            differences.append(f"{old.of}: PLT was {old.metrics['plt']}, is {new.metrics['plt']}")
    return differences


def check_tables(folder: Path, copy: Path) -> list[str]:
    """The numbers that differ between the tables of a new report of `copy` and the old report of `folder`."""
    old_tables = sorted((folder / TABLES).glob("*.csv"))
    if not old_tables:
        return []
    write_report(copy, sections_of(copy), hypotheses.load(hypotheses.DECLARED))
    new_tables = {path.name: path for path in (copy / TABLES).glob("*.csv")}
    differences = []
    for path in old_tables:
        if path.name not in new_tables:
            differences.append(f"there is no table {path.name} any more")
            continue
        old, new = pd.read_csv(path), pd.read_csv(new_tables[path.name])
        differences += [f"{path.name}: {one}" for one in _numbers_that_differ(old, new)]
    print(f"{folder.name}: {len(old_tables)} tables of the report compared")
    return differences


def _numbers_that_differ(old: pd.DataFrame, new: pd.DataFrame) -> Iterator[str]:
    if len(old) != len(new):
        yield f"{len(old)} rows were, {len(new)} are"
        return
    if missing := [name for name in old if name not in new]:
        yield f"the columns {', '.join(missing)} are missing"
    for name in (name for name in old if name in new):
        for place, (before, after) in enumerate(zip(old[name], new[name], strict=True)):
            if not _same(before, after):
                yield f"row {place}, {name}: was {before}, is {after}"


def _same(before: Any, after: Any) -> bool:
    numbers = [isinstance(value, int | float) for value in (before, after)]
    if not all(numbers):
        return not any(numbers)
    return (math.isnan(before) and math.isnan(after)) or math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=1e-12)


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--sites", multiple=True, type=click.Path(path_type=Path), help="Folders with sites.")
def main(results: tuple[Path, ...], sites: tuple[Path, ...]) -> None:
    """Judge old RESULTS anew, and compare."""
    differences: list[str] = []
    for folder in results:
        with tempfile.TemporaryDirectory(prefix="same-results-") as temporary:
            copy = Path(temporary) / folder.resolve().name
            studies = [name for name in METHODS if (folder / name / f"{name}.json").exists()]
            if (folder / RUNS).exists():
                shutil.copytree(folder, copy)
                differences += check_campaign(folder, sites, copy)
            for study in studies:
                copy.mkdir(exist_ok=True)
                differences += check_study(folder, study, sites, copy)
            differences += check_tables(folder, copy)
    for difference in differences:
        print(difference)
    sys.exit(f"{len(differences)} differences" if differences else None)


if __name__ == "__main__":
    main()
