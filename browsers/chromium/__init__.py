"""Chromium: the program, and what it leaves. `browsers.chromium_browser` makes a browser of the testbed of it."""
