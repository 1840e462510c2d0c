"""An option or argument of commands: one entry, from which the rest is derived.

Derived are click's parameter, shell completion, the variable of make, and the page in docs/options/.
"""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from base.errors import EyelevelError
from base.files import require_file, require_replaceable, require_writable
from base.places import WORK


class _Destination(click.Path):
    """A path to which a command writes; refused before the command begins if it cannot be written."""

    def __init__(self, require: Callable[[Path, str], None], kind: str, *, resolve_path: bool = False) -> None:
        super().__init__(path_type=Path, resolve_path=resolve_path)
        self._require, self._kind = require, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises EyelevelError."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx is None or not ctx.resilient_parsing:
            self._require(path, f"{param.opts[-1] if param else 'this'} names another {self._kind}")
        return path


PATH = click.Path(path_type=Path)
# The path is made absolute, for programs that change their working folder before they open it.
ABSOLUTE_PATH = click.Path(path_type=Path, resolve_path=True)
FILE = _Destination(require_file, "file")
APPENDED_FILE = _Destination(partial(require_file, appended=True), "file")
FOLDER = _Destination(require_writable, "folder")
ABSOLUTE_FOLDER = _Destination(require_writable, "folder", resolve_path=True)
# A folder that is replaced as a whole.
NEW_FOLDER = _Destination(require_replaceable, "folder")
COUNT = click.IntRange(min=1)

Names = Callable[[click.Context], Iterable[str]]


class _Filled(click.Parameter):
    """A parameter that is not given an empty value: an unset variable of a shell would choose the default unseen."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value in its type. Raises BadParameter."""
        texts = value if isinstance(value, tuple | list) else [value]
        if self.type is not click.UNPROCESSED and any(isinstance(text, str) and not text.strip() for text in texts):
            raise click.BadParameter("it is empty; give it a value, or leave it out", ctx, self)
        return super().type_cast_value(ctx, value)


class _Option(_Filled, click.Option):
    pass


class _Argument(_Filled, click.Argument):
    pass


@dataclass(frozen=True)
class Option:
    """An option of commands, or one of their arguments.

    `name`: as on the command line, such as `--net`; `--film/--no-film` for a pair that means yes and no; for an
    argument its name in capitals, such as `CAMPAIGN`. `help`: one or two sentences, without the default. `commands`:
    the names of the commands that take it; `*` for all studies. `type`: click's type. `choices`: all allowed values.
    `default`: the default value. `choices` and `default` may be functions, which are called when a command takes the
    option. `usual`: the default in words, if the command itself chooses it, or a function that returns these words.
    `is_flag`: whether it takes no value. `is_list`: whether it can be given more than once. `names`: a function that
    returns all names that its value, or an element of its list, can be; shells complete them. `setting`: the field of a
    campaign's settings (`dataset.settings`) that it sets. `parameter`: its name in the command's function, if that
    differs. `environment`: the environment variable that it sets, in place of a parameter of the command's function.
    """

    name: str
    help: str
    commands: Collection[str] = ()
    type: click.ParamType[Any] | type | None = None
    choices: Collection[str] | Callable[[], Collection[str]] = ()
    default: Any = None
    usual: str | Callable[[], str] = ""
    is_required: bool = False
    is_flag: bool = False
    is_list: bool = False
    names: Names | None = None
    setting: str = ""
    parameter: str = ""
    metavar: str | None = None
    environment: str = ""

    @property
    def is_argument(self) -> bool:
        """Whether this is a positional argument."""
        return not self.name.startswith("-")

    @property
    def has_value(self) -> bool:
        """Whether it takes a value, that is, is not a flag."""
        return not (self.is_flag or "/" in self.name)

    @property
    def variable(self) -> str:
        """Its variable in make: `SERVER_RTTS` for `--server-rtts`."""
        return self.name.partition("/")[0].lstrip("-").replace("-", "_").upper()

    @property
    def default_value(self) -> Any:
        """The default value; None if there is none, or if the command itself chooses it."""
        return self.default() if callable(self.default) else self.default

    @property
    def default_words(self) -> str:
        """The default value in words; "" if there is none."""
        usual, default = self.usual() if callable(self.usual) else self.usual, self.default_value
        if usual or default is None or self.is_flag:
            return usual
        yes, _, no = self.name.partition("/")
        if no:
            return (yes if default else no).lstrip("-")
        return str(default.relative_to(WORK) if isinstance(default, Path) and default.is_relative_to(WORK) else default)

    def click_parameter(self) -> click.Parameter:
        """The option as a click parameter."""
        default, words = self.default_value, self.default_words
        choices = self.choices() if callable(self.choices) else self.choices
        kind: Any = click.Choice(list(choices)) if choices else self.type
        if self.names:
            kind = _Completed(self.names)
        common: dict[str, Any] = {"type": kind, "required": self.is_required}
        if default is not None:
            common["default"] = default
        elif "/" in self.name:
            common["default"] = None  # so that it can be neither yes nor no
        own_name = [self.parameter] if self.parameter else []
        if self.is_argument:
            name = own_name or [self.name.lower().replace("-", "_")]
            metavar = self.metavar or self.name
            return _Argument(name, nargs=-1 if self.is_list else 1, metavar=metavar, **common)
        return _Option(
            [self.name, *own_name],
            help=f"{self.help}  [default: {words}]" if words else self.help,
            is_flag=self.is_flag or None,
            multiple=self.is_list,
            metavar=self.metavar,
            **common,
            **self._exported(),
        )

    def _exported(self) -> dict[str, Any]:
        """The arguments of a click option that sets an environment variable before other options are read."""

        def export(context: click.Context, parameter: click.Parameter, value: object) -> None:
            if value is not None:
                os.environ[self.environment] = str(value)

        return {"callback": export, "is_eager": True, "expose_value": False} if self.environment else {}


class _Completed(click.types.StringParamType):
    """A text that is a name, or a list of names separated by commas; the last name is completed."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def shell_complete(self, context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """All completions of the `incomplete` text: its last name is replaced by each name that it may become."""
        *before, last = incomplete.split(",")
        try:
            names = [name for name in self._names(context) if name.startswith(last) and name not in before]
        except EyelevelError:
            return []
        return [CompletionItem(",".join([*before, name])) for name in names]
