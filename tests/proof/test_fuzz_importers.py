"""Each importer and `Site.load`, and many thousands of broken recordings and site folders.

EYELEVEL_FUZZ_INPUTS says how many in all.
"""

import os
import subprocess
import sys

import pytest
from support.importer_fuzz import FORMS

from base.places import PROJECT

INPUTS = int(os.environ.get("EYELEVEL_FUZZ_INPUTS", "200000"))
MEMORY_MB = 500


@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("form", FORMS)
def test_whatever_is_in_it_is_imported_or_refused_in_one_line_with_little_memory(form: str) -> None:
    command = [sys.executable, "-m", "support.importer_fuzz", form, str(INPUTS // len(FORMS))]
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, ""), completed.stderr[-5000:]
    assert int(completed.stdout) < MEMORY_MB
