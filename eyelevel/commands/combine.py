"""`eyelevel combine`: combine several campaigns, made by different machines or in different years."""

from __future__ import annotations

from pathlib import Path

import click

from base.errors import Misuse
from base.files import require_replaceable
from base.terminal import plain_table, print_json, print_line, terminal
from eyelevel.arguments import begin, campaign_folder
from eyelevel.commands.compare import require_comparable
from eyelevel.options import parameters_of

COLUMNS = ("change", "interval", "verdict", "between campaigns", "campaigns agree")


@click.command(params=parameters_of("combine"))
def main(campaigns: tuple[str, ...], into: Path | None, as_json: bool) -> None:
    """Combine two or more campaigns (folders in results/, or paths): the mean change of each contrast that the first
    campaign declared, how much it differs between campaigns, and whether the campaigns agree.

    Example: eyelevel combine laptop,server,laptop-2027
    """
    names = [name for text in campaigns for name in ([text] if Path(text).is_dir() else text.split(","))]
    folders = [campaign_folder(name) for name in names]
    if len(folders) < 2:
        raise Misuse(f"{names[0]} alone cannot be combined; name two campaigns or more")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise Misuse(f"{', '.join(names)} name a campaign more than once; name each once")
    into = into or folders[0] / "combined"
    require_replaceable(into, "--into names another folder")
    begin(f"combining {', '.join(names)}")

    from analysis import hypotheses, runs
    from analysis.combining import combine
    from analysis.report.combined import INDEX, document, summary, tables, write
    from analysis.runs import records

    first, *others = loaded = [runs.load(folder) for folder in folders]
    for other in others:
        require_comparable(first, other)
    # Campaigns of several machines may have the same name.
    has_own_names = len({one.name for one in loaded}) == len(loaded)
    by_name = {one.name if has_own_names else name: one for name, one in zip(names, loaded, strict=True)}
    question = hypotheses.of_campaign(folders[0], first.document).restricted_to(first.protocols, first.metrics)
    combination = combine(by_name, question)
    folder = write(combination, into)
    if as_json:
        print_json(document(combination))
        return
    table = plain_table()
    for column in ("over all campaigns", *COLUMNS):
        table.add_column(column)
    texts = tables(combination)[0].texts
    for row in records(texts):
        what = f"{row['protocols']} on {row['network']}, {row['metric']}"
        table.add_row(what, *(row[column] for column in COLUMNS))
    console = terminal()
    console.print(table)
    for line in summary(combination):
        print_line(console, line)
    print_line(console, f"page: {folder / INDEX}")
