"""Recording a site from the web: a fresh browser loads it through a proxy that keeps every response as it was sent.

command ── unshare ── inside (process 1 of its namespaces, which end with it)
                         ├── mitmdump with addon.py ── writes exchanges and events (proxy_output.py)
                         └── Xvfb, chromedriver ── Chromium, whose proxy is mitmdump

mitmdump is in the machine's network, and connects where addresses.py lets it; all others are in one of their own, in
which nobody else is (isolation.py). Only the socket that mitmdump listens on leads from there to it. mitmdump and the
browser are each in a jail (base/jail.py).
"""
