"""The shells under many faults and random command lines; the quick tests are in test_shells.py."""

import functools
import os
import random
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shells import (
    SERVER,
    Marked,
    all_processes,
    devices,
    namespaces_kept,
    network_namespace,
    network_namespaces,
    stack,
)

pytestmark = [pytest.mark.needs_capabilities, pytest.mark.needs_namespaces, pytest.mark.needs_shells]

COMMAND_LINES = 1500
FAULTS = 60

NUMBERS = (
    "0",
    "1",
    "20",
    "0.5",
    "-1",
    "1e3",
    "1e400",
    "nan",
    "99999999999999999999",
    "",
    "x",
    "½",
    "0x10",
    " 3",
    "1,5",
)
RATES = ("1M", "468k", "2.8M", "1G", "0", "0M", "-1M", "1T", "/dev/null", "/", "/no/such/file", "1m", "M", "", "\udcff")
QUEUE_ARGUMENTS = (
    "packets=10",
    "bytes=0",
    "ms=5",
    "bdp=1",
    "target=5,interval=100",
    "ecn=1",
    "flows=0",
    "=",
    ",,",
    "x=1",
    "packets=",
)
SIZES = ("200ms", "30p", "1.5bdp", "70000", "0", "-1", "9999999999999p", "ms", "")
BLOCKS = ("10.0.0.0/8", "10.0.0.0/30", "10.0.0.0/32", "0.0.0.0/0", "10.0.0.0/33", "10.0.0/8", "::/0", "")
FOUR = ("0.1,0.2,0.9,0", "1,1,1,1", "0,0,0,0", "0.1,0.2", "a,b,c,d", "2,0,0,0")
SEVERAL = ("1", "3,1,2", "0", "0,0.5", "1,1", "1,", "-1", "x", "1e3", "99999999999999999999", "")

FILES = ("/dev/null", "/dev/full", "/", "/no/such/folder/log", "")
DIRECTIONS = ("uplink", "downlink", "both", "round-trip", "--round-trip", "sideways", "")

# Values for the placeholders in the help texts of the programs.
VALUES = {
    "MS": NUMBERS,
    "P": NUMBERS,
    "NUMBER": NUMBERS,
    "PACKETS": NUMBERS,
    "RATE": RATES,
    "SIZE": SIZES,
    "BLOCK": BLOCKS,
    "FILE": FILES,
    "P,R,B,G": FOUR,
    "NUMBER,…": SEVERAL,
    "MS,…": SEVERAL,
    "NAME=NUMBER,…": QUEUE_ARGUMENTS,
}

# Values for the positional arguments of each program.
PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "mm-delay": (NUMBERS,),
    "mm-link": (RATES, RATES),
    "mm-loss": (DIRECTIONS, NUMBERS),
    "mm-onoff": (DIRECTIONS, NUMBERS, NUMBERS),
    "mm-intermittent": (DIRECTIONS, NUMBERS, NUMBERS),
    "mm-meter": (),
    "mm-net": (),
}


@functools.cache
def options_of(program: str) -> dict[str, tuple[str, ...] | None]:
    """The options of a program, as its help lists them, with values to try; None for an option without a value."""
    text = subprocess.run([*stack(program), "--help"], capture_output=True, text=True, check=True).stdout
    queues = (*re.findall(r"^ +- (\w+):", text, re.MULTILINE), "red", "")
    options: dict[str, tuple[str, ...] | None] = {"--no-such-option": None}
    for option, placeholder in re.findall(r"^ {2,6}(?:-\w, )?(--[\w-]+)(?: <([^>]+)>)?", text, re.MULTILINE):
        options[option] = (VALUES | {"QUEUE": queues})[placeholder] if placeholder else None
    return options


def random_command_line(choose: random.Random) -> list[str]:
    """A command line that a user might write."""
    program = choose.choice(list(PROGRAMS))
    words = stack(program) + [choose.choice(values) for values in PROGRAMS[program]]
    every_option = list(options_of(program).items())
    for option, values in choose.sample(every_option, choose.randrange(min(5, len(every_option)))):
        words.append(option if values is None else f"{option}={choose.choice(values)}")
    if choose.random() < 0.1:
        del words[choose.randrange(1, len(words) + 1) :]
    return [*words, *choose.choice(([], ["--"])), *choose.choice((["true"], ["/no/such/command"], []))]


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    """Run each test in a separate network namespace."""
    with network_namespace():
        yield


def test_no_command_line_is_a_crash() -> None:
    choose = random.Random(3)
    for _ in range(COMMAND_LINES):
        words = random_command_line(choose)
        result = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            env=os.environ | {"SHELL": "/bin/true"},
            check=False,
        )
        message = result.stderr.decode()
        assert result.returncode in (0, 1, 2, 127), (words, result)
        assert "panicked" not in message, (words, message)
        assert result.returncode == 0 or message, words
        assert devices() == ["lo"], words


SHELLS = (
    "mm-delay 3",
    "mm-delay 3 --jitter 2 --reorder --",
    "mm-loss both 0.1",
    "mm-link 3M 3M --queue 50ms --packet-log=/dev/null --",
    "mm-link 1M 5M --uplink-queue=fq_codel --",
    "mm-onoff uplink 0.1 0.1",
    "mm-meter --",
    "mm-net --delay 37 --up 2.8M --down 10.5M --queue 200ms --",
)
TRAFFIC = ["sh", "-c", f"ping -q -f -s 1000 {SERVER[0]} > /dev/null & sleep 1000 & echo ready; wait"]


def test_whatever_is_killed_whenever_nothing_is_left() -> None:
    choose = random.Random(4)
    for _ in range(FAULTS):
        depth = choose.randint(1, 4)
        shells = " ".join(choose.choice(SHELLS) for _ in range(depth))
        sent = choose.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP))
        tree = Marked(shells, TRAFFIC)
        try:
            processes = tree.processes()
            # The victims are each shell and its supervisor, then the command and its children, which may end by
            # themselves.
            victim = choose.randrange(2 * depth + 1)
            with namespaces_kept(processes) as namespaces:
                assert len(namespaces) == depth
                os.kill(processes[victim], sent)
                tree.assert_all_end(within_s=15)
                assert not namespaces & network_namespaces(all_processes()), (shells, victim, sent)
            assert devices() == ["lo"], (shells, victim, sent)
        finally:
            tree.shell.kill()


def test_properties_hold_for_many_more_networks_and_packets() -> None:
    project = Path(__file__).resolve().parents[2]
    tests = ("link_properties", "nested_equals_fused", "no_input_is_a_crash")
    chosen = [word for name in tests for word in ("--test", name)]
    subprocess.run(
        [project / "setup" / "cargo", "test", "--release", "--locked", *chosen],
        env=os.environ | {"PROPTEST_CASES": "20000"},
        check=True,
        timeout=1800,
    )
