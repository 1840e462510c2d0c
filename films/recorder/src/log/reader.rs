//! Reads a log.

use std::io::{BufReader, ErrorKind, Read};

use lz4_flex::block::{decompress_into, get_maximum_output_size};

use super::{HEAD_BYTES, Head, LATEST_US, LONGEST_ACCOUNT, LONGEST_EDGE, MAGIC, RECORD_BYTES, Record};
use crate::area::Area;
use crate::error::{Attempt, Error, Result};

/// A part of a log after its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A picture, which is now the reader's `picture`.
    Picture(Record),
    /// The last entry: when the film ended, and its account (JSON).
    End { at_us: u64, account: String },
}

pub struct Reader<R: Read> {
    file: BufReader<R>,
    name: String,
    /// How many bytes were read.
    offset: u64,
    /// Where the current record begins.
    record_offset: u64,
    head: Head,
    last_us: u64,
    has_pictures: bool,
    picture: Vec<[u8; 4]>,
    block: Vec<u8>,
    delta: Vec<[u8; 4]>,
}

impl<R: Read> Reader<R> {
    /// Read the head; errors call the file `name`.
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

    /// The pixels of the last picture that was read, row by row; each is blue, green, red and 0.
    #[must_use]
    pub fn picture(&self) -> &[[u8; 4]] {
        &self.picture
    }

    /// Read the next entry. It must not be called after the last one.
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

    /// Read the changes of the pixels in `area`, and apply them to the picture.
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

#[cfg(test)]
mod tests {
    use super::super::Writer;
    use super::*;

    const HEAD: Head = Head { width: 4, height: 3, monotonic_us: 1_000, epoch_us: 1_700_000_000_000_000 };
    const WHOLE: Area = Area { left: 0, top: 0, right: 4, bottom: 3 };
    const PART: Area = Area { left: 1, top: 1, right: 3, bottom: 3 };
    const FIRST: Record = Record { first_us: 2_000, last_us: 2_000, drawings: 0, area: WHOLE };
    const SECOND: Record = Record { first_us: 3_000, last_us: 4_500, drawings: 2, area: PART };
    const ACCOUNT: &str = "{\"drawings\": 2}";

    /// A log of these records. All pixels of the first record differ by 1, those of the second by 2, and so on.
    fn log(records: &[Record]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &HEAD).unwrap();
        for (number, record) in (1..).zip(records) {
            writer.add(record, &vec![[number, 0, 0, 0]; record.area.pixels()]).unwrap();
        }
        writer.end(9_000, ACCOUNT).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Entry>> {
        let mut reader = Reader::new(bytes, "a.changes")?;
        let mut entries = Vec::new();
        loop {
            entries.push(reader.next_entry()?);
            if let Some(Entry::End { .. }) = entries.last() {
                return Ok(entries);
            }
        }
    }

    fn refusal(bytes: &[u8]) -> String {
        read(bytes).unwrap_err().to_string()
    }

    /// Where the second record of a log begins.
    fn second() -> usize {
        HEAD_BYTES + RECORD_BYTES + usize::from(log(&[FIRST])[HEAD_BYTES + 28])
    }

    fn damaged(at: usize, what: &str) -> String {
        format!("the log a.changes is damaged at byte {at}: {what}")
    }

    /// A log in which these bytes replace those from `at` on.
    fn with(at: usize, new: &[u8]) -> Vec<u8> {
        let mut bytes = log(&[FIRST, SECOND]);
        bytes[at..][..new.len()].copy_from_slice(new);
        bytes
    }

    #[test]
    fn a_log_is_read_as_it_was_written() {
        let bytes = log(&[FIRST, SECOND]);
        let entries = read(&bytes).unwrap();
        let end = Entry::End { at_us: 9_000, account: ACCOUNT.into() };
        assert_eq!(entries, [Entry::Picture(FIRST), Entry::Picture(SECOND), end]);
        let mut reader = Reader::new(&bytes[..], "").unwrap();
        assert_eq!(reader.head(), HEAD);
        reader.next_entry().unwrap();
        assert_eq!(reader.picture(), [[1, 0, 0, 0]; 12]);
        reader.next_entry().unwrap();
        let blues: Vec<_> = reader.picture().iter().map(|pixel| pixel[0]).collect();
        assert_eq!(blues, [1, 1, 1, 1, 1, 3, 3, 1, 1, 3, 3, 1]);
    }

    #[test]
    fn the_bytes_of_a_log_are_those_of_the_readme() {
        let bytes = log(&[FIRST]);
        assert_eq!(&bytes[..8], b"EYEFILM1");
        assert_eq!(bytes[8..16], [4, 0, 3, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16..24], 1_000_u64.to_le_bytes());
        assert_eq!(bytes[24..32], 1_700_000_000_000_000_u64.to_le_bytes());
        let end = &bytes[second()..];
        assert_eq!(end[..16], [9_000_u64.to_le_bytes(); 2].concat());
        assert_eq!(end[16..28], [0; 12]);
        assert_eq!(end[28..32], (ACCOUNT.len() as u32).to_le_bytes());
        assert_eq!(&end[32..], ACCOUNT.as_bytes());
    }

