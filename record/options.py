"""What the command lines of recording and importing have in common."""

import click

keep_cookies_option = click.option(
    "--keep-cookies",
    is_flag=True,
    help="Keep the values of cookies that servers set, which some pages' scripts need (tokens that they send back, "
    "for one). Without it they are replaced by stand-ins of the same length. With it the sites are not for others.",
)
