//! The film of a log as uncompressed video in Matroska, for FFmpeg.

use std::io::{self, BufWriter, ErrorKind, Read, Seek, Write};

use crate::error::{Attempt, Result};
use crate::log::{Entry, Head, Reader, Record};

const PROGRAM: &[u8] = b"film-recorder";

/// Write the film of a log, which errors call `name`. The film's times begin with its first picture. With `to_end` the
/// last picture comes a second time when the film ends.
///
/// If the log is incomplete or damaged, nothing is written: all of it is read beforehand.
pub fn stream(mut log: impl Read + Seek, name: &str, to_end: bool, out: impl Write) -> Result<()> {
    let mut checked = Reader::new(&mut log, name)?;
    while let Entry::Picture(_) = checked.next_entry()? {}
    log.rewind().attempt(|| format!("read the log {name}"))?;
    match write(Reader::new(log, name)?, to_end, out) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.attempt(|| format!("write the film of {name}")),
    }
}

fn write(mut log: Reader<impl Read>, to_end: bool, out: impl Write) -> io::Result<()> {
    let mut film = Film::begin(BufWriter::new(out), log.head())?;
    let mut first_us = None;
    loop {
        let entry = log.next_entry().map_err(io::Error::other)?;
        let (Entry::Picture(Record { last_us: at_us, .. }) | Entry::End { at_us, .. }) = entry;
        let is_end = matches!(entry, Entry::End { .. });
        if !is_end || to_end {
            film.show(at_us - *first_us.get_or_insert(at_us), log.picture())?;
        }
        if is_end {
            return film.out.flush();
        }
    }
}

/// A film in Matroska (RFC 9559). Each picture is in a cluster of its own, so that its time can be any µs.
struct Film<W: Write> {
    out: W,
    next_us: u64,
}

impl<W: Write> Film<W> {
    fn begin(mut out: W, head: Head) -> io::Result<Self> {
        let document = [
            element(&[0x42, 0x82], b"matroska"), // DocType
            element(&[0x42, 0x87], &[4]),        // DocTypeVersion
            element(&[0x42, 0x85], &[2]),        // DocTypeReadVersion
        ];
        let info = [
            element(&[0x2a, 0xd7, 0xb1], &1000_u32.to_be_bytes()), // TimestampScale (ns)
            element(&[0x4d, 0x80], PROGRAM),                       // MuxingApp
            element(&[0x57, 0x41], PROGRAM),                       // WritingApp
        ];
        let video = [
            element(&[0xb0], &head.width.to_be_bytes()),  // PixelWidth
            element(&[0xba], &head.height.to_be_bytes()), // PixelHeight
            element(&[0x2e, 0xb5, 0x24], b"BGR\0"),       // UncompressedFourCC
        ];
        let track = [
            element(&[0xd7], &[1]),              // TrackNumber
            element(&[0x73, 0xc5], &[1]),        // TrackUID
            element(&[0x83], &[1]),              // TrackType: video
            element(&[0x86], b"V_UNCOMPRESSED"), // CodecID
            element(&[0xe0], &video.concat()),   // Video
        ];
        let tracks = element(&[0xae], &track.concat()); // TrackEntry
        out.write_all(&element(&[0x1a, 0x45, 0xdf, 0xa3], &document.concat()))?; // EBML
        // Segment, of unknown size.
        out.write_all(&[0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])?;
        out.write_all(&element(&[0x15, 0x49, 0xa9, 0x66], &info.concat()))?; // Info
        out.write_all(&element(&[0x16, 0x54, 0xae, 0x6b], &tracks))?; // Tracks
        Ok(Self { out, next_us: 0 })
    }

