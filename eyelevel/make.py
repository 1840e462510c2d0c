"""The targets of make that are commands of the program, with make's variables as options.

`python -m eyelevel.make TARGET NAME=VALUE...` carries out a target. The files that make needs before Python is
installed are generated from this module (`written_for_make`).
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from click.core import ParameterSource

from base.errors import EyelevelError, Misuse, reports_errors
from base.options import Option
from base.places import OWN_MARK, PROJECT, foreign_mark, own_folder, use_cache
from base.text import nearest
from eyelevel.next_step import make_line
from eyelevel.options import STUDY, options_of
from eyelevel.program import COMMANDS, INTERRUPTED, program, status_of
from studies import STUDIES
from studies.study import Study

HELP = "--help"
YES, NO = ("yes", "1"), ("no", "0")
# Variables of make itself, which are not options: their text in `make help`, and the targets that take them; * for all.
ALL = ("*",)
OWN_VARIABLES = {
    "SERVERS": ("Further servers to install (caddy,quinn)", ("setup",)),
    "BROWSERS": ("Further browsers to install (firefox)", ("setup",)),
    "BROWSER_VERSION": ("Version of a browser to install again, for a campaign that was begun with it", ("setup",)),
    "SHELLS": ("Further shells to install (mahimahi)", ("setup",)),
    "HOPS": ("Hop programs to install (haproxy)", ("setup",)),
    "TIMES": ("Number of runs of the suite", ("soak",)),
    "BUSY": ("Number of busy processes that run at the same time", ("soak",)),
    "EYELEVEL_CACHE": ("Where setup installs (~/.cache/eyelevel)", ALL),
}
# The variable that has the meaning of another at a target that does not take that one.
SAME = {"SITE": "NAME"}
# These variables are not options, and any target may be given them: programs read them in their environment.
OF_ENVIRONMENT = re.compile(r"EYELEVEL_\w+|PYTHON|(http|https|all|no)_proxy|(HTTP|HTTPS|ALL|NO)_PROXY")

MAKEFILE = PROJECT / "Makefile"
OWN_TARGET = re.compile(r"^([a-z-]+):.*?## (.*)$", re.MULTILINE)
EXAMPLE = re.compile(r"^ *(?:Example: )?(eyelevel .*?)$", re.MULTILINE)


@dataclass(frozen=True)
class Target:
    """A target, which runs its `steps`: commands of the program with fixed options.

    `follows_failure`: whether a step runs even if the step before it failed. In both cases the target's status is that
    of the first failure.
    """

    name: str
    help: str
    steps: tuple[tuple[str, ...], ...]
    study: Study | None = None
    follows_failure: bool = False

    @property
    def command(self) -> str:
        """The name of the first command; the target's variables are its options."""
        words = self.steps[0]
        return " ".join(word for word in words if not word.startswith("-"))

    @property
    def options(self) -> list[Option]:
        """The options of the command or the study."""
        return [*options_of(STUDY), *self.study.options] if self.study else options_of(self.command)

    @property
    def variables(self) -> dict[str, Option]:
        """Variables of make → options. A target that runs another program has no variables."""
        if HELP in self.steps[0]:
            return {}
        return {option.variable: option for option in self.options if option.type is not click.UNPROCESSED}

    @property
    def needs(self) -> list[str]:
        """The variables that the target requires."""
        return [name for name, option in self.variables.items() if option.is_required]

    @property
    def example(self) -> str:
        """A command line of make that runs the target, taken from the help of its command."""
        command: click.Command | None = program
        context = click.Context(program)
        for word in self.command.split():
            assert isinstance(command, click.Group)
            command = command.get_command(context, word)
        match = EXAMPLE.search((command and command.help) or "")
        assert match, f"the help of {self.command} has no example"
        given = self.read(shlex.split(match[1])[len(self.command.split()) + 1 :])
        return make_line(self.name, {name: text for name, text in given.items() if name in self.variables})

    def read(self, words: Sequence[str]) -> dict[str, str]:
        """The variables that the `words` of a command line set."""
        by_name = {name: option for option in self.options for name in option.name.split("/")}
        places = [option for option in self.options if option.is_argument]
        given, rest = dict[str, str](), iter(words)
        for word in rest:
            if word == "--":
                break
            if option := by_name.get(word):
                yes = option.name.partition("/")[0]
                given[option.variable] = next(rest) if option.has_value else YES[0] if word == yes else NO[0]
            elif places:
                given[places[0].variable] = word
                del places[0]
        return given


