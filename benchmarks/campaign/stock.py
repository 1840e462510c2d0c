"""Stock Browsertime as the client of a replay: `-n` loads with its defaults, a video and visual metrics.

The only additions are those that it needs here: the browser's path, and a user other than root, which Chromium's
sandbox requires. The X server is started for it, which saves it that work.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from base.display import DISPLAY, x_server
from base.namespaces import AS_ORDINARY_USER, mount_memory
from base.places import tool
from browsers.chromium.program import BINARY
from measure.run.browser import window
from record.site import Site

RESULT = "browsertime.json"
X_SOCKETS = Path("/tmp/.X11-unix")


def main(site_folder: Path, runs: int, folder: Path) -> int:
    """Load the site `runs` times; returns Browsertime's exit status. Results are in `folder`."""
    site = Site.load(site_folder)
    view = window(site)
    folder.mkdir(parents=True, exist_ok=True)
    # Nobody else can have the display's socket: the mounts belong to the replay, and end with it.
    if not X_SOCKETS.exists():
        X_SOCKETS.mkdir()
        X_SOCKETS.chmod(0o1777)  # for the X servers of any user, whatever our umask
    mount_memory(X_SOCKETS)
    with x_server(view.screen, folder / "x.log") as await_screen:
        await_screen()
        config = {
            "browser": "chrome",
            "iterations": runs,
            "resultDir": str(folder),
            "useSameDir": True,
            "viewPort": f"{view.width}x{view.height}",
            "chrome": {
                "binaryPath": str(BINARY),
                "chromedriverPath": str(tool("chromedriver")),
                "args": ["disable-quic", "host-resolver-rules=MAP browser.invalid ~NOTFOUND"],
            },
            "video": True,
            "visualMetrics": True,
            "xvfbParams": {"display": DISPLAY},
        }
        (folder / "config.json").write_text(json.dumps(config))
        environment = {**os.environ, "DISPLAY": f":{DISPLAY}", "PYTHON": sys.executable}
        command: list[str | Path] = [*AS_ORDINARY_USER, tool("node"), tool("browsertime").resolve()]
        command += ["--config", folder / "config.json"]
        with (folder / "browsertime.log").open("wb") as log:
            return subprocess.run(
                [*command, site.url], cwd=folder, env=environment, stdout=log, stderr=log, check=False
            ).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
