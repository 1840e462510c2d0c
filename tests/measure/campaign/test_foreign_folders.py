"""A campaign neither removes nor changes files that the testbed did not make."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from factories import ROW
from factories import campaign_document as document

from base.errors import EyelevelError
from base.files import replacing_folder
from base.namespaces import AS_ORDINARY_USER
from base.places import PROJECT
from eyelevel.measuring import interruptible
from eyelevel.measuring_options import campaign_name, document_of
from eyelevel.program import program
from measure.campaign.results import Results, opened

FOREIGN = (".git/config", ".ssh/id", ".env", "sub/.env", "runs/.git/config", "runs/s/lte/tcp/.hidden", "chapter.tex")
TEMPORARY_FILES = (
    ".runs.csv.abcd1234",
    ".campaign.json.a_b_c_d_",
    ".hypotheses.toml.00000000",
    "runs/s/lte/tcp/1-1/.attempt.json.abcd1234",
    "runs/s/lte/tcp/1-1/.film-small.mp4",
)


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def contents(folder: Path) -> Mapping[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "thesis"
    fill(folder, name)
    refusal = f"thesis is not a campaign, and has {name.partition('/')[0]} in it; use another campaign name"
    with pytest.raises(EyelevelError, match=refusal), opened(folder, document()):
        pass
    with pytest.raises(EyelevelError, match=refusal):  # before networks and protocols are measured
        document_of(folder, "", str)
    assert contents(folder) == {name: name}


def test_a_campaign_removes_what_its_interrupted_writes_left_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with opened(folder, document()):
        pass
    fill(folder, *FOREIGN, *TEMPORARY_FILES)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (folder / ".link").symlink_to(tmp_path / "elsewhere")
    (folder / ".plan.csv.abcd1234").symlink_to(tmp_path / "elsewhere")
    with opened(folder, document()):
        pass
    assert {name: contents(folder)[name] for name in FOREIGN} == {name: name for name in FOREIGN}
    assert not [name for name in TEMPORARY_FILES if (folder / name).exists()]
    assert (folder / ".link").is_symlink() and not (folder / ".plan.csv.abcd1234").is_symlink()
    assert (tmp_path / "elsewhere" / "file").exists()


def test_what_a_stop_left_before_a_campaign_was_begun_is_no_obstacle(tmp_path: Path) -> None:
    fill(tmp_path / "c", ".campaign.json.abcd1234")
    with opened(tmp_path / "c", document()):
        pass
    assert not (tmp_path / "c" / ".campaign.json.abcd1234").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", ".hidden"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(EyelevelError, match="is not a name for one"):
        campaign_name(name)


def test_a_name_longer_than_any_folders_is_refused() -> None:
    assert campaign_name("ä" * 127 + "b") == "ä" * 127 + "b"
    with pytest.raises(EyelevelError, match="more than 255 bytes"):
        campaign_name("ä" * 128)


def test_a_simulated_campaign_overwrites_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "thesis", "runs.csv")
    done = CliRunner().invoke(program, ["simulate", str(tmp_path / "thesis")])
    assert isinstance(done.exception, EyelevelError)
    assert contents(tmp_path / "thesis") == {"runs.csv": "runs.csv"}


def test_only_a_folder_of_its_kind_is_replaced(tmp_path: Path) -> None:
    fill(tmp_path / "thesis", "chapter.tex")
    refusal = r"thesis exists and has no site\.json, so it is not replaced"
    with pytest.raises(EyelevelError, match=refusal), replacing_folder(tmp_path / "thesis", "site.json"):
        pass
    assert contents(tmp_path) == {"thesis/chapter.tex": "chapter.tex"}
    fill(tmp_path / "thesis", "site.json")
    with replacing_folder(tmp_path / "thesis", "site.json") as new:
        fill(new, "site.json")
    assert contents(tmp_path) == {"thesis/site.json": "site.json"}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "is full; free some of it, then resume: again"),
        (OSError(errno.EROFS, "Read-only file system"), "is read-only, .* make it writable, then resume: again"),
        (OSError(errno.EIO, "Input/output error"), "has errors .*; repair it, then resume: again"),
    ],
)
def test_a_disk_that_takes_nothing_more_is_told_in_one_line(tmp_path: Path, fault: OSError, text: str) -> None:
    with pytest.raises(EyelevelError, match=text) as raised, interruptible(tmp_path / "results" / "c", "again"):
        raise fault
    assert "\n" not in str(raised.value)


def keep_a_row(results: Results) -> None:
    results.keep(ROW)


def begin_an_attempt(results: Results) -> None:
    results.empty_run_folder(ROW.of, 1)


def extend_the_plan(results: Results) -> None:
    results.extend_plan([(ROW.of,)])


@pytest.mark.parametrize("step", [keep_a_row, begin_an_attempt, extend_the_plan])
@pytest.mark.parametrize("moved_to", [None, "elsewhere"])
def test_a_folder_that_is_removed_meanwhile_is_told_in_one_line_and_not_made_anew(
    tmp_path: Path, step: Callable[[Results], None], moved_to: str | None
) -> None:
    folder = tmp_path / "results" / "c"
    text = "results/c was removed, or moved, during the measurement; put it back, then resume: again$"
    with (
        pytest.raises(EyelevelError, match=text),
        interruptible(folder, "again"),
        opened(folder, document()) as results,
    ):
        if moved_to:
            folder.rename(tmp_path / moved_to)
        else:
            shutil.rmtree(folder)
        step(results)
    assert not folder.exists()


def test_another_file_that_is_missing_is_a_fault_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "c"
    with pytest.raises(FileNotFoundError), interruptible(folder, "again"), opened(folder, document()):
        (folder / "missing").read_text()
    with pytest.raises(FileNotFoundError), interruptible(tmp_path / "results" / "d", "again"):
        (tmp_path / "missing").read_text()


# Tries one action after another in a campaign's folder, and prints why each fails.
DENIED = """
import subprocess, sys
from pathlib import Path
from base.errors import EyelevelError
from eyelevel.measuring import interruptible
results, other = map(Path, sys.argv[1:3])
for action in sys.argv[3:]:
    try:
        with interruptible(results / "c", "again"):
            exec(action)
    except EyelevelError as error:
        print(error)
