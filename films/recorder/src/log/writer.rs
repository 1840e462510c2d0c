//! Writes a log.

use std::io::{self, Write};

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::{Head, RECORD_BYTES, Record};
use crate::area::Area;

pub struct Writer<W: Write> {
    out: W,
    /// The record that is written last, with its pixels.
    bytes: Vec<u8>,
    table: CompressTable,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, head: &Head) -> io::Result<Self> {
        out.write_all(&head.to_bytes())?;
        Ok(Self { out, bytes: Vec::new(), table: CompressTable::large() })
    }

    /// Add a picture; `delta` is its difference from the one before. Returns by how many bytes the log has grown. Others
    /// can read the picture from now on: the log has no buffer.
    pub fn add(&mut self, record: &Record, delta: &[[u8; 4]]) -> io::Result<usize> {
        let delta = delta.as_flattened();
        self.bytes.resize(RECORD_BYTES + get_maximum_output_size(delta.len()), 0);
        let (head, block) = self.bytes.split_at_mut(RECORD_BYTES);
        let size = compress_into_with_table(delta, block, &mut self.table).map_err(io::Error::other)?;
        head.copy_from_slice(&record.to_bytes(u32::try_from(size).map_err(io::Error::other)?));
        let bytes = &self.bytes[..RECORD_BYTES + size];
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// Add the last record. A log without it is incomplete.
    pub fn end(mut self, at_us: u64, account: &str) -> io::Result<()> {
        let record = Record { first_us: at_us, last_us: at_us, drawings: 0, area: Area::EMPTY };
        self.out.write_all(&record.to_bytes(u32::try_from(account.len()).map_err(io::Error::other)?))?;
        self.out.write_all(account.as_bytes())?;
        self.out.flush()
    }
}
