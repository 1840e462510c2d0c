"""A program that is missing is one line, with the set-up that installs it."""

from pathlib import Path

import pytest

from base import places
from base.errors import EyelevelError


def test_the_message_says_which_set_up_installs_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = tmp_path / "setup" / "optional" / "servers"
    steps.mkdir(parents=True)
    (steps / "fastest.sh").write_text('title="a server"\nprograms="fastest fastest-control"\n')
    monkeypatch.setattr(places, "PROJECT", tmp_path)
    for program, remedy in (("fastest-control", "make setup SERVERS=fastest"), ("unheard-of", "make setup")):
        with pytest.raises(EyelevelError) as raised:
            places.tool(program)
        assert str(raised.value) == f"the program {program} is not installed; run '{remedy}'"
