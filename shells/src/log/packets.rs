//! The fate of every packet at a link, one row each, as comma-separated values.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::output::Output;
use crate::element::{LinkObserver, LossObserver};
use crate::packet::Packet;
use crate::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};

/// A table with one row per packet that left a link (`leave`), was dropped by its queue (`drop`) or was lost (`lost`).
///
/// `time_s` is the time of this event since the link's start, to the nanosecond; `bytes` is the IP length; `delay_ms`
/// is how long the packet was at the link (empty if it was dropped or lost); `protocol` is IP's number. Both directions
/// may share one file.
#[derive(Clone)]
pub struct PacketLog {
    output: Output,
    direction: &'static str,
    start: Nanos,
}

impl PacketLog {
    /// Write the names of the columns.
    pub fn begin(output: &Output) {
        output.line(format_args!(
            "time_s,direction,event,bytes,delay_ms,protocol,source,source_port,destination,destination_port"
        ));
    }

    #[must_use]
    pub fn new(output: Output, direction: &'static str, start: Nanos) -> Self {
        Self { output, direction, start }
    }

    fn row(&self, at: Nanos, event: &str, delay: Option<Nanos>, packet: &Packet) {
        let since = at.saturating_sub(self.start);
        let delay =
            delay.map(|it| format!("{:.6}", it as f64 / NANOS_PER_MILLISECOND as f64)).unwrap_or_default();
        self.output.line(format_args!(
            "{}.{:09},{},{event},{},{delay},{}",
            since / NANOS_PER_SECOND,
            since % NANOS_PER_SECOND,
            self.direction,
            packet.ip_length(),
            flow(packet.bytes()).unwrap_or_else(|| ",,,,".to_owned())
        ));
    }
}

/// Protocol, source, source port, destination, destination port; the ports are empty for protocols without them.
fn flow(packet: &[u8]) -> Option<String> {
    let (protocol, header, source, destination) = match packet.first()? >> 4 {
        4 => {
            let address =
                |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
            let header = usize::from(packet[0] & 0x0f) * 4;
            (*packet.get(9)?, header, address(12)?.to_string(), address(16)?.to_string())
        }
        6 => {
            let address =
                |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
            (*packet.get(6)?, 40, address(8)?.to_string(), address(24)?.to_string())
        }
        _ => return None,
    };
    let (tcp, udp) = (6, 17);
    let port = |at: usize| match packet.get(header + at..header + at + 2) {
        Some(&[high, low]) if protocol == tcp || protocol == udp => {
            u16::from_be_bytes([high, low]).to_string()
        }
        _ => String::new(),
    };
    Some(format!("{protocol},{source},{},{destination},{}", port(0), port(2)))
}

impl LinkObserver for PacketLog {
    fn arrived(&mut self, _packet: &Packet, _at: Nanos) {}

    fn could_send(&mut self, _at: Nanos) {}

    fn dropped(&mut self, packets: &[Packet], at: Nanos) {
        for packet in packets {
            self.row(at, "drop", None, packet);
        }
    }

    fn departed(&mut self, packet: &Packet, arrived: Nanos, at: Nanos) {
        self.row(at, "leave", Some(at - arrived), packet);
    }
}

impl LossObserver for PacketLog {
    fn lost(&self, packet: &Packet, at: Nanos) {
        self.row(at, "lost", None, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_its_protocol_addresses_and_ports() {
        let mut udp = [0; 28];
        udp[0] = 0x45;
        udp[9] = 17;
        udp[12..20].copy_from_slice(&[100, 64, 0, 2, 198, 18, 0, 1]);
        udp[20..24].copy_from_slice(&[0x12, 0x34, 0x01, 0xbb]);
        assert_eq!(flow(&udp).unwrap(), "17,100.64.0.2,4660,198.18.0.1,443");
        udp[9] = 1;
        assert_eq!(flow(&udp).unwrap(), "1,100.64.0.2,,198.18.0.1,");
        assert_eq!(flow(&[0x45, 0, 0]), None);
        assert_eq!(flow(&[]), None);
    }
}
