"""Chromium knows every switch, feature and parameter that it is given, since it ignores unknown ones."""

import mmap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import WITHOUT_SUGGESTIONS

from browsers.chromium.program import BINARY, FORMER_FEATURES
from browsers.chromium_browser import Chromium
from browsers.contract import Page
from browsers.window import Window
from record.recorder import browser_options
from tuning import protocols

PROTOCOLS = protocols.load()
PAGE = Page("https://a.example/", ("a.example",), ("a.example:443",), Window(800, 600, mobile=False), "an agent")
# Switches whose values are lists of names; after a slash, a name may have its own value.
FEATURES = ("enable-features", "disable-features", "force-fieldtrials", "force-fieldtrial-params")


def given(results: Path) -> Iterator[str]:
    """Each switch that a browser gets in loads over any protocol, in live loads, in canaries, in recordings, and in
    tests."""
    chromium = Chromium()
    for protocol in PROTOCOLS.values():
        yield from chromium.browsertime_options(PAGE, protocol, protocol.connection_options, results)["chrome"]["args"]
    yield from chromium.live_options(PAGE, {"a.example": "192.0.2.1"}, results)["chrome"]["args"]
    yield from (word.removeprefix("--") for word in map(str, chromium.screenshot_command("", results)[1:-2]))
    yield from browser_options.switches(Window(800, 600, mobile=False), results, 1)
    yield WITHOUT_SUGGESTIONS


def names(switch: str) -> Iterator[str]:
    """The names in a switch that Chromium must know."""
    name, _, value = switch.partition("=")
    yield name
    if name == "force-fieldtrial-params":
        yield from value.partition(":")[2].split("/")[::2]
    elif name in FEATURES:
        yield from (word.partition("/")[0] for word in value.split(","))


@pytest.mark.slow
@pytest.mark.skipif(not BINARY.exists(), reason="Chromium is not set up")
def test_chromium_has_the_name_of_everything_that_it_is_given(tmp_path: Path) -> None:
    needed = {name for switch in given(tmp_path) for name in names(switch)} - {*FORMER_FEATURES}
    assert {"origin-to-force-quic-on", "UseDnsHttpsSvcb", "disable_tls_zero_rtt", "QUIC"} <= needed
    with BINARY.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
        # Names end with a zero byte. If one is the end of another, a program contains only the longer one.
        unknown = {name for name in needed | {"no-such-switch"} if program.find(name.encode() + b"\0") < 0}
    assert unknown == {"no-such-switch"}
