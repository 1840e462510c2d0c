"""`eyelevel cluster-keys`: make the keys by which the machines of a cluster authenticate each other."""

import click

from eyelevel.options import parameters_of


@click.command(params=parameters_of("cluster-keys"))
def main(renew: bool) -> None:
    """Make the keys of a cluster, on its head: a certificate authority, and certificates for head and workers.

    Nodes of a cluster run programs that other nodes send. With these keys, nodes accept connections only from each
    other, and nobody else can read what they send. Every worker needs a copy of the folder that the command names at
    the end. Anyone who has this folder can run programs as you on all machines of the cluster.

    Example: eyelevel cluster-keys
    """
    from measure.cluster.keys import Role, keys_folder, make_keys

    folder = keys_folder()
    make_keys(folder, renew=renew)
    click.echo(f"the head's keys are in {folder / Role.HEAD}; copy {folder / Role.WORKER} to the same place on workers")
