"""How much a recording, and the site made of it, may hold. No page needs more.

A recording or a site may come from anybody, so nothing in it may fill the memory, keep a replay from starting, or make
servers differ. Importers, the recorder, `Site.load` and all servers hold to these. Standard library only.
"""

# Each server is a process and some addresses; each host a name in a certificate.
SERVERS = 1000
HOSTS = 2000
# Their numbers have five digits, by which the servers put them in order.
EXCHANGES = 50_000

# No page needs more. A server or a broken recording must not be able to fill the memory.
BODY_BYTES = 256 << 20
BODY_TOO_LONG = f"its body is longer than {BODY_BYTES >> 20} MiB"
# All bodies together: servers and importers hold a site in memory.
SITE_BYTES = 2 << 30
# All of them that are compressed, once they are decoded: seconds of work. Each chunk of a body counts as so many bytes.
DECODED_BYTES = 512 << 20
CHUNK_BYTES = 256
# All texts of a recording in which URLs in plain http become https: each is read as text, in several copies.
UPGRADED_BYTES = 64 << 20
# All files of a site's folder together, header fields included; and the number of files that people may keep beside a
# recording. A campaign identifies the site by a hash of all of them.
FOLDER_BYTES = 3 << 30
FURTHER_FILES = 1000

# The header fields of one response as it is sent, each as `name: value` with its line end. uWSGI takes 64 KiB with the
# status line and what servers add.
HEADER_BYTES = 60 << 10
HEADER_FIELDS = 1000
REASON_BYTES = 1024
# The name of a site, without that of a variant.
NAME_LETTERS = 100
# Longer URLs do not fit into a request to uWSGI together with a referrer of the same length.
URL_BYTES = 24 << 10
# A browser is started with it as an argument.
USER_AGENT_BYTES = 1024

# How long a server waits, at most, when it takes the time that the recorded one took.
THINK_TIME_S = 60.0

# The most that is read of one message's beginning before it is judged: its header fields, and a format's own framing.
HEAD_BYTES = 1 << 20
# URLs and header fields of a recording together.
TEXT_BYTES = 64 << 20
# The names of what was left out: the most lines, letters of a line, and letters of all.
LINES = 10_000
LINE_LETTERS = URL_BYTES + 1024
LINES_LETTERS = 16 << 20


def excess(
    *, servers: int = 0, hosts: int = 0, exchanges: int = 0, body_bytes: int = 0, text_bytes: int = 0
) -> str | None:
    """The first limit that a site of these sizes exceeds, in words: "more than 1,000 servers". None if it is within
    all."""
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
