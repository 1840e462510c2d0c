"""`eyelevel doctor`: print what a bug report needs, and what makes this machine unfit for measuring."""

import sys
from dataclasses import asdict

import click

from base.terminal import print_json
from base.text import printable
from base.words import plural
from eyelevel.options import parameters_of


@click.command(params=parameters_of("doctor"))
def main(as_json: bool) -> None:
    """Print the machine and the versions of all programs, for a bug report, and each fault that makes this machine
    unfit for measuring, with its remedy.

    Exit status: 0 if the machine is fit, otherwise 1.

    Example: eyelevel doctor
    """
    from eyelevel.doctor import examine
    from eyelevel.program import version_words

    seen = examine()
    facts = {"eyelevel": version_words(), **seen.facts}
    if as_json:
        print_json({"facts": facts, "programs": seen.programs, "findings": [asdict(one) for one in seen.findings]})
    else:
        width = max(map(len, (*facts, *seen.programs)))
        for name, text in {**facts, **seen.programs}.items():
            click.echo(f"{name:{width}}  {printable(text)}")
        for finding in seen.findings:
            click.echo(f"\nunfit: {printable(finding.what)}\n    {printable(finding.remedy)}")
        count = plural("finding", len(seen.findings))
        click.echo(f"\n{f'{count}: this machine is not fit' if seen.findings else 'this machine is fit'} for measuring")
    sys.exit(1 if seen.findings else 0)