def targets() -> dict[str, Target]:
    """All targets that run commands of the program, by name."""
    steps: dict[str, tuple[tuple[str, ...], ...]] = {
        "record": (("record",), ("close", "--recorded")),
        "figures": (("report", "--figures-only"),),
        "user-study": (("user-study", "write"),),
        "completion": (("completion", HELP),),
    }
    texts = {
        **COMMANDS,
        "record": "record pages from the web as sites, and fetch missing responses",
        "figures": "draw only the figures of a campaign",
    }
    names = [name for name in COMMANDS if name not in NO_TARGETS]
    names.insert(names.index("report") + 1, "figures")
    plain = [Target(name, texts[name], steps.get(name, ((name,),)), follows_failure=name == "record") for name in names]
    studies = [Target(one.command, f"{one.title}, and write the report", ((one.command,),), one) for one in STUDIES]
    return {target.name: target for target in (*plain, *studies)}


# Commands without a target: they are used in a replay, on a cluster or by developers.
NO_TARGETS = {"demo", "load", "scheduler", "worker", "simulate"}


def command_lines(target: Target, given: Mapping[str, str]) -> list[list[str]]:
    """The command lines of `target` for the variables `given` to make. Raises EyelevelError."""
    lines = [[*target.steps[0], *_words(target.options, given)]]
    # A later step receives the options that it shares with the first.
    for step in target.steps[1:]:
        lines.append([*step, *_words([one for one in options_of(step[0]) if one in target.options], given)])
    if target.study:
        name = given.get("CAMPAIGN") or given.get("PRESET") or target.name
        lines.append(["report", f"{given['RESULTS']}/{name}" if "RESULTS" in given else name])
    return lines


def _words(options: Collection[Option], given: Mapping[str, str]) -> Iterator[str]:
    """The words of a command line for the variables `given`; arguments come last. Raises EyelevelError."""
    for option in sorted(options, key=lambda one: one.is_argument):
        if (text := given.get(option.variable)) is None:
            continue
        yes, _, no = option.name.partition("/")
        if option.is_argument:
            yield from ["--", text] if text.startswith("-") else [text]
        elif option.has_value:
            yield from (yes, text)
        elif text in YES:
            yield yes
        elif text not in NO:
            raise Misuse(f"{option.variable} is {YES[0]} or {NO[0]}, not {text!r}")
        elif no:
            yield no


def require_known(goals: Collection[str], given: Collection[str]) -> None:
    """Raise EyelevelError if a variable was `given` that no target among `goals` takes."""
    known = {name for name, (_, takers) in OWN_VARIABLES.items() if {*ALL, *goals} & {*takers}}
    known |= {name for goal in goals if goal in targets() for name in targets()[goal].variables}
    for name in given:
        if name not in known and not OF_ENVIRONMENT.fullmatch(name):
            near = nearest(name, known) or (SAME.get(name) if SAME.get(name) in known else None)
            remedy = f"did you mean {near}?" if near else f"it takes {', '.join(sorted(known))}"
            raise Misuse(f"make {' '.join(goals)} takes no {name}; {remedy}")


def same_command(of: str, context: click.Context) -> str:
    """The command line of make that repeats the command of `context`, which was called by the target named `of`."""
    target = targets()[of]
    given = {}
    for option in target.options:
        name = option.click_parameter().name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = os.environ[option.environment] if option.environment else context.params[name]
            given[option.variable] = str(value) if option.has_value else YES[0] if value else NO[0]
    return make_line(target.name, given)


