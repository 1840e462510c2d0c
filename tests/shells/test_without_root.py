"""The shells' tests need capabilities over their network. An ordinary user has these in a user namespace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.namespaces import has_capabilities, unshare
from base.places import PROJECT


@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_the_shells_do_the_same_for_an_ordinary_user(tmp_path: Path) -> None:
    if has_capabilities():
        pytest.skip("need no user namespace (this session has capabilities, and ran test_shells.py)")
    command: list[str | Path] = [unshare(), "--user", "--map-current-user", "--keep-caps", "--net", sys.executable]
    command += ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", PROJECT / "tests" / "shells" / "test_shells.py"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stdout
