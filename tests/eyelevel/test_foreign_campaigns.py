"""A stranger's campaign folder is untrusted input: it uses little memory, makes nobody wait, and reveals no other
file."""

import gzip
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from factories import ROW, campaign_document, rejected
from support.hostile import Ending, endings

from base.errors import EyelevelError, reports_errors
from dataset.run_files import HAR
from dataset.table import header, lines, write_document
from eyelevel.program import program

# The allowed memory beyond that for a normal campaign.
MORE_MB = 200
MB = 1 << 20

Damage = Callable[[Path], object]


def campaign(folder: Path) -> Path:
    """A campaign with a run over each of two protocols."""
    rows = [replace(ROW, protocol=name, folder=f"runs/s/lte/{name}/1-1") for name in ("tcp", "quic")]
    entry = {
        "startedDateTime": "2026-01-01T00:00:00.010Z",
        "request": {"method": "GET", "url": "https://a.example/"},
        "response": {"httpVersion": "h2", "status": 200, "content": {}, "bodySize": 900},
        "timings": {"send": 1, "wait": 60, "receive": 5},
    }
    har = {"log": {"pages": [{"id": "1", "startedDateTime": "2026-01-01T00:00:00Z"}], "entries": [entry]}}
    for row in rows:
        (folder / row.folder).mkdir(parents=True)
        (folder / row.folder / HAR).write_bytes(gzip.compress(json.dumps(har).encode()))
    (folder / "runs.csv").write_text(header() + lines(rows))
    write_document(folder, campaign_document(protocols={"tcp": {"transport": "tcp"}, "quic": {"transport": "quic"}}))
    return folder


def replaced(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content)


