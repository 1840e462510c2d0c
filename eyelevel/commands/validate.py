"""`eyelevel validate`: measure networks and protocols against their settings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from base.errors import EyelevelError, Misuse
from base.ownership import give_to_caller
from base.places import RESULTS
from base.privileges import require_browsing
from base.terminal import plain_table, print_json, terminal
from base.words import plural
from eyelevel.arguments import begin
from eyelevel.names import require_known_networks, require_known_protocols
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of
from tuning.defaults import DEFAULT_SHELLS

if TYPE_CHECKING:
    from rich.table import Table

    from dataset.checks import Check
    from tuning.networks import Network
    from tuning.protocols import Protocol


def draw_figures(seen: Mapping[str, Mapping[str, Any]], into: Path) -> Iterator[str]:
    """Draw figures of the measurements that validation made (`seen`) into the folder `into`; yields one line for each
    figure."""
    from dataset.observations import LOSS_RESPONSE, ORDER_OF_SERVICE

    if not any({LOSS_RESPONSE, ORDER_OF_SERVICE} & document.keys() for document in seen.values()):
        return  # what draws takes seconds to load

    from analysis.figures import order_of_service, window_after_loss
    from analysis.figures.style import save

    for what, name, draw, words in (
        (LOSS_RESPONSE, "window-after-loss", window_after_loss.draw, "How windows answered to one loss"),
        (ORDER_OF_SERVICE, "order-of-service", order_of_service.draw, "The order in which responses left the servers"),
    ):
        if documents := {subject: document[what] for subject, document in seen.items() if what in document}:
            into.mkdir(parents=True, exist_ok=True)
            save(draw(documents), into, name)
            give_to_caller(into, RESULTS)
            yield f"{words}: {into / name}.png"


def table(checks: list[Check]) -> Table:
    """A table of the checks, one row each, grouped by subject."""
    from rich.text import Text

    table_of_checks = plain_table()
    for name in ("", "check", "configured", "measured", ""):
        table_of_checks.add_column(name)
    subject = ""
    for check in checks:
        if check.subject != subject and subject:
            table_of_checks.add_section()
        verdict = Text("ok", "green") if check.passed else Text("FAILED", "bold red")
        verdict = verdict if check.checked else Text("-")
        first = check.subject if check.subject != subject else ""
        table_of_checks.add_row(first, check.name, f"{check.configured} {check.tolerance}", check.measured, verdict)
        subject = check.subject
    return table_of_checks


def choose_subjects(net: str | None, proto: str | None, sites: str | None) -> tuple[list[Network], list[Protocol]]:
    """The networks and protocols to measure.

    If only networks are named, no protocols are validated, and the reverse. Raises EyelevelError.
    """
    from measure.run.aliases import choose_protocols, distinct
    from tuning import networks, protocols
    from tuning.settings import choose

    net = net or ("none" if proto or sites else "all")
    proto = proto or ("none" if net != "all" or sites else "all")
    return (
        [] if net == "none" else choose("network", net, networks.load()),
        [] if proto == "none" else distinct(choose_protocols(proto, protocols.load())),
    )


def need_our_shells(protocols: list[Protocol], shells: str) -> bool:
    """Whether our shells are needed: protocols are always measured with our shells, even if `shells` names others for
    networks."""
    return bool(protocols) or shells == DEFAULT_SHELLS


@click.command(params=parameters_of("validate"))
def main(
    net: str | None,
    proto: str | None,
    sites: str | None,
    server_rtts: str,
    shells: str,
    quick: bool,
    as_json: bool,
    into: Path,
) -> None:
    """Measure networks and protocols, compare them with their settings, and print a table. The command fails if a check
    fails.

    Networks are measured in the chosen shells, protocols always in ours, which can drop a chosen packet.

    A network: minimum round-trip time, rate, loss and queue of each direction, and whether names are resolved without
    using the link.

    A protocol, from a capture at the server while the browser loads pages: the parameters that TLS and QUIC negotiated,
    certificates, initial window, pacing, the window after a pause, congestion control as the kernel reports it and as
    its response to losses shows it, the share of the window that is kept after one loss, how fast the window grows
    back, the order of service, the bytes sent before an urgent response, and round trips before the first request.

    A site (--sites with --server-rtts): the extra round-trip time of each server.

    Example: eyelevel validate --net lte --proto tcp+,quic
    """
    require_known_networks(net)
    require_known_protocols(proto)
    begin("preparing to validate")

    from base.structure import unstructured
    from dataset.checks import outcomes_in_words
    from measure.host.exclusive import measuring_alone
    from measure.host.timekeeping import priority_warning, timekeeping
    from measure.run.server_rtts import parse_server_rtts
    from measure.validate.network.server_rtts import DelayedSite
    from measure.validate.validation import validate
    from record.collection import choose_sites
    from replay.shells.registry import require_emulated
    from tuning.defaults import OFF
    from tuning.kernel import require_congestion_controls

    require_browsing("validating")
    if (sites is not None) != (server_rtts != OFF):
        raise Misuse("give --sites and --server-rtts together, or neither")
    setting = parse_server_rtts(server_rtts)
    delayed = [
        DelayedSite(site.name, site.folder, setting.extra_ms(site)) for site in (choose_sites(sites) if sites else [])
    ]
    networks, protocols = choose_subjects(net, proto, sites)
    require_emulated(shells, [], delayed_servers=bool(delayed))
    require_congestion_controls(protocols)
    with measuring_alone(), tempfile.TemporaryDirectory(prefix="validate-") as folder:
        if need_our_shells(protocols, shells) and (warning := priority_warning(timekeeping())):
            click.echo(f"note: {warning}", err=True)
        checks, seen = validate(networks, protocols, Path(folder), quick=quick, shells=shells, delayed=delayed)
    if as_json:
        print_json(unstructured(checks))
    else:
        terminal().print(table(checks))
    for line in draw_figures(seen, into):
        click.echo(line, err=as_json)
    if failed := [f"{check.subject}: {check.name}" for check in checks if not check.passed]:
        raise EyelevelError(f"{len(failed)} of {plural('check', len(checks))} failed: {', '.join(failed)}")
    click.echo(outcomes_in_words((check.measured, check.passed) for check in checks), err=as_json)
    given = {"NET": net, "PROTO": proto, "SITES": sites}
    suggest(make_line("campaign", {name: value for name, value in given.items() if value not in (None, "none")}))
