"""`eyelevel figure2`: how long single files take from both servers (paper, Figure 2)."""

import json
from dataclasses import asdict
from pathlib import Path

import click
import pandas as pd
from rich.console import Console

from analysis.figures import style
from base.clock import now_iso
from base.files import write_atomically
from base.ownership import give_to_caller
from base.places import RESULTS
from base.privileges import require_root
from measure.host.machine import machine, versions
from measure.run.aliases import choose_protocols
from studies.downloads import figure2
from studies.downloads.measure import COLUMNS, PROTOCOLS, REPETITIONS, SIZES_BYTES, measure_downloads
from studies.downloads.section import FIGURE, TABLE, medians, told
from tuning import networks, protocols
from tuning.settings import choose_one


@click.command()
@click.option("--net", default="delay10", show_default=True, help="A network; the paper's is a delay alone.")
@click.option("--proto", default=PROTOCOLS, show_default=True, help="Protocols; the paper's are tcp+ and quic.")
@click.option("--runs", default=REPETITIONS, show_default=True, type=click.IntRange(min=1), help="Downloads of each.")
@click.option("--seed", default=1, show_default=True, help="What their order is drawn from.")
@click.option("--into", "folder", type=click.Path(path_type=Path), default=RESULTS / "figure2", help="Where they go.")
def main(net: str, proto: str, runs: int, seed: int, folder: Path) -> None:
    """Measure how long files from 1 KB to 10 MB take from both servers; the table is downloads.csv.

    Example: eyelevel figure2 --proto tcp+,quic
    """
    require_root("measuring")
    network, chosen = choose_one("network", net, networks.load()), choose_protocols(proto, protocols.load())
    rows = measure_downloads(network, chosen, SIZES_BYTES, runs, seed)
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{','.join(map(str, row))}\n" for row in (COLUMNS, *rows))
    write_atomically(folder / "downloads.csv", text)
    made = {"network": asdict(network), "protocols": [asdict(protocol) for protocol in chosen], "seed": seed}
    made |= {"versions": versions({protocol.server for protocol in chosen}), "machine": machine(), "at": now_iso()}
    write_atomically(folder / "downloads.json", json.dumps(made, indent=1) + "\n")
    downloads = pd.read_csv(folder / TABLE)
    style.save(figure2.draw(downloads), folder, FIGURE)
    give_to_caller(folder.parent, folder)
    console = Console(highlight=False)
    console.print(told(medians(downloads, network.min_rtt_ms)))
    console.print(f"drawn: {folder / FIGURE}.png and .pdf", style="dim")
