"""Recording a site from the web: a fresh browser loads it through a proxy, which stores every response as it was sent.

command ── unshare ── inside (process 1 of its namespaces, which end with it)
                         ├── mitmdump with addon.py ── writes exchanges and events (proxy_output.py)
                         └── Xvfb, chromedriver ── Chromium, whose proxy is mitmdump

mitmdump is in the machine's network, and connects only to addresses that addresses.py permits. All other processes are
in a network of their own, without other hosts (isolation.py). The only connection between the two networks is the
socket on which mitmdump listens. mitmdump and the browser are each in a jail (base/jail.py).
"""
