//! Films an X display by the DAMAGE extension: a picture for each change, with its time.
//!
//! [`record`] waits for drawings, fetches pictures of them, as many as [`bounds`] allow, and stores these in a [`log`].
//! [`stream`] turns a log into a film that FFmpeg reads.

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
