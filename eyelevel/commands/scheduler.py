"""`eyelevel scheduler`: distribute the blocks of campaigns to the workers of a cluster."""

import click

from eyelevel.arguments import begin
from eyelevel.options import parameters_of


@click.command(params=parameters_of("scheduler"))
def main(address: str, insecure: bool) -> None:
    """Run the scheduler of a cluster, on its head, until Ctrl-C. It listens on ADDRESS, an address of this machine with
    or without a port.

    Example: eyelevel scheduler 10.0.0.1
    """
    begin(f"a scheduler at {address}")

    from measure.cluster.addresses import scheduler_address
    from measure.cluster.nodes import run_scheduler

    run_scheduler(
        scheduler_address(address, insecure=insecure),
        lambda actual: click.echo(f"the scheduler listens; on each worker: eyelevel worker {actual}"),
    )
