"""`python -m measure.studies.packets`: capture loads of a site at both ends, with the keys to decrypt them."""

import os
import signal
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from eyelevel.errors import EyelevelError, reports_errors
from eyelevel.ownership import give_to_caller
from eyelevel.places import RESULTS
from measure.__main__ import choose_sites
from measure.campaign.command import campaign_name, interrupt
from measure.campaign.plan import Run
from measure.campaign.progress import in_words
from measure.run.aliases import choose_protocols
from measure.studies.packets import FOLDER
from measure.studies.packets.attempt import Judged
from measure.studies.packets.study import Study, Watch, capture, counts, total, with_added_rtt
from tuning import networks, protocols
from tuning.settings import choose_one

RUNS = 10
DELAYS_MS = "0,10,20,50"
SEED = 1


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--site", required=True, help="A folder in sites/, or a demo site.")
@click.option("--net", required=True, help="A network of tuning/networks.toml.")
@click.option("--proto", required=True, help="Protocols of tuning/protocols.toml.")
@click.option("--runs", default=RUNS, show_default=True, type=click.IntRange(min=1), help="Runs of each.")
@click.option("--delays", default=DELAYS_MS, show_default=True, help="What is added to the round trip, in ms.")
@click.option("--seed", default=SEED, show_default=True, help="What the order of the runs is drawn from.")
@click.option("--campaign", "name", default="packets", show_default=True, help="The folder in results/.")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, help="Another folder for results.")
def main(site: str, net: str, proto: str, runs: int, delays: str, seed: int, name: str, results: Path) -> None:
    """Capture loads of a site at the browser and at the servers, each after a ping that must find the network right.

    What is there already is not made again. Afterwards: make report CAMPAIGN=packets

    Example: python -m measure.studies.packets --site demo-light --net dsl --proto tcp+,quic --runs 3 --delays 0,50
    """
    if os.geteuid() != 0:
        raise EyelevelError("measuring needs root, to make network namespaces; run it as root or with sudo")
    [chosen] = choose_sites([site])
    network = choose_one("network", net, networks.load())
    study = Study(
        campaign=results / campaign_name(name),
        site=chosen,
        networks=with_added_rtt(network, delays_in_ms(delays)),
        protocols={protocol.name: protocol for protocol in choose_protocols(proto, protocols.load())},
        runs=runs,
        seed=seed,
    )
    if not results.exists():
        results.mkdir(parents=True)
        give_to_caller(results)
    signal.signal(signal.SIGTERM, interrupt)
    console = Console(highlight=False)
    try:
        given_up = watched(study, console)
    except KeyboardInterrupt:
        click.echo(f"\nstopped; what was captured is in {study.campaign}; to go on, give the same command", err=True)
        sys.exit(130)
    folder = study.campaign / FOLDER / chosen.name
    if given_up:
        raise EyelevelError(f"{len(given_up)} runs were given up; their attempts are in {folder}, under rejected")
    console.print(f"captured: {folder}; the keys are in the files, so Wireshark shows them decrypted", soft_wrap=True)


def delays_in_ms(text: str) -> list[float]:
    """The delays in a list like `0,10,20,50`. Raises EyelevelError."""
    try:
        delays = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        delays = []
    if not delays or not all(0 <= ms < float("inf") for ms in delays):
        raise EyelevelError(f"delays are numbers of ms, as in 0,10,20,50, not {text!r}")
    return list(dict.fromkeys(delays))


def watched(study: Study, console: Console) -> list[Run]:
    """Capture `study`, and tell of each run and of the time left; returns the runs that were given up."""
    planned = total(study.blocks)
    done = sum(counts(study.folder(run)) for block in study.blocks for run in block)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=planned, completed=done, left="")
        began, before = time.monotonic(), done

        def begins(run: Run, attempt: int) -> None:
            again = f" (attempt {attempt})" if attempt > 1 else ""
            progress.update(task, description=f"{run}{again}")

        def ends(run: Run, judged: Judged, last: bool) -> None:
            nonlocal done
            done += judged.valid or last
            each_s = (time.monotonic() - began) / max(1, done - before)
            left = f"{in_words(each_s * (planned - done))} left" if done < planned else "done"
            progress.update(task, completed=done, left=left)
            pinged = f"ping {judged.ping.mean_ms:.2f} ± {judged.ping.sd_ms:.2f} ms" if judged.ping else "no ping"
            told = "captured" if judged.valid else f"invalid: {judged.reason}{'; given up' if last else '; once more'}"
            style = None if judged.valid else "yellow"
            line = f"[{done:{len(str(planned))}}/{planned}] {run}: {told} · {pinged} · {left}"
            console.print(line, markup=False, soft_wrap=True, style=style)

        def warns(text: str) -> None:
            console.print(f"warning: {text}", markup=False, soft_wrap=True, style="yellow")

        return capture(study, Watch(begins, ends, warns))


if __name__ == "__main__":
    reports_errors(main)()
