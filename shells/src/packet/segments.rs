//! Splits a large TCP packet into the segments that would be on a wire, as a network card does.

use super::checksum::sum;
use super::{Offload, Packet};

const TCP_MINIMUM: usize = 20;
const FIN_PSH: u8 = 0x01 | 0x08;
const CWR: u8 = 0x80;

/// The segments of a packet, in order; the packet itself if it cannot be split.
pub fn split(packet: Packet) -> impl Iterator<Item = Packet> {
    let (whole, cut) = match Cut::of(&packet) {
        None => (Some(packet), None),
        Some(cut) => (None, Some((cut, packet))),
    };
    let segments = cut
        .into_iter()
        .flat_map(|(cut, packet)| (0..cut.count).map(move |index| cut.segment(&packet, index)));
    whole.into_iter().chain(segments)
}

/// Bytes of the largest segment of a packet.
pub fn largest(packet: &Packet) -> usize {
    Cut::of(packet).map_or(packet.ip_length(), |cut| cut.payload + cut.segment_bytes)
}

/// Bytes of all segments of a packet.
pub fn total(packet: &Packet) -> usize {
    // Each segment after the first repeats the headers.
    packet.ip_length() + Cut::of(packet).map_or(0, |cut| cut.payload * (cut.count - 1))
}

/// How a packet is split.
#[derive(Clone, Copy)]
struct Cut {
    ipv6: bool,
    /// The start and the end of the TCP header.
    transport: usize,
    payload: usize,
    segment_bytes: usize,
    count: usize,
}

impl Cut {
    /// `None` when the packet is one segment, or when its headers are invalid.
    fn of(packet: &Packet) -> Option<Self> {
        let segment_bytes = packet.offload.tcp_segment_bytes()?;
        let transport = packet.offload.checksum_start()?;
        let ipv6 = match packet.bytes.first()? >> 4 {
            4 if transport >= 20 => false,
            6 if transport >= 40 => true,
            _ => return None,
        };
        let tcp_bytes = usize::from(packet.bytes.get(transport + 12)? >> 4) * 4;
        let payload = transport + tcp_bytes;
        let payload_bytes = packet.bytes.len().checked_sub(payload)?;
        let sound = tcp_bytes >= TCP_MINIMUM && payload_bytes > segment_bytes;
        let count = payload_bytes.div_ceil(segment_bytes);
        sound.then_some(Self { ipv6, transport, payload, segment_bytes, count })
    }

    fn segment(self, packet: &Packet, index: usize) -> Packet {
        let start = self.payload + index * self.segment_bytes;
        let end = packet.bytes.len().min(start + self.segment_bytes);
        let mut bytes = Vec::with_capacity(self.payload + end - start);
        bytes.extend_from_slice(&packet.bytes[..self.payload]);
        bytes.extend_from_slice(&packet.bytes[start..end]);

        self.number_ip(&mut bytes, index);
        self.number_tcp(&mut bytes, index);
        Packet { bytes: bytes.into_boxed_slice(), offload: Offload::of_segment(packet.offload) }
    }

    fn number_ip(self, bytes: &mut [u8], index: usize) {
        let length = bytes.len();
        if self.ipv6 {
            put(bytes, 4, (length - 40) as u16);
        } else {
            put(bytes, 2, length as u16);
            put(bytes, 4, get(bytes, 4).wrapping_add(index as u16));
            put(bytes, 10, 0);
            let header = usize::from(bytes[0] & 0x0f) * 4;
            put(bytes, 10, !sum(&[&bytes[..header.min(self.transport)]]));
        }
    }

