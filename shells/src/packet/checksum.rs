//! The Internet checksum (RFC 1071).

/// One's complement sum of 16-bit words, not complemented; an odd last byte counts as the high one.
#[must_use]
pub fn sum(parts: &[&[u8]]) -> u16 {
    let mut total = 0u64;
    for part in parts {
        for word in part.chunks(2) {
            total += u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
        }
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(sum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), 0xddf2);
    }
}
