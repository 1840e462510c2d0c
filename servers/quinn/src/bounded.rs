//! quinn's connections for h3, with limits on what a stranger may send.
//!
//! Except for bodies, h3 keeps each frame in memory until it is complete, however long its sender says that it is.

use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    Connection, ConnectionErrorIncoming, OpenStreams, RecvStream, SendStream, StreamErrorIncoming, StreamId,
    WriteBuf,
};

/// The most bytes of header fields: as many as one of NGINX's large_client_header_buffers holds on the TCP side.
pub const MAX_HEADER_BYTES: u64 = 128 * 1024;
/// The most bytes of a browser's control stream: settings, and the priorities of some 50,000 requests.
const MAX_CONTROL_BYTES: u64 = 1024 * 1024;
const DATA_FRAME: u64 = 0;

/// A connection whose streams are bounded.
pub struct Bounded<C>(pub C);

impl<C: OpenStreams<Bytes>> OpenStreams<Bytes> for Bounded<C>
where
    C::BidiStream: RecvStream<Buf = Bytes>,
{
    type BidiStream = BoundedRequest<C::BidiStream>;
    type SendStream = C::SendStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        self.0.poll_open_bidi(cx).map_ok(BoundedRequest::new)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.0.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.0.close(code, reason);
    }
}

impl<C: Connection<Bytes>> Connection<Bytes> for Bounded<C>
where
    C::BidiStream: RecvStream<Buf = Bytes>,
{
    type RecvStream = BoundedControl<C::RecvStream>;
    type OpenStreams = Bounded<C::OpenStreams>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        self.0.poll_accept_recv(cx).map_ok(|stream| BoundedControl { stream, bytes: 0 })
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        self.0.poll_accept_bidi(cx).map_ok(BoundedRequest::new)
    }

    fn opener(&self) -> Self::OpenStreams {
        Bounded(self.0.opener())
    }
}

/// The stream of a request. Each frame that is not part of its body has at most `MAX_HEADER_BYTES`.
pub struct BoundedRequest<S> {
    stream: S,
    frames: Frames,
}

impl<S> BoundedRequest<S> {
    fn new(stream: S) -> Self {
        Self { stream, frames: Frames::default() }
    }
}

impl<S: RecvStream<Buf = Bytes> + SendStream<Bytes>> RecvStream for BoundedRequest<S> {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let polled = self.stream.poll_data(cx);
        if let Poll::Ready(Ok(Some(data))) = &polled {
            if !self.frames.admit(data) {
                let code = Code::H3_EXCESSIVE_LOAD.value();
                self.stream.stop_sending(code);
                self.stream.reset(code);
                return Poll::Ready(Err(too_much()));
            }
        }
        polled
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.stream.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.stream.recv_id()
    }
}

impl<S: SendStream<Bytes>> SendStream<Bytes> for BoundedRequest<S> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.stream.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.stream.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.stream.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.stream.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.stream.send_id()
    }
}

/// A stream of the client's own, such as the control stream.
pub struct BoundedControl<S> {
    stream: S,
    bytes: u64,
}

impl<S: RecvStream> RecvStream for BoundedControl<S> {
    type Buf = S::Buf;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<S::Buf>, StreamErrorIncoming>> {
        let polled = self.stream.poll_data(cx);
        if let Poll::Ready(Ok(Some(data))) = &polled {
            self.bytes += data.remaining() as u64;
            if self.bytes > MAX_CONTROL_BYTES {
                self.stream.stop_sending(Code::H3_EXCESSIVE_LOAD.value());
                return Poll::Ready(Err(too_much()));
            }
        }
        polled
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.stream.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.stream.recv_id()
    }
}

fn too_much() -> StreamErrorIncoming {
    StreamErrorIncoming::StreamTerminated { error_code: Code::H3_EXCESSIVE_LOAD.value() }
}

/// The position within the frames of a request (RFC 9114, section 7.1).
#[derive(Default)]
struct Frames {
    /// The received part of a frame's type and length.
    header: Vec<u8>,
    /// How many bytes of the present frame are still to come.
    rest: u64,
}

impl Frames {
    /// Takes the next bytes of the stream; returns whether they begin no frame that is too long.
    fn admit(&mut self, mut data: &[u8]) -> bool {
        while let Some((first, later)) = data.split_first() {
            if self.rest > 0 {
                let skipped = self.rest.min(data.len() as u64);
                self.rest -= skipped;
                data = &data[usize::try_from(skipped).expect("no more than data has")..];
                continue;
            }
            self.header.push(*first);
            data = later;
            if let Some((kind, length)) = frame_header(&self.header) {
                if kind != DATA_FRAME && length > MAX_HEADER_BYTES {
                    return false;
                }
                self.header.clear();
                self.rest = length;
            }
        }
        true
    }
}

/// The type and the length of a frame, if both are complete.
fn frame_header(bytes: &[u8]) -> Option<(u64, u64)> {
    let (kind, rest) = varint(bytes)?;
    Some((kind, varint(rest)?.0))
}

/// An integer (RFC 9000, section 16), and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = 1 << (bytes.first()? >> 6);
    let (integer, rest) = bytes.split_at_checked(length)?;
    let value = integer.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (u64::MAX >> (66 - 8 * length)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: &[u8], length: u32, content: usize) -> Vec<u8> {
        [kind, &(length | 0x8000_0000).to_be_bytes(), &vec![0xff; content]].concat()
    }

    #[test]
    fn integers_are_those_of_rfc_9000() {
        for (bytes, value) in [
            (&[0x25][..], 37),
            (&[0x7b, 0xbd], 15_293),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        ] {
            assert_eq!(varint(bytes), Some((value, &[][..])));
            assert!(bytes.len() == 1 || varint(&bytes[..bytes.len() - 1]).is_none());
        }
    }

    #[test]
    fn only_bodies_may_be_long_however_the_bytes_come() {
        let sound =
            [frame(&[1], 1000, 1000), frame(&[0], 10_000_000, 10_000_000), frame(&[0x40, 0x21], 9, 9)]
                .concat();
        for piece in [1, 7, 1200, sound.len()] {
            let mut frames = Frames::default();
            assert!(sound.chunks(piece).all(|data| frames.admit(data)));
            let long = frame(&[1], 128 * 1024 + 1, 0);
            assert!(!long.chunks(piece).all(|data| frames.admit(data)));
        }
    }
}
