"""How a site is laid out on disk: the names of its files and folders, and of the header fields that are ours.

    site.json                   index: where the page starts, how it was recorded, every exchange
    completeness.json           what is known of how complete it is; no part of the recording
    live.json                   how long its page took in loads without the recorder; no part of it either
    script.mjs                  the steps that are done in its page in each load, if there are any
    <host>/<NNNNN>-<slug>       one raw response each

<host> is a host's name, with a port other than 443 behind a comma, which no host name can have. Sites written before
have an underscore there; they are read as they are. Standard library only.
"""

import re
from ipaddress import IPv4Address
from urllib.parse import urlsplit

from base.errors import EyelevelError
from record.http1 import Headers, MalformedMessage, without_fields

FORMAT = 1
INDEX, COMPLETENESS, LIVE, PAGE_SCRIPT = "site.json", "completeness.json", "live.json", "script.mjs"
# The files in a site's folder that are ours.
OURS = (INDEX, COMPLETENESS, LIVE, PAGE_SCRIPT)

# The benchmark range of RFC 2544. Servers have consecutive addresses in order of first use.
FIRST_SERVER = IPv4Address("198.18.0.1")

# The servers read from these which request a stored response answers. Browsers never get them.
ORIGINAL_URL = "X-Original-Url"
ORIGINAL_METHOD = "X-Original-Method"
ORIGINAL_WAIT_MS = "X-Original-Wait-Ms"  # how long the server took to answer, where that was recorded
ORIGINALS = frozenset(name.lower() for name in (ORIGINAL_URL, ORIGINAL_METHOD, ORIGINAL_WAIT_MS))

AUTHORITY = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?(:[0-9]{1,5})?")
FILE_NAME = re.compile("([0-9]{5})-[A-Za-z0-9._-]{1,60}")
# The longest name that Linux's file systems take.
NAME_BYTES = 255


def without_originals(headers: Headers) -> Headers:
    """A stored response's header fields without those that name the request it answers."""
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
    """The authority of an https URL as servers see it: lower case, without the default port.

    Raises ValueError for a text that is no URL.
    """
    authority = urlsplit(url).netloc.rpartition("@")[2].lower()
    return authority.removesuffix(":443")


def server_addresses(count: int) -> list[str]:
    """The addresses of the first `count` servers."""
    return [str(FIRST_SERVER + number) for number in range(count)]


def host_folder(authority: str) -> str:
    """The name of the folder that holds an authority's responses; no two authorities have one name.

    Raises EyelevelError for an authority that is no host name, since it could lead out of the site.
    """
    if not AUTHORITY.fullmatch(authority):
        raise EyelevelError(f"{authority!r} in the recording is no host name; leave out its exchanges")
    if authority in OURS:
        return f"{authority},443"
    name = authority.replace(":", ",")
    if len(name) <= NAME_BYTES:
        return name
    from hashlib import sha256  # only for such names: it takes 0.6 MB of uWSGI

    digest = sha256(authority.encode()).hexdigest()[:32]
    return f"{name[: NAME_BYTES - len(digest) - 1]},{digest}"


def file_name(order: int, url: str) -> str:
    """The name of the file of the exchange in this place of the recorded order, from 0."""
    return f"{order:05d}-{_slug(url)}"


def is_file_name(name: str, order: int) -> bool:
    """Whether a file of the exchange in this place can have that name."""
    match = FILE_NAME.fullmatch(name)
    return match is not None and int(match[1]) == order


def _slug(url: str) -> str:
    """A short file name without special characters, by which a person recognises the URL."""
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", last)[-60:] or "index"
