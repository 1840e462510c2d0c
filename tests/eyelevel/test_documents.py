"""Commands in documents work: make and the program accept them, and print the output that the documents show.

A block of commands (```sh) has only lines that begin with make or eyelevel, which are checked here, or a comment "not
run by the tests" as its first line. In sentences, code that sets a variable of make (`make report CAMPAIGN=x`) is a
command, too, and so is a line of a job in docs/ci.md. tests/proof/test_clusters.py runs the other commands of
docs/parallel.md.
"""

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support.every_option import REMEDY, written
from support.figure_layout import draw_nothing
from support.readme_pictures import FIGURE, caption, description, figure

from base.errors import EyelevelError
from base.places import PROJECT
from eyelevel.make import MAKEFILE, OWN_TARGET, command_lines, require_known, targets
from eyelevel.program import program
from tuning import networks, protocols
from tuning.settings import USER_FOLDER, Catalogue

README = PROJECT / "README.md"
PATTERNS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "studies/*/README.md")
DOCUMENTS = sorted(path for pattern in PATTERNS for path in PROJECT.glob(pattern))
FIRST_HOUR = PROJECT / "docs" / "first-hour.md"
MARK = "# not run by the tests"
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# A command in a sentence or a table, without a gap for the reader to fill.
SPAN = re.compile(r"`(make [^`…<>|*]*=[^`…<>|*]*|eyelevel [^`…<>|]*--\w[^`…<>|]*)`")
# A command of a job of continuous integration.
JOB = re.compile(r"^ *(?:- )?(?:run: )?((?:make|\S*eyelevel) (?:campaign|compare|ab) .*)$", re.MULTILINE)
# A command in an indented block.
LINE = re.compile(r"^    ((?:make|eyelevel) .*)$", re.MULTILINE)


def commands(document: Path) -> Iterator[str]:
    """Each command in the unmarked blocks of `document`, and in its sentences."""
    text = document.read_text()
    outside = FENCE.sub("", text)
    yield from (" ".join(span.split()) for span in SPAN.findall(outside))
    yield from (line for line in LINE.findall(outside) if "=" in line and "…" not in line)
    for job in YAML.findall(text):
        yield from (re.sub(r"^\S*eyelevel ", "eyelevel ", line) for line in JOB.findall(job))
    for block in BLOCK.findall(text):
        if not block.lstrip().startswith(MARK):
            lines = block.replace("\\\n", " ").splitlines()
            yield from (line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))


COMMANDS = {document: sorted(set(commands(document))) for document in DOCUMENTS}


def calls(command: str) -> list[list[str]]:
    """The arguments of each call of the program by `command`."""
    words = shlex.split(command, comments=True)
    if words[0] == "eyelevel":
        return [words[1:]]
    assert words[0] == "make", f"{command!r}: mark the block with {MARK!r} and say why, or give a command to be checked"
    goals = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
    given = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    require_known(goals, given)
    of_make = {name for name, _ in OWN_TARGET.findall(MAKEFILE.read_text())}
    return [line for goal in goals if goal not in of_make for line in command_lines(targets()[goal], given)]


def taken(command: click.Command, name: str, arguments: list[str], parent: click.Context | None = None) -> None:
    """Let the program parse `arguments` as it would before it begins; raises click.UsageError."""
    context = command.make_context(name, list(arguments), parent=parent)
    if isinstance(command, click.Group) and (rest := [*context._protected_args, *context.args]):
        below, part, further = command.resolve_command(context, rest)
        assert part is not None and below is not None
        taken(part, below, further, context)


