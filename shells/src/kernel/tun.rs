//! A TUN device: IP packets in and out of the kernel (see Documentation/networking/tuntap.rst).

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;

use super::routes::Device;
use crate::error::{Attempt, Error, Result};
use crate::packet::{MTU, OFFLOAD_BYTES, Offload, Packet};

/// The bytes of the largest packet that the kernel passes on as one, including its header.
pub const LARGEST_READ: usize = OFFLOAD_BYTES + 65536;

nix::ioctl_write_int!(tun_set_interface, b'T', 202);
nix::ioctl_write_int!(tun_set_offload, b'T', 208);

/// A TUN device in the namespace in which it was opened; dropping this removes the device.
pub struct Tun {
    file: File,
    name: String,
    device: Device,
}

impl Tun {
    /// Make a device; `%d` in the name becomes a free number.
    pub fn open(name: &str) -> Result<Self> {
        let path = "/dev/net/tun";
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path).attempt(
                || {
                    format!(
                        "open {path} (load the module tun; for users other than root: chmod 666 /dev/net/tun)"
                    )
                },
            )?;
        // struct ifreq: the name, then the flags in a union.
        let mut request = [0u8; 40];
        request[..name.len()].copy_from_slice(name.as_bytes());
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as u16;
        request[libc::IFNAMSIZ..libc::IFNAMSIZ + 2].copy_from_slice(&flags.to_ne_bytes());
        // SAFETY: the request is as large as struct ifreq and outlives the call.
        unsafe { tun_set_interface(file.as_raw_fd(), request.as_mut_ptr() as libc::c_ulong) }
            .attempt(|| format!("make the TUN device {name} (run as root)"))?;
        // Let the kernel pass many TCP segments as one packet, and packets without checksums.
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // SAFETY: takes a number, touches no memory.
        unsafe { tun_set_offload(file.as_raw_fd(), libc::c_ulong::from(offloads)) }
            .attempt(|| format!("ask for offloads on the TUN device {name}"))?;
        let name = request[..libc::IFNAMSIZ].split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        let index =
            nix::net::if_::if_nametoindex(name.as_str()).attempt(|| format!("find the TUN device {name}"))?;
        Ok(Self { file, name, device: Device(index) })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn device(&self) -> Device {
        self.device
    }

    /// Take a packet that the kernel sent to the device; `None` when none is waiting.
    ///
    /// `buffer` is working space of [`LARGEST_READ`] bytes.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<Packet>> {
        match (&self.file).read(buffer) {
            Ok(length) => {
                let (header, bytes) = buffer[..length]
                    .split_first_chunk()
                    .ok_or_else(|| Error::new(format!("the TUN device {} gave no header", self.name)))?;
                let packet = Packet::with_offload(Offload::from_bytes(*header), bytes);
                match packet.largest_segment() {
                    0..=MTU => Ok(Some(packet)),
                    length => Err(Error::new(format!(
                        "a packet of {length} bytes came in on {}, more than the MTU of {MTU}; leave its MTU as it is",
                        self.name
                    ))),
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Error::new(format!("cannot read from the TUN device {}: {error}", self.name))),
        }
    }

    /// Pass a packet to the kernel, as if it had arrived at the device; returns whether the kernel accepted it.
    pub fn write(&self, packet: &Packet) -> bool {
        let header = packet.offload().to_bytes();
        (&self.file).write_vectored(&[IoSlice::new(&header), IoSlice::new(packet.bytes())]).is_ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
