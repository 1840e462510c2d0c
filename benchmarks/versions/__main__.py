"""`python -m benchmarks.versions`: whether two versions of this project measure the same metrics, and how fast."""

import shlex
import signal
import sys
from pathlib import Path
from statistics import mean

import click
import pandas as pd

from analysis.runs import QUIET, load, read_runs
from base.errors import EyelevelError, reports_errors
from base.files import read_json
from base.words import in_words
from benchmarks.versions.campaigns import (
    AFTER,
    BEFORE,
    VERSIONS,
    Plan,
    Turn,
    campaign_of,
    copy_sites,
    is_made,
    keep_plan,
    make_all,
    read_plan,
    record_of,
    resolve,
    sites_named,
    turns,
)
from benchmarks.versions.comparison import (
    CONFIDENCE,
    POWER,
    by_setting,
    choice_of_sites,
    exclusions,
    pairs_of,
    results,
)
from dataset.table import RUNS, require_document
from measure.calibration.equivalence import BOUND


def words(text: str) -> tuple[str, ...]:
    """The words of `text`, separated by commas or blanks."""
    return tuple(text.replace(",", " ").split())


def measure(plan: Plan, folder: Path, source: dict[str, Path]) -> None:
    """Make the missing campaigns of `plan`, and print the progress. Raises EyelevelError."""
    open_turns = [turn for turn in turns(plan) if not is_made(turn, folder)]
    click.echo(f"{len(open_turns)} campaigns of {len(turns(plan))} to be made")
    took_s: list[float] = []
    for turn, seconds in make_all(plan, folder, source):
        took_s.append(seconds)
        remaining = len(open_turns) - len(took_s)
        runs = read_runs(campaign_of(turn, folder))
        click.echo(
            f"pair {turn.pair} of {plan.blocks}, {turn.version} ({plan.commit(turn.version)[:8]}): {len(runs)} "
            f"attempts, {(~runs['valid']).sum()} do not count, {in_words(seconds)}; "
            + (f"{in_words(mean(took_s) * remaining)} left" if remaining else "all are made")
        )


def runs_of(campaigns: list[Turn], folder: Path) -> pd.DataFrame:
    """The attempts of `campaigns` in `folder`, with their pair and version."""
    tables = [read_runs(campaign_of(turn, folder)).assign(pair=turn.pair, version=turn.version) for turn in campaigns]
    return pd.concat(tables, ignore_index=True)


def beyond_s(campaigns: list[Turn], folder: Path) -> dict[str, float]:
    """By version: seconds of a valid run beyond its load and quiet time, in campaigns made without interruption."""
    beyond: dict[str, list[float]] = {version: [] for version in VERSIONS}
    for turn in campaigns:
        if (seconds := read_json(record_of(turn, folder))["seconds"]) is None:
            continue
        document, runs = require_document(campaign_of(turn, folder)), read_runs(campaign_of(turn, folder))
        valid = runs[runs["valid"]]
        quiet_ms = valid[QUIET] if QUIET in valid else valid["network"].map(document.settings.quiet_ms)
        if len(valid):
            beyond[turn.version].append((seconds - (valid["plt"] + quiet_ms).sum() / 1000) / len(valid))
    return {version: mean(values) for version, values in beyond.items() if values}


