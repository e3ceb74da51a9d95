//! The header that the pool keeps in a page.
//!
//! ```text
//!   0        8       16                                 page size
//!   | check  | LSN   | payload ...                      |     little endian
//! ```
//!
//! `check` is the XXH3 checksum of everything after it, seeded with the page number, so that a
//! sound page in the wrong place is detected as well. A page of zeros was never written.

use cairn_codec::checksum::xxh3_64_seeded;

use crate::write_ahead::Lsn;

/// The size of the pool's page header with [`Format::Checked`].
pub const PAGE_HEADER_LEN: usize = 16;

/// The format of a file's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A checksum and the LSN of the last change, followed by the payload.
    #[default]
    Checked,
    /// Only the payload. Damage is not detected, and the LSN of a page that was read is unknown.
    Raw,
}

const _: () = assert!(PAGE_HEADER_LEN == 2 * size_of::<u64>());

impl Format {
    /// Returns the offset of the payload.
    #[inline]
    pub const fn payload_offset(self) -> usize {
        match self {
            Format::Checked => PAGE_HEADER_LEN,
            Format::Raw => 0,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn check(bytes: &[u8], page: u32) -> u64 {
    xxh3_64_seeded(bytes.get(8..).unwrap_or_default(), u64::from(page))
}

/// Stores checksum and LSN in the header of a page in its on-disk form. A page has at least
/// [`PAGE_HEADER_LEN`] bytes; of a shorter slice, the header fields that fit are set.
pub fn stamp(bytes: &mut [u8], page: u32, lsn: Lsn) {
    if let Some(place) = bytes.get_mut(8..16) {
        place.copy_from_slice(&lsn.0.to_le_bytes());
    }
    let check = check(bytes, page);
    if let Some(place) = bytes.get_mut(..8) {
        place.copy_from_slice(&check.to_le_bytes());
    }
    debug_assert!(
        bytes.len() < PAGE_HEADER_LEN || verify(bytes, page) == Ok(lsn),
        "page {page} does not pass its own check"
    );
}

/// Verifies a page in its on-disk form and returns its LSN. Errors: the found and the expected
/// checksum.
pub fn verify(bytes: &[u8], page: u32) -> Result<Lsn, String> {
    let (found, expected) = (word(bytes, 0), check(bytes, page));
    if found == expected || is_zero(bytes) {
        return Ok(Lsn(word(bytes, 8)));
    }
    Err(format!("stored checksum {found:#018x}, computed {expected:#018x}"))
}

fn is_zero(bytes: &[u8]) -> bool {
    // The first word decides in nearly every case.
    word(bytes, 0) == 0 && bytes.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a page is accepted where it was stamped, and a page of zeros everywhere; any flipped
    /// bit, truncation or wrong place is detected.
    #[test]
    fn damage_is_detected() {
        let mut bytes: Vec<u8> = (0..512).map(|at| at as u8).collect();
        stamp(&mut bytes, 7, Lsn(99));
        assert_eq!(verify(&bytes, 7), Ok(Lsn(99)));
        assert_eq!(verify(&[0; 512], 7), Ok(Lsn::NONE));
        assert!(verify(&bytes, 8).is_err());
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&bytes, 7).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for cut in 1..bytes.len() {
            let mut torn = bytes.clone();
            torn[cut..].fill(0);
            // The original tail may have been zeros.
            assert!(verify(&torn, 7).is_err() || torn == bytes, "cut at {cut}");
        }
        assert_eq!((Format::Checked.payload_offset(), Format::Raw.payload_offset()), (16, 0));
    }
}
