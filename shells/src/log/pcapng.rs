//! The packets of a link as a capture that Wireshark and tcpdump read
//! (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>).
//!
//! This does not use the crate pcap-file: its latest release, 2.0.0, ignores the resolution of times that an interface
//! declares, and it would add seven more crates to replace the forty lines of [`PcapngBlock`].

use std::time::{SystemTime, UNIX_EPOCH};

use super::output::Output;
use crate::element::{LinkObserver, LossObserver};
use crate::packet::Packet;
use crate::time::{NANOS_PER_MILLISECOND, Nanos, now};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LENGTH_UNKNOWN: u64 = u64::MAX;
/// `LINKTYPE_RAW`: packets begin with their IPv4 or IPv6 header.
const RAW_IP: u16 = 101;
/// `if_tsresol`: times are in units of 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// Numbers of options.
mod option {
    pub const COMMENT: u16 = 1;
    pub const PACKET_FLAGS: u16 = 2;
    pub const INTERFACE_NAME: u16 = 2;
    pub const USER_APPLICATION: u16 = 4;
    pub const TIME_RESOLUTION: u16 = 9;
}

/// A direction of the link, which is an interface of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    Up = 0,
    Down = 1,
}

impl Interface {
    /// `epb_flags`: the uplink's packets are outbound (2), the downlink's inbound (1).
    fn packet_flags(self) -> u32 {
        match self {
            Self::Up => 2,
            Self::Down => 1,
        }
    }
}

/// Captures one direction: each packet when it leaves the link, when it is dropped there, or when it is lost. A comment
/// states the event, and how long the packet was at the link. Both directions share one file.
///
/// A packet that is lost after the link is captured twice: when it leaves the link, and when it is lost.
#[derive(Clone)]
pub struct Capture {
    output: Output,
    interface: Interface,
    /// Nanoseconds since 1970 minus the monotonic clock.
    epoch: Nanos,
}

impl Capture {
    /// Write the head of the file, with the name of the program. Returns the captures of both directions, up first.
    #[must_use]
    pub fn begin(output: &Output, program: &str) -> [Self; 2] {
        let mut section = PcapngBlock::new(SECTION_HEADER);
        section.number(&BYTE_ORDER_MAGIC.to_le_bytes());
        section.number(&1u16.to_le_bytes());
        section.number(&0u16.to_le_bytes());
        section.number(&LENGTH_UNKNOWN.to_le_bytes());
        section.option(option::USER_APPLICATION, program.as_bytes());
        output.bytes(&section.finish());
        for name in ["up", "down"] {
            let mut interface = PcapngBlock::new(INTERFACE_DESCRIPTION);
            interface.number(&RAW_IP.to_le_bytes());
            interface.number(&0u16.to_le_bytes());
            // No limit to the bytes captured of a packet.
            interface.number(&0u32.to_le_bytes());
            interface.option(option::INTERFACE_NAME, name.as_bytes());
            interface.option(option::TIME_RESOLUTION, &[NANOSECONDS]);
            output.bytes(&interface.finish());
        }
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = (since_1970.as_nanos() as Nanos).saturating_sub(now());
        [Interface::Up, Interface::Down].map(|interface| Self { output: output.clone(), interface, epoch })
    }

    fn packet(&self, packet: &Packet, at: Nanos, comment: &str) {
        let time = self.epoch.saturating_add(at);
        let bytes = packet.checksummed_bytes();
        let length = bytes.len() as u32;
        let mut block = PcapngBlock::new(ENHANCED_PACKET);
        block.number(&(self.interface as u32).to_le_bytes());
        block.number(&((time >> 32) as u32).to_le_bytes());
        block.number(&(time as u32).to_le_bytes());
        // The captured length, and the original length.
        block.number(&length.to_le_bytes());
        block.number(&length.to_le_bytes());
        block.padded(&bytes);
        block.option(option::COMMENT, comment.as_bytes());
        block.option(option::PACKET_FLAGS, &self.interface.packet_flags().to_le_bytes());
        self.output.bytes(&block.finish());
    }
}

impl LinkObserver for Capture {
    fn arrived(&mut self, _packet: &Packet, _at: Nanos) {}

    fn could_send(&mut self, _at: Nanos) {}

    fn dropped(&mut self, packets: &[Packet], at: Nanos) {
        for packet in packets {
            self.packet(packet, at, "dropped");
        }
    }

    fn departed(&mut self, packet: &Packet, arrived: Nanos, at: Nanos) {
        let delay_ms = (at - arrived) as f64 / NANOS_PER_MILLISECOND as f64;
        self.packet(packet, at, &format!("left after {delay_ms:.6} ms"));
    }
}

impl LossObserver for Capture {
    fn lost(&self, packet: &Packet, at: Nanos) {
        self.packet(packet, at, "lost");
    }
}

/// A block under construction: its type and length, a body, options, its length again.
struct PcapngBlock {
    bytes: Vec<u8>,
    has_options: bool,
}

impl PcapngBlock {
    fn new(kind: u32) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 4]);
        Self { bytes, has_options: false }
    }

    fn number(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, number: u16, value: &[u8]) {
        self.has_options = true;
        self.number(&number.to_le_bytes());
        self.number(&(value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn finish(mut self) -> Vec<u8> {
        if self.has_options {
            let end_of_options = [0; 4];
            self.number(&end_of_options);
        }
        let length = (self.bytes.len() as u32 + 4).to_le_bytes();
        self.number(&length);
        self.bytes[4..8].copy_from_slice(&length);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_framed_by_its_length() {
        let mut block = PcapngBlock::new(ENHANCED_PACKET);
        block.padded(&[1, 2, 3, 4, 5]);
        block.option(option::COMMENT, b"x");
        let expected = [
            [6, 0, 0, 0],
            [32, 0, 0, 0],
            [1, 2, 3, 4],
            [5, 0, 0, 0],
            [1, 0, 1, 0],
            [b'x', 0, 0, 0],
            [0, 0, 0, 0],
            [32, 0, 0, 0],
        ];
        assert_eq!(block.finish(), expected.concat());
    }
}
