//! Memory that the display server writes pictures to.
//!
//! The server gets its descriptor. A System V segment would not do: the server would have to be in our IPC namespace.

use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::slice;

use nix::libc::off_t;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::ftruncate;

use crate::error::{Attempt, Error, Result};

/// Pixels of 4 bytes each: blue, green, red, and an unused one.
pub struct SharedPixels {
    start: NonNull<u32>,
    count: usize,
}

impl SharedPixels {
    /// Memory for `count` pixels, all 0, and the memory's descriptor.
    pub fn new(count: usize) -> Result<(Self, OwnedFd)> {
        let attempt = || format!("get memory for {count} pixels");
        let bytes = NonZeroUsize::new(4 * count).ok_or_else(|| Error::new("a picture needs pixels"))?;
        let file = memfd_create("pictures", MFdFlags::MFD_CLOEXEC).attempt(attempt)?;
        ftruncate(&file, bytes.get() as off_t).attempt(attempt)?;
        // SAFETY: a new mapping, at a place that the kernel chooses; nothing else is there.
        let start = unsafe { mmap(None, bytes, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &file, 0) };
        Ok((Self { start: start.attempt(attempt)?.cast(), count }, file))
    }

    /// The pixels as they are now. Whoever lets the server write them must have borrowed this as mutable.
    #[must_use]
    pub fn get(&self) -> &[u32] {
        // SAFETY: all of it is mapped, readable, aligned to pages, and not unmapped before this is dropped. Any bytes
        // are valid numbers. The server writes only to answer a request of `Screen::fetch`, which borrows this as
        // mutable until the answer has come.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for SharedPixels {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped it with this length, and nothing borrows it any more.
        let _ = unsafe { munmap(self.start.cast(), 4 * self.count) };
    }
}
