//! Time is monotonic nanoseconds; nothing else in this crate asks a clock.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds since an arbitrary origin (`CLOCK_MONOTONIC`), or a span of nanoseconds.
pub type Nanos = u64;

pub const NANOS_PER_MILLISECOND: Nanos = 1_000_000;
pub const NANOS_PER_SECOND: Nanos = 1_000_000_000;

/// The monotonic clock, now.
///
/// # Panics
/// Never on Linux: `CLOCK_MONOTONIC` always exists there.
#[must_use]
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists");
    time.tv_sec() as Nanos * NANOS_PER_SECOND + time.tv_nsec() as Nanos
}