def linked(name: str, target: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return damage


def pipe(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return damage


def document_with(**changes: object) -> Damage:
    def damage(folder: Path) -> None:
        document = json.loads((folder / "campaign.json").read_text())
        for path, value in changes.items():
            *places, key = path.split("__")
            place = document
            for name in places:
                place = place[name]
            place[key] = value
        (folder / "campaign.json").write_text(json.dumps(document))

    return damage


def unrelated_runs(folder: Path) -> None:
    """900 runs, each with its own site, network, protocol and block: a table with a cell for each combination would
    need 27 GiB."""
    names = [(f"s{number}", f"n{number}", f"p{number}") for number in range(900)]
    rows = [
        replace(ROW, site=site, network=network, protocol=protocol, block=number + 1, folder=f"runs/{number}")
        for number, (site, network, protocol) in enumerate(names)
    ]
    (folder / "runs.csv").write_text(header() + lines(rows))
    for number in range(100):
        more = [replace(row, run=2 + number, block=2000 + number, folder=f"{row.folder}-{number}") for row in rows[:1]]
        with (folder / "runs.csv").open("a") as file:
            file.write(lines(more))


def bomb(folder: Path) -> None:
    """1 GiB of zeros as requests: one compressed MiB again and again. (Its checksum is wrong, which nobody may find
    out: it stands at the end.)"""
    packer = zlib.compressobj(9, wbits=31)
    first, other = (packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    (folder / HAR_OF_TCP).write_bytes(first + other * 1023 + packer.flush())


RESULTS, WATERFALL = ("results",), ("waterfall", "--proto", "tcp,quic")
HAR_OF_TCP = f"runs/s/lte/tcp/1-1/{HAR}"
# For each: the damage, the command that refuses the campaign, and a part of its error message.
HOSTILE: dict[str, tuple[Damage, tuple[str, ...], str]] = {
    "a document that is a device": (linked("campaign.json", "/dev/zero"), RESULTS, "campaign.json cannot be read"),
    "a table that is a pipe": (pipe("runs.csv"), RESULTS, "runs.csv cannot be read"),
    "given up: a pipe": (pipe("given_up.json"), RESULTS, "given_up.json cannot be read"),
    "a validation that is a pipe": (pipe("validation.json"), RESULTS, "validation.json cannot be read"),
    "a document of brackets": (replaced("campaign.json", b"[" * 100_000), RESULTS, "nested too deeply"),
    "a browser that is a list": (document_with(settings__browser=[]), RESULTS, "browser must be a table"),
    "lanes that are text": (document_with(settings__lanes="1e9"), RESULTS, "lanes must be a whole number"),
    "runs that have nothing in common": (unrelated_runs, RESULTS, "hardly anything in common"),
    "requests of 1 GB": (bomb, WATERFALL, "longer than 64 MiB when decompressed"),
    "requests of brackets": (replaced(HAR_OF_TCP, gzip.compress(b"[" * 10**6)), WATERFALL, "nested too deeply"),
    "requests that are a pipe": (pipe(HAR_OF_TCP), WATERFALL, "no plain file among the campaign's runs"),
}


@pytest.mark.slow
def test_files_of_others_take_little_memory_and_are_refused_in_one_line(tmp_path: Path) -> None:
    commands = [(*command, str(campaign(tmp_path / "sound" / command[0]))) for command in (RESULTS, WATERFALL)]
    for number, (damage, command, _) in enumerate(HOSTILE.values()):
        damage(folder := campaign(tmp_path / str(number)))
        commands.append((*command, str(folder)))
    all_endings = endings(commands, tmp_path)
    sound, hostile = all_endings[:2], all_endings[2:]
    assert [ending.exception for ending in sound] == ["", ""], sound
    most_mb = max(ending.peak_mb for ending in sound) + MORE_MB
    for (name, (_, _, words)), ending in zip(HOSTILE.items(), hostile, strict=True):
        assert ending.is_refused and words in ending.error, (name, ending)
        assert ending.peak_mb < most_mb, (name, ending)


def called(*command: object) -> Ending:
    done = CliRunner().invoke(program, [str(part) for part in command])
    error = done.exception if isinstance(done.exception, Exception) else None
    return Ending(type(error).__name__ if error else "", str(error or ""), done.output, 0.0)


@pytest.mark.parametrize("place", [HAR_OF_TCP, "runs/s/lte/tcp", "runs"])
def test_a_waterfall_shows_no_requests_of_another_campaign(place: str, tmp_path: Path) -> None:
    folder = campaign(tmp_path / "c")
    (folder / place).rename(tmp_path / "elsewhere")
    (folder / place).symlink_to(tmp_path / "elsewhere")
    ending = called("waterfall", "--proto", "tcp", folder)
    assert ending.is_refused and "no plain file among the campaign's runs" in ending.error
    assert not (folder / "waterfalls").exists()


# An escape sequence that clears the screen, and names that rich would interpret as markup.
CLEARS = "\x1b[2J"
SITE, PROTOCOL = f"[/nope]{CLEARS}", f"[link=http://a.example]quic{CLEARS}"


@pytest.mark.parametrize("command", [("results",), ("status",), ("compare", "c")])
def test_names_and_reasons_of_others_are_shown_as_they_are_and_command_no_terminal(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [ROW, replace(ROW, site=SITE, protocol=PROTOCOL, folder="runs/b/1-1")]
    rows = [replace(row, run=number, block=number, folder=f"{row.folder}{number}") for row in rows for number in (1, 2)]
    rows.append(replace(rejected(f"load_failed: it {CLEARS}[/nope]"), run=3, folder="runs/c"))
    # A stranger's table may contain control characters that are not escaped; `lines` escapes them.
    text = lines(rows).replace(r"\x1b", "\x1b")
    for name in ("c", "d"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "runs.csv").write_text(header() + text)
        names = {"tcp": {"transport": "tcp"}, PROTOCOL: {"transport": "quic"}}
        write_document(tmp_path / name, campaign_document(sites={"s": {}, SITE: {}}, protocols=names))
    ending = called(*command, "d")
    assert ending.exception in ("", "SystemExit"), ending
    assert "\x1b" not in ending.output
    assert command != ("results",) or r"it \x1b[2J[/nope]" in ending.output


def test_a_refusal_commands_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = campaign(tmp_path / "c")

    @reports_errors
    def main() -> None:
        raise EyelevelError(f"{folder}: no site {CLEARS}; there are\na and b")

    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 1
    assert capsys.readouterr().err.endswith(r"no site \x1b[2J; there are" + "\na and b\n")