    /// Show a picture from `at_us` on. Programs need times that rise: if the previous picture has the same time, this
    /// one comes 1 µs later.
    fn show(&mut self, at_us: u64, picture: &[[u8; 4]]) -> io::Result<()> {
        let at_us = at_us.max(self.next_us);
        self.next_us = at_us + 1;
        let pixels = picture.as_flattened();
        let time = element(&[0xe7], &at_us.to_be_bytes()); // Timestamp
        // SimpleBlock: a key frame of track 1, at the cluster's time.
        let block = [&[0xa3][..], &size(4 + pixels.len()), &[0x81, 0, 0, 0x80]].concat();
        self.out.write_all(&[0x1f, 0x43, 0xb6, 0x75])?; // Cluster
        self.out.write_all(&size(time.len() + block.len() + pixels.len()))?;
        self.out.write_all(&time)?;
        self.out.write_all(&block)?;
        self.out.write_all(pixels)
    }
}

fn element(id: &[u8], content: &[u8]) -> Vec<u8> {
    [id, &size(content.len()), content].concat()
}

/// The size of an element, in 8 bytes. The first byte says that there are 8.
fn size(bytes: usize) -> [u8; 8] {
    (bytes as u64 | 1 << 56).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::area::Area;
    use crate::log::Writer;

    /// Where in a cluster the time begins, and where the pixels begin.
    const TIME_AT: usize = 12 + 9;
    const PIXELS_AT: usize = TIME_AT + 8 + 9 + 4;

    /// A log of 2x1 pixels with pictures at these times. The first picture is black; in each further one, the blue of
    /// the second pixel is 1 more.
    fn log(times_us: &[u64], end_us: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let head = Head { width: 2, height: 1, monotonic_us: 50, epoch_us: 0 };
        let mut writer = Writer::new(&mut bytes, &head).unwrap();
        for (number, time_us) in (0_u8..).zip(times_us) {
            let blue = if number == 0 { 0 } else { number ^ (number - 1) };
            let area = if number == 0 { Area::whole(2, 1) } else { Area { left: 1, ..Area::whole(2, 1) } };
            let record = Record { first_us: *time_us, last_us: *time_us, drawings: number.into(), area };
            writer.add(&record, &vec![[blue, 0, 0, 0]; area.pixels()]).unwrap();
        }
        writer.end(end_us, "{}").unwrap();
        bytes
    }

    /// For each picture of the log's film: its time, and the blue of its second pixel.
    fn pictures(log: &[u8], to_end: bool) -> Result<Vec<(u64, u8)>> {
        let mut film = Vec::new();
        stream(Cursor::new(log), "a.changes", to_end, &mut film)?;
        let clusters = film.windows(4).position(|id| id == [0x1f, 0x43, 0xb6, 0x75]).unwrap();
        Ok(film[clusters..]
            .chunks_exact(PIXELS_AT + 8)
            .map(|cluster| {
                assert_eq!(cluster[4..12], size(cluster.len() - 12));
                assert_eq!(cluster[PIXELS_AT..][..4], [0; 4]);
                let time = u64::from_be_bytes(cluster[TIME_AT..][..8].try_into().unwrap());
                (time, cluster[PIXELS_AT + 4])
            })
            .collect())
    }

    #[test]
    fn a_film_has_each_picture_at_its_time_and_the_last_one_again_at_the_end() {
        let log = log(&[100, 250, 1_000_000], 1_000_500);
        let all = [(0, 0), (150, 1), (999_900, 2), (1_000_400, 2)];
        assert_eq!(pictures(&log, true).unwrap(), all);
        assert_eq!(pictures(&log, false).unwrap(), all[..3]);
    }

    #[test]
    fn pictures_of_one_time_come_one_after_the_other() {
        let log = log(&[100, 100, 250, 250, 250, 252], 252);
        let times: Vec<_> = pictures(&log, true).unwrap().into_iter().map(|(time, _)| time).collect();
        assert_eq!(times, [0, 1, 150, 151, 152, 153, 154]);
    }

    #[test]
    fn nothing_of_a_log_that_is_not_whole_is_written() {
        let log = log(&[100, 250], 400);
        let mut film = Vec::new();
        assert!(stream(Cursor::new(&log[..log.len() - 1]), "", true, &mut film).is_err());
        assert!(film.is_empty());
    }

    #[test]
    fn whoever_reads_a_film_may_stop() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(stream(Cursor::new(log(&[100], 400)), "", true, Broken), Ok(()));
    }
}
