"""The address space to which an address belongs, and the spaces to which the proxy may connect for a recorded page.

Standard library only: the proxy's Python loads this module, too.
"""

import socket
from contextlib import suppress
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit


class AddressSpace(Enum):
    """From where an address can be reached, as seen from this machine."""

    PUBLIC = "public"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    LOOPBACK = "loopback"


class AddressPolicy(Enum):
    """The addresses to which a recording may connect. PUBLIC: only public ones. SAME_SPACE: also those in the same
    space as its page, which the user requested by the page's URL. ALL: all."""

    PUBLIC = "public"
    SAME_SPACE = "same space"
    ALL = "all"


# IPv6 addresses that contain an IPv4 address, with the number of bits after it: mapped (RFC 4291, section 2.5.5), which
# the kernel treats as the IPv4 address itself; translated by a gateway (RFC 6052); and routed to a tunnel (RFC 3056).
IPV4_IN_IPV6 = (
    (ip_network("::/96"), 0),
    (ip_network("::ffff:0:0/96"), 0),
    (ip_network("64:ff9b::/96"), 0),
    (ip_network("2002::/16"), 80),
)
# The only IPv6 addresses that are assigned for the Internet (RFC 3587).
UNICAST = ip_network("2000::/3")
# Python 3.11 considers these public: special assignments (RFC 6890), where clouds have their metadata, and multicast.
NOT_PUBLIC = (ip_network("192.0.0.0/24"), ip_network("224.0.0.0/4"))
# A nominally public address at which Azure gives each virtual machine its metadata.
METADATA = ip_address("168.63.129.16")
# On Linux, all of these lead to this machine.
UNSPECIFIED = ip_network("0.0.0.0/8")

HOSTS_FILE = Path("/etc/hosts")

# Connecting a UDP socket, to any port, determines the route without sending anything.
ANY_PORT = 9


def policy_for(url: str, *, allow_private: bool, hosts: Path = HOSTS_FILE) -> AddressPolicy:
    """The policy for recording the page at `url`. The page's own space is permitted only if this machine's user
    determined the address: by writing it in the URL, or in the machine's hosts file. The owner of any other name could
    point that name at an address here."""
    if allow_private:
        return AddressPolicy.ALL
    name = (urlsplit(url).hostname or "").removesuffix(".")
    with suppress(ValueError):
        return AddressPolicy.SAME_SPACE if ip_address(name) else AddressPolicy.PUBLIC
    try:
        lines = [line.partition("#")[0].split()[1:] for line in hosts.read_text(errors="replace").splitlines()]
    except OSError:
        lines = []
    is_ours = f".{name}".endswith(".localhost") or any(name in map(str.lower, names) for names in lines)
    return AddressPolicy.SAME_SPACE if is_ours else AddressPolicy.PUBLIC


class Guard:
    """Decides about each address before the proxy connects to it."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._open = set(AddressSpace) if policy is AddressPolicy.ALL else {AddressSpace.PUBLIC}
        self._awaits_page = policy is AddressPolicy.SAME_SPACE

    def refusal(self, address: str) -> str | None:
        """Why the proxy must not connect to `address`; None if it may."""
        space = address_space(address)
        if self._awaits_page or space in self._open:
            return None
        return f"{address} is a {space.value} address, which a page may reach with --allow-private only"

    def connected(self, address: str) -> None:
        """The proxy has connected to `address`. The first connection is for the page itself.

        The policy depends on the actual connection, since a name in the user's hosts file may have several addresses.
        """
        if self._awaits_page:
            self._awaits_page = False
            self._open.add(address_space(address))


def address_space(address: str) -> AddressSpace:
    """The space of an IPv4 or IPv6 address, with or without a zone (`fe80::1%eth0`)."""
    number = _meant(ip_address(address.partition("%")[0]))
    if number.is_loopback or number in UNSPECIFIED or number.is_unspecified or _is_ours(number):
        return AddressSpace.LOOPBACK
    if number.is_link_local or number == METADATA:
        return AddressSpace.LINK_LOCAL
    is_unicast = number in UNICAST or (number.version == 4 and not any(number in block for block in NOT_PUBLIC))
    return AddressSpace.PUBLIC if number.is_global and is_unicast else AddressSpace.PRIVATE


def _meant(number: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address contains; otherwise the address itself."""
    for block, shift in IPV4_IN_IPV6:
        if number in block and int(number) > 1:  # the unspecified and the loopback address contain no IPv4 address
            return IPv4Address(int(number) >> shift & 0xFFFFFFFF)
    return number


def _is_ours(number: IPv4Address | IPv6Address) -> bool:
    """Whether this machine has the address: then it is also the source address of packets to it."""
    family = socket.AF_INET if number.version == 4 else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:  # without a route, it is not ours
        probe.connect((str(number), ANY_PORT))
        return ip_address(probe.getsockname()[0]) == number
    return False
