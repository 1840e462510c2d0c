"""`eyelevel cluster-keys`: make the keys by which the machines of a cluster authenticate each other."""

import click

from eyelevel.options import parameters_of


@click.command(params=parameters_of("cluster-keys"))
def main(renew: bool) -> None:
    """Make the keys of a cluster, on its head: a certificate authority, and certificates for head and workers.

    Nodes of a cluster run what other nodes send. With these keys they listen to nobody else, and nobody can read what
    they send. Every worker needs a copy of the folder that is named at the end. Whoever has it can run programs as
    you, on all machines of the cluster.

    Example: eyelevel cluster-keys
    """
    from measure.cluster.keys import Role, keys_folder, make_keys

    folder = keys_folder()
    make_keys(folder, renew=renew)
    click.echo(f"the head's keys are in {folder / Role.HEAD}; copy {folder / Role.WORKER} to the same place on workers")
