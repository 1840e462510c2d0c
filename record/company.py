"""The site that background flows over QUIC download from: one file of noise. By another name it stands for a mix of
flows in the study of fairness, where no page is loaded."""

import random
import re

from record.generated import generated_exchange
from record.site import Recording

HOST, FILE_PATH = "company.example", "/file"
FILE_BYTES = 4 << 20
RECORDER = {"name": "eyelevel company", "version": "1"}
MIX = re.compile(r"fairness-([1-9]\d?)x([1-9]\d?)")


def generate() -> Recording:
    """The recording of it."""
    file = random.Random(HOST).randbytes(FILE_BYTES)
    exchange = generated_exchange(f"https://{HOST}{FILE_PATH}", "application/octet-stream", file, "192.0.2.1")
    return Recording(exchange.url, (exchange,), RECORDER)


def mix_name(number: int, against: int) -> str:
    """What the site is called that stands for so many flows against so many others."""
    return f"fairness-{number}x{against}"


def mix_named(name: str) -> tuple[int, int] | None:
    """How many flows against how many others a site of this name stands for; None when it is no such site."""
    match = MIX.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None
