//! The ends of a packet: the addresses in the IP header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Packet;

/// The source or the destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Destination,
}

impl Packet {
    /// The address at one end (RFC 791, section 3.1; RFC 8200, section 3); `None` without a complete IP header.
    #[must_use]
    pub fn address(&self, end: End) -> Option<IpAddr> {
        let is_destination = usize::from(end == End::Destination);
        match self.bytes.first()? >> 4 {
            4 => {
                let at = 12 + 4 * is_destination;
                let octets: [u8; 4] = self.bytes.get(at..at + 4)?.try_into().ok()?;
                Some(Ipv4Addr::from(octets).into())
            }
            6 => {
                let at = 8 + 16 * is_destination;
                let octets: [u8; 16] = self.bytes.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(octets).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_are_those_of_the_header() {
        let ipv4 = [&[0x45; 12], &[192, 0, 2, 1][..], &[198, 18, 0, 7], &[0; 8]].concat();
        let ipv6 = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
        for (bytes, source, destination) in [
            (ipv4.clone(), "192.0.2.1", "198.18.0.7"),
            ([&[0x60; 8], &ipv6[0][..], &ipv6[1][..]].concat(), "2001:db8::1", "2001:db8::2"),
        ] {
            let packet = Packet::new(&bytes);
            assert_eq!(packet.address(End::Source), Some(source.parse().unwrap()));
            assert_eq!(packet.address(End::Destination), Some(destination.parse().unwrap()));
        }
        assert_eq!(Packet::new(&ipv4[..18]).address(End::Destination), None);
        assert_eq!(Packet::new(&[]).address(End::Source), None);
    }
}
