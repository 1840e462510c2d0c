"""Firefox: its log of requests. `browsers.firefox_browser` makes a browser of the testbed of it."""
