"""The command of a study, built from its description (`studies.study`)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from base.terminal import print_line
from eyelevel.arguments import begin
from eyelevel.measuring_options import (
    MeasuringOptions,
    campaign_name,
    document_of,
    unnamed_variables,
)
from eyelevel.names import require_known_networks, require_known_protocols
from eyelevel.next_step import after_campaign, continuation, suggest
from eyelevel.options import STUDY, options_of, parameters
from studies.study import USUAL

if TYPE_CHECKING:
    from studies.study import Study


# The object of click's context if whoever calls the program writes the report next.
REPORTED = object()


def study_command(study: Study) -> click.Command:
    """The command that measures `study`."""
    usual = {**USUAL, "--campaign": study.command, **study.usual}
    of_study: dict[str, dict[str, Any]] = {name: {"usual": words} for name, words in usual.items()}
    of_study["--validate/--no-validate"] = {"default": study.validates}
    common = [
        replace(option, **of_study.get(option.name, {}))
        for option in options_of(STUDY)
        if study.chooses_sites or option.name != "--sites"
    ]
    options = parameters([*common, *study.options])
    return click.Command(
        study.command, callback=lambda **arguments: _measure(study, arguments), params=options, help=study.help
    )


def command_of(name: str) -> str:
    """The command that resumes campaigns of the study `name`; for "" the command that resumes campaigns of page
    loads."""
    from studies import STUDIES

    return next((study.command for study in STUDIES if study.name == name), name or "campaign")


def _measure(study: Study, arguments: dict[str, Any]) -> None:
    require_known_networks(arguments["net"])
    require_known_protocols(arguments["proto"])
    begin(f"preparing the study {study.name}")
    from rich.console import Console

    from eyelevel.measuring import carry_out
    from studies.study import Request

    decisive = {name: arguments[name] for name in study.decisive}
    name, results = arguments.pop("name"), arguments.pop("results")
    default = arguments.get("preset") or study.command
    folder = results / campaign_name(default if name is None else name)
    common = {
        option: arguments.pop(option, None) for option in ("sites", "net", "proto", "runs", "seed", "browser", "device")
    }
    document = document_of(folder, study.name, command_of)
    unnamed = unnamed_variables(document, decisive, study.decisive)
    options = MeasuringOptions.take(arguments, again=continuation(study.command, folder), unnamed=unnamed)
    request = Request(folder, **common, options=arguments, document=document)
    measurement = study.campaign(request)
    console = Console(highlight=False)
    for line in measurement.announcement:
        print_line(console, line)
    options = replace(options, budget_s=measurement.budget_s)
    carry_out(measurement.campaign, options, console, measurement.enough)
    for line in measurement.summary():
        print_line(console, line)
    # `make` itself writes the report after a study, and so does `eyelevel reproduce`.
    if "MAKELEVEL" not in os.environ and click.get_current_context().find_root().obj is not REPORTED:
        suggest(after_campaign(folder))
