//! Measures round-trip times to the microsecond; ping(8) shows only three digits.
//!
//! As with ping(8), a round trip ends when the kernel receives the answer: the time until this process wakes up does
//! not belong to the network.
//!
//! Usage: icmp-probe ADDRESS COUNT INTERVAL_MS BYTES; prints one time in µs per line. BYTES is the IP length of
//! packets.

use std::io::IoSliceMut;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recvmsg,
    sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal};
use nix::time::{ClockId, clock_gettime};
use shells::error::{Attempt, Error, Result};
use shells::shell::finish;
use shells::time::{NANOS_PER_SECOND, Nanos};

/// An echo request with this number and a valid checksum. With its IP header, it has `ip_length` bytes.
fn request(number: u16, ip_length: usize) -> Vec<u8> {
    let mut packet = vec![0u8; ip_length - 20];
    packet[0] = 8;
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    let sum: u32 = packet.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[2..4].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet
}

/// The length of the next packet, and when the kernel received it.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<(usize, Nanos)> {
    let mut room = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut room), MsgFlags::empty())
        .attempt(|| "get an answer")?;
    let mut notes = message.cmsgs().attempt(|| "read when the answer came")?;
    match notes.next() {
        Some(ControlMessageOwned::ScmTimestampns(at)) => Ok((message.bytes, nanoseconds(at))),
        _ => Err(Error::new("the kernel does not tell when a packet came in")),
    }
}

fn nanoseconds(time: TimeSpec) -> Nanos {
    time.tv_sec() as Nanos * NANOS_PER_SECOND + time.tv_nsec() as Nanos
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
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).attempt(|| "ask for the times of packets")?;
    let mut buffer = [0; 1500];
    for number in 0..count {
        // The kernel uses the same clock for the times of packets.
        let sent = clock_gettime(ClockId::CLOCK_REALTIME).attempt(|| "ask the clock")?;
        sendto(socket.as_raw_fd(), &request(number, length), &SockaddrIn::from(address), MsgFlags::empty())
            .attempt(|| "send an echo request")?;
        let received = loop {
            let (length, at) = receive(&socket, &mut buffer)?;
            // Skip anything but an echo reply (type 0, after the IP header) with the request's number.
            if length >= 28 && buffer[20] == 0 && buffer[26..28] == number.to_be_bytes() {
                break at;
            }
        };
        println!("{}", (received - nanoseconds(sent)) as f64 / 1e3);
        sleep(Duration::from_millis(interval));
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    finish(run())
}
