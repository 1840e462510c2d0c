"""`eyelevel`: the program with all commands. Each command is a module in `eyelevel.commands`, or belongs to a study."""

import importlib
import os
import signal
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from keyword import iskeyword
from typing import Any

import click

from base.errors import EyelevelError, print_error, reports_errors
from base.places import IS_CHECKOUT, MEASURING, PROJECT, foreign_mark, use_cache

PYPROJECT = PROJECT / "pyproject.toml"
# The exit status of a program that SIGINT ended, as shells have it.
INTERRUPTED = 130

# The commands in the order of the list; the commands of studies follow. A command is loaded only when it is needed,
# since some libraries take seconds.
COMMANDS = {
    "try": "measure a demo site over TCP and QUIC, and say which showed it sooner (3 to 4 minutes)",
    "answer": 'answer "would HTTP/3 help?" for one page: record, close, measure and report it',
    "init": "make a folder of your own for settings, sites and results, outside the checkout",
    "record": "record pages from the web as sites",
    "import": "import a recording in another format as a site",
    "export": "export a site in a format that other tools read",
    "edit": "make a variant of a site: drop, replace or delay responses, add header fields",
    "demo": "generate the demo sites",
    "close": "complete sites: find requests without a recorded response, and fetch these where possible",
    "site-info": "describe the recorded sites",
    "replay": "run a command, or a shell, as the client of a replayed site",
    "load": "load a replayed site once, inside its replay",
    "campaign": "measure sites over networks and protocols; the same command resumes",
    "status": "show the progress of a campaign",
    "review": "show the films of a campaign, and accept or reject runs by eye",
    "results": "show the main results of a campaign",
    "report": "write the report of a campaign: the answer, and all tables and figures",
    "reference": "measure the campaign that data/reference.toml declares, and write the package data/reference",
    "reproduce": "measure a figure, table or claim of a source document again, by its name",
    "package": "write a campaign as a folder that can be cited, without films and other people's content",
    "verify": "compare the files of a package with their checksums",
    "waterfall": "show the requests of one run, or of two side by side, over time",
    "user-study": "write a user study of a campaign's films, and collect votes",
    "ab": "measure two settings side by side in one campaign: is B faster or slower than A?",
    "compare": "compare campaign B with campaign A, before and after a change",
    "history": "read many comparisons of 'eyelevel ab': has B become slower over the weeks?",
    "combine": "combine campaigns of several machines or years, and test whether they agree",
    "quiet-times": "show how shorter quiet times would have changed the runs of campaigns",
    "networks": "list the networks, and draw their rates and round-trip times over time",
    "protocols": "list the protocols and their settings",
    "convert-trace": "convert published traces and logs into a conditions file or a delivery trace",
    "probe-network": "measure the path to another machine, and add it to your networks",
    "validate": "measure networks and protocols, and compare them with their settings",
    "interop": "test every server with every browser",
    "devices": "list the devices, and test whether this machine can keep their paces",
    "doctor": "show what a bug report needs, and what makes this machine unfit for measuring",
    "lanes": "measure how many runs this machine can make at once",
    "cluster-keys": "make the keys with which the machines of a cluster authenticate each other",
    "scheduler": "distribute the blocks of campaigns to the workers of a cluster",
    "worker": "measure on this machine for a cluster's campaigns",
    "simulate": "write a synthetic campaign with known effects",
    "completion": "print the script that makes a shell complete commands, options and names",
}

# Commands that run browsers, servers or shells, or prepare it. The commands of studies do, too.
MEASURING_COMMANDS = {
    *("init", "try", "answer", "record", "close", "replay", "load", "campaign", "ab", "reference", "probe-network"),
    *("validate", "interop", "devices", "lanes", "scheduler", "worker", "doctor"),
}
# Commands that load sites by name.
SITE_COMMANDS = {*MEASURING_COMMANDS, "status", "edit", "site-info"}


