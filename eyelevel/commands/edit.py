"""`eyelevel edit`: make a variant of a site."""

import click

from base.errors import EyelevelError, Misuse
from base.ownership import give_to_caller
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of
from record.names import VARIANT, original_of, site_folder


@click.command(params=parameters_of("edit"))
def main(name: str, variant_name: str, **texts: tuple[str, ...]) -> None:
    """Make the variant SITE@NAME of SITE. Each edit changes the responses whose URLs match a PATTERN, in which * stands
    for any text and ? for any character. Edits are applied kind by kind, in the order of this list; edits of one kind,
    in the order given.

    Example: eyelevel edit shop --as no-fonts --drop '*.woff2'
    """
    from measure.sites.completeness import digest
    from record.collection import choose_site
    from record.edit import EDITS, KINDS, Edit, variant
    from record.site import write_site
    from record.summary import summary

    if VARIANT in name:
        raise Misuse(f"{name} is a variant; apply all edits to {original_of(name)}")
    edits = [Edit.parse(kind, text) for kind in KINDS for text in texts[kind]]
    folder = site_folder(f"{name}{VARIANT}{variant_name}")
    if folder.exists():
        raise EyelevelError(f"{folder} exists; choose another name, or remove it")
    site = choose_site(name)
    result = write_site(variant(site, digest(site), edits), folder)
    give_to_caller(folder)
    click.echo(summary(result))
    click.echo(f"  made of {name}: {result.recorder[EDITS]}")
    suggest(make_line("campaign", {"SITES": f"{name},{result.name}", "NET": "lte", "PROTO": "tcp+,quic"}))
