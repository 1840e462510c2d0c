"""Each importer and `Site.load`, with many thousands of broken recordings and site folders.

EYELEVEL_FUZZ_INPUTS sets how many in all. Collections of web archives (WACZ) are drawn for ten minutes, or for
EYELEVEL_FUZZ_SECONDS.
"""

import os
import subprocess
import sys

import pytest
from support.importer_fuzz import FORMS

from base.places import PROJECT

INPUTS = int(os.environ.get("EYELEVEL_FUZZ_INPUTS", "200000"))
SECONDS = float(os.environ.get("EYELEVEL_FUZZ_SECONDS", "600"))
MEMORY_MB = 500
TIMED = "wacz"
COUNTED = [form for form in FORMS if form != TIMED]


@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("form", COUNTED)
def test_whatever_is_in_it_is_imported_or_refused_in_one_line_with_little_memory(form: str) -> None:
    assert fuzzed(form, str(INPUTS // len(COUNTED))) == INPUTS // len(COUNTED)


@pytest.mark.timeout(SECONDS + 600)
def test_so_is_whatever_is_in_a_collection_of_web_archives() -> None:
    assert fuzzed(TIMED, f"{SECONDS}s") > 0


def fuzzed(form: str, amount: str) -> int:
    """How many broken recordings were imported or refused, as they should be."""
    command = [sys.executable, "-m", "support.importer_fuzz", form, amount]
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, ""), completed.stderr[-5000:]
    memory_mb, inputs = map(int, completed.stdout.split())
    assert memory_mb < MEMORY_MB
    return inputs
