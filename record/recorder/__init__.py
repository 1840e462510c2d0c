"""Recording a site from the web: a fresh browser loads it through a proxy that keeps every response as it was sent.

command ── unshare ── inside (process 1 of its namespaces, which end with it)
                         ├── mitmdump with addon.py ── writes exchanges and events (proxy_output.py)
                         └── Xvfb, chromedriver ── Chromium, whose proxy is mitmdump
"""
