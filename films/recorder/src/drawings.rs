//! Drawings that the film does not show so far.

use crate::area::Area;

/// Drawings that one picture will show together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawings {
    /// An area that contains all of them.
    pub area: Area,
    pub count: u32,
    /// How many of them were drawn while the bounds made the picture wait.
    pub thinned_out: u32,
    /// The times of the first one and the last one.
    pub first_us: u64,
    pub last_us: u64,
}

impl Drawings {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Add later ones.
    pub fn add(&mut self, later: &Self) {
        if self.is_empty() {
            *self = *later;
        } else if !later.is_empty() {
            self.area = self.area.with(later.area);
            self.count = self.count.saturating_add(later.count);
            self.thinned_out = self.thinned_out.saturating_add(later.thinned_out);
            self.last_us = later.last_us;
        }
    }

    /// How many of them were drawn over before a picture could be fetched, although the bounds did not make it wait.
    #[must_use]
    pub fn drawn_over(&self) -> u32 {
        self.count.saturating_sub(1 + self.thinned_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(left: u16, at_us: u64) -> Drawings {
        let area = Area { left, top: 0, right: left + 10, bottom: 10 };
        Drawings { area, count: 1, thinned_out: 0, first_us: at_us, last_us: at_us }
    }

    #[test]
    fn drawings_have_the_times_of_the_first_and_the_last_and_an_area_with_all() {
        let mut drawings = Drawings::default();
        drawings.add(&Drawings::default());
        assert!(drawings.is_empty());
        drawings.add(&one(5, 100));
        drawings.add(&Drawings { thinned_out: 1, ..one(0, 200) });
        drawings.add(&Drawings::default());
        drawings.add(&one(2, 300));
        let area = Area { left: 0, top: 0, right: 15, bottom: 10 };
        assert_eq!(drawings, Drawings { area, count: 3, thinned_out: 1, first_us: 100, last_us: 300 });
        assert_eq!(drawings.drawn_over(), 1);
        assert_eq!(one(0, 0).drawn_over(), 0);
    }
}
