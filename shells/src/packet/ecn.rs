//! Explicit congestion notification (RFC 3168).

use super::Packet;
use super::checksum::sum;

const ECN_BITS: u8 = 0b11;
const CONGESTION_EXPERIENCED: u8 = 0b11;

impl Packet {
    /// Mark the packet as "congestion experienced", if its sender supports that; returns whether it does.
    pub fn mark_congestion(&mut self) -> bool {
        let bytes = &mut self.bytes;
        match bytes.first().map(|first| first >> 4) {
            Some(4) if bytes.len() >= 20 => {
                if bytes[1] & ECN_BITS == 0 {
                    return false;
                }
                bytes[1] |= CONGESTION_EXPERIENCED;
                let header = (usize::from(bytes[0] & 0x0f) * 4).clamp(20, bytes.len());
                bytes[10..12].fill(0);
                let checksum = !sum(&[&bytes[..header]]);
                bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
                true
            }
            // The traffic class spans the first two bytes; its two lowest bits are bits 4 and 5 of the second byte.
            Some(6) if bytes.len() >= 40 => {
                if bytes[1] & (ECN_BITS << 4) == 0 {
                    return false;
                }
                bytes[1] |= CONGESTION_EXPERIENCED << 4;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(traffic_class: u8) -> Packet {
        let mut bytes = [0; 20];
        bytes[0] = 0x45;
        bytes[1] = traffic_class;
        Packet::new(&bytes)
    }

    #[test]
    fn only_a_packet_whose_sender_understands_is_marked() {
        assert!(!ipv4(0b00).mark_congestion());
        for capable in [0b01, 0b10, 0b11] {
            let mut packet = ipv4(0xb8 | capable);
            assert!(packet.mark_congestion());
            assert_eq!(packet.bytes()[1], 0xbb);
            assert_eq!(sum(&[packet.bytes()]), 0xffff, "header checksum");
        }
    }

    #[test]
    fn ipv6_has_its_bits_elsewhere() {
        let mut bytes = [0; 40];
        bytes[0] = 0x60;
        assert!(!Packet::new(&bytes).mark_congestion());
        bytes[1] = 0x20;
        let mut packet = Packet::new(&bytes);
        assert!(packet.mark_congestion());
        assert_eq!(packet.bytes()[1], 0x30);
    }
}
