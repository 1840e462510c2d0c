"""A recording is bounded while it runs, but the description of what to record may have any length."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT
from record.limits import BODY_BYTES
from record.recorder.budget import Body, ByteBudget


def test_bodies_share_the_room_of_a_recording() -> None:
    budget = ByteBudget(10)
    first, second = Body(budget, "full"), Body(budget, "full")
    assert first(b"12345") == b"12345" and second(b"12345") == b"12345"
    assert first(b"6") == b"6", "it is sent on, kept or not"
    assert (first.refusal, bytes(first.bytes)) == ("full", b"")
    assert second(b"67890") == b"67890", "what one gives back another takes"
    assert (second.refusal, bytes(second.bytes)) == (None, b"1234567890")
    assert first(b"") == b"" and first.refusal == "full", "a body with a gap is not kept"
    assert budget.remaining_bytes == 0
    second.drop("it did not end well")
    assert budget.remaining_bytes == 10


def test_a_body_alone_may_not_take_all_of_it() -> None:
    body = Body(ByteBudget(4 * BODY_BYTES), "full")
    part = bytes(BODY_BYTES // 4)
    for _ in range(4):
        body(part)
    assert body.refusal is None
    body(b"x")
    assert body.refusal == "its body is longer than 256 MiB" and not body.bytes


LONG = """
import sys
from pathlib import Path
from record.recorder import sandbox
from record.recorder.spec import RecordSpec
also = tuple(f"https://a.example/{number}?" + 2000 * "x" for number in range(2000))
sys.exit(not sandbox.run(RecordSpec("http://127.0.0.1:8001/", Path(sys.argv[1]) / "site", also=also)))
"""


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_thousands_of_long_urls_can_be_asked_for(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, "-c", LONG, tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # The proxy refuses the page because of its address, so the whole description has been read.
    refusal = "127.0.0.1 is a loopback address, which a page may reach with --allow-private only"
    fault = f"http://127.0.0.1:8001/ could not be loaded: GET http://127.0.0.1:8001/: {refusal}"
    assert (done.returncode, done.stderr) == (1, f"eyelevel: site was not recorded: {fault}\n")
    assert not any(tmp_path.iterdir())
