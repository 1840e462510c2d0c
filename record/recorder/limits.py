"""The most that a recording may hold while it runs: a page, or its servers, must not be able to fill the memory.

Standard library only: the proxy's Python loads it too.
"""

# Bodies of all exchanges, which are in memory.
RECORDING_BYTES = 1 << 30

# Files of the browser, such as its cache.
BROWSER_BYTES = 1 << 30

# Each folder's other files: logs, keys, sockets.
OVERHEAD_BYTES = 64 << 20

# The proxy's memory: bodies in transit, with copies, and other messages that it has to hold, such as WebSockets'.
PROXY_BYTES = 3 << 30

# The answer of the browser's driver.
ANSWER_BYTES = 16 << 20
