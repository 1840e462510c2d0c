"""The file that says to our own servers where to serve, and with which certificates: too much for a command line."""

from pathlib import Path

from servers.contract import Serving


def write_endpoints(serving: Serving) -> Path:
    """Write it into the folder of `serving`: a line ADDRESS, PORT, CERTIFICATE and KEY for each, separated by tabs."""
    file = serving.folder / "endpoints.tsv"
    certificates = serving.certificates
    lines = (
        f"{address}\t{port}\t{certificates[address].chain}\t{certificates[address].key}\n"
        for address, port in serving.listening()
    )
    file.write_text("".join(lines))
    return file
