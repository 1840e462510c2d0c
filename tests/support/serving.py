"""Runs a server of Python's for a test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer


@contextmanager
def served(server: ThreadingHTTPServer) -> Iterator[str]:
    """Run `server` for the duration of the block; yields its address."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://{server.server_address[0]!s}:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
