//! Links, addresses and routes of the current network namespace (see rtnetlink(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::errno::Errno;
use nix::libc;

use super::address_block::{Family, Prefix, octets};
use super::netlink::{Message, Netlink};

/// The protocol number of the routes by which shells recognise each other.
const PROTOCOL_SHELL: u8 = 109;

/// `RTNH_F_ONLINK`, which the libc crate lacks: the gateway need not be covered by a route.
const ON_LINK: u32 = 4;

/// The flags of IPv6 addresses: do not check whether another machine has the address, and add no route
/// (linux/if_addr.h).
const NO_DUPLICATE_DETECTION: u32 = 0x02;
const NO_PREFIX_ROUTE: u32 = 0x200;

const ROUTE_MESSAGE_BYTES: usize = 12;
const LINK_MESSAGE_BYTES: usize = 16;

/// The index of `tx_dropped` among the counters of struct `rtnl_link_stats64`.
const TRANSMIT_DROPPED: usize = 7;

/// A device by its kernel index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device(pub u32);

/// The loopback device, which has this index in every namespace.
pub const LOOPBACK: Device = Device(1);

/// Where a route leads.
pub enum Target {
    Device(Device),
    /// Through the device, to a neighbour that is assumed to exist.
    Gateway(Device, IpAddr),
    /// Nowhere: packets are answered with "unreachable".
    Nowhere,
}

/// A route of the current namespace, with the properties that shells need.
pub struct Route {
    /// The destination; for a default route every address.
    pub to: Prefix,
    /// Whether packets can use it.
    pub leads_on: bool,
    /// Whether it is the mark a shell left for those nested in it; see [`Routes::mark`].
    pub is_mark: bool,
}

/// The current namespace's links, addresses and routes.
pub struct Routes(Netlink);

impl Routes {
    pub fn open() -> nix::Result<Self> {
        Netlink::route().map(Self)
    }

    /// Bring a device up.
    pub fn bring_up(&self, device: Device) -> nix::Result<()> {
        self.0.request(link_message(device, libc::IFF_UP as u32))
    }

    /// Set the largest packet that a device takes, and the length of its queue.
    pub fn set_limits(&self, device: Device, mtu: u32, queue_packets: u32) -> nix::Result<()> {
        self.0.request(
            link_message(device, 0)
                .attribute(libc::IFLA_MTU, &mtu.to_ne_bytes())
                .attribute(libc::IFLA_TXQLEN, &queue_packets.to_ne_bytes()),
        )
    }

    /// How many packets the kernel dropped because this process did not read them fast enough.
    pub fn overflowed(&self, device: Device) -> nix::Result<u64> {
        let reply = self.0.fetch(link_message_of(libc::RTM_GETLINK, device, 0))?;
        let mut attributes = reply.attributes(LINK_MESSAGE_BYTES);
        let counts = attributes.find(|(attribute, _)| *attribute == libc::IFLA_STATS64);
        let place = TRANSMIT_DROPPED * size_of::<u64>();
        let count = counts.and_then(|(_, counts)| counts.get(place..)?.first_chunk().copied());
        count.map(u64::from_ne_bytes).ok_or(Errno::ENODATA)
    }

    /// Add an address to a device, without any route.
    pub fn add_address(&self, device: Device, address: IpAddr) -> nix::Result<()> {
        let Prefix { length, .. } = Prefix::only(address);
        let mut fixed = vec![number_of(address), length, 0, libc::RT_SCOPE_UNIVERSE];
        fixed.extend_from_slice(&device.0.to_ne_bytes());
        let mut message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
            .fixed(&fixed)
            .attribute(libc::IFA_LOCAL, &octets(address))
            .attribute(libc::IFA_ADDRESS, &octets(address));
        if address.is_ipv6() {
            let flags = NO_DUPLICATE_DETECTION | NO_PREFIX_ROUTE;
            message = message.attribute(libc::IFA_FLAGS, &flags.to_ne_bytes());
        }
        self.0.request(message)
    }

    /// Add a route; `EEXIST` when a route to the same block exists.
    pub fn add_route(&self, to: Prefix, target: &Target) -> nix::Result<()> {
        let (scope, kind, flags) = match target {
            Target::Device(_) => (libc::RT_SCOPE_LINK, libc::RTN_UNICAST, 0),
            Target::Gateway(..) => (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST, ON_LINK),
            Target::Nowhere => (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNREACHABLE, 0),
        };
        let family = number_of(to.address);
        let mut fixed = vec![family, to.length, 0, 0, libc::RT_TABLE_MAIN, PROTOCOL_SHELL, scope, kind];
        fixed.extend_from_slice(&u32::to_ne_bytes(flags));
        let mut message =
            Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL).fixed(&fixed);
        if to.length > 0 {
            message = message.attribute(libc::RTA_DST, &to.octets());
        }
        if let Target::Device(device) | Target::Gateway(device, _) = target {
            message = message.attribute(libc::RTA_OIF, &device.0.to_ne_bytes());
        }
        if let Target::Gateway(_, gateway) = target {
            message = message.attribute(libc::RTA_GATEWAY, &octets(*gateway));
        }
        self.0.request(message)
    }

    /// Mark the block from which shells nested in this namespace take theirs.
    ///
    /// The mark is a route to nowhere, so it also answers packets to unused addresses of the block. Without it, these
    /// packets would leave by the default route and come back until their TTL ends.
    pub fn mark(&self, block: Prefix) -> nix::Result<()> {
        self.add_route(block, &Target::Nowhere)
    }

    /// All routes of a family, including those of a device's own addresses.
    pub fn list(&self, family: Family) -> nix::Result<Vec<Route>> {
        let anywhere: IpAddr = match family {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut fixed = [0; ROUTE_MESSAGE_BYTES];
        fixed[0] = number_of(anywhere);
        let replies = self.0.dump(Message::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP).fixed(&fixed))?;
        let routes = replies.iter().filter(|reply| reply.kind == libc::RTM_NEWROUTE).filter_map(|reply| {
            let &[number, length, _, _, _, protocol, _, kind, ..] = reply.payload.as_slice() else {
                return None;
            };
            // A kernel without IPv6 lists the routes of other families.
            if number != number_of(anywhere) {
                return None;
            }
            let mut attributes = reply.attributes(ROUTE_MESSAGE_BYTES);
            let to = attributes.find(|(attribute, _)| *attribute == libc::RTA_DST);
            let address = to.map_or(Some(anywhere), |(_, value)| address_of(value))?;
            let is_mark = protocol == PROTOCOL_SHELL && kind == libc::RTN_UNREACHABLE;
            let leads_on = matches!(kind, libc::RTN_UNICAST | libc::RTN_LOCAL);
            Some(Route { to: Prefix { address, length }, leads_on, is_mark })
        });
        Ok(routes.collect())
    }
}

/// The number of an address's family.
fn number_of(address: IpAddr) -> u8 {
    let number = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    number as u8
}

fn address_of(octets: &[u8]) -> Option<IpAddr> {
    let ipv4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    ipv4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

fn link_message(device: Device, flags: u32) -> Message {
    link_message_of(libc::RTM_NEWLINK, device, flags)
}

fn link_message_of(kind: u16, device: Device, flags: u32) -> Message {
    let mut fixed = vec![libc::AF_UNSPEC as u8, 0, 0, 0];
    fixed.extend_from_slice(&device.0.to_ne_bytes());
    fixed.extend_from_slice(&flags.to_ne_bytes());
    fixed.extend_from_slice(&flags.to_ne_bytes());
    Message::new(kind, 0).fixed(&fixed)
}
