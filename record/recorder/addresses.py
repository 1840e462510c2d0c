"""Which address space an address belongs to, and to which ones the proxy may connect for a recorded page.

Standard library only: the proxy's Python loads it too.
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
    """Which addresses a recording may connect to: public ones only; also those of the space that its page is in, which
    the user has asked for by the page's URL; all."""

    PUBLIC = "public"
    SAME_SPACE = "same space"
    ALL = "all"


# IPv6 addresses that stand for an IPv4 address, with how many bits follow it: mapped (RFC 4291, section 2.5.5), which
# the kernel takes for the IPv4 address itself, translated by a gateway (RFC 6052), and routed to a tunnel (RFC 3056).
IPV4_IN_IPV6 = (
    (ip_network("::/96"), 0),
    (ip_network("::ffff:0:0/96"), 0),
    (ip_network("64:ff9b::/96"), 0),
    (ip_network("2002::/16"), 80),
)
# The only addresses of IPv6 that are assigned for the Internet (RFC 3587).
UNICAST = ip_network("2000::/3")
# Python 3.11 takes these for public: special assignments (RFC 6890), in which a cloud has its metadata, and multicast.
NOT_PUBLIC = (ip_network("192.0.0.0/24"), ip_network("224.0.0.0/4"))
# A public address by its number, at which Azure tells each virtual machine about itself.
METADATA = ip_address("168.63.129.16")
# On Linux, each of these leads to this machine.
UNSPECIFIED = ip_network("0.0.0.0/8")

HOSTS_FILE = Path("/etc/hosts")

# A UDP socket that is connected to any port knows the route, and sends nothing.
ANY_PORT = 9


def policy_for(url: str, *, allow_private: bool, hosts: Path = HOSTS_FILE) -> AddressPolicy:
    """The policy of a recording of the page at `url`. Its own space counts as asked for only where this machine's user
    says which it is: by an address, or by a name of this machine's own. The owner of any other name could let that
    stand for an address here."""
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
        """Why `address` must not be connected to; None if it may be."""
        space = address_space(address)
        if self._awaits_page or space in self._open:
            return None
        return f"{address} is a {space.value} address, which a page may reach with --allow-private only"

    def connected(self, address: str) -> None:
        """There is a connection to `address`. The first is the page's own.

        It is the connection that counts: a name that the user has put into the hosts file may stand for several.
        """
        if self._awaits_page:
            self._awaits_page = False
            self._open.add(address_space(address))


def address_space(address: str) -> AddressSpace:
    """The space of an IPv4 or IPv6 address, without or with a zone (`fe80::1%eth0`)."""
    number = _meant(ip_address(address.partition("%")[0]))
    if number.is_loopback or number in UNSPECIFIED or number.is_unspecified or _is_ours(number):
        return AddressSpace.LOOPBACK
    if number.is_link_local or number == METADATA:
        return AddressSpace.LINK_LOCAL
    is_unicast = number in UNICAST or (number.version == 4 and not any(number in block for block in NOT_PUBLIC))
    return AddressSpace.PUBLIC if number.is_global and is_unicast else AddressSpace.PRIVATE


def _meant(number: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for, if it does."""
    for block, shift in IPV4_IN_IPV6:
        if number in block and int(number) > 1:  # the unspecified and the loopback address are no IPv4 addresses
            return IPv4Address(int(number) >> shift & 0xFFFFFFFF)
    return number


def _is_ours(number: IPv4Address | IPv6Address) -> bool:
    """Whether this machine has the address: then it is also where packets to it come from."""
    family = socket.AF_INET if number.version == 4 else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:  # without a route it is not ours
        probe.connect((str(number), ANY_PORT))
        return ip_address(probe.getsockname()[0]) == number
    return False
