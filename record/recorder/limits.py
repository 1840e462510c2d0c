"""Limits for a running recording: neither a page nor its servers must be able to fill the memory.

Standard library only: the proxy's Python loads this module, too.
"""

# A limit for the bodies of all exchanges, which are in memory.
RECORDING_BYTES = 1 << 30

# A limit for the browser's files, such as its cache.
BROWSER_BYTES = 1 << 30

# A limit for the other files of each folder: logs, keys, sockets.
OVERHEAD_BYTES = 64 << 20

# A limit for the proxy's memory: bodies in transit, with copies, and other messages that it must hold, such as those of
# WebSockets.
PROXY_BYTES = 3 << 30

# A limit for an answer of the browser's driver.
ANSWER_BYTES = 16 << 20
