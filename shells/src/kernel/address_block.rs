//! Blocks of addresses, and the choice of a shell's block.
//!
//! A shell takes one block for itself and for everything nested inside it, so that one route inward is enough and no
//! address is ever translated between shells. The second address of a block is the outer end, the third the inner end.
//! A nested shell takes half of the remaining part of its parent's block: the upper half, or, while that is in use, the
//! upper half of the rest, and so on.
//!
//! Blocks consist of IPv4 addresses. Each has a corresponding block of IPv6 addresses that end in these IPv4 addresses,
//! so blocks are disjoint or nested in both families alike.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::error::{Error, Result};

/// The default pool of blocks for outermost shells: the range of RFC 6598, which Mahimahi uses too.
pub const DEFAULT_POOL: AddressBlock = AddressBlock { base: u32::from_be_bytes([100, 64, 0, 0]), prefix: 10 };

/// The first bits of IPv6 addresses: in the range for local use, with 40 bits that were drawn at random once (RFC
/// 4193).
const IPV6_START: u128 = 0xfd4d_eadf_5ee2 << 80;

/// The longest prefix that still holds the two ends of a shell in addition to the first and last address.
const SMALLEST: u8 = 30;

/// The prefix of an outermost shell's block is longer than the pool's by this many bits: 256 shells fit side by side.
const SIBLING_BITS: u8 = 8;

/// A range of addresses, of either family: all that share their first `length` bits with one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub address: IpAddr,
    pub length: u8,
}

impl Prefix {
    /// Only this address.
    #[must_use]
    pub fn only(address: IpAddr) -> Self {
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// The address in network byte order.
    #[must_use]
    pub fn octets(self) -> Vec<u8> {
        octets(self.address)
    }

    /// The mask: ones for the bits that all the addresses share.
    #[must_use]
    pub fn mask(self) -> Vec<u8> {
        let bit = |index: usize| if index < usize::from(self.length) { 0x80 >> (index % 8) } else { 0 };
        (0..self.octets().len()).map(|octet| (8 * octet..8 * octet + 8).map(bit).sum()).collect()
    }
}

/// An address in network byte order.
#[must_use]
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

impl Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The two families of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// Addresses that share their first `prefix` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressBlock {
    base: u32,
    prefix: u8,
}

impl AddressBlock {
    /// The block of that prefix length around an address.
    #[must_use]
    pub fn around(address: Ipv4Addr, prefix: u8) -> Self {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        Self { base: address.to_bits() & mask, prefix }
    }

    #[must_use]
    pub fn base(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base)
    }

    #[must_use]
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// The block's addresses in this family.
    #[must_use]
    pub fn addresses(self, family: Family) -> Prefix {
        let length = match family {
            Family::V4 => self.prefix,
            Family::V6 => 96 + self.prefix,
        };
        Prefix { address: in_family(self.base, family), length }
    }

    /// The address of the outer end, where packets leave the shell.
    #[must_use]
    pub fn outer_end(self, family: Family) -> IpAddr {
        in_family(self.base + 1, family)
    }

    /// The address of the inner end, where the command runs.
    #[must_use]
    pub fn inner_end(self, family: Family) -> IpAddr {
        in_family(self.base + 2, family)
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

/// The address in this family for an IPv4 address.
fn in_family(bits: u32, family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(bits).into(),
        Family::V6 => Ipv6Addr::from_bits(IPV6_START | u128::from(bits)).into(),
    }
}

impl Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base(), self.prefix)
    }
}

impl FromStr for AddressBlock {
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

    fn block(text: &str) -> AddressBlock {
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
        let ends = [1, 2].map(|end| AddressBlock { base: parent.base + end, prefix: 32 });
        for (index, one) in nested.iter().enumerate() {
            assert!(one.overlaps(parent));
            assert!(ends.iter().chain(&nested[..index]).all(|other| !one.overlaps(*other)), "{one}");
        }
    }

    #[test]
    fn ipv6_addresses_end_in_the_ipv4_ones() {
        let addresses = block("100.64.64.0/18").addresses(Family::V6);
        let IpAddr::V6(base) = addresses.address else { panic!("{addresses} is not IPv6") };
        assert_eq!((base.segments()[0] >> 8, base.segments()[6], base.segments()[7]), (0xfd, 0x6440, 0x4000));
        assert_eq!(addresses.length, 114);
        assert_eq!(addresses.mask()[12..], [0xff, 0xff, 0xc0, 0]);
        assert_eq!(Prefix::only(base.into()).mask(), [0xff; 16]);
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
            assert!(text.parse::<AddressBlock>().is_err(), "{text}");
        }
    }
}
