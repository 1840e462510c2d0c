//! Blocks of IPv4 addresses, and which of them a shell takes.
//!
//! A shell takes one block for itself and for everything nested inside it, so that one route inward is
//! enough and no address is ever translated between shells. The second address of a block is the outer
//! end, the third the inner end. A nested shell takes half of what its parent's block has left: the upper
//! half, or, while that is in use, the upper half of the rest, and so on.

use std::fmt::{self, Display};
use std::net::Ipv4Addr;
use std::str::FromStr;

use crate::error::{Error, Result};

/// What outermost shells take their blocks from unless told otherwise: the range of RFC 6598, which
/// Mahimahi uses too.
pub const DEFAULT_POOL: Block = Block { base: u32::from_be_bytes([100, 64, 0, 0]), prefix: 10 };

/// The longest prefix that still holds the two ends of a shell besides the first and last address.
const SMALLEST: u8 = 30;

/// How many bits an outermost shell's block is longer than the pool: so many shells fit side by side.
const SIBLING_BITS: u8 = 8;

/// Addresses that share their first `prefix` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    base: u32,
    prefix: u8,
}

impl Block {
    /// The block of that prefix length around an address.
    #[must_use]
    pub fn around(address: Ipv4Addr, prefix: u8) -> Self {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        Self { base: address.to_bits() & mask, prefix }
    }

    /// Ones where all addresses of the block are alike.
    #[must_use]
    pub fn mask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0))
    }

    #[must_use]
    pub fn base(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base)
    }

    #[must_use]
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// The address of the outer end, where packets leave the shell.
    #[must_use]
    pub fn outer_end(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 1)
    }

    /// The address of the inner end, which the command inside has.
    #[must_use]
    pub fn inner_end(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 2)
    }

    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let shorter = self.prefix.min(other.prefix);
        Self::around(self.base(), shorter) == Self::around(other.base(), shorter)
    }

    /// Blocks an outermost shell may take from this pool, in order of preference.
    pub fn for_outermost(self) -> impl Iterator<Item = Self> {
        let prefix = self.prefix.max(20.min(self.prefix + SIBLING_BITS));
        (0..1u32 << (prefix - self.prefix))
            .map(move |index| Self { base: self.base + index * (1 << (32 - prefix)), prefix })
    }

    /// Blocks a nested shell may take from its parent's block, in order of preference.
    pub fn for_nested(self) -> impl Iterator<Item = Self> {
        (self.prefix + 1..=SMALLEST)
            .map(move |prefix| Self { base: self.base + (1 << (32 - prefix)), prefix })
    }
}

impl Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base(), self.prefix)
    }
}

impl FromStr for Block {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.split_once('/')
            .and_then(|(address, prefix)| {
                let prefix = prefix.parse().ok().filter(|prefix| (8..=SMALLEST).contains(prefix))?;
                let address = address.parse().ok()?;
                Some(Self::around(address, prefix)).filter(|block| block.base() == address)
            })
            .ok_or_else(|| {
                Error::new(format!("'{text}' is not a block of addresses; give one such as 10.64.0.0/10"))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        text.parse().unwrap()
    }

    #[test]
    fn outermost_shells_take_disjoint_blocks_of_the_pool() {
        let blocks: Vec<_> = DEFAULT_POOL.for_outermost().collect();
        assert_eq!(blocks.len(), 256);
        assert_eq!(blocks[1], block("100.64.64.0/18"));
        assert!(blocks.iter().all(|block| block.overlaps(DEFAULT_POOL)));
        assert!(!blocks[0].overlaps(blocks[1]));
        assert_eq!(block("10.1.2.0/24").for_outermost().collect::<Vec<_>>(), [block("10.1.2.0/24")]);
    }

    #[test]
    fn nested_blocks_are_disjoint_and_leave_the_parents_ends_alone() {
        let parent = block("100.64.0.0/18");
        let nested: Vec<_> = parent.for_nested().collect();
        assert_eq!(nested[0], block("100.64.32.0/19"));
        assert_eq!(nested.last(), Some(&block("100.64.0.4/30")));
        let ends = [Block::around(parent.outer_end(), 32), Block::around(parent.inner_end(), 32)];
        for (index, one) in nested.iter().enumerate() {
            assert!(one.overlaps(parent));
            assert!(ends.iter().chain(&nested[..index]).all(|other| !one.overlaps(*other)), "{one}");
        }
    }

    #[test]
    fn shells_nest_at_least_a_dozen_deep() {
        let mut block = DEFAULT_POOL.for_outermost().next().unwrap();
        for _ in 0..12 {
            block = block.for_nested().next().unwrap();
        }
        assert_eq!(block.for_nested().next(), None);
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.1/8", "10.0.0.0/31", "10.0.0.0/0", "10.0.0/8"] {
            assert!(text.parse::<Block>().is_err(), "{text}");
        }
    }
}
