//! The log of a film: its changes, in the format that README.md describes.
//!
//! A page may have taken over the program that writes a log. So [`Reader`] trusts nothing in it.

mod reader;
mod writer;

pub use reader::{Entry, Reader};
pub use writer::Writer;

use crate::area::Area;

const MAGIC: &[u8; 8] = b"EYEFILM1";
const HEAD_BYTES: usize = 32;
const RECORD_BYTES: usize = 32;

/// The longest edge of a film, in pixels.
pub const LONGEST_EDGE: u16 = 8192;

/// The latest time, in µs: 285 years. Programs that compute in floating point can represent all times up to it exactly.
const LATEST_US: u64 = 1 << 53;

/// The most bytes of the account at the end.
const LONGEST_ACCOUNT: usize = 1 << 16;

/// The beginning of a log. Both times are those of the same moment, by two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub width: u16,
    pub height: u16,
    pub monotonic_us: u64,
    pub epoch_us: u64,
}

impl Head {
    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&self.width.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.height.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.monotonic_us.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.epoch_us.to_le_bytes());
        bytes
    }

    /// The head in these bytes, whose magic number is not checked here.
    fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Self {
        Self {
            width: word(bytes, 8),
            height: word(bytes, 10),
            monotonic_us: long(bytes, 16),
            epoch_us: long(bytes, 24),
        }
    }
}

/// A picture, of which `area` differs from the picture before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The times of the first and the last drawing that this picture shows and no earlier one did.
    pub first_us: u64,
    pub last_us: u64,
    /// The number of these drawings.
    pub drawings: u32,
    pub area: Area,
}

impl Record {
    /// The record's bytes in the log, with the `size` of the data that follows.
    fn to_bytes(self, size: u32) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.first_us.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.last_us.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.drawings.to_le_bytes());
        let Area { left, top, right, bottom } = self.area;
        for (place, edge) in bytes[20..28].chunks_exact_mut(2).zip([left, top, right, bottom]) {
            place.copy_from_slice(&edge.to_le_bytes());
        }
        bytes[28..].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> (Self, u32) {
        let area = Area {
            left: word(bytes, 20),
            top: word(bytes, 22),
            right: word(bytes, 24),
            bottom: word(bytes, 26),
        };
        let (first_us, last_us, drawings) = (long(bytes, 0), long(bytes, 8), number(bytes, 16));
        (Self { first_us, last_us, drawings, area }, number(bytes, 28))
    }
}

fn word(bytes: &[u8; 32], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn number(bytes: &[u8; 32], at: usize) -> u32 {
    u32::from(word(bytes, at)) | u32::from(word(bytes, at + 2)) << 16
}

fn long(bytes: &[u8; 32], at: usize) -> u64 {
    u64::from(number(bytes, at)) | u64::from(number(bytes, at + 4)) << 32
}
