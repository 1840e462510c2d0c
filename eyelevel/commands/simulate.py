"""`eyelevel simulate`: a campaign's folder whose truth is known, without any measuring."""

from pathlib import Path

import click

from analysis.defaults import NOISES
from base.errors import EyelevelError
from eyelevel.arguments import begin


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--sites", default=38, show_default=True, help="How many.")
@click.option("--runs", default=31, show_default=True, help="How many of each setting.")
@click.option("--quic", default=-0.05, show_default=True, help="How QUIC's times differ from TCP's, as a share.")
@click.option("--noise", type=click.Choice(NOISES), default="lognormal", show_default=True, help="Of a run.")
@click.option("--noise-sd", default=0.05, show_default=True, help="Its standard deviation, as a share.")
@click.option("--drift", default=0.0, show_default=True, help="Growth from the first run to the last, as a share.")
@click.option("--seed", default=1, show_default=True, help="What all is drawn from.")
@click.option(
    "--runs-seed", type=int, help="What the noise of runs is drawn from: another one measures the same pages again."
)
def main(
    folder: Path,
    sites: int,
    runs: int,
    quic: float,
    noise: str,
    noise_sd: float,
    drift: float,
    seed: int,
    runs_seed: int | None,
) -> None:
    """Write a simulated campaign as FOLDER.

    Example: eyelevel simulate results/simulated --quic -0.1
    """
    if (folder / "runs").exists():
        raise EyelevelError(f"{folder} is a measured campaign; name another folder")
    begin(f"simulating {sites} sites")

    from analysis.simulate import Truth, write
    from measure.campaign.results import require_no_others

    require_no_others(folder)
    effects = {"tcp+": -0.04, "tcp+bbr": -0.04} | dict.fromkeys(("quic", "quic+bbr"), (1 - 0.04) * (1 + quic) - 1)
    truth = Truth(
        sites,
        runs=runs,
        effects=effects,
        effect_sd=0.05,
        noise=noise,
        noise_sd=noise_sd,
        drift=drift,
        seed=seed,
        runs_seed=runs_seed,
    )
    write(folder, truth)
    click.echo(f"{folder}: {sites} sites, {runs} runs of each setting")
