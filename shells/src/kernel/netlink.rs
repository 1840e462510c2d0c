//! Requests to the kernel over netlink: the part of the protocol that this crate uses (see netlink(7)).

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

const HEADER_BYTES: usize = 16;

/// One request under construction: the header, a fixed part, then attributes.
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request of that type; its flags are `flags` and `NLM_F_REQUEST`.
    pub fn new(kind: u16, flags: i32) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        Self { bytes }
    }

    /// A request to netfilter's tables.
    pub fn netfilter(kind: i32, flags: i32, family: u8) -> Self {
        let subsystem = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8;
        Self::new(subsystem | kind as u16, flags).fixed(&[family, 0, 0, 0])
    }

    /// Attributes to be nested in a message.
    pub fn part() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Append several attributes, nested in one.
    pub fn nested(self, kind: u16, part: Self) -> Self {
        self.attribute(kind | libc::NLA_F_NESTED as u16, &part.bytes)
    }

    /// Append the fixed part, which has the layout of the kernel's structure.
    pub fn fixed(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Append an attribute.
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = (4 + value.len()) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

/// A message from the kernel: its type and the data after its header.
pub struct Reply {
    pub kind: u16,
    pub payload: Vec<u8>,
}

impl Reply {
    /// The attributes after a fixed part of this many bytes.
    pub fn attributes(&self, fixed: usize) -> impl Iterator<Item = (u16, &[u8])> {
        let mut rest = self.payload.get(fixed.next_multiple_of(4)..).unwrap_or_default();
        std::iter::from_fn(move || {
            let length = usize::from(u16::from_ne_bytes(rest.get(0..2)?.try_into().ok()?));
            let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
            let value = rest.get(4..length)?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((kind, value))
        })
    }
}

/// A netlink socket; it speaks to the network namespace in which it was opened.
pub struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// A socket for links, addresses and routes.
    pub fn route() -> nix::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute)
    }

    /// A socket for netfilter's tables.
    pub fn netfilter() -> nix::Result<Self> {
        Self::open(SockProtocol::NetlinkNetFilter)
    }

    fn open(protocol: SockProtocol) -> nix::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        Ok(Self { socket })
    }

    /// Send a request and wait until the kernel has carried it out.
    pub fn request(&self, mut message: Message) -> nix::Result<()> {
        message.bytes[6] |= libc::NLM_F_ACK as u8;
        self.send(message)?;
        self.replies(|_| ())
    }

    /// Send a request for one object and return it.
    pub fn fetch(&self, mut message: Message) -> nix::Result<Reply> {
        message.bytes[6] |= libc::NLM_F_ACK as u8;
        let mut answer = None;
        self.send(message)?;
        self.replies(|reply| answer = Some(reply))?;
        answer.ok_or(Errno::ENODATA)
    }

    /// Send requests that the kernel carries out either all or not at all.
    pub fn batch(&self, messages: Vec<Message>) -> nix::Result<()> {
        let [high, low] = (libc::NFNL_SUBSYS_NFTABLES as u16).to_be_bytes();
        let mark = |kind: i32, flags| Message::new(kind as u16, flags).fixed(&[0, 0, high, low]);
        let mut bytes = mark(libc::NFNL_MSG_BATCH_BEGIN, 0).finish();
        for message in messages {
            bytes.extend(message.finish());
        }
        // Only the last message is acknowledged, so the first answer is its acknowledgement or an error.
        bytes.extend(mark(libc::NFNL_MSG_BATCH_END, libc::NLM_F_ACK).finish());
        self.send_bytes(&bytes)?;
        self.replies(|_| ())
    }

    /// Send a request for a list and collect it.
    pub fn dump(&self, message: Message) -> nix::Result<Vec<Reply>> {
        let mut list = Vec::new();
        self.send(message)?;
        self.replies(|reply| list.push(reply))?;
        Ok(list)
    }

    fn send(&self, message: Message) -> nix::Result<()> {
        self.send_bytes(&message.finish())
    }

    fn send_bytes(&self, bytes: &[u8]) -> nix::Result<()> {
        let kernel = NetlinkAddr::new(0, 0);
        sendto(self.socket.as_raw_fd(), bytes, &kernel, MsgFlags::empty())?;
        Ok(())
    }

    /// Read replies until an acknowledgement, an error or the end of a list.
    fn replies(&self, mut take: impl FnMut(Reply)) -> nix::Result<()> {
        let mut buffer = vec![0; 65536];
        loop {
            let received = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let mut rest = &buffer[..received];
            while rest.len() >= HEADER_BYTES {
                let length = u32::from_ne_bytes(rest[0..4].try_into().expect("4 bytes")) as usize;
                let kind = u16::from_ne_bytes(rest[4..6].try_into().expect("2 bytes"));
                let payload = rest.get(HEADER_BYTES..length).ok_or(Errno::EBADMSG)?;
                match i32::from(kind) {
                    libc::NLMSG_ERROR => {
                        let code = payload.get(0..4).ok_or(Errno::EBADMSG)?;
                        return match i32::from_ne_bytes(code.try_into().expect("4 bytes")) {
                            0 => Ok(()),
                            negative => Err(Errno::from_raw(-negative)),
                        };
                    }
                    libc::NLMSG_DONE => return Ok(()),
                    _ => take(Reply { kind, payload: payload.to_vec() }),
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}
