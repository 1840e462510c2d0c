//! One IP packet on its way through the emulated network.

mod checksum;
mod ecn;
mod ends;
mod offload;
mod scope;
mod segments;

use std::borrow::Cow;

use checksum::sum;
pub use ends::End;
pub use offload::{OFFLOAD_BYTES, Offload};

/// The largest IP packet that an emulated link carries, bytes.
pub const MTU: usize = 1500;

/// The bytes of the header that Mahimahi's TUN devices put before each packet. Mahimahi counts it as a part of the
/// packet: in delivery opportunities, in the limits of queues and in its logs.
pub const TUN_HEADER_BYTES: usize = 4;

/// The largest packet as Mahimahi counts it, 1504 bytes.
///
/// One opportunity of a trace sends one such packet. In RFC 8033, 8289 and 8290, it stands for "one packet" or MTU, so
/// that a packet of full size is one packet whether or not the TUN header counts.
pub const FULL_PACKET_BYTES: usize = MTU + TUN_HEADER_BYTES;

/// An IP packet as read from a TUN device, without any link layer header.
///
/// The kernel may pass many TCP segments as one large packet, and may leave checksums for a network card to fill in;
/// [`Offload`] describes this. An element that shapes or drops packets must treat each of [`Packet::into_segments`] by
/// itself. An element that treats all packets of an instant alike need not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    bytes: Box<[u8]>,
    offload: Offload,
}

impl Packet {
    /// A complete packet.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self::with_offload(Offload::default(), bytes)
    }

    /// A packet on which the kernel has left some work undone.
    #[must_use]
    pub fn with_offload(offload: Offload, bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), offload }
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, with the checksum filled in if the kernel has not done so.
    #[must_use]
    pub fn checksummed_bytes(&self) -> Cow<'_, [u8]> {
        let fields = self.offload.checksum_start().zip(self.offload.checksum_field());
        match fields.filter(|(_, field)| field + 2 <= self.bytes.len()) {
            None => Cow::Borrowed(&self.bytes),
            Some((start, field)) => {
                let mut bytes = self.bytes.to_vec();
                // The field already contains the sum over the pseudo header.
                let checksum = !sum(&[&bytes[start..]]);
                bytes[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
                Cow::Owned(bytes)
            }
        }
    }

    /// The work that the kernel has left undone.
    #[must_use]
    pub fn offload(&self) -> &Offload {
        &self.offload
    }

    /// Bytes of the IP packet, its header included.
    #[must_use]
    pub fn ip_length(&self) -> usize {
        self.bytes.len()
    }

    /// The total bytes of the packets that would be on a wire for it.
    #[must_use]
    pub fn wire_length(&self) -> usize {
        segments::total(self)
    }

    /// The bytes of the largest packet that would be on a wire for it.
    #[must_use]
    pub fn largest_segment(&self) -> usize {
        segments::largest(self)
    }

    /// The packets that would be on a wire, in order; usually this packet itself.
    pub fn into_segments(self) -> impl Iterator<Item = Self> {
        segments::split(self)
    }
}
