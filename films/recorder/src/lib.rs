//! Films an X display by the DAMAGE extension: a picture for each change, with its time.
//!
//! [`record`] waits for drawings and fetches the pictures of them, no more than [`bounds`] allow, into a [`log`], of which
//! [`stream`] makes a film that FFmpeg reads.

pub mod area;
pub mod bounds;
pub mod clock;
pub mod drawings;
pub mod error;
pub mod log;
pub mod memory;
pub mod picture;
pub mod record;
pub mod screen;
pub mod stop;
pub mod stream;
