"""`eyelevel completion`: what makes a shell complete `eyelevel`."""

import click
from click.shell_completion import get_completion_class

from eyelevel.program import COMPLETES


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def main(shell: str) -> None:
    """Print what makes SHELL complete commands, options, and names of networks, protocols, sites and campaigns.

    \b
    In ~/.bashrc:                   eval "$(eyelevel completion bash)"
    In ~/.zshrc, after compinit:    eval "$(eyelevel completion zsh)"
    In ~/.config/fish/config.fish:  eyelevel completion fish | source

    Example: eyelevel completion bash
    """
    root = click.get_current_context().find_root()
    completion = get_completion_class(shell)
    assert completion is not None
    source = completion(root.command, {}, "eyelevel", COMPLETES).source()
    # click's lines for fish take what is before a second comma only, and of lists there would be the first name.
    click.echo(source.replace('string split "," ', 'string split --max 1 "," '))
