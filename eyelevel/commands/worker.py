"""`eyelevel worker`: measure on this machine for a cluster's campaigns."""

import click

from base.errors import EyelevelError
from base.privileges import require_browsing
from eyelevel.arguments import begin
from eyelevel.defaults import AUTO
from eyelevel.options import parameters_of


@click.command(params=parameters_of("worker"))
def main(scheduler: str, host: str | None, lanes: str, insecure: bool) -> None:
    """Run a worker of the cluster whose scheduler has the address SCHEDULER, until Ctrl-C or until the scheduler ends.

    A machine runs one worker, and measures nothing else meanwhile. A campaign must be given (--lanes) the number of
    lanes that its workers have.

    Example: eyelevel worker tls://10.0.0.1:8786
    """
    begin(f"a worker of {scheduler}")

    from eyelevel.lanes import lanes_by_calibration, lanes_by_number, memory_fault
    from measure.cluster.addresses import scheduler_address
    from measure.cluster.nodes import run_worker
    from measure.host.exclusive import measuring_alone

    address = scheduler_address(scheduler, insecure=insecure)
    require_browsing("a worker")
    places = lanes_by_calibration() if lanes == AUTO else lanes_by_number(lanes)
    if fault := memory_fault(places):
        raise EyelevelError(f"--lanes {places.value()}: {fault}")
    with measuring_alone():
        run_worker(address, host, click.echo, places)