    #[test]
    fn a_log_that_ends_anywhere_before_its_end_is_not_whole() {
        let bytes = log(&[FIRST, SECOND]);
        for length in 0..bytes.len() {
            let start = format!("the log a.changes is not whole: it ends at byte {length}, ");
            assert!(refusal(&bytes[..length]).starts_with(&start), "{length}");
        }
    }

    #[test]
    fn a_head_that_no_recorder_wrote_is_refused() {
        assert_eq!(refusal(&with(0, b"EYEFILM2")), damaged(0, "this is no log of a film"));
        assert_eq!(refusal(&with(8, &[0, 0])), damaged(0, "it has 0x3 pixels"));
        assert_eq!(refusal(&with(10, &[1, 0x20])), damaged(0, "it has 4x8193 pixels"));
        assert_eq!(refusal(&with(13, &[1])), damaged(0, "bytes 12 to 15 are not 0"));
        assert_eq!(refusal(&with(22, &[0xff])), damaged(0, "its time is too late"));
        assert_eq!(refusal(&with(31, &[0xff])), damaged(0, "its time is too late"));
    }

    #[test]
    fn times_that_go_back_are_refused() {
        let back = "its times go back";
        let early = Record { first_us: 999, ..FIRST };
        assert_eq!(refusal(&log(&[early])), damaged(HEAD_BYTES, back));
        let crossed = Record { last_us: 2_999, ..SECOND };
        assert_eq!(refusal(&log(&[FIRST, crossed])), damaged(second(), back));
        let overlapping = Record { first_us: 1_999, ..SECOND };
        assert_eq!(refusal(&log(&[FIRST, overlapping])), damaged(second(), back));
        let late = Record { last_us: LATEST_US + 1, ..SECOND };
        assert_eq!(refusal(&log(&[FIRST, late])), damaged(second(), "its time is too late"));
        // The last picture is later than the end.
        let late = Record { last_us: 9_001, ..FIRST };
        assert_eq!(refusal(&log(&[late])), damaged(second(), back));
    }

    #[test]
    fn areas_outside_the_screen_are_refused() {
        for area in [
            Area { right: 5, ..PART },
            Area { bottom: 4, ..PART },
            Area { left: 3, ..PART },
            Area { top: 3, ..PART },
            Area { left: 60_000, top: 60_000, right: 65_535, bottom: 65_535 },
            Area { left: 1, top: 1, right: 1, bottom: 1 },
        ] {
            let edges = [area.left, area.top, area.right, area.bottom].map(u16::to_le_bytes).concat();
            let refused = refusal(&with(second() + 20, &edges));
            assert_eq!(refused, damaged(second(), "its area is not inside the screen"), "{area:?}");
        }
    }

    #[test]
    fn a_log_whose_first_picture_is_not_the_whole_screen_is_refused() {
        let what = "the first picture is not of the whole screen";
        assert_eq!(refusal(&log(&[SECOND])), damaged(HEAD_BYTES, what));
        assert_eq!(refusal(&log(&[])), damaged(HEAD_BYTES, "its area is not inside the screen"));
    }

    #[test]
    fn bytes_that_are_not_the_pixels_of_the_area_are_refused() {
        let size = second() + 28;
        let what = "it has more bytes than its area takes";
        assert_eq!(refusal(&with(size, &[0xff; 4])), damaged(second(), what));
        // The area has fewer pixels than the block, and then more.
        let what = "its bytes are not the LZ4 block of its area";
        assert_eq!(refusal(&with(second() + 24, &[2, 0])), damaged(second(), what));
        assert_eq!(refusal(&with(second() + 24, &[4, 0])), damaged(second(), what));
        // The block copies bytes from before its beginning.
        assert_eq!(refusal(&with(second() + RECORD_BYTES, &[0x0f, 9, 9])), damaged(second(), what));
    }

    #[test]
    fn any_byte_may_be_damaged_without_harm() {
        let bytes = log(&[FIRST, SECOND]);
        for (at, byte) in bytes.iter().enumerate() {
            for bit in 0..8 {
                // The log is refused, or is another valid one; nothing panics.
                let _ = read(&with(at, &[byte ^ 1 << bit]));
            }
        }
    }

    #[test]
    fn unused_bytes_of_pixels_are_0() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &HEAD).unwrap();
        writer.add(&FIRST, &[[1, 2, 3, 4]; 12]).unwrap();
        writer.end(9_000, ACCOUNT).unwrap();
        assert_eq!(refusal(&bytes), damaged(HEAD_BYTES, "unused bytes are not 0"));
    }

    #[test]
    fn a_last_record_that_is_not_one_is_refused() {
        let bytes = log(&[FIRST, SECOND]);
        let end = bytes.len() - ACCOUNT.len() - RECORD_BYTES;
        let what = "its last record is none";
        assert_eq!(refusal(&with(end + 8, &9_001_u64.to_le_bytes())), damaged(end, what));
        assert_eq!(refusal(&with(end + 16, &[1])), damaged(end, what));
        assert_eq!(refusal(&with(end + 28, &[1, 0, 1])), damaged(end, what));
        assert_eq!(refusal(&with(end + RECORD_BYTES, &[0xff])), damaged(end, "its account is not UTF-8"));
        let more = [&bytes[..], &[0]].concat();
        assert_eq!(refusal(&more), damaged(bytes.len(), "there is more after its last record"));
    }
}