"""
DENIALS = {
    "(results / 'c').mkdir()": "results/c cannot be made: {0}/results may not be written ({1}); name another folder",
    "(other / 'secret').read_text()": "other/secret may not be read or written ({1}); allow it, then resume: again",
    "(other / 'data').write_text('')": "other/data may not be written ({1}); allow it, then resume: again",
    "(results / 'mine').unlink()": "results/mine cannot be removed or replaced: {0}/results may not be written",
    "(other / 'shut' / 'x').read_text()": "other/shut/x cannot be reached: {0}/other/shut may not be entered",
    "subprocess.run([other / 'data'])": "other/data may not be run ({1}); allow it, then resume: again",
}


@pytest.mark.needs_user_namespaces
def test_the_file_that_may_not_be_used_is_told_and_why(tmp_path: Path) -> None:
    results, other = tmp_path / "results", tmp_path / "other"
    for folder in (results, other / "shut"):
        folder.mkdir(parents=True)
    for file, mode in ((results / "mine", 0o644), (other / "data", 0o444), (other / "secret", 0)):
        file.touch(mode)
    results.chmod(0o555)
    (other / "shut").chmod(0)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command: list[str | Path] = [*AS_ORDINARY_USER, sys.executable, "-c", DENIED, results, other, *DENIALS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    for folder in (results, other / "shut"):
        folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    for line, text in zip(done.stdout.splitlines(), DENIALS.values(), strict=True):
        assert f"{tmp_path}/{text}".format(tmp_path, "Permission denied") in line


@pytest.mark.needs_user_namespaces
def test_results_on_a_read_only_file_system_are_told_in_one_line(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from base.errors import reports_errors
from eyelevel.measuring import interruptible
from factories import ROW, campaign_document
from measure.campaign.results import Results, opened
import subprocess
folder = Path({str(tmp_path / "results" / "c")!r})
@reports_errors
def main():
    with interruptible(folder, "again"), opened(folder, campaign_document()) as results:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder.parent], check=True)
        results.keep(ROW)
main()
"""
    (tmp_path / "results").mkdir()
    mounting = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounting, str(tmp_path / "results")]
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    done = subprocess.run(
        [*command, sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("eyelevel: the disk of ") and " is read-only" in done.stderr
    assert len(done.stderr.splitlines()) == 1