def carry_out(target: Target, given: Mapping[str, str], run: Callable[[Sequence[str]], int] = status_of) -> int:
    """Run `target`, and return the exit status of the first step that failed, or 0.

    `run` runs a command of the program and returns its exit status. Raises EyelevelError, and click.Abort when it is
    interrupted.
    """
    status = 0
    for line in command_lines(target, given):
        if status and not target.follows_failure:
            break
        status_of_step = run(line)
        status = status or status_of_step
    return status


def written_for_make() -> dict[str, str]:
    """Files in setup/make/ that make reads before Python is installed → their text."""
    known = targets()
    lines = ["# Written by 'PYTHONPATH=tests:. python -m support.every_option'.", f"TARGETS := {' '.join(known)}"]
    for target in known.values():
        if target.needs:
            lines += [f"NEEDS_{target.name} := {' '.join(target.needs)}", f"EXAMPLE_{target.name} := {target.example}"]
    return {"targets.mk": "\n".join(lines) + "\n", "help.txt": "\n".join(help_lines()) + "\n"}


def help_lines() -> Iterator[str]:
    """The text of `make help`: the targets, and the variables of a campaign and of make itself."""
    from record.formats import formats

    known = targets()
    for name, text in (*OWN_TARGET.findall(MAKEFILE.read_text()), *((one.name, one.help) for one in known.values())):
        yield f"  make {name:<14} {text}"
    yield from (
        "",
        "Variables of make campaign; docs/options/TARGET.md and 'eyelevel TARGET --help' list those of other targets:",
    )
    for name, option in known["campaign"].variables.items():
        # A flag with an opposite has the name of one of both as its default.
        is_on = option.default_words == option.name.partition("/")[0].lstrip("-")
        words = option.default_words if option.has_value else ("yes" if is_on else "no")
        yield f"  {name:<15} {description(option)}{f' [default: {words}]' if words else ''}"
    yield from ("", "FROM of make import is one of these recordings:")
    yield from (f"  {form.DESCRIPTION}" for form in formats())
    yield from ("", "Variables of make itself:")
    for name, (text, takers) in OWN_VARIABLES.items():
        yield f"  {name:<15} {text}" + ("" if takers == ALL else f" (make {', '.join(takers)})")


def variables_table() -> Iterator[tuple[str, str, list[str]]]:
    """Each variable with each of its descriptions, and the targets at which it has this description."""
    takers: dict[tuple[str, str], list[str]] = {}
    for target in targets().values():
        for name, option in target.variables.items():
            takers.setdefault((name, description(option)), []).append(target.name)
    return ((*entry, names) for entry, names in sorted(takers.items()))


def description(option: Option) -> str:
    """The first sentence of the option's help, without the full stop, plus a note if its values are yes and no."""
    sentence = re.split(r"\.(?: |$)", option.help)[0]
    return sentence if option.has_value else f"{sentence} (yes or no)"


@reports_errors
def main() -> None:
    """Carry out a target, or print its commands: [--print] "ALL GOALS OF MAKE" TARGET NAME=VALUE..."""
    use_cache()
    if os.environ.get("EYELEVEL_FOLDER") and own_folder() != (folder := Path.cwd()):
        if note := foreign_mark():
            raise EyelevelError(f"{note}; run make as that user")
        raise EyelevelError(f"{folder} has no {OWN_MARK}; 'touch {OWN_MARK}' there makes it yours again")
    is_printed = sys.argv[1] == "--print"
    goals, name, *values = sys.argv[2 if is_printed else 1 :]
    given = dict(value.split("=", 1) for value in values)
    target = targets()[name]
    require_known(goals.split(), given)
    if is_printed:
        for line in command_lines(target, given):
            click.echo(shlex.join(["eyelevel", *line]))
        return
    try:
        sys.exit(carry_out(target, given))
    except click.Abort:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
