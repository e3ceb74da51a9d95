//! What the pool keeps in a page.
//!
//! ```text
//!   0        8       16                                 page size
//!   | check  | LSN   | payload ...                      |     little endian
//! ```
//!
//! `check` is XXH3 of everything after it, seeded with the page's number: a sound page in the wrong
//! place is seen as well. A page of zeros was never written.

use cairn_codec::checksum::xxh3_64_seeded;

use crate::write_ahead::Lsn;

/// Bytes of a page that are the pool's, with [`Format::Checked`].
pub const PAGE_HEADER_LEN: usize = 16;

/// What is in the pages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A check and the number of the last log record, then the payload.
    #[default]
    Checked,
    /// The payload and nothing else: no damage is found, and the pool knows no log position for
    /// pages that it has read.
    Raw,
}

impl Format {
    /// Where the payload begins.
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

/// Puts the check and the log position into the header of a page that is written as it is in the
/// file. The page has at least [`PAGE_HEADER_LEN`] bytes; of a shorter one, what there is.
pub fn stamp(bytes: &mut [u8], page: u32, lsn: Lsn) {
    if let Some(place) = bytes.get_mut(8..16) {
        place.copy_from_slice(&lsn.0.to_le_bytes());
    }
    let check = check(bytes, page);
    if let Some(place) = bytes.get_mut(..8) {
        place.copy_from_slice(&check.to_le_bytes());
    }
}

/// Checks a page as it is in the file and returns its log position. Errors: what was found and what
/// was expected.
pub fn verify(bytes: &[u8], page: u32) -> Result<Lsn, String> {
    let (found, expected) = (word(bytes, 0), check(bytes, page));
    if found == expected || is_zero(bytes) {
        return Ok(Lsn(word(bytes, 8)));
    }
    Err(format!("its check is {found:#018x}, its bytes give {expected:#018x}"))
}

fn is_zero(bytes: &[u8]) -> bool {
    // The first words tell in nearly every case.
    word(bytes, 0) == 0 && bytes.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a page is believed where it was stamped, new pages are as well, and any flipped bit,
    /// cut or other place is seen.
    #[test]
    fn damage_is_seen() {
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
            // A tail of zeros may be what was there.
            assert!(verify(&torn, 7).is_err() || torn == bytes, "cut at {cut}");
        }
        assert_eq!((Format::Checked.payload_offset(), Format::Raw.payload_offset()), (16, 0));
    }
}
