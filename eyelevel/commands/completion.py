"""`eyelevel completion`: print the script that makes a shell complete `eyelevel`."""

import click
from click.shell_completion import get_completion_class

from eyelevel.options import parameters_of

# A shell sets this variable to ask the program for completions (click.shell_completion).
COMPLETES = "_EYELEVEL_COMPLETE"


@click.command(params=parameters_of("completion"))
def main(shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, and names of networks, protocols, sites and
    campaigns.

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
    # click's script for fish takes only the text before the second comma, which would cut a list to its first name.
    click.echo(source.replace('string split "," ', 'string split --max 1 "," '))
