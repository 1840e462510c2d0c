"""The packaged browser, driven by a test."""

import base64
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from base.namespaces import AS_ORDINARY_USER, namespaced
from base.places import tool
from browsers.chromium.program import BINARY
from record.recorder.webdriver import Session
from support.leaks import OF_SESSION

# The time limit of a test (pyproject.toml): a busy machine may slow down a page without bound.
LIMIT_S = 600
PORT_IN_USE = "IPv4 port not available"
# Without these features, a window with an address bar does not start the two renderers of its suggestions, which take
# as much of the processor as the rest of a browser that shows a small page. The canary starts them, since its times
# must stay comparable with those of older campaigns.
ADDRESS_BAR_FEATURES = ("WebUIOmniboxPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxAimPopup")
WITHOUT_SUGGESTIONS = f"disable-features={','.join(ADDRESS_BAR_FEATURES)}"


class Browser(Session):
    """The packaged browser, and the messages that it wrote to its console."""

    def console(self) -> list[dict[str, Any]]:
        """The messages on the console since the last call."""
        messages: list[dict[str, Any]] = self._ask("POST", "/se/log", {"type": "browser"})
        return messages

    def begin_anew(self) -> None:
        """Close all tabs, with their settings and messages, and open a new one.

        (The browser keeps its cache, its storage, and the folder where it saves downloads.)
        """
        tab = self._ask("POST", "/window/new", {"type": "tab"})["handle"]
        for other in self._ask("GET", "/window/handles", {}):
            if other != tab:
                self._ask("POST", "/window", {"handle": other})
                self._ask("DELETE", "/window", {})
        self._ask("POST", "/window", {"handle": tab})
        self.console()

    def narrow(self, width: int) -> None:
        """Make the page `width` pixels wide."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)

    def press(self, *keys: str) -> None:
        """Press and release `keys` one after the other; the focused element receives them."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def look_elsewhere(self, seconds: float = 0.1) -> None:
        """Switch to another tab for this long, and return."""
        here = self._ask("GET", "/window", {})
        there = self._ask("POST", "/window/new", {"type": "tab"})["handle"]
        self._ask("POST", "/window", {"handle": there})
        time.sleep(seconds)
        self._ask("POST", "/window", {"handle": here})

    def download_into(self, folder: Path) -> None:
        """Allow pages to save downloads in `folder`."""
        self._devtools("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def prefer(self, scheme: str) -> None:
        """Make the user prefer the colour `scheme`, light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", {"features": features})

    def screenshot(self, width: int, height: int, top: str = "html") -> bytes:
        """`height` pixels of the page, which is `width` pixels wide, from the first element of the CSS selector `top`
        on, as PNG."""
        # The window is higher than the page, so that there is no scrollbar, and nothing sticks to an edge.
        metrics = {"width": width, "height": 15_000, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)
        y = self.run("return document.querySelector(arguments[0]).getBoundingClientRect().top", top)
        clip = {"x": 0, "y": y, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self._devtools("Page.captureScreenshot", {"clip": clip})["data"])

    def print_page(self) -> bytes:
        """The page printed on A4, as PDF."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        return base64.b64decode(self._devtools("Page.printToPDF", paper)["data"])

    def eventually(self, script: str) -> Any:
        """The value of the promise that `script` returns."""
        wrapped = f"const done = arguments[0]; (async () => {{ {script} }})().then(done, (e) => done(String(e)));"
        return self._ask("POST", "/execute/async", {"script": wrapped, "args": []})

    def _devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        """The answer to a command of DevTools. WebDriver's own printing always ends after 10 s."""
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})


class SharedBrowser:
    """A browser for all modules of a session. It runs from when one needs it until it fails or a timing test begins."""

    def __init__(self) -> None:
        self._ends = ExitStack()
        self._browser: Browser | None = None

    def running(self, profile: Path) -> Browser:
        """The browser; if none runs, it is started with this folder for its profile."""
        if not self._browser:
            self._browser = self._ends.enter_context(browsing(profile))
        return self._browser

    def end(self) -> None:
        """End the browser if it runs."""
        self._browser = None
        self._ends.close()


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """Run the browser without a window for the duration of the block; its profile is in the folder `profile`."""
    options = ["--headless=new", "--window-size=1400,900", "--disable-gpu", "--mute-audio", f"--{WITHOUT_SUGGESTIONS}"]
    options.append(f"--user-data-dir={profile}")
    capabilities = {
        "goog:chromeOptions": {"binary": str(BINARY), "args": options},
        "goog:loggingPrefs": {"browser": "ALL"},
        "timeouts": {"script": 1000 * LIMIT_S, "pageLoad": 1000 * LIMIT_S},
    }
    with (
        # If the browser is killed, it leaves the folder of its socket, whose path must be short.
        TemporaryDirectory() as temporary,
        ExitStack() as ends,
    ):
        port = None
        while port is None:
            port = ends.enter_context(driving(temporary))
        yield Browser(port, {"capabilities": {"alwaysMatch": capabilities}}, LIMIT_S)


@contextmanager
def driving(temporary: str) -> Iterator[int | None]:
    """Run chromedriver, with its files in the folder `temporary`, for the duration of the block; yields its port.

    None if it has ended because its port is in use: it takes a free port of ::1, which another program may have on
    127.0.0.1, where it must listen, too.
    """
    with subprocess.Popen(
        [*namespaced(), *AS_ORDINARY_USER, tool("chromedriver"), "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": temporary},
        start_new_session=True,  # Ctrl-C on the terminal must not reach it: the browser would outlive its driver
    ) as driver:
        assert driver.stdout is not None
        OF_SESSION.add(driver.pid)
        try:
            said = []
            for line in driver.stdout:
                said.append(line)
                if match := re.search(r"successfully on port (\d+)", line):
                    yield int(match[1])
                    return
            assert said and PORT_IN_USE in said[-1], said
            yield None
        finally:
            driver.kill()
            driver.stdout.read()  # the output ends when all processes in its namespace have ended
            OF_SESSION.discard(driver.pid)