    fn number_tcp(self, bytes: &mut [u8], index: usize) {
        let at = self.transport;
        let sequence = u32::from_be_bytes([bytes[at + 4], bytes[at + 5], bytes[at + 6], bytes[at + 7]]);
        let sequence = sequence.wrapping_add((index * self.segment_bytes) as u32);
        bytes[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
        if index + 1 < self.count {
            bytes[at + 13] &= !FIN_PSH;
        }
        if index > 0 {
            bytes[at + 13] &= !CWR;
        }
        // Until the checksum is complete, the field contains the sum over the pseudo header.
        let addresses = if self.ipv6 { 8..40 } else { 12..20 };
        let length = (bytes.len() - at) as u32;
        let pseudo = sum(&[&bytes[addresses], &length.to_be_bytes(), &[0, 6]]);
        put(bytes, at + 16, pseudo);
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A TCP packet over IPv4 with this payload, flags FIN PSH ACK CWR and a sequence number near the maximum.
    fn large_tcp4(payload: &[u8], segment_bytes: u16) -> Packet {
        let mut bytes = vec![0u8; 52];
        bytes[0] = 0x45;
        bytes[9] = 6;
        put(&mut bytes, 4, 0xffff);
        bytes[12..20].copy_from_slice(&[100, 64, 0, 2, 198, 18, 0, 1]);
        bytes[24..28].copy_from_slice(&0xffff_ff00u32.to_be_bytes());
        bytes[32] = 8 << 4;
        bytes[33] = 0x99;
        bytes.extend_from_slice(payload);
        let length = bytes.len();
        put(&mut bytes, 2, length as u16);
        Packet::with_offload(Offload::tcp(false, 20, segment_bytes), &bytes)
    }

    #[test]
    fn each_segment_has_its_own_numbers() {
        let segments: Vec<_> = large_tcp4(&[7; 2500], 1000).into_segments().collect();
        let lengths: Vec<_> = segments.iter().map(Packet::ip_length).collect();
        assert_eq!(lengths, [1052, 1052, 552]);
        assert_eq!(large_tcp4(&[7; 2500], 1000).wire_length(), lengths.iter().sum::<usize>());
        let sequences: Vec<_> = segments.iter().map(|packet| packet.bytes()[24..28].to_vec()).collect();
        assert_eq!(sequences[1], 0x0000_02e8u32.to_be_bytes());
        let flags: Vec<_> = segments.iter().map(|packet| packet.bytes()[33]).collect();
        assert_eq!(flags, [0x90, 0x10, 0x19]);
        let identifications: Vec<_> = segments.iter().map(|packet| get(packet.bytes(), 4)).collect();
        assert_eq!(identifications, [0xffff, 0, 1]);
        for segment in &segments {
            assert_eq!(sum(&[&segment.bytes()[..20]]), 0xffff, "IP header checksum");
            assert_eq!(segment.offload().checksum_start(), Some(20));
            assert_eq!(segment.offload().tcp_segment_bytes(), None);
            let tcp_length = (segment.ip_length() - 20) as u16;
            let pseudo = sum(&[&segment.bytes()[12..20], &[0, 6], &tcp_length.to_be_bytes()]);
            assert_eq!(get(segment.bytes(), 36), pseudo);
            let whole = segment.checksummed_bytes();
            let addresses_and_length = [&whole[12..20], &[0, 6], &tcp_length.to_be_bytes()].concat();
            assert_eq!(sum(&[&addresses_and_length, &whole[20..]]), 0xffff, "TCP checksum");
        }
    }

    #[test]
    fn an_ordinary_packet_is_its_own_only_segment() {
        let packet = Packet::new(&[0x45; 1500]);
        assert_eq!(packet.clone().into_segments().collect::<Vec<_>>(), [packet]);
    }

    proptest! {
        #[test]
        fn no_payload_is_lost_or_changed(payload in prop::collection::vec(any::<u8>(), 1..9000), size in 1u16..3000) {
            let parts: Vec<u8> =
                large_tcp4(&payload, size).into_segments().flat_map(|part| part.bytes()[52..].to_vec()).collect();
            prop_assert_eq!(parts, payload);
        }

        #[test]
        fn nonsense_is_never_a_crash(
            header in prop::array::uniform10(any::<u8>()),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let _ = Packet::with_offload(Offload::from_bytes(header), &bytes).into_segments().count();
        }
    }
}
