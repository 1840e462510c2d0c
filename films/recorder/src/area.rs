//! Rectangles of the screen.

/// A rectangle, in pixels. The pixels at `right` and at `bottom` do not belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    pub left: u16,
    pub top: u16,
    pub right: u16,
    pub bottom: u16,
}

impl Area {
    pub const EMPTY: Self = Self { left: 0, top: 0, right: 0, bottom: 0 };

    /// The whole area of a screen or a film of this size.
    #[must_use]
    pub fn whole(width: u16, height: u16) -> Self {
        Self { left: 0, top: 0, right: width, bottom: height }
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.left >= self.right || self.top >= self.bottom
    }

    #[must_use]
    pub fn width(self) -> usize {
        self.right.saturating_sub(self.left).into()
    }

    #[must_use]
    pub fn height(self) -> usize {
        self.bottom.saturating_sub(self.top).into()
    }

    /// The number of its pixels.
    #[must_use]
    pub fn pixels(self) -> usize {
        self.width() * self.height()
    }

    /// The smallest area that contains both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self {
                left: self.left.min(other.left),
                top: self.top.min(other.top),
                right: self.right.max(other.right),
                bottom: self.bottom.max(other.bottom),
            },
        }
    }

    /// The part of this area that is inside `other`.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let part = Self {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        };
        if part.is_empty() { Self::EMPTY } else { part }
    }

    /// Whether all of `other` is inside this area.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        other.is_empty() || self.with(other) == self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Area = Area { left: 10, top: 20, right: 30, bottom: 40 };
    const BESIDE: Area = Area { left: 30, top: 20, right: 31, bottom: 21 };

    #[test]
    fn edges_on_the_right_and_at_the_bottom_do_not_belong_to_an_area() {
        assert_eq!((BOX.width(), BOX.height(), BOX.pixels()), (20, 20, 400));
        assert!(BOX.within(BESIDE).is_empty());
        assert!(!BOX.contains(BESIDE));
        assert_eq!(BOX.with(BESIDE), Area { right: 31, ..BOX });
    }

    #[test]
    fn nothing_is_inside_everything_and_changes_nothing() {
        assert!(BOX.contains(Area::EMPTY) && Area::EMPTY.contains(Area::EMPTY));
        assert_eq!((BOX.with(Area::EMPTY), Area::EMPTY.with(BOX)), (BOX, BOX));
        assert!(!Area::EMPTY.contains(BOX));
    }

    #[test]
    fn the_part_within_a_screen_is_cut_off_at_its_edges() {
        let screen = Area::whole(25, 100);
        assert_eq!(BOX.within(screen), Area { right: 25, ..BOX });
        assert_eq!(Area { left: 30, top: 0, right: 40, bottom: 9 }.within(screen), Area::EMPTY);
    }
}
