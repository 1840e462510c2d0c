"""`eyelevel states`: what congestion control does while a page loads, over time."""

from pathlib import Path

import click

from base.privileges import require_root
from measure.campaign.command import campaign_name
from measure.run.aliases import choose_protocols
from record.collection import choose_sites
from servers.qlog import SUFFIX
from studies.command import carry_out, study_options
from studies.runs import Study
from studies.states.measure import STUDY, make
from studies.states.socket_monitor import INTERVAL_S
from tuning import networks, protocols
from tuning.settings import choose


@click.command()
@study_options(STUDY)
def main(site: str, net: str, proto: str, runs: int, seed: int, name: str, results: Path) -> None:
    """Log what congestion control does while sites are loaded: windows, round-trip times, losses and states over time.

    What is there already is not made again. Afterwards: make report CAMPAIGN=states

    Example: eyelevel states --site demo-light --net lte --proto tcp+,quic --runs 3
    """
    require_root("measuring")
    study = Study(
        name=STUDY,
        campaign=results / campaign_name(name),
        sites={site.name: site for site in choose_sites(site)},
        networks={network.name: network for network in choose("network", net, networks.load())},
        protocols={protocol.name: protocol for protocol in choose_protocols(proto, protocols.load())},
        runs=runs,
        seed=seed,
        make=make,
        settings={"sampling_ms": INTERVAL_S * 1e3},
    )
    click.echo(f"logged: {carry_out(study)}; qvis opens the {SUFFIX} files")