def print_comparison(plan: Plan, folder: Path) -> None:
    """Print the results of the pairs in `folder` so far. Raises EyelevelError."""
    whole = [pair for pair in range(1, plan.blocks + 1) if all(is_made(Turn(pair, one), folder) for one in VERSIONS)]
    if not whole:
        raise EyelevelError(f"no pair of campaigns in {folder} is made yet; run the command that began it again")
    campaigns = [turn for turn in turns(plan) if turn.pair in whole]
    runs = runs_of(campaigns, folder)
    pairs = pairs_of(runs, BEFORE, AFTER)
    click.echo(f"before: {plan.before}\nafter:  {plan.after}")
    click.echo(f"{', '.join(plan.sites)} over {', '.join(plan.protocols)}; {len(whole)} of {plan.blocks} pairs made\n")
    click.echo(
        f"Ratios of after to before, {CONFIDENCE:.0%} intervals; equivalent: within {BOUND:.0%}. Deviations: of "
        f"logarithms, within settings. Blocks needed: as many as find equal versions "
        f"equivalent with {POWER:.0%} probability."
    )
    print_table(results(pairs))
    click.echo("\nBy setting: the mean ratio in percent (deviation before, after)")
    print_table(by_setting(pairs))
    click.echo(f"\n{exclusions(runs).to_string()}\n")
    for version, seconds in beyond_s(campaigns, folder).items():
        click.echo(f"{version}: {seconds:.2f} s a run beyond load and quiet time")


def print_choice(folder: Path) -> None:
    """Print how much the sites of one campaign vary, and how many blocks a comparison needs with them."""
    click.echo(
        f"Run-to-run deviations in percent, the steadiest site first. Blocks: as many as find equal versions "
        f"equivalent within {BOUND:.0%}, in every metric on every network, with {POWER:.0%} probability each."
    )
    print_table(choice_of_sites(load(folder).runs))


def print_table(table: pd.DataFrame) -> None:
    """Print `table` without its index."""
    whole = {name: "{:.0f}".format for name in table if str(name).startswith("blocks")}
    click.echo(table.to_string(index=False, float_format="%.1f", formatters=whole))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--before", help="A commit, or the folder of a checkout.")
@click.option("--after", default="HEAD", show_default=True, help="Another one, or the same.")
@click.option("--sites", help="Names of sites, or paths of recordings, which have a slash in them.")
@click.option("--nets", default="dsl,lte", show_default=True, help="Networks.")
@click.option("--protocols", default="tcp+,quic", show_default=True, help="Protocols.")
@click.option("--blocks", default=10, show_default=True, type=click.IntRange(min=1), help="Pairs of campaigns.")
@click.option("--seed", default=1, show_default=True, help="The seed of orders and losses.")
@click.option("--into", type=click.Path(path_type=Path), help="The folder of a comparison, new or to be resumed.")
@click.option("--analyse", type=click.Path(path_type=Path), help="Only print what a comparison, or a campaign, says.")
def main(
    before: str | None,
    after: str,
    sites: str | None,
    nets: str,
    protocols: str,
    blocks: int,
    seed: int,
    into: Path | None,
    analyse: Path | None,
) -> None:
    """Make the same measurements with two versions of this project in turn, and print whether the metrics are
    equivalent.

    With --analyse CAMPAIGN, print how much each site of a campaign varies, so that sites for a comparison can be
    chosen.

    Example: python -m benchmarks.versions --before v1 --sites demo-news --into results/versions
    """
    if analyse:
        if plan := read_plan(analyse):
            print_comparison(plan, analyse)
        elif (analyse / RUNS).exists():
            print_choice(analyse)
        else:
            raise EyelevelError(f"{analyse} is neither a comparison of versions nor a campaign")
        return
    if not (before and sites and into):
        raise EyelevelError("give --before, --sites and --into, or --analyse")
    folder = into.resolve()
    resolved = {BEFORE: resolve(before), AFTER: resolve(after)}
    commits = {version: commit for version, (_, commit) in resolved.items()}
    recordings = sites_named(words(sites))
    plan = Plan(
        **commits, sites=tuple(recordings), networks=words(nets), protocols=words(protocols), seed=seed, blocks=blocks
    )
    keep_plan(plan, folder)
    copy_sites(recordings, folder)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C
    try:
        measure(plan, folder, {version: repository for version, (repository, _) in resolved.items()})
    except KeyboardInterrupt:
        click.echo(
            f"\nstopped; to resume: {shlex.join(['python', '-m', 'benchmarks.versions', *sys.argv[1:]])}", err=True
        )
        sys.exit(130)
    print_comparison(plan, folder)


if __name__ == "__main__":
    reports_errors(main)()
