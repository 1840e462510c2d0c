"""Firefox: its log of requests. `browsers.firefox_browser` makes it a browser of the testbed."""
