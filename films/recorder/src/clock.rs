//! Clocks, in µs. A film's times are those of `CLOCK_MONOTONIC`, which the display server and browsers use as well.

use nix::time::{ClockId, clock_gettime};

/// How often two clocks are read in an attempt to read both at the same moment.
const TRIES: usize = 5;

/// `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_us() -> u64 {
    time_us(ClockId::CLOCK_MONOTONIC).unwrap_or(0)
}

/// How long this thread has run on a processor.
#[must_use]
pub fn thread_us() -> u64 {
    time_us(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// `CLOCK_MONOTONIC` and `CLOCK_REALTIME` at the same moment.
#[must_use]
pub fn monotonic_and_epoch_us() -> (u64, u64) {
    let one_try = |_| {
        let before = monotonic_us();
        let epoch = time_us(ClockId::CLOCK_REALTIME).unwrap_or(0);
        let after = monotonic_us();
        (after - before, (before + (after - before) / 2, epoch))
    };
    // The quickest try counts: in the others, the thread may have waited for a processor between two readings.
    (0..TRIES).map(one_try).min().map_or((0, 0), |(_, times)| times)
}

/// The time of a clock; none if the clock does not exist, such as that of a process that has ended.
#[must_use]
pub fn time_us(clock: ClockId) -> Option<u64> {
    let time = clock_gettime(clock).ok()?;
    Some(u64::try_from(time.tv_sec()).ok()? * 1_000_000 + u64::try_from(time.tv_nsec()).ok()? / 1000)
}

/// The time (µs) that is near `now_us` and whose whole ms have `server_ms` as their lowest 32 bits: a display server
/// reports its times like this. The result is the middle of that ms, and so off by half a ms at most.
#[must_use]
pub fn from_server_ms(server_ms: u32, now_us: u64) -> u64 {
    let now_ms = now_us / 1000;
    // Between -24 and +24 days.
    let past_ms = (now_ms as u32).wrapping_sub(server_ms) as i32;
    now_ms.saturating_add_signed(-i64::from(past_ms)) * 1000 + 500
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRAP_US: u64 = (1 << 32) * 1000;

    #[test]
    fn a_servers_time_is_near_ours() {
        assert_eq!(from_server_ms(5_000, 5_000_300), 5_000_500);
        assert_eq!(from_server_ms(4_990, 5_000_300), 4_990_500);
        assert_eq!(from_server_ms(5_001, 5_000_300), 5_001_500);
    }

    #[test]
    fn a_servers_time_wraps_after_49_days() {
        assert_eq!(from_server_ms(u32::MAX, WRAP_US + 2_100), WRAP_US - 500);
        assert_eq!(from_server_ms(0, WRAP_US + 2_100), WRAP_US + 500);
        assert_eq!(from_server_ms(0, WRAP_US - 100), WRAP_US + 500);
        assert_eq!(from_server_ms(1, 7 * WRAP_US + 2_100), 7 * WRAP_US + 1_500);
    }

    #[test]
    fn a_servers_time_of_another_clock_is_never_before_0() {
        assert_eq!(from_server_ms(u32::MAX, 100), 500);
    }

    #[test]
    fn both_clocks_are_read() {
        let before = monotonic_us();
        let (monotonic, epoch) = monotonic_and_epoch_us();
        assert!((before..=monotonic_us()).contains(&monotonic));
        assert!(epoch > 1_700_000_000_000_000);
    }
}
