"""`eyelevel protocols`: list the protocols and their settings."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import click

from base.structure import unstructured
from base.terminal import plain_table, print_json, print_line, terminal
from eyelevel.next_step import suggest
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from rich.table import Table

    from tuning.protocols import Protocol

# The keys that have columns, or follow from others; and those of one end's kernel, which are many.
SHOWN = (
    *("name", "transport", "server", "congestion_control", "initial_window_packets", "pacing"),
    "alternative_settings",
)
OF_KERNELS = {"server_sysctls": "at the servers", "client_sysctls": "at the browser"}


def table(chosen: list[Protocol]) -> Table:
    """A table with one line for each protocol."""
    from rich.text import Text

    rows = plain_table()
    for heading in ("protocol", "server", "congestion\ncontrol", "initial\nwindow", "paced"):
        rows.add_column(heading, no_wrap=True)
    rows.add_column("further")
    for one in chosen:
        paced = "yes" if one.pacing else "no"
        more = Text("; ".join(further(one)), no_wrap=True, overflow="ellipsis")
        rows.add_row(one.name, one.server, one.congestion_control, str(one.initial_window_packets), paced, more)
    return rows


def further(protocol: Protocol) -> list[str]:
    """The settings of `protocol` that the table has no columns for and that differ from the defaults, each as `key
    value`."""
    defaults = {one.name: one.default for one in fields(protocol)}
    others = {key: value for key, value in unstructured(protocol).items() if key not in (*SHOWN, *OF_KERNELS)}
    return [f"{key} {_text(value)}" for key, value in others.items() if value and value != defaults[key]]


def details(protocol: Protocol, source: str | None) -> list[str]:
    """Lines on all settings of `protocol` that the table has no columns for, and on where they come from."""
    texts = ["; ".join(further(protocol))]
    for key, where in OF_KERNELS.items():
        if values := unstructured(protocol)[key]:
            texts.append(f"{where}: {'; '.join(f'{name} {value}' for name, value in values.items())}")
    return [f"{protocol.name}: {text}" for text in (*texts, source) if text]


def _text(value: object) -> str:
    return "yes" if value is True else ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@click.command(params=parameters_of("protocols"))
def main(proto: str | None, as_json: bool) -> None:
    """List the protocols (tuning/protocols.toml and tuning/further/protocols.toml) and their settings. Those named by
    --proto are listed with all settings that differ from the defaults, and with the sources of their numbers where
    these are known.

    Example: eyelevel protocols --proto tcp+,quic
    """
    from tuning import protocols
    from tuning.settings import choose

    known = protocols.load()
    chosen = choose("protocol", proto, known) if proto else list(known.values())
    if as_json:
        print_json([{**unstructured(one), "source": known.sources.get(one.name)} for one in chosen])
        return
    console = terminal()
    console.print(table(chosen))
    for one in chosen if proto else ():
        for line in details(one, known.sources.get(one.name)):
            print_line(console, line)
    if not proto:
        suggest("eyelevel protocols --proto NAME")
