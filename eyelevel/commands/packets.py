"""`eyelevel packets`: capture loads of sites at both ends, with the keys to decrypt them."""

from pathlib import Path

import click

from base.privileges import require_root
from measure.campaign.command import campaign_name
from measure.run.aliases import choose_protocols
from record.collection import choose_sites
from studies.command import carry_out, study_options
from studies.packets.attempt import make
from studies.packets.delays import delays_in_ms, with_added_rtt
from studies.packets.files import STUDY
from studies.packets.ping import ECHOES, TOLERANCE, TOLERANCE_MS
from studies.runs import Study
from tuning import networks, protocols
from tuning.settings import choose

DELAYS_MS = "0,10,20,50"
# All of the pings that results depend on.
SETTINGS = {"ping": {"echoes": ECHOES, "tolerance_ms": TOLERANCE_MS, "tolerance": TOLERANCE}}


@click.command()
@study_options(STUDY)
@click.option("--delays", default=DELAYS_MS, show_default=True, help="What is added to round trips, in ms.")
def main(site: str, net: str, proto: str, runs: int, delays: str, seed: int, name: str, results: Path) -> None:
    """Capture loads of sites at the browser and at the servers, each after a ping that must find the network right.

    What is there already is not made again. Afterwards: make report CAMPAIGN=packets

    Example: eyelevel packets --site demo-light --net dsl --proto tcp+,quic --runs 3 --delays 0,50
    """
    require_root("measuring")
    delays_ms, chosen = delays_in_ms(delays), choose("network", net, networks.load())
    study = Study(
        name=STUDY,
        campaign=results / campaign_name(name),
        sites={site.name: site for site in choose_sites(site)},
        networks={name: grown for one in chosen for name, grown in with_added_rtt(one, delays_ms).items()},
        protocols={protocol.name: protocol for protocol in choose_protocols(proto, protocols.load())},
        runs=runs,
        seed=seed,
        make=make,
        settings=SETTINGS,
        captures=True,
    )
    click.echo(f"captured: {carry_out(study)}; the keys are in the files, so Wireshark shows them decrypted")
