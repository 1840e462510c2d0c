"""The file that gives our own servers their addresses and certificates, which are too many for a command line."""

from pathlib import Path

from servers.contract import Serving


def write_endpoints(serving: Serving) -> Path:
    """Write the file into the folder of `serving`: a line for each endpoint, with ADDRESS, PORT, CERTIFICATE and KEY
    separated by tabs."""
    file = serving.folder / "endpoints.tsv"
    certificates = serving.certificates
    lines = (
        f"{address}\t{port}\t{certificates[address].chain}\t{certificates[address].key}\n"
        for address, port in serving.listening()
    )
    file.write_text("".join(lines))
    return file
