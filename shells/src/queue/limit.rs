//! How much a queue may hold.

use crate::packet::Packet;

/// A limit in packets, in bytes, or both; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    packets: Option<usize>,
    bytes: Option<usize>,
    header_bytes: usize,
}

impl Limit {
    #[must_use]
    pub fn new(packets: Option<usize>, bytes: Option<usize>) -> Self {
        Self { packets, bytes, header_bytes: 0 }
    }

    #[must_use]
    pub fn bytes(bytes: usize) -> Self {
        Self::new(None, Some(bytes))
    }

    #[must_use]
    pub fn packets(packets: usize) -> Self {
        Self::new(Some(packets), None)
    }

    /// The same limit, with this many bytes counted in addition to each packet's IP length.
    #[must_use]
    pub fn counting_header(self, header_bytes: usize) -> Self {
        Self { header_bytes, ..self }
    }

    /// A limit that counts in the same way, without any bounds.
    #[must_use]
    pub fn without_bounds(self) -> Self {
        Self { packets: None, bytes: None, ..self }
    }

    /// Bytes that a packet counts.
    #[must_use]
    pub fn size(self, packet: &Packet) -> usize {
        packet.ip_length() + self.header_bytes
    }

    /// Whether this many packets, with this many bytes in all, are within the limit.
    #[must_use]
    pub fn allows(self, packets: usize, bytes: usize) -> bool {
        self.packets.is_none_or(|limit| packets <= limit) && self.bytes.is_none_or(|limit| bytes <= limit)
    }
}
