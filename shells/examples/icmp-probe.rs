//! Round-trip times to the microsecond: ping(8) shows three digits.
//!
//! Usage: icmp-probe ADDRESS COUNT INTERVAL_MS BYTES; prints one time in µs per line, of packets of that IP length.

use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use shells::error::{Attempt, Error, Result};
use shells::shell::finish;
use shells::time::now;

/// An echo request with that number, of so many bytes with its IP header, checksum included.
fn request(number: u16, ip_length: usize) -> Vec<u8> {
    let mut packet = vec![0u8; ip_length - 20];
    packet[0] = 8;
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    let sum: u32 = packet.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[2..4].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet
}

fn run() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let usage = || Error::new("usage: icmp-probe ADDRESS COUNT INTERVAL_MS BYTES");
    let [address, count, interval, length] = words.as_slice() else { return Err(usage()) };
    let address = SocketAddrV4::new(address.parse().map_err(|_| usage())?, 0);
    let count: u16 = count.parse().map_err(|_| usage())?;
    let interval: u64 = interval.parse().map_err(|_| usage())?;
    let length = length.parse().ok().filter(|length| (28..=1500).contains(length)).ok_or_else(usage)?;

    let socket = socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Icmp)
        .attempt(|| "open a raw socket (run as root)")?;
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(5, 0)).attempt(|| "set a timeout")?;
    let mut buffer = [0; 1500];
    for number in 0..count {
        let sent = now();
        sendto(socket.as_raw_fd(), &request(number, length), &SockaddrIn::from(address), MsgFlags::empty())
            .attempt(|| "send an echo request")?;
        loop {
            let length =
                recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()).attempt(|| "get an answer")?;
            // An echo reply (type 0) behind the IP header.
            if length >= 28 && buffer[20] == 0 && buffer[26..28] == number.to_be_bytes() {
                break;
            }
        }
        println!("{}", (now() - sent) as f64 / 1e3);
        sleep(Duration::from_millis(interval));
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    finish(run())
}
