//! Bounds on the pictures, the processor time and the bytes that a film takes in a second, so that filming does not
//! disturb the page.

/// How many pictures may be stored at once, and after that in each second.
const PICTURES: Bucket = Bucket::new(60, 30);

/// How many µs the recorder and the display server may run for the film at once, and after that in each second.
const PROCESSOR_US: Bucket = Bucket::new(100_000, 200_000);

/// By how many bytes the log may grow at once, and after that in each second.
const BYTES: Bucket = Bucket::new(16_000_000, 16_000_000);

/// After this long without a drawing, the picture of the next one is fetched at once, even if the bounds are exceeded.
pub const QUIET_US: u64 = 500_000;

/// The costs of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub pictures: u64,
    pub processor_us: u64,
    pub bytes: u64,
}

/// The bounds of one film, whose buckets fill with the time (µs).
pub struct Bounds {
    pictures: Bucket,
    processor_us: Bucket,
    bytes: Bucket,
    filled_us: u64,
}

impl Bounds {
    #[must_use]
    pub fn new(now_us: u64) -> Self {
        Self { pictures: PICTURES, processor_us: PROCESSOR_US, bytes: BYTES, filled_us: now_us }
    }

    /// How long (µs) a picture has to wait.
    pub fn wait_us(&mut self, now_us: u64) -> u64 {
        self.fill(now_us);
        // The processor time and the bytes of a picture are known only afterwards. So a picture may take any amount of
        // them, but waits until the debts of earlier pictures are paid.
        self.pictures.wait_us(1).max(self.processor_us.wait_us(0)).max(self.bytes.wait_us(0))
    }

    pub fn take(&mut self, cost: Cost, now_us: u64) {
        self.fill(now_us);
        self.pictures.take(cost.pictures);
        self.processor_us.take(cost.processor_us);
        self.bytes.take(cost.bytes);
    }

    fn fill(&mut self, now_us: u64) {
        let elapsed_us = now_us.saturating_sub(self.filled_us);
        for bucket in [&mut self.pictures, &mut self.processor_us, &mut self.bytes] {
            bucket.fill(elapsed_us);
        }
        self.filled_us = now_us.max(self.filled_us);
    }
}

/// A token bucket, which is full at first. Its level may be negative, which is a debt.
#[derive(Clone, Copy)]
struct Bucket {
    /// The level in millionths of a token, so that the bucket gains a whole number in each µs.
    level: i64,
    size: i64,
    per_second: i64,
}

impl Bucket {
    const MILLION: i64 = 1_000_000;

    const fn new(size: i64, per_second: i64) -> Self {
        Self { level: size * Self::MILLION, size: size * Self::MILLION, per_second }
    }

    fn fill(&mut self, elapsed_us: u64) {
        let gain = i64::try_from(elapsed_us).unwrap_or(i64::MAX).saturating_mul(self.per_second);
        self.level = self.level.saturating_add(gain).min(self.size);
    }

    fn take(&mut self, tokens: u64) {
        let millionths = i64::try_from(tokens).unwrap_or(i64::MAX).saturating_mul(Self::MILLION);
        self.level = self.level.saturating_sub(millionths);
    }

    /// How long it takes (µs) until the bucket has this many tokens.
    fn wait_us(&self, tokens: i64) -> u64 {
        let missing = (tokens * Self::MILLION).saturating_sub(self.level).max(0) as u64;
        missing.div_ceil(self.per_second as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;
    const PICTURE: Cost = Cost { pictures: 1, processor_us: 0, bytes: 0 };

    /// How many pictures a film has of the first `seconds` of a page that draws in each µs.
    fn pictures(cost: Cost, seconds: u64) -> u64 {
        let (mut bounds, mut now_us, mut count) = (Bounds::new(7), 7, 0);
        loop {
            now_us += bounds.wait_us(now_us);
            if now_us > 7 + seconds * SECOND {
                return count;
            }
            bounds.take(cost, now_us);
            count += 1;
        }
    }

    #[test]
    fn after_a_burst_of_60_there_are_30_pictures_a_second() {
        assert_eq!(pictures(PICTURE, 0), 60);
        assert_eq!(pictures(PICTURE, 1), 90);
        assert_eq!(pictures(PICTURE, 10), 360);
    }

    #[test]
    fn pictures_that_take_a_tenth_of_a_second_are_fewer() {
        let cost = Cost { processor_us: 100_000, ..PICTURE };
        // Two pictures before there is a debt, and then one every 0.5 s.
        assert_eq!(pictures(cost, 0), 2);
        assert_eq!(pictures(cost, 40), 82);
    }

    #[test]
    fn bytes_are_bounded() {
        let cost = Cost { bytes: 4_000_000, ..PICTURE };
        assert_eq!(pictures(cost, 0), 5);
        assert_eq!(pictures(cost, 100), 405);
    }

    #[test]
    fn what_is_no_picture_takes_none() {
        let mut bounds = Bounds::new(0);
        for _ in 0..1000 {
            assert_eq!(bounds.wait_us(0), 0);
            bounds.take(Cost { processor_us: 100, ..Cost::default() }, 0);
        }
    }

    #[test]
    fn after_a_pause_there_may_be_a_burst_again_and_no_more() {
        let mut bounds = Bounds::new(0);
        for now_us in [0, 1000 * SECOND] {
            for _ in 0..60 {
                assert_eq!(bounds.wait_us(now_us), 0);
                bounds.take(PICTURE, now_us);
            }
            assert_eq!(bounds.wait_us(now_us), 33_334);
        }
    }

    #[test]
    fn a_clock_that_stands_or_goes_back_brings_nothing() {
        let mut bounds = Bounds::new(100);
        bounds.take(Cost { pictures: 60, ..Cost::default() }, 100);
        assert_eq!(bounds.wait_us(100), 33_334);
        assert_eq!(bounds.wait_us(50), 33_334);
        assert_eq!(bounds.wait_us(150), 33_284);
    }

    #[test]
    fn the_greatest_numbers_overflow_nothing() {
        let mut bounds = Bounds::new(0);
        let most = Cost { pictures: u64::MAX, processor_us: u64::MAX, bytes: u64::MAX };
        bounds.take(most, 0);
        bounds.take(most, u64::MAX);
        assert!(bounds.wait_us(u64::MAX) > SECOND);
    }
}
