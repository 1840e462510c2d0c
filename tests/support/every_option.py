"""The page of every option, docs/options.md, as the program, make and the settings' files tell it themselves.

`PYTHONPATH=tests python -m support.every_option > docs/options.md` writes it.
"""

import subprocess
from collections.abc import Iterator
from itertools import takewhile

import click

from base.places import PROJECT
from eyelevel.program import program

INTRODUCTION = """# Every option

Written by `PYTHONPATH=tests python -m support.every_option > docs/options.md`. A test
(`tests/eyelevel/test_documents.py`) holds it to what the program says; do not edit it.

Most targets of `make` call the command of `eyelevel` of the same name: `make campaign NET=lte` is
`eyelevel campaign --net lte`.
"""

# Files of settings whose first comment explains all keys, and what they are.
SETTINGS = {
    "tuning/networks.toml": "a network",
    "tuning/protocols.toml": "a protocol setting",
    "tuning/devices.toml": "a device",
}
# A file that explains itself from its beginning to its end.
HYPOTHESES = "analysis/hypotheses.toml"

# In characters: a line of a page that is 1400 pixels wide.
WIDTH = 96


def _helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The name and the help of `command`, then those of its own commands."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    # click keeps the option for help from its first call, which another test may have made without parents.
    command._help_option = None
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            below = command.get_command(context, part)
            assert below is not None
            yield from _helps(below, part, context)


def first_comment(text: str) -> str:
    """The comment that a file begins with, without the signs of comments."""
    return "\n".join(line[2:] for line in takewhile(lambda line: line.startswith("#"), text.splitlines()))


def document() -> str:
    """The text of docs/options.md."""
    command = ["make", "--silent", "--no-print-directory", "help"]
    targets = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    parts = [f"## make\n\n```text\n{targets.rstrip()}\n```\n"]
    parts += [f"## {name}\n\n```text\n{text.rstrip()}\n```\n" for name, text in _helps(program, "eyelevel")]
    for file, what in SETTINGS.items():
        comment = first_comment((PROJECT / file).read_text())
        parts.append(f"## Keys of {what}\n\nFrom the head of [{file}](../{file}).\n\n```text\n{comment}\n```\n")
    hypotheses = (PROJECT / HYPOTHESES).read_text().rstrip()
    parts.append(f"## What a campaign is asked\n\n[{HYPOTHESES}](../{HYPOTHESES}).\n\n```toml\n{hypotheses}\n```\n")
    return "\n".join([INTRODUCTION, *parts])


if __name__ == "__main__":
    print(document(), end="")
