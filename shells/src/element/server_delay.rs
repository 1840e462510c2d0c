//! Additional delay of packets to and from single servers, which are at different distances beyond the network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use clap::Args;

use super::{Departure, Duplex, Element, Impairment, NetworkContext, Outbox};
use crate::error::{Error, Result};
use crate::packet::{End, Packet};
use crate::time::Nanos;
use crate::units::parse_milliseconds;

/// Delays each packet by the span of the server at one of its ends; packets of other servers leave at once.
///
/// The packets of one server keep their order; those of different servers may overtake each other.
#[derive(Debug)]
pub struct ServerDelay {
    delays: Arc<HashMap<IpAddr, Nanos>>,
    server: End,
    outbox: Outbox,
}

impl ServerDelay {
    /// `server` is the end of a packet, source or destination, at which the server is.
    #[must_use]
    pub fn new(delays: Arc<HashMap<IpAddr, Nanos>>, server: End) -> Self {
        Self { delays, server, outbox: Outbox::default() }
    }
}

impl Element for ServerDelay {
    fn push(&mut self, packet: Packet, now: Nanos) {
        let delay = packet.address(self.server).and_then(|address| self.delays.get(&address));
        self.outbox.push(packet, now + delay.unwrap_or(&0));
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }
}

/// The options of `mm-net` for delays of single servers.
#[derive(Args, Debug)]
#[command(next_help_heading = "Delay")]
pub struct NetServerDelay {
    /// Delay packets to and from this server by this much more in each direction; may be given for
    /// any number of servers. The delay is beyond the link and its queue
    #[arg(long = "server-delay", value_name = "ADDRESS=MS", value_parser = parse_server_delay)]
    server_delays: Vec<(IpAddr, Nanos)>,
}

impl Impairment for NetServerDelay {
    fn build(&self, _context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        let mut delays = HashMap::new();
        for (address, delay) in &self.server_delays {
            if delays.insert(*address, *delay).is_some() {
                return Err(Error::new(format!("--server-delay names {address} twice; give it one delay")));
            }
        }
        let delays = Arc::new(delays);
        let direction = |end| -> Box<dyn Element> { Box::new(ServerDelay::new(Arc::clone(&delays), end)) };
        Ok((!delays.is_empty())
            .then(|| Duplex { uplink: direction(End::Destination), downlink: direction(End::Source) }))
    }
}

fn parse_server_delay(text: &str) -> Result<(IpAddr, Nanos)> {
    let wrong = || {
        Error::new(format!(
            "'{text}' is not a server's delay; give an address and its ms, such as 198.18.0.1=7.5"
        ))
    };
    let (address, span) = text.split_once('=').ok_or_else(wrong)?;
    Ok((address.parse().map_err(|_| wrong())?, parse_milliseconds(span)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: [u8; 4], destination: [u8; 4]) -> Packet {
        Packet::new(&[&[0x45; 12], &source[..], &destination, &[0; 8]].concat())
    }

    const CLIENT: [u8; 4] = [100, 64, 0, 1];
    const NEAR: [u8; 4] = [198, 18, 0, 1];
    const FAR: [u8; 4] = [198, 18, 0, 2];

    fn delays() -> Arc<HashMap<IpAddr, Nanos>> {
        Arc::new(HashMap::from([(IpAddr::from(NEAR), 1_000), (IpAddr::from(FAR), 50_000)]))
    }

    #[test]
    fn each_packet_has_the_delay_of_its_server_and_overtakes_those_of_farther_ones() {
        let mut uplink = ServerDelay::new(delays(), End::Destination);
        let to = [FAR, NEAR, FAR, [198, 18, 0, 3]].map(|server| packet(CLIENT, server));
        for (at, packet) in to.iter().enumerate() {
            uplink.push(packet.clone(), at as Nanos);
        }
        assert_eq!(uplink.next_due(), Some(3));
        let left: Vec<_> = std::iter::from_fn(|| uplink.pop(60_000)).collect();
        let expected = [(3, 3), (1, 1_001), (0, 50_000), (2, 50_002)];
        let expected = expected.map(|(index, at)| Departure { packet: to[index].clone(), at });
        assert_eq!(left, expected);
    }

    #[test]
    fn it_is_the_servers_end_that_counts() {
        let mut downlink = ServerDelay::new(delays(), End::Source);
        downlink.push(packet(FAR, CLIENT), 0);
        downlink.push(packet(CLIENT, FAR), 0);
        let at = std::iter::from_fn(|| downlink.pop(50_000)).map(|left| left.at);
        assert_eq!(at.collect::<Vec<_>>(), [0, 50_000]);
    }

    #[test]
    fn an_option_is_an_address_and_a_time() {
        assert_eq!(parse_server_delay("198.18.0.2=2.5").unwrap(), (IpAddr::from(FAR), 2_500_000));
        for text in ["", "198.18.0.2", "198.18.0.2=", "a.example=5", "198.18.0.2=-1", "=5", "198.18.0.2:5"] {
            assert!(parse_server_delay(text).is_err(), "{text}");
        }
    }
}
