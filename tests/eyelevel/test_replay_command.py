"""The command lines that a replay suggests work as described, whatever a stranger's site is called."""

import shlex
from pathlib import Path

from support.own_servers import exchange, ok, stored

from eyelevel.commands.replay import _what_to_try
from replay.spec import ReplaySpec
from tuning import networks, protocols


def test_a_strangers_url_is_one_word_of_the_command_line_that_is_suggested(tmp_path: Path) -> None:
    url = "https://a.example/;touch$IFS'pasted;$(x)"
    site = stored(tmp_path, exchange("GET", url, ok(b"page")))
    text = _what_to_try(ReplaySpec(site, networks.load()["dsl"], protocols.load()["tcp"]))
    (curl,) = [line for line in text.splitlines() if "curl" in line]
    words = shlex.shlex(curl, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    assert list(words)[-1] == url
