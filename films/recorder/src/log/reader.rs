//! Reads a log.

use std::io::{BufReader, ErrorKind, Read};

use lz4_flex::block::{decompress_into, get_maximum_output_size};

use super::{HEAD_BYTES, Head, LATEST_US, LONGEST_ACCOUNT, LONGEST_EDGE, MAGIC, RECORD_BYTES, Record};
use crate::area::Area;
use crate::error::{Attempt, Error, Result};

/// A part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The reader's picture is this one.
    Picture(Record),
    /// The last one: when the film ended, and its account (JSON).
    End { at_us: u64, account: String },
}

pub struct Reader<R: Read> {
    file: BufReader<R>,
    name: String,
    /// How many bytes were read, and where the record begins that is being read.
    offset: u64,
    record_offset: u64,
    head: Head,
    last_us: u64,
    has_pictures: bool,
    picture: Vec<[u8; 4]>,
    block: Vec<u8>,
    delta: Vec<[u8; 4]>,
}

impl<R: Read> Reader<R> {
    /// Begin to read; `name` is what errors call the file.
    pub fn new(file: R, name: &str) -> Result<Self> {
        let mut reader = Self {
            file: BufReader::with_capacity(1 << 16, file),
            name: name.to_owned(),
            offset: 0,
            record_offset: 0,
            head: Head { width: 0, height: 0, monotonic_us: 0, epoch_us: 0 },
            last_us: 0,
            has_pictures: false,
            picture: Vec::new(),
            block: Vec::new(),
            delta: Vec::new(),
        };
        let mut bytes = [0; HEAD_BYTES];
        reader.fill(&mut bytes)?;
        if &bytes[..8] != MAGIC {
            return Err(reader.damage("this is no log of a film"));
        }
        let head = Head::from_bytes(&bytes);
        if [head.width, head.height].iter().any(|edge| !(1..=LONGEST_EDGE).contains(edge)) {
            return Err(reader.damage(&format!("it has {}x{} pixels", head.width, head.height)));
        }
        if bytes[12..16] != [0; 4] {
            return Err(reader.damage("bytes 12 to 15 are not 0"));
        }
        if head.monotonic_us > LATEST_US || head.epoch_us > LATEST_US {
            return Err(reader.damage("its time is too late"));
        }
        reader.head = head;
        reader.last_us = head.monotonic_us;
        reader.picture = vec![[0; 4]; reader.whole().pixels()];
        Ok(reader)
    }

    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The pixels that the film shows at the last picture that was read: blue, green, red and 0 each, row by row.
    #[must_use]
    pub fn picture(&self) -> &[[u8; 4]] {
        &self.picture
    }

    /// Read the next entry; after the end, there is none.
    pub fn next_entry(&mut self) -> Result<Entry> {
        self.record_offset = self.offset;
        let mut bytes = [0; RECORD_BYTES];
        self.fill(&mut bytes)?;
        let (record, size) = Record::from_bytes(&bytes);
        if record.first_us < self.last_us || record.last_us < record.first_us {
            return Err(self.damage("its times go back"));
        }
        if record.last_us > LATEST_US {
            return Err(self.damage("its time is too late"));
        }
        self.last_us = record.last_us;
        let size = size as usize;
        if record.area == Area::EMPTY && self.has_pictures {
            return self.read_end(&record, size);
        }
        if record.area.is_empty() || !self.whole().contains(record.area) {
            return Err(self.damage("its area is not inside the screen"));
        }
        if !self.has_pictures && record.area != self.whole() {
            return Err(self.damage("the first picture is not of the whole screen"));
        }
        self.has_pictures = true;
        self.read_delta(record.area, size)?;
        Ok(Entry::Picture(record))
    }

    /// Read how the picture changes.
    fn read_delta(&mut self, area: Area, size: usize) -> Result<()> {
        if size > get_maximum_output_size(4 * area.pixels()) {
            return Err(self.damage("it has more bytes than its area takes"));
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(size, 0);
        self.fill(&mut block)?;
        self.delta.resize(area.pixels(), [0; 4]);
        let delta = self.delta.as_flattened_mut();
        let unpacked = decompress_into(&block, delta).ok();
        if unpacked != Some(delta.len()) {
            return Err(self.damage("its bytes are not the LZ4 block of its area"));
        }
        self.block = block;
        let (width, row_width) = (self.whole().width(), area.width());
        let rows = self.picture[usize::from(area.top) * width..].chunks_exact_mut(width);
        let mut unused = 0;
        for (row, delta) in rows.zip(self.delta.chunks_exact(row_width)) {
            for (pixel, delta) in row[area.left.into()..area.right.into()].iter_mut().zip(delta) {
                *pixel = (u32::from_ne_bytes(*pixel) ^ u32::from_ne_bytes(*delta)).to_ne_bytes();
                unused |= delta[3];
            }
        }
        if unused != 0 { Err(self.damage("unused bytes are not 0")) } else { Ok(()) }
    }

    fn read_end(&mut self, record: &Record, size: usize) -> Result<Entry> {
        if record.first_us != record.last_us || record.drawings != 0 || size > LONGEST_ACCOUNT {
            return Err(self.damage("its last record is none"));
        }
        let mut account = vec![0; size];
        self.fill(&mut account)?;
        let account = String::from_utf8(account).map_err(|_| self.damage("its account is not UTF-8"))?;
        let end = self.offset;
        match self.file.read(&mut [0]).attempt(|| format!("read the log {}", self.name))? {
            0 => Ok(Entry::End { at_us: record.last_us, account }),
            _ => Err(Error::new(format!(
                "the log {} is damaged at byte {end}: there is more after its last record",
                self.name
            ))),
        }
    }

    fn whole(&self) -> Area {
        Area::whole(self.head.width, self.head.height)
    }

    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            match self.file.read(bytes) {
                Ok(0) => {
                    return Err(Error::new(format!(
                        "the log {} is not whole: it ends at byte {}, before its last record; its recorder was ended",
                        self.name, self.offset
                    )));
                }
                Ok(count) => {
                    self.offset += count as u64;
                    bytes = &mut bytes[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).attempt(|| format!("read the log {}", self.name)),
            }
        }
        Ok(())
    }

    fn damage(&self, what: &str) -> Error {
        Error::new(format!("the log {} is damaged at byte {}: {what}", self.name, self.record_offset))
    }
}
