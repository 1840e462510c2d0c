"""After the storm of faults and command lines (test_shells_storm.py), nothing remains of an ordinary user's shells
either."""

from pathlib import Path

import pytest
from support.shells import assert_passes_in_user_namespace

from base.namespaces import has_capabilities
from base.places import PROJECT


@pytest.mark.timeout(2400)
@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_the_storm_leaves_nothing_of_an_ordinary_user(tmp_path: Path) -> None:
    if has_capabilities():
        pytest.skip("need no user namespace (this session has capabilities, and ran test_shells_storm.py)")
    assert_passes_in_user_namespace(PROJECT / "tests" / "proof" / "test_shells_storm.py", tmp_path)
