"""How much a recording, and the site made from it, may contain. No page needs more.

A recording or a site may come from anybody, so nothing in it may fill the memory, keep a replay from starting, or make
servers differ. Importers, the recorder, `Site.load` and all servers enforce these limits. Standard library only.
"""

# Each server is a process and some addresses; each host is a name in a certificate.
SERVERS = 1000
HOSTS = 2000
# The numbers of exchanges have five digits, so that servers sort them correctly.
EXCHANGES = 50_000

# A limit for each body, so that a server or a broken recording cannot fill the memory.
BODY_BYTES = 256 << 20
BODY_TOO_LONG = f"its body is longer than {BODY_BYTES >> 20} MiB"
# A limit for all bodies together: servers and importers hold a site in memory.
SITE_BYTES = 2 << 30
# A limit for all compressed bodies together, once decoded: they take seconds of work. Each chunk of a body counts as
# CHUNK_BYTES.
DECODED_BYTES = 512 << 20
CHUNK_BYTES = 256
# A limit for all texts together in which http URLs become https: each is processed as text, in several copies.
UPGRADED_BYTES = 64 << 20
# Limits for all files in a site's folder together, including header fields, and for the number of other files that
# people keep there. A campaign identifies the site by a hash of all of them.
FOLDER_BYTES = 3 << 30
FURTHER_FILES = 1000

# The header fields of one response as sent, each as `name: value` with its line end. uWSGI accepts 64 KiB, including
# the status line and the fields that servers add.
HEADER_BYTES = 60 << 10
HEADER_FIELDS = 1000
REASON_BYTES = 1024
# The greatest length of a site's name, not counting the name of a variant.
NAME_LETTERS = 100
# The longest URL. Longer ones do not fit into a request to uWSGI together with a referrer of the same length.
URL_BYTES = 24 << 10
# The longest user agent, which is an argument of the browser's command line.
USER_AGENT_BYTES = 1024

# The longest time that a server waits when it replays the recorded server's think time.
THINK_TIME_S = 60.0

# At most this much of a message's beginning is read before it is judged: its header fields, and its format's own
# framing.
HEAD_BYTES = 1 << 20
# A limit for the URLs and header fields of a recording together.
TEXT_BYTES = 64 << 20
# Limits for the list of what was left out: lines, letters of a line, and letters of all lines.
LINES = 10_000
LINE_LETTERS = URL_BYTES + 1024
LINES_LETTERS = 16 << 20


def excess(
    *, servers: int = 0, hosts: int = 0, exchanges: int = 0, body_bytes: int = 0, text_bytes: int = 0
) -> str | None:
    """The first limit that a site of these sizes exceeds, in words, such as "more than 1,000 servers"; None if it
    exceeds none."""
    for count, limit, text in (
        (body_bytes, SITE_BYTES, f"{SITE_BYTES >> 30} GiB of bodies"),
        (text_bytes, TEXT_BYTES, f"{TEXT_BYTES >> 20} MiB of URLs and header fields"),
        (servers, SERVERS, f"{SERVERS:,} servers"),
        (hosts, HOSTS, f"{HOSTS:,} hosts"),
        (exchanges, EXCHANGES, f"{EXCHANGES:,} exchanges"),
    ):
        if count > limit:
            return f"more than {text}"
    return None
