//! The picture that the film currently shows.

use crate::area::Area;
use crate::screen::Fetched;

/// The bits of a pixel that are its colours; the rest is unused.
const COLOURS: u32 = 0x00ff_ffff;

/// A copy of the screen, which is updated when the film shows a change.
pub struct Picture {
    whole: Area,
    pixels: Vec<u32>,
}

impl Picture {
    /// A black picture.
    #[must_use]
    pub fn new(whole: Area) -> Self {
        Self { whole, pixels: vec![0; whole.pixels()] }
    }

    /// The smallest area that contains all pixels of `area` whose colours differ from the screen's.
    #[must_use]
    pub fn changed(&self, screen: Fetched<'_>, area: Area) -> Area {
        let mut changed = Area::EMPTY;
        for y in area.top..area.bottom {
            let (old, new) = (self.row(y, area), screen.row(y, area));
            // Most rows have not changed, and comparing whole rows is quick.
            if old == new {
                continue;
            }
            let differs = |(old, new): (&u32, &u32)| (old ^ new) & COLOURS != 0;
            let mut pairs = old.iter().zip(new);
            let Some(first) = pairs.clone().position(differs) else { continue };
            let last = pairs.rposition(differs).unwrap_or(first);
            let (left, right) = (area.left + first as u16, area.left + last as u16 + 1);
            changed = changed.with(Area { left, top: y, right, bottom: y + 1 });
        }
        changed
    }

    /// The number of pixels whose colours differ from the screen's.
    #[must_use]
    pub fn differences(&self, screen: Fetched<'_>) -> usize {
        let pairs = self.pixels.iter().zip(screen.pixels);
        pairs.filter(|(old, new)| (*old ^ *new) & COLOURS != 0).count()
    }

    /// Copy the screen's pixels inside `area`. `delta` becomes their difference from the previous ones (exclusive or),
    /// so pixels that have not changed are 0 in it.
    pub fn follow(&mut self, screen: Fetched<'_>, area: Area, delta: &mut Vec<[u8; 4]>) {
        delta.clear();
        delta.reserve(area.pixels());
        for y in area.top..area.bottom {
            let (old, new) = (self.row(y, area), screen.row(y, area));
            delta.extend(old.iter().zip(new).map(|(old, new)| ((old ^ new) & COLOURS).to_le_bytes()));
            let start = self.start(y, area);
            self.pixels[start..][..area.width()].copy_from_slice(new);
        }
    }

    fn row(&self, y: u16, area: Area) -> &[u32] {
        &self.pixels[self.start(y, area)..][..area.width()]
    }

    fn start(&self, y: u16, area: Area) -> usize {
        usize::from(y) * self.whole.width() + usize::from(area.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Area = Area { left: 0, top: 0, right: 4, bottom: 3 };

    #[test]
    fn the_area_of_a_change_is_tight_and_the_rest_of_it_is_0() {
        let mut picture = Picture::new(WHOLE);
        let mut pixels = vec![0; WHOLE.pixels()];
        pixels[5] = 0x0001_0203;
        pixels[11] = 0x0004_0506;
        let screen = Fetched { area: WHOLE, pixels: &pixels };
        let changed = picture.changed(screen, WHOLE);
        assert_eq!(changed, Area { left: 1, top: 1, right: 4, bottom: 3 });
        assert_eq!(picture.differences(screen), 2);
        let mut delta = Vec::new();
        picture.follow(screen, changed, &mut delta);
        assert_eq!(delta, [[3, 2, 1, 0], [0; 4], [0; 4], [0; 4], [0; 4], [6, 5, 4, 0]]);
        assert!(picture.changed(screen, WHOLE).is_empty());
        assert_eq!(picture.differences(screen), 0);
    }

    #[test]
    fn the_unused_byte_is_no_change() {
        let mut picture = Picture::new(WHOLE);
        let mut pixels = vec![0xff00_0000; WHOLE.pixels()];
        assert!(picture.changed(Fetched { area: WHOLE, pixels: &pixels }, WHOLE).is_empty());
        pixels[0] |= 7;
        let mut delta = Vec::new();
        picture.follow(Fetched { area: WHOLE, pixels: &pixels }, WHOLE, &mut delta);
        assert_eq!(delta[0], [7, 0, 0, 0]);
    }

    #[test]
    fn a_part_of_the_screen_is_compared_with_the_same_part_of_the_picture() {
        let mut picture = Picture::new(WHOLE);
        let part = Area { left: 1, top: 1, right: 3, bottom: 3 };
        let screen = Fetched { area: part, pixels: &[0, 0, 9, 0] };
        assert_eq!(picture.changed(screen, part), Area { left: 1, top: 2, right: 2, bottom: 3 });
        picture.follow(screen, part, &mut Vec::new());
        let mut pixels = vec![0; WHOLE.pixels()];
        pixels[9] = 9;
        assert_eq!(picture.differences(Fetched { area: WHOLE, pixels: &pixels }), 0);
    }
}
