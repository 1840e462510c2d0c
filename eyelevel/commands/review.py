"""`eyelevel review`: look at a campaign's films, and accept or reject runs by eye."""

import tempfile
import threading
import webbrowser
from http.server import ThreadingHTTPServer
from pathlib import Path

import click

from eyelevel.options import campaign_argument, campaign_folder
from measure.review import LOCAL, Review, handler


@click.command()
@campaign_argument
@click.option("--port", default=0, help="The page's port on 127.0.0.1; a free one unless given.")
@click.option("--open/--no-open", "browse", default=True, help="Whether to open the page in a browser.")
def main(campaign: str, port: int, browse: bool) -> None:
    """Show the runs of CAMPAIGN (a folder in results/, or any path of one) and take decisions on them.

    Example: eyelevel review try
    """
    review = Review(campaign_folder(campaign))
    with tempfile.TemporaryDirectory(prefix="eyelevel-review-") as scratch:
        server = ThreadingHTTPServer((LOCAL, port), handler(review, Path(scratch)))
        url = f"http://{LOCAL}:{server.server_address[1]}/"
        click.echo(f"{url} shows the runs of {review.folder.name}; Ctrl-C ends it")
        if browse:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
