"""Chromium: the program and its logs. `browsers.chromium_browser` makes it a browser of the testbed."""
