"""The site that background flows over QUIC download: one file of noise."""

import random

from record.generated import generated_exchange
from record.site import Recording

HOST, FILE_PATH = "cross-traffic.example", "/file"
FILE_BYTES = 4 << 20
RECORDER = {"name": "eyelevel cross traffic", "version": "1"}


def generate() -> Recording:
    """The recording of this site; always the same bytes."""
    file = random.Random(HOST).randbytes(FILE_BYTES)
    exchange = generated_exchange(f"https://{HOST}{FILE_PATH}", "application/octet-stream", file, "192.0.2.1")
    return Recording(exchange.url, (exchange,), RECORDER)
