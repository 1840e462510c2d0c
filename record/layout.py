"""The layout of a site on disk: the names of its files and folders, and of our own header fields.

    site.json                   index: where the page starts, how it was recorded, every exchange
    completeness.json           how complete it is, if known; not part of the recording
    live.json                   how long its page took in loads without the recorder; not part of the recording
    script.mjs                  the steps that are made in its page in each load, if any
    <host>/<NNNNN>-<slug>       one raw response each

<host> is a host's name; a port other than 443 follows after a comma, which no host name contains. Older sites have an
underscore in place of the comma, and can still be read. Standard library only.
"""

import re
from ipaddress import IPv4Address
from urllib.parse import urlsplit

from base.errors import EyelevelError
from record.http1 import Headers, MalformedMessage, without_fields

FORMAT = 1
INDEX, COMPLETENESS, LIVE, PAGE_SCRIPT = "site.json", "completeness.json", "live.json", "script.mjs"
# Our own files in a site's folder.
OURS = (INDEX, COMPLETENESS, LIVE, PAGE_SCRIPT)

# The benchmark range of RFC 2544. Servers have consecutive addresses in the order of first use.
FIRST_SERVER = IPv4Address("198.18.0.1")

# These fields tell the servers which request a stored response answers. Browsers never receive them.
ORIGINAL_URL = "X-Original-Url"
ORIGINAL_METHOD = "X-Original-Method"
ORIGINAL_WAIT_MS = "X-Original-Wait-Ms"  # how long the server took to answer, if recorded
ORIGINALS = frozenset(name.lower() for name in (ORIGINAL_URL, ORIGINAL_METHOD, ORIGINAL_WAIT_MS))

AUTHORITY = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?(:[0-9]{1,5})?")
FILE_NAME = re.compile("([0-9]{5})-[A-Za-z0-9._-]{1,60}")
# The longest name that Linux's file systems accept.
NAME_BYTES = 255


def without_originals(headers: Headers) -> Headers:
    """A stored response's header fields without our own, which name the request that it answers."""
    return without_fields(headers, ORIGINALS)


def require_single_originals(headers: Headers) -> None:
    """Refuse a stored response that has one of our fields twice: servers would not agree on which request it answers.

    Raises MalformedMessage.
    """
    names = [name.lower() for name, _ in headers]
    for name in (ORIGINAL_URL, ORIGINAL_METHOD, ORIGINAL_WAIT_MS):
        if names.count(name.lower()) > 1:
            raise MalformedMessage(f"it has {name} twice")


def authority_of(url: str) -> str:
    """The authority of an https URL as servers see it: in lower case, without the default port.

    Raises ValueError when `url` is no URL.
    """
    authority = urlsplit(url).netloc.rpartition("@")[2].lower()
    return authority.removesuffix(":443")


def server_addresses(count: int) -> list[str]:
    """The addresses of the first `count` servers."""
    return [str(FIRST_SERVER + number) for number in range(count)]


def host_folder(authority: str) -> str:
    """The name of the folder for an authority's responses; different authorities have different names.

    Raises EyelevelError when the authority is no host name, since such a name could lead out of the site.
    """
    if not AUTHORITY.fullmatch(authority):
        raise EyelevelError(f"{authority!r} in the recording is not a host name; leave out its exchanges")
    if authority in OURS:
        return f"{authority},443"
    name = authority.replace(":", ",")
    if len(name) <= NAME_BYTES:
        return name
    from hashlib import sha256  # imported only for such names, since it takes 0.6 MB of uWSGI

    digest = sha256(authority.encode()).hexdigest()[:32]
    return f"{name[: NAME_BYTES - len(digest) - 1]},{digest}"


def file_name(order: int, url: str) -> str:
    """The name of the file of the exchange at this place in the recorded order, from 0."""
    return f"{order:05d}-{_slug(url)}"


def is_file_name(name: str, order: int) -> bool:
    """Whether the file of the exchange at this place may have that name."""
    match = FILE_NAME.fullmatch(name)
    return match is not None and int(match[1]) == order


def _slug(url: str) -> str:
    """A short file name without special characters, by which a person recognises the URL."""
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", last)[-60:] or "index"