@pytest.mark.parametrize(
    "document",
    [document for document in DOCUMENTS if COMMANDS[document]],
    ids=lambda document: str(document.relative_to(PROJECT)),
)
def test_commands_of_documents_are_such_as_make_and_the_program_take(
    document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # TUNING sets it.
    monkeypatch.setenv(USER_FOLDER, str(PROJECT / "tuning"))
    for command in COMMANDS[document]:
        for arguments in calls(command):
            try:
                taken(program, "eyelevel", arguments)
            except click.exceptions.Exit:
                pass  # of --help
            except click.UsageError as error:
                # Files and campaigns that do not exist are allowed: readers have their own.
                assert "does not exist" in error.format_message(), f"{command}: {error.format_message()}"


@pytest.mark.parametrize(("kind", "known"), [("NET", networks.load), ("PROTO", protocols.load)])
def test_networks_and_protocols_in_commands_are_there(kind: str, known: Callable[[], Catalogue[object]]) -> None:
    catalogue = known()
    names = {*catalogue, *catalogue.groups}
    unknown = [
        (document.name, name)
        for document, given_commands in COMMANDS.items()
        for command in given_commands
        if "TUNING=" not in command  # there they are the reader's own
        for given in re.findall(rf"\b{kind}=(\S+)", command)
        for name in given.split(",")
        if name not in names and not name.startswith("my-")
    ]
    assert unknown == []


def test_a_command_that_nothing_takes_is_reported(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "```sh\nmake campaign NETS=lte\n```\n\n```sh\n# not run by the tests\nrm x\n```\n"
    )
    [wrong] = commands(tmp_path / "page.md")
    with pytest.raises(EyelevelError, match="make campaign takes no NETS; did you mean NET"):
        calls(wrong)
    with pytest.raises(click.UsageError, match="--nets"):
        taken(program, "eyelevel", calls("eyelevel campaign --nets lte")[0])
    with pytest.raises(AssertionError, match="mark the block"):
        calls("rm x")


def test_every_option_is_as_the_program_says() -> None:
    others = {name for name, text in written().items() if (PROJECT / name).read_text() != text}
    assert others == set(), f"write them anew: {REMEDY}"
    pages = {str(path.relative_to(PROJECT)) for path in (PROJECT / "docs" / "options").iterdir()}
    assert pages <= written().keys(), "a page of a command that is not there"


@pytest.mark.parametrize("campaign", ["near", "far"])
def test_the_first_hour_shows_what_the_program_prints(campaign: str) -> None:
    # The output must not depend on the terminal in which the tests run.
    terminal = {"COLUMNS": "120", "FORCE_COLOR": None}
    folder = PROJECT / "docs" / "first-hour" / campaign
    outcome = CliRunner(env=terminal).invoke(program, ["results", str(folder)])
    printed = "\n".join(line.rstrip() for line in outcome.stdout.splitlines())
    assert f"```text\n{printed}\n```" in FIRST_HOUR.read_text()


def test_the_first_hour_puts_servers_where_its_campaign_had_them() -> None:
    folder = PROJECT / "docs" / "first-hour"
    settings = json.loads((folder / "far" / "campaign.json").read_text())["settings"]
    assert tomllib.loads((folder / "servers.toml").read_text()) == {
        name: site["extra_rtts_ms"] for name, site in settings["sites"].items()
    }


@pytest.mark.slow
def test_the_first_hour_has_the_numbers_of_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_nothing(monkeypatch)
    folder = tmp_path / "far"
    shutil.copytree(PROJECT / "docs" / "first-hour" / "far", folder, ignore=shutil.ignore_patterns("report"))
    outcome = CliRunner().invoke(program, ["report", str(folder)])
    assert outcome.exit_code == 0, outcome.output
    page = (folder / "report" / "index.html").read_text()
    assert "it is not decided whether QUIC shows demo-news sooner than TCP+ on DSL" in page.replace("It is", "it is")
    assert "-17.0 % (-23.4 % to -9.9 %)" in page
    for said in ("17.0 % shorter (23.4 % to 9.9 %)", "still *not decided*"):
        assert said in " ".join(FIRST_HOUR.read_text().split())


def test_the_map_of_the_test_kit_has_every_module() -> None:
    folder = PROJECT / "tests" / "support"
    text = (folder / "README.md").read_text()
    assert [path.stem for path in folder.glob("*.py") if path.stem[0] != "_" and f"`{path.stem}`" not in text] == []


def test_the_list_of_proofs_has_every_one() -> None:
    text = (PROJECT / "docs" / "contributors" / "tests.md").read_text()
    proofs = [path.name for path in (PROJECT / "tests" / "proof").glob("test_*.py")]
    assert [name for name in proofs if f"`{name}`" not in text] == []


def test_the_readme_is_short_and_shows_a_result_first() -> None:
    text = README.read_text()
    assert len(text.split()) < 700
    picture = re.search(r'<img src="(\S+)"', text)
    assert picture and (PROJECT / picture[1]).is_file()
    assert picture.start() < text.index("## ")


def test_the_readme_shows_the_reference_campaign_of_today() -> None:
    remedy = "write it anew: PYTHONPATH=tests:. ~/.cache/eyelevel/venv/bin/python -m support.readme_pictures"
    assert FIGURE.read_text() == figure(), remedy
    text = " ".join(README.read_text().split())
    assert caption() in text, f"{remedy}, and copy the caption that it prints"
    assert f'alt="{description()}"' in text


def test_pictures_of_documents_are_small() -> None:
    assert {str(path) for path in (PROJECT / "docs" / "pictures").iterdir() if path.stat().st_size >= 100_000} == set()
