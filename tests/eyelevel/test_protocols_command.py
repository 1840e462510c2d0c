"""`eyelevel protocols` lists what `--proto` takes."""

import json

import pytest
from click.testing import CliRunner

from eyelevel.commands.protocols import main
from tuning import protocols

PROTOCOLS = protocols.load()


@pytest.mark.parametrize("columns", ["80", "200"])
def test_each_protocol_has_one_line(columns: str) -> None:
    done = CliRunner().invoke(main, [], env={"COLUMNS": columns}, catch_exceptions=False)
    first_words = [line.split()[0] for line in done.output.splitlines() if line.strip()]
    assert [word for word in first_words if word in PROTOCOLS] == list(PROTOCOLS)
    assert max(map(len, done.output.splitlines())) <= int(columns)


def test_a_protocol_that_is_named_is_shown_with_all_settings() -> None:
    done = CliRunner().invoke(main, ["--proto", "tcp+level"], catch_exceptions=False)
    assert "tcp+level: known_servers yes; " in done.output
    assert "tcp+level: at the servers: net.ipv4.tcp_slow_start_after_idle 0; " in done.output


def test_other_programs_get_all_settings() -> None:
    listed = json.loads(CliRunner().invoke(main, ["--json"], catch_exceptions=False).stdout)
    assert [one["name"] for one in listed] == list(PROTOCOLS)
    assert {one["name"]: one["scheduler"] for one in listed}["quic+1con"] == "urgency-first-come"
