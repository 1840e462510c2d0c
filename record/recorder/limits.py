"""What a recording may hold while it runs: a page, or its servers, must not be able to fill the memory.

Standard library only: the proxy's Python loads it too.
"""

# Bodies of all exchanges, which are in memory.
RECORDING_BYTES = 1 << 30

# Files of the browser, such as its cache.
BROWSER_BYTES = 1 << 30

# Each folder's other files: logs, keys, sockets.
OVERHEAD_BYTES = 64 << 20

# Of the proxy: bodies on their way, with copies, and what other messages it has to hold, such as those of WebSockets.
PROXY_BYTES = 3 << 30

# The answer of the browser's driver.
ANSWER_BYTES = 16 << 20
