//! Writes a log.

use std::io::{self, BufWriter, Write};

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::{Head, RECORD_BYTES, Record};
use crate::area::Area;

/// A crash loses at most this much of the log.
const BUFFER_BYTES: usize = 1 << 16;

pub struct Writer<W: Write> {
    out: BufWriter<W>,
    block: Vec<u8>,
    table: CompressTable,
}

impl<W: Write> Writer<W> {
    pub fn new(out: W, head: &Head) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        out.write_all(&head.to_bytes())?;
        Ok(Self { out, block: Vec::new(), table: CompressTable::large() })
    }

    /// Add a picture; `delta` is its difference from the one before. Returns by how many bytes the log has grown.
    pub fn add(&mut self, record: &Record, delta: &[[u8; 4]]) -> io::Result<usize> {
        let delta = delta.as_flattened();
        self.block.resize(get_maximum_output_size(delta.len()), 0);
        let size =
            compress_into_with_table(delta, &mut self.block, &mut self.table).map_err(io::Error::other)?;
        self.out.write_all(&record.to_bytes(u32::try_from(size).map_err(io::Error::other)?))?;
        self.out.write_all(&self.block[..size])?;
        Ok(RECORD_BYTES + size)
    }

    /// Add the last record. A log without it is incomplete.
    pub fn end(mut self, at_us: u64, account: &str) -> io::Result<()> {
        let record = Record { first_us: at_us, last_us: at_us, drawings: 0, area: Area::EMPTY };
        self.out.write_all(&record.to_bytes(u32::try_from(account.len()).map_err(io::Error::other)?))?;
        self.out.write_all(account.as_bytes())?;
        self.out.flush()
    }
}
