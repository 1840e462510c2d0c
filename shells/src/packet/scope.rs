//! Packets that no router forwards (RFC 4291, sections 2.5.6 and 2.7).

use std::net::Ipv6Addr;

use super::Packet;

/// The widest multicast scope that is limited to a link.
const LINK_LOCAL_SCOPE: u8 = 2;

impl Packet {
    /// Whether the packet belongs to IPv6's protocols between neighbours on a link: discovery of neighbours and
    /// routers, and membership in multicast groups.
    #[must_use]
    pub fn is_for_link_only(&self) -> bool {
        let address = |at: usize| {
            let octets = self.bytes.get(at..at + 16)?;
            <[u8; 16]>::try_from(octets).ok().map(Ipv6Addr::from)
        };
        match (self.bytes.first().map(|first| first >> 4), address(8), address(24)) {
            (Some(6), Some(source), Some(destination)) => {
                let scope = destination.octets()[1] & 0x0f;
                source.is_unspecified()
                    || source.is_unicast_link_local()
                    || destination.is_unicast_link_local()
                    || destination.is_multicast() && scope <= LINK_LOCAL_SCOPE
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: &str, destination: &str) -> Packet {
        let [source, destination] =
            [source, destination].map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
        Packet::new(&[&[0x60, 0, 0, 0, 0, 0, 58, 255], &source[..], &destination[..]].concat())
    }

    #[test]
    fn only_what_a_router_would_pass_on_goes_beyond_the_link() {
        for (source, destination) in
            [("::", "ff02::16"), ("fe80::1", "fd00::1"), ("fd00::1", "fe80::2"), ("fd00::1", "ff02::fb")]
        {
            assert!(packet(source, destination).is_for_link_only(), "{source} {destination}");
        }
        for (source, destination) in [("fd00::1", "fd00::2"), ("2001:db8::1", "ff05::2")] {
            assert!(!packet(source, destination).is_for_link_only(), "{source} {destination}");
        }
        assert!(!Packet::new(&[0x45; 60]).is_for_link_only());
        assert!(!Packet::new(&[0x60; 39]).is_for_link_only());
    }
}
