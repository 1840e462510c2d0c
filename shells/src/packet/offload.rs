//! The work that the kernel leaves to the network card, from `struct virtio_net_hdr`
//! (linux/virtio_net.h, and "Packet Transmission" in the virtio specification).

/// Bytes of the header that a TUN device puts before a packet if offloads are on.
pub const OFFLOAD_BYTES: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const SEGMENTATION_NONE: u8 = 0;
const SEGMENTATION_TCP4: u8 = 1;
const SEGMENTATION_TCP6: u8 = 4;
const SEGMENTATION_ECN: u8 = 0x80;

/// Work left undone: a checksum to fill in, or a large packet to split into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    flags: u8,
    segmentation: u8,
    header_bytes: u16,
    segment_bytes: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl Offload {
    /// Read the header, which is in the machine's byte order.
    #[must_use]
    pub fn from_bytes(bytes: [u8; OFFLOAD_BYTES]) -> Self {
        let number = |index: usize| u16::from_ne_bytes([bytes[index], bytes[index + 1]]);
        Self {
            flags: bytes[0],
            segmentation: bytes[1],
            header_bytes: number(2),
            segment_bytes: number(4),
            checksum_start: number(6),
            checksum_offset: number(8),
        }
    }

    #[must_use]
    pub fn to_bytes(self) -> [u8; OFFLOAD_BYTES] {
        let mut bytes = [self.flags, self.segmentation, 0, 0, 0, 0, 0, 0, 0, 0];
        let numbers = [self.header_bytes, self.segment_bytes, self.checksum_start, self.checksum_offset];
        for (index, number) in numbers.into_iter().enumerate() {
            bytes[2 + 2 * index..4 + 2 * index].copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    /// The payload bytes of each segment, if the packet consists of many TCP segments.
    #[must_use]
    pub fn tcp_segment_bytes(&self) -> Option<usize> {
        let tcp = matches!(self.segmentation & !SEGMENTATION_ECN, SEGMENTATION_TCP4 | SEGMENTATION_TCP6);
        (tcp && self.segment_bytes > 0).then_some(usize::from(self.segment_bytes))
    }

    /// Where the transport header begins, if its checksum is still to be filled in.
    #[must_use]
    pub fn checksum_start(&self) -> Option<usize> {
        (self.flags & NEEDS_CHECKSUM != 0).then_some(usize::from(self.checksum_start))
    }

    /// The position of that checksum.
    #[must_use]
    pub fn checksum_field(&self) -> Option<usize> {
        self.checksum_start().map(|start| start + usize::from(self.checksum_offset))
    }

    /// The offload of one segment of the packet: only its checksum is left undone.
    #[must_use]
    pub(super) fn of_segment(self) -> Self {
        Self { segmentation: SEGMENTATION_NONE, segment_bytes: 0, header_bytes: 0, ..self }
    }

    /// A large TCP packet whose TCP header starts at an offset.
    #[cfg(test)]
    pub(crate) fn tcp(ipv6: bool, transport: u16, segment_bytes: u16) -> Self {
        Self {
            flags: NEEDS_CHECKSUM,
            segmentation: if ipv6 { SEGMENTATION_TCP6 } else { SEGMENTATION_TCP4 },
            header_bytes: 0,
            segment_bytes,
            checksum_start: transport,
            checksum_offset: 16,
        }
    }
}
