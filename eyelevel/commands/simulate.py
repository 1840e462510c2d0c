"""`eyelevel simulate`: write a synthetic campaign with known effects, without measuring."""

from pathlib import Path

import click

from base.errors import EyelevelError
from base.words import plural
from eyelevel.arguments import begin
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of


@click.command(params=parameters_of("simulate"))
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
    """Write a simulated campaign into FOLDER.

    Example: eyelevel simulate results/simulated --quic -0.1
    """
    if (folder / "runs").exists():
        raise EyelevelError(f"{folder} is a measured campaign; name another folder")
    begin(f"simulating {plural('site', sites)}")

    from eyelevel.simulate import Truth, write
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
    click.echo(f"{folder}: {plural('site', sites)}, {plural('run', runs)} of each setting")
    suggest(make_line("report", {"CAMPAIGN": str(folder)}))
