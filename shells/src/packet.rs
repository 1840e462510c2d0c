//! One IP packet on its way through the emulated network.

/// An IP packet as read from a TUN device, without any link layer header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    bytes: Box<[u8]>,
}

impl Packet {
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into() }
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the IP packet, its header included.
    #[must_use]
    pub fn ip_length(&self) -> usize {
        self.bytes.len()
    }
}
