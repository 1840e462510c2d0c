"""Generates the parts of documents that describe the program.

These are the pages of every option (docs/options/), the files that make reads, and the table of columns in
docs/runs-csv.md. `PYTHONPATH=tests:. python -m support.every_option` writes them.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile

import click

from base.places import PROJECT
from dataset.schema import rows as rows_of_columns
from eyelevel.make import Target, targets, variables_table, written_for_make
from eyelevel.program import COMMANDS, program
from measure.instruments.contract import instrument_columns
from studies import STUDIES

REMEDY = "PYTHONPATH=tests:. ~/.cache/eyelevel/venv/bin/python -m support.every_option"
NOTE = f"<!-- Written by '{REMEDY}' from eyelevel/options.py; do not edit it. -->"
INTRODUCTION = """# Every option

A page for each command. Most commands are targets of `make`, too, and options are their variables:
`make campaign NET=lte` is `eyelevel campaign --net lte`. `make -n campaign NET=lte` prints the command.
"""

# The settings files, whose first comment explains all keys, and the noun for one of their tables.
SETTINGS = {"networks": "a network", "protocols": "a protocol setting", "devices": "a device"}
# A file that is its own documentation, and is shown as a whole.
HYPOTHESES = "analysis/hypotheses.toml"

# The number of characters in a line on a page that is 1400 pixels wide.
WIDTH = 96


def _helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The name and the help of `command`, then those of its subcommands."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    # click caches a command's help option when it first needs it. Another test may have run the command without its
    # parents.
    command._help_option = None
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group) and parent:
        for part in command.list_commands(context):
            below = command.get_command(context, part)
            assert below is not None
            yield from _helps(below, part, context)


def first_comment(text: str) -> str:
    """The comment at the beginning of a file, without comment signs."""
    return "\n".join(line[2:] for line in takewhile(lambda line: line.startswith("#"), text.splitlines()))


def _page_of_command(name: str, target: Target | None) -> str:
    """The page of a command, with make's variables if it is a target of make."""
    root = click.Context(program, info_name="eyelevel")
    command = program.get_command(root, name)
    assert command is not None
    helps = _helps(command, name, root)
    parts = [f"# eyelevel {name}\n\n{NOTE}\n"]
    parts += [f"```text\n{text.rstrip()}\n```\n" for _, text in helps]
    if target and target.variables:
        parts.append(f"## make {name}\n\n```sh\n{target.example}\n```\n")
        parts.append(f"Variables: {', '.join(f'`{name}`' for name in target.variables)}.\n")
    return "\n".join(parts)


def written() -> dict[str, str]:
    """The path of each file, within the project → its text."""
    known = targets()
    names = [*COMMANDS, *(study.command for study in STUDIES)]
    files = {f"setup/make/{name}": text for name, text in written_for_make().items()}
    files |= {f"docs/options/{name}.md": _page_of_command(name, known.get(name)) for name in names}
    titles = {**COMMANDS, **{study.command: study.title for study in STUDIES}}
    lines = [INTRODUCTION, NOTE, "", "| | |", "|---|---|", "| [make](make.md) | all targets and variables of make |"]
    lines += [f"| [{name}]({name}.md) | {titles[name]} |" for name in names]
    for name, what in SETTINGS.items():
        file = f"tuning/{name}.toml"
        comment = first_comment((PROJECT / file).read_text())
        lines.append(f"| [keys of {what}](keys-of-{name}.md) | {file} |")
        files[f"docs/options/keys-of-{name}.md"] = (
            f"# Keys of {what}\n\n{NOTE}\n\nFrom the head of [{file}](../../{file}).\n\n```text\n{comment}\n```\n"
        )
    hypotheses = (PROJECT / HYPOTHESES).read_text().rstrip()
    lines.append(f"| [hypotheses](hypotheses.md) | {HYPOTHESES} |")
    files["docs/options/hypotheses.md"] = (
        f"# Hypotheses\n\n{NOTE}\n\n[{HYPOTHESES}](../../{HYPOTHESES}).\n\n```toml\n{hypotheses}\n```\n"
    )
    rows = [f"| `{name}` | {text} | {', '.join(takers)} |" for name, text, takers in variables_table()]
    files["docs/options/make.md"] = "\n".join(
        [
            f"# make\n\n{NOTE}\n\n```text\n{files['setup/make/help.txt'].rstrip()}\n```\n",
            "## All variables of targets\n",
            "| variable | | targets |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
    files["docs/options/index.md"] = "\n".join(lines) + "\n"
    files["docs/runs-csv.md"] = _with_table("docs/runs-csv.md", "| column |", rows_of_columns(instrument_columns()))
    return files


def _with_table(name: str, head: str, rows: Iterable[str]) -> str:
    """The document `name`, with `rows` in the table whose first line begins with `head`."""
    lines = (PROJECT / name).read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(head)) + 2
    end = next(number for number, line in enumerate(lines) if number > begin and not line.startswith("|"))
    return "\n".join([*lines[:begin], *rows, *lines[end:], ""])


if __name__ == "__main__":
    for name, text in written().items():
        (PROJECT / name).parent.mkdir(exist_ok=True)
        (PROJECT / name).write_text(text)
