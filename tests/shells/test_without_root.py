"""Runs the shells' tests as an ordinary user. They need capabilities over their network, which such a user has only in
a user namespace."""

from pathlib import Path

import pytest
from support.shells import assert_passes_in_user_namespace

from base.namespaces import has_capabilities
from base.places import PROJECT


@pytest.mark.timing
@pytest.mark.timeout(900)
@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_the_shells_do_the_same_for_an_ordinary_user(tmp_path: Path) -> None:
    if has_capabilities():
        pytest.skip("need no user namespace (this session has capabilities, and ran test_shells.py)")
    assert_passes_in_user_namespace(PROJECT / "tests" / "shells" / "test_shells.py", tmp_path)
