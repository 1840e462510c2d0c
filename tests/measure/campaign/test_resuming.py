"""A campaign is resumed from its package: nothing is lost or measured twice, and machines are distinguished."""

import csv
import json
import re
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from factories import ROW, campaign_document, rejected
from PIL import Image

from analysis.runs import load
from base import bounded
from base.errors import EyelevelError
from dataset.last_frames import read_digests
from dataset.package import FILES, METADATA, MOST_LINES
from dataset.plan import write_plan
from dataset.reading import MOST_BYTES
from dataset.reasons import Reason
from dataset.run_files import LAST
from dataset.table import LAST_FRAMES, GivenUp, Row, read_document, read_rows, write_given_up
from dataset.validation import ValidationEntry, keep_entries, kept_entries
from dataset.verdicts import Verdict
from eyelevel.commands import campaign as campaign_command
from eyelevel.package import write_package
from measure.campaign.expectations import ENOUGH, EXPECTATIONS, judge
from measure.campaign.outcomes import RunOutcomes
from measure.campaign.plan import plan
from measure.campaign.results import changes, opened, require_resumable
from measure.campaign.resuming import resume_from_package
from measure.campaign.status import status

WHITE = np.full((9, 16, 3), 255, dtype=np.uint8)
PROTOCOLS = {"tcp": {"transport": "tcp"}, "quic": {"transport": "quic"}}
DOCUMENT = campaign_document(protocols=PROTOCOLS)
RUNS = 4


def no_report(folder: Path) -> None:
    (folder / "report").mkdir()


def row_of(number: int, attempt: int = 1, protocol: str = "tcp") -> Row:
    place = f"runs/s/lte/{protocol}/{number}-{attempt}"
    return replace(ROW, run=number, attempt=attempt, protocol=protocol, folder=place, block=number)


