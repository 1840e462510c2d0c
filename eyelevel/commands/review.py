"""`eyelevel review`: look at a campaign's films, and accept or reject runs by eye."""

import tempfile
import threading
import webbrowser
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path

import click

from eyelevel.arguments import campaign_folder
from eyelevel.options import parameters_of


@click.command(params=parameters_of("review"))
def main(campaign: str, reviewer: str | None, port: int, browse: bool) -> None:
    """Show the runs of CAMPAIGN (a folder in results/, or a path), and accept or reject them by eye.

    Example: eyelevel review first
    """
    folder = campaign_folder(campaign)
    from measure.campaign.review import LOCAL, Review, handler

    review = Review(folder, reviewer or "")
    with (
        suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory(prefix="eyelevel-review-") as scratch,
        ThreadingHTTPServer((LOCAL, port), handler(review, Path(scratch))) as server,
    ):
        url = f"http://{LOCAL}:{server.server_address[1]}{review.base}"
        click.echo(f"{url} shows the runs of {review.folder.name}; Ctrl-C stops it")
        if browse:
            # All users can see a browser's command line. The address must stay secret, so it is passed in a file.
            start = Path(scratch) / "review.html"
            start.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">')
            threading.Thread(target=webbrowser.open, args=(start.as_uri(),), daemon=True).start()
        server.serve_forever()
