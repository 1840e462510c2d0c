"""Recording a site from the web: a fresh browser loads it through a proxy that keeps every response as it was sent.

command ── unshare ── inside (process 1 of its own world, which ends with it)
                         ├── mitmdump with addon.py ── writes a capture, tells its events
                         └── Xvfb, chromedriver ── Chromium, whose proxy is mitmdump
"""