def picture(campaign: Path, row: Row, look: np.ndarray = WHITE) -> None:
    (campaign / row.folder).mkdir(parents=True, exist_ok=True)
    Image.fromarray(look).save(campaign / row.folder / LAST)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign in which two of four blocks were measured; gates rejected one attempt, and an expectation another."""
    folder = tmp_path / "results" / "try"
    with opened(folder, DOCUMENT, "significant_p = 0.01\n") as results:
        results.extend_plan(plan(["s"], ["lte"], ["tcp", "quic"], RUNS, 1))
        results.keep(rejected("film_unclean", row_of(1)))
        results.keep(row_of(1, 2), row_of(1, protocol="quic"), row_of(2), row_of(2, protocol="quic"))
        results.decide(Verdict.of(row_of(2), Reason("request_missed", "9"), by="request_missed"))
    for row in read_rows(folder):
        picture(folder, row)
    on = {"host": "here", "testbed": "1", "versions": {}}
    keep_entries(folder, [ValidationEntry("2026", on, (), (), {})])
    write_given_up(folder, [GivenUp("gone", "lte", "load_failed", 2, "2026")])
    return folder


@pytest.fixture
def package(campaign: Path, tmp_path: Path) -> Path:
    return write_package(campaign, tmp_path / "kept", "https://example.org/licence", no_report)


def test_a_campaign_that_was_taken_up_goes_on_where_it_stopped(campaign: Path, package: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "try"
    assert resume_from_package(package, elsewhere)
    assert {path.name for path in elsewhere.iterdir()} == set(FILES)
    before = [replace(row, machine="") for row in read_rows(campaign)]
    assert [replace(row, machine="") for row in read_rows(elsewhere)] == before
    with opened(elsewhere, DOCUMENT) as results:
        blocks = results.extend_plan(plan(["s"], ["lte"], ["tcp", "quic"], RUNS, 1))
        results.remove_unmade()
        open_runs = [run for block in blocks for run in block if results.is_open(run, 2)]
        assert {run.number for run in open_runs} == {2, 3, 4}
        assert results.attempts(row_of(1).of) == 2
        assert results.first_verdict(row_of(2).folder) is not None
        results.keep(replace(row_of(3), machine="there"))
    assert not resume_from_package(package, elsewhere)
    assert len(read_rows(elsewhere)) == len(before) + 1


def test_what_was_declared_before_the_first_run_stays_declared(package: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "try"
    resume_from_package(package, elsewhere)
    with opened(elsewhere, DOCUMENT):
        document, before = read_document(elsewhere), read_document(package)
    assert document and before
    assert (document.hypotheses, document.begun_at) == (before.hypotheses, before.begun_at)
    assert changes(before, document) == []


def test_another_browser_must_not_go_on_with_it(package: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "try"
    resume_from_package(package, elsewhere)
    other = replace(DOCUMENT, versions={"chromium": "2"})
    message = "begun with other versions: chromium was 1, is 2; resume it where these are installed"
    with pytest.raises(EyelevelError, match=message), opened(elsewhere, other):
        pass
    with pytest.raises(EyelevelError, match=message):
        require_resumable(elsewhere, other)
    require_resumable(elsewhere, DOCUMENT)
    require_resumable(tmp_path / "new", other)


def test_machines_of_one_name_are_told_apart_each_time_that_it_is_taken_up(package: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "try", tmp_path / "second" / "try"
    resume_from_package(package, first)
    assert {row.machine for row in read_rows(first)} == {"here~1"}
    assert [entry.on["host"] for entry in kept_entries(first)] == ["here~1"]
    with opened(first, DOCUMENT) as results:
        results.keep(row_of(3))
    again = write_package(first, tmp_path / "again", "https://example.org/licence", no_report)
    resume_from_package(again, second)
    assert [row.machine for row in read_rows(second)][-2:] == ["here~1", "here~2"]
    assert load(second).machine_column == "machine"


def test_a_run_whose_block_was_made_on_another_machine_is_given_up(package: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "try"
    resume_from_package(package, elsewhere)
    blocks = plan(["s"], ["lte"], ["tcp", "quic"], RUNS, 1)
    with opened(elsewhere, DOCUMENT) as results:
        runs = results.made_elsewhere(blocks)
    assert {run.number for run in runs} == {1, 2}
    now = status(elsewhere)
    # The run rejected by an expectation, and those that have not begun.
    assert (now.planned, now.done, now.given_up, len(now.open_runs)) == (8, 3, 1, 4)


def test_a_package_that_was_changed_is_not_taken_up(package: Path, tmp_path: Path) -> None:
    text = (package / "runs.csv").read_text()
    (package / "runs.csv").write_text(text.replace("1234.5", "1034.5"))
    with pytest.raises(EyelevelError, match=r"runs\.csv has changed since the package was written"):
        resume_from_package(package, tmp_path / "elsewhere")
    (package / "runs.csv").write_text(text)
    (package / "verdicts.jsonl").unlink()
    with pytest.raises(EyelevelError, match=r"verdicts\.jsonl has changed"):
        resume_from_package(package, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def resealed(package: Path) -> Path:
    """The `package` with updated checksums of its files, as an attacker would write it."""
    path = package / METADATA
    document = json.loads(path.read_text())
    for entry in document["@graph"]:
        if "sha256" in entry:
            entry["sha256"] = sha256((package / entry["@id"]).read_bytes()).hexdigest()
    path.write_text(json.dumps(document))
    return package


@pytest.mark.parametrize("file", ["plan.csv", "runs.csv"])
@pytest.mark.parametrize(
    ("column", "name"),
    [("site", "../../elsewhere"), ("network", "dsl"), ("protocol", "h9"), ("browser", "x/../../../../../mine")],
)
def test_a_package_with_runs_of_nothing_that_it_declares_is_not_taken_up(
    package: Path, tmp_path: Path, file: str, column: str, name: str
) -> None:
    """Folders are named after their runs, so such a name could lead anywhere."""
    head, first, *others = csv.reader((package / file).read_text().splitlines())
    first[head.index(column)] = name
    (package / file).write_text("".join(",".join(line) + "\n" for line in (head, first, *others)))
    with pytest.raises(EyelevelError, match=f"{file} has the {column} '{name}', which is not in campaign.json"):
        resume_from_package(resealed(package), tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("file", ["plan.csv", "runs.csv", "last_frames.csv", "verdicts.jsonl"])
@pytest.mark.parametrize("content", [b"x" * 200_000 + b",1\n", b"\xff\n"])
def test_a_broken_file_of_a_package_is_told_in_one_line(
    package: Path, tmp_path: Path, file: str, content: bytes
) -> None:
    path = package / file
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + content)
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(EyelevelError, match=rf"{file} is broken") as error:
        resume_from_package(resealed(package), elsewhere)
    assert "\n" not in str(error.value)
    assert not elsewhere.exists()


@pytest.mark.parametrize("key", ["versions", "machine", "films", "lanes"])
def test_a_package_whose_document_has_other_types_is_told_in_one_line(package: Path, tmp_path: Path, key: str) -> None:
    path = package / "campaign.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: ["x"]}))
    with pytest.raises(EyelevelError, match=rf"campaign\.json is broken: {key} is not a table"):
        resume_from_package(resealed(package), tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("given_up.json", {"a": 1}),
        ("given_up.json", [{"site": "s"}]),
        ("validation.json", {"a": 1}),
        ("campaign.json", {**DOCUMENT.content(), "lanes": {"here": 1}}),
    ],
)
def test_a_package_that_could_not_be_read_later_is_not_taken_up(
    package: Path, tmp_path: Path, file: str, content: object
) -> None:
    (package / file).write_text(json.dumps(content))
    with pytest.raises(EyelevelError, match=f"{re.escape(file)} is broken"):
        resume_from_package(resealed(package), tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_a_machine_with_a_number_of_thousands_of_digits_keeps_it(package: Path, tmp_path: Path) -> None:
    name = "x~" + "9" * 5000
    path = package / "runs.csv"
    path.write_text(path.read_text().replace(",here,", f",{name},", 1))
    resume_from_package(resealed(package), tmp_path / "elsewhere")
    assert {row.machine for row in read_rows(tmp_path / "elsewhere")} == {name, "here~1"}


def test_a_film_policy_of_another_version_is_told_in_one_line(package: Path, tmp_path: Path) -> None:
    path = package / "campaign.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"films": {"kept": "all", "colour": "grey"}}))
    options = ["--package", str(resealed(package)), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(campaign_command.main, options)
    assert isinstance(done.exception, EyelevelError)
    assert re.search(r"campaign\.json: films has an unknown key 'colour'", str(done.exception))


def declaring(package: Path, **settings: object) -> Path:
    """The `package` with these settings in place of its own."""
    path = package / "campaign.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "settings": document["settings"] | settings}))
    return resealed(package)


def test_a_package_that_declares_more_runs_than_can_be_planned_is_refused_before_any_is(
    package: Path, tmp_path: Path
) -> None:
    options = ["--package", str(declaring(package, runs=10**12)), "--results", str(tmp_path / "elsewhere")]
    done = CliRunner().invoke(campaign_command.main, options)
    assert isinstance(done.exception, EyelevelError)
    assert str(done.exception) == (
        f"{package / 'campaign.json'} declares 2,000,000,000,000 runs, more than the 100,000 that a package may have"
    )
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"sites": {f"s{number}": {} for number in range(40_000)}}, r"declares 240,000 runs"),
        ({"further_browsers": {f"b{number}": {} for number in range(20_000)}}, r"declares 120,006 runs"),
        ({"runs": "many"}, r"is broken: settings: runs must be a whole number"),
        ({"networks": ["lte"]}, r"is broken: settings: networks must be a table"),
    ],
)
def test_the_runs_of_a_package_are_counted_whatever_makes_them_many(
    package: Path, tmp_path: Path, settings: dict[str, object], fault: str
) -> None:
    with pytest.raises(EyelevelError, match=rf"campaign\.json {fault}"):
        resume_from_package(declaring(package, **settings), tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("file", [*FILES, METADATA])
def test_a_file_of_a_package_that_is_too_long_is_not_read(package: Path, tmp_path: Path, file: str) -> None:
    """The file is sparse: it takes no space on the disk, but a copy of it would fill the disk."""
    limit = MOST_BYTES[(package / file).suffix]
    with (package / file).open("r+b") as long:
        long.truncate(1 << 40)
    message = re.escape(f"{package / file} cannot be read: it is longer than {limit >> 20} MiB")
    with pytest.raises(EyelevelError, match=message):
        resume_from_package(package, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("file", ["plan.csv", "runs.csv", "last_frames.csv", "verdicts.jsonl"])
def test_a_table_of_a_package_with_too_many_lines_is_told_in_one_line(package: Path, tmp_path: Path, file: str) -> None:
    with (package / file).open("ab") as table:
        table.write(b"\n" * MOST_LINES)
    with pytest.raises(EyelevelError, match=rf"{re.escape(file)} cannot be read: it has [0-9,]+ lines, more than"):
        resume_from_package(resealed(package), tmp_path / "elsewhere")


@pytest.mark.parametrize("file", ["campaign.json", "validation.json", "given_up.json", "verdicts.jsonl", METADATA])
def test_a_document_of_a_package_that_takes_far_more_memory_than_it_has_bytes_is_not_read(
    package: Path, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "JSON_VALUES", 1000)
    (package / file).write_text(f"[{'[],' * 1000}[]]\n")
    package = package if file == METADATA else resealed(package)
    with pytest.raises(EyelevelError, match=rf"{re.escape(file)} is broken: .*it holds more than 1,000 values"):
        resume_from_package(package, tmp_path / "elsewhere")


def test_a_file_of_a_package_that_is_a_link_is_not_followed(package: Path, tmp_path: Path) -> None:
    (package / "runs.csv").rename(tmp_path / "runs.csv")
    (package / "runs.csv").symlink_to(tmp_path / "runs.csv")
    with pytest.raises(EyelevelError, match=r"runs\.csv cannot be read: "):
        resume_from_package(package, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_a_campaign_that_lacks_verdicts_of_its_package_is_not_gone_on_with(
    campaign: Path, package: Path, tmp_path: Path
) -> None:
    """Its next package would lack these verdicts: runs that a person rejected elsewhere would count again."""
    elsewhere = tmp_path / "elsewhere" / "try"
    resume_from_package(package, elsewhere)
    with opened(elsewhere, DOCUMENT) as results:
        results.decide(Verdict.of(row_of(1, 2), Reason("review", "the page is blank"), by="review"))
    again = write_package(elsewhere, tmp_path / "again", "https://example.org/licence", no_report)
    assert not resume_from_package(again, elsewhere)
    with pytest.raises(EyelevelError, match="try lacks 1 verdict that the package"):
        resume_from_package(again, campaign)


def test_a_folder_that_is_no_package_is_refused(campaign: Path, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="is not a package"):
        resume_from_package(campaign, tmp_path / "elsewhere")


def test_a_campaign_that_lacks_what_its_package_has_is_not_gone_on_with(package: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "try"
    with opened(other, DOCUMENT) as results:
        results.keep(row_of(3))
    with pytest.raises(EyelevelError, match="lacks 5 attempts and 1 verdict that the package"):
        resume_from_package(package, other)
    assert len(read_rows(other)) == 1


def test_a_package_does_not_become_a_campaign_itself(package: Path) -> None:
    with pytest.raises(EyelevelError, match="is the package itself"):
        resume_from_package(package, package)


def test_a_folder_of_something_else_stays(package: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("mine")
    with pytest.raises(EyelevelError, match="has letter in it"):
        resume_from_package(package, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter"]


def test_a_package_has_no_pictures_and_packages_of_what_was_taken_up_keep_the_digests(
    package: Path, tmp_path: Path
) -> None:
    assert not list(package.rglob(LAST))
    digests = read_digests(package)
    assert len(digests) == 5 and len(set(digests.values())) == 1
    elsewhere = tmp_path / "elsewhere" / "try"
    resume_from_package(package, elsewhere)
    fresh = row_of(3)
    with opened(elsewhere, DOCUMENT) as results:
        results.keep(fresh)
    picture(elsewhere, fresh, WHITE // 2)
    again = write_package(elsewhere, tmp_path / "again", "https://example.org/licence", no_report)
    assert read_digests(again).items() >= digests.items()
    assert read_digests(again)[fresh.folder] not in digests.values()


def test_runs_from_elsewhere_have_the_picture_of_a_later_run_that_looks_alike(tmp_path: Path) -> None:
    """The package has only digests of pictures. The first run here looks different from all others, and is rejected."""
    folder, there = tmp_path / "try", tmp_path / "there"
    rows = [row_of(number) for number in range(1, ENOUGH + 3)]
    package_of_rows(there, folder, rows[:ENOUGH])
    picture(folder, rows[ENOUGH], WHITE // 2)
    picture(folder, rows[ENOUGH + 1])
    outcomes = RunOutcomes(folder)
    assert outcomes.of(rows[0]).last_frame is None
    outcomes.look_at(rows)
    runs = [outcomes.of(row) for row in rows]
    assert all(run.last_frame is not None for run in runs)
    assert set(judge(runs, ENOUGH, EXPECTATIONS)) == {ENOUGH}


def package_of_rows(there: Path, folder: Path, rows: list[Row]) -> None:
    """Write to `folder` the part of a package that concerns the last frames of `rows`."""
    with opened(there, DOCUMENT) as results:
        results.keep(*rows)
    for row in rows:
        picture(there, row)
    write_plan(there, plan(["s"], ["lte"], ["tcp"], RUNS, 1))
    package = write_package(there, there.with_name("package"), "https://example.org/licence", no_report)
    folder.mkdir(exist_ok=True)
    shutil.copyfile(package / LAST_FRAMES, folder / LAST_FRAMES)


def test_the_checksum_of_every_file_that_is_taken_up_is_in_the_package(package: Path) -> None:
    graph = json.loads((package / "ro-crate-metadata.json").read_text())["@graph"]
    assert set(FILES) <= {entry["@id"] for entry in graph if "sha256" in entry}
