"""Real shells complete commands, options and names of `eyelevel`."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT, tool
from dataset.table import DOCUMENT

pytestmark = pytest.mark.slow

LIST = "tcp,tcp"
LISTS = ("tcp,tcp+", "tcp,tcp+bbr")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell that finds `eyelevel`; the folder `results` contains a campaign lte-quic."""
    program = tmp_path / "bin" / "eyelevel"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from eyelevel.program import main; main()" "$@"\n')
    program.chmod(0o755)
    (tmp_path / "results" / "lte-quic").mkdir(parents=True)
    (tmp_path / "results" / "lte-quic" / DOCUMENT).write_text("{}")
    path = f"{program.parent}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": str(PROJECT), "HOME": str(tmp_path), "TERM": "dumb"}


def output(environment: dict[str, str], shell: str, script: str) -> list[str]:
    """The lines that `shell` prints when it runs `script`."""
    command = [str(tool(shell)), "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_bash_completes_commands_and_names(environment: dict[str, str], tmp_path: Path) -> None:
    lines = (
        "eyelevel val",
        f"eyelevel campaign --results {tmp_path}/results --campaign lte",
        f"eyelevel replay --proto {LIST}",
    )
    script = 'eval "$(eyelevel completion bash)"\n' + "".join(
        f"COMPREPLY=() COMP_WORDS=({line}) COMP_CWORD={line.count(' ')}; _eyelevel_completion eyelevel; "
        'echo "${COMPREPLY[@]}"\n'
        for line in lines
    )
    command, campaign, lists = output(environment, "bash", script)
    assert (command, campaign) == ("validate", "lte-quic")
    assert {*LISTS} <= {*lists.split()}


@pytest.mark.needs_fish
def test_fish_completes_names(environment: dict[str, str]) -> None:
    script = 'eyelevel completion fish | source; complete -C "eyelevel campaign --proto tcp,tcp"'
    assert {*LISTS} <= {*output(environment, "fish", script)}


@pytest.mark.needs_zsh
def test_zsh_completes_names(environment: dict[str, str]) -> None:
    """zsh completes only on a terminal: a key that we bind prints the completed line."""
    (Path(environment["HOME"]) / ".zshrc").write_text(
        'autoload -U compinit; compinit -u -D; eval "$(eyelevel completion zsh)"; PS1=READY; show() { print -r -- '
        '"LINE=$BUFFER="; exit }; zle -N show; bindkey "^X" show\n'
    )
    terminal, ours = pty.openpty()
    with subprocess.Popen([tool("zsh"), "-i"], env=environment, stdin=ours, stdout=ours, stderr=ours) as process:
        os.close(ours)
        try:
            read_until(terminal, "READY")
            os.write(terminal, b"eyelevel campaign --net dsl,lt\t\x18")
            line = read_until(terminal, r"LINE=(.*?) ?=")
        finally:
            process.kill()
    os.close(terminal)
    assert line[1] == "eyelevel campaign --net dsl,lte"


def read_until(terminal: int, pattern: str) -> re.Match[str]:
    """Read from `terminal` until the text matches `pattern`."""
    text = ""
    while not (match := re.search(pattern, text)):
        text += os.read(terminal, 4096).decode(errors="replace")
    return match
