"""A missing program is reported in one line, with the set-up that installs it."""

from pathlib import Path

import pytest

from base.errors import EyelevelError
from base.places import tool


def test_the_message_says_which_set_up_installs_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path))
    # The second of three programs of its step (`setup/optional/servers/quinn.sh`).
    for program, remedy in (("quinn_client", "make setup SERVERS=quinn"), ("unheard-of", "make setup")):
        with pytest.raises(EyelevelError) as raised:
            tool(program)
        assert str(raised.value) == f"the program {program} is not installed; run '{remedy}'"