class Program(click.Group):
    """The group of all commands."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands, in the order of the list."""
        return [*COMMANDS, *_studies()]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command `name`, or None. Raises EyelevelError if it measures and this installation can only read
        results."""
        if name in MEASURING_COMMANDS:
            _require_checkout(name)
        if name in SITE_COMMANDS:
            _studies()  # the pages of studies are sites, too
        if name not in COMMANDS:
            if not (study := _studies().get(name)):
                return None
            _require_checkout(name)
            command = importlib.import_module("eyelevel.study_command").study_command(study)
            assert isinstance(command, click.Command)
            return command
        module = name.replace("-", "_") + ("_" if iskeyword(name) else "")
        try:
            command = importlib.import_module(f"eyelevel.commands.{module}").main
        except ModuleNotFoundError as error:
            raise _missing(error, name) from None
        assert isinstance(command, click.Command)
        command.name, command.short_help = name, COMMANDS[name]
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with, and the rest of them. Raises NoSuchCommand, which names similar ones."""
        try:
            return super().resolve_command(context, args)
        except click.exceptions.NoSuchCommand as error:
            names = self.list_commands(context)
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=names, ctx=context) from None

    def invoke(self, context: click.Context) -> Any:
        """Carry out the command of `context`. Raises EyelevelError if a package that it needs is not installed."""
        try:
            return super().invoke(context)
        except ModuleNotFoundError as error:
            raise _missing(error, context.invoked_subcommand or "") from None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading any; a study loads what it needs only when its command runs."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Studies"):
            formatter.write_dl([(name, study.title) for name, study in _studies().items()])


def _missing(error: ModuleNotFoundError, name: str) -> Exception:
    """The error for a missing package that command `name` needs. In a checkout all packages are installed, so `error`
    itself is a bug and is returned."""
    if IS_CHECKOUT:
        return error
    return EyelevelError(f"'eyelevel {name}' needs the Python package of {error.name}; {MEASURING}")


def _require_checkout(name: str) -> None:
    if not IS_CHECKOUT:
        raise EyelevelError(f"'eyelevel {name}' is not available here: {MEASURING}")


def _studies() -> dict[str, Any]:
    """The studies, by their commands."""
    return {study.command: study for study in importlib.import_module("studies").STUDIES}


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    click.echo(f"eyelevel {version_words()}")
    context.exit()


def version_words() -> str:
    """The version of the program, and the folder and the commit of its checkout."""
    from measure.host.machine import commit_of_testbed

    # The version that pip installed may come from another checkout.
    number = tomllib.loads(PYPROJECT.read_text())["project"]["version"] if IS_CHECKOUT else version("eyelevel")
    return f"{number} ({PROJECT}, commit {commit_of_testbed()})"


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version, and the folder and commit of the checkout.",
)
def program() -> None:
    """Eyelevel: how much faster does a page load over QUIC than over TCP that is tuned just as well?

    Example: eyelevel campaign --net lte --proto tcp,quic --sites demo-news --runs 3 --campaign first
    """
    if IS_CHECKOUT and (note := foreign_mark()):
        print_error(f"{note}; sites and results are those in {PROJECT}")


def status_of(line: Sequence[str]) -> int:
    """Run a command line of the program, without the program's name; returns its exit status.

    An error is printed as one line. A wrong command line has status 2, any other error has status 1. Raises click.Abort
    when the command is interrupted.
    """
    try:
        result = program.main(line, prog_name="eyelevel", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except EyelevelError as error:
        print_error(str(error))
        return error.status
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        text = " ".join(error.format_message().split()).removesuffix(".")
        see = f"{' S' if text.endswith('?') else '; s'}ee '{error.ctx.command_path} --help'" if error.ctx else ""
        print_error(text + see)
        return error.exit_code
    return result if isinstance(result, int) else 0


@reports_errors
def main() -> None:
    """Run the command that the command line names."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends commands like Ctrl-C
    # Our matrices are small, so threads of linear algebra would only wait for each other, and for the processes that
    # compute a report. NumPy reads this when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if IS_CHECKOUT:
        use_cache()
    try:
        sys.exit(status_of(sys.argv[1:]))
    except click.Abort:
        sys.exit(INTERRUPTED)
