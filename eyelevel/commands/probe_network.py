"""`eyelevel probe-network`: measure a path between two machines; the result is a network on which pages can be
loaded."""

from pathlib import Path

import click

from base.errors import Misuse
from base.files import require_writable
from base.text import printable
from eyelevel.arguments import begin
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of


@click.command(params=parameters_of("probe-network"))
def main(
    host: str | None,
    address: str | None,
    port: int,
    secret: Path | None,
    most_mb: float,
    name: str | None,
    into: Path,
    quick: bool,
) -> None:
    """Measure the path between this machine and another: round trip, rate, queue and loss of both directions.

    The result is a network for your campaigns; its uplink is the direction from this machine to the other. Start with
    --serve on the other machine, which makes the secret, and copy the secret to this machine. docs/networks.md
    describes the measurements and their limits.

    \b
    Example (run the second command first, on the machine 192.0.2.7):
      eyelevel probe-network --to 192.0.2.7
      eyelevel probe-network --serve 192.0.2.7
    """
    if (host is None) == (address is None):
        raise Misuse("give --to HOST to measure, or --serve ADDRESS to be the other end")
    begin("preparing the probe")

    from measure.host.exclusive import measuring_alone
    from measure.probe import profile
    from measure.probe.conversation import read_secret, secret_file
    from measure.probe.path import Effort, measure_path

    file, most_bytes = secret or secret_file(), round(most_mb * 1e6)
    if address is not None:
        _serve(address, port, file, most_bytes)
        return
    assert host is not None
    name = name or profile.name_of(host)
    profile.require_place(into, name)
    key = read_secret(file)
    effort = Effort.quick(most_bytes) if quick else Effort(most_bytes)
    _note(
        f"probing the path to {printable(host)}: at most {most_mb:g} MB in both directions together and "
        f"{effort.longest_s:g} s, which other users of the path will notice"
    )
    with measuring_alone():
        measured = measure_path(host, port, key, effort, _note)
    text = profile.profile_of(measured, host, name)
    profile.read_back(text, name)
    click.echo(text, nl=False)
    for warning in profile.warnings(measured):
        _note(f"warning: {warning}")
    profile.add(text, into)
    _note(f"written: {into}")
    suggest(make_line("campaign", {"NET": name, "TUNING": str(into.parent)}))


def _serve(address: str, port: int, file: Path, most_bytes: int) -> None:
    """Serve as the other end until interrupted."""
    from measure.probe.conversation import make_secret
    from measure.probe.serving import Server

    if not file.exists():
        require_writable(file.parent, "--secret names another file")
        make_secret(file)
        _note(f"a new secret is in {file}: copy it to the same place on the other machine, readable by you alone")
    server = Server(address, port, file, most_bytes, _note)
    _note(
        f"serving probes at {printable(address)}, port {port} (TCP and UDP), of at most {most_bytes / 1e6:g} MB; "
        "Ctrl-C stops it"
    )
    try:
        server.serve()
    except KeyboardInterrupt:
        _note("no more probes are served")


def _note(line: str) -> None:
    click.echo(printable(line), err=True)
