//! The footer: the last bytes of a table, from which a reader finds the rest.
//!
//! ```text
//!  0 offset of the top index u64     8 its length u32    12 length of the properties u32
//! 16 offset of the properties u64   24 number u64        32 XXH3 of the file before the footer
//! 40 version u32 = 2                44 zero u32          48 XXH3 of bytes 0 to 47
//! 56 magic "cairnsst"
//! ```
//!
//! The checksum at 48 therefore covers the whole file: to recognize a table, it suffices to compare
//! this checksum. Version 1 had a zero at 32.

use cairn_codec::checksum::xxh3_64;

use super::frame::{HEADER_BYTES, Handle};
use crate::file::FileNumber;

pub(crate) const FOOTER_BYTES: usize = 64;
/// The version that is written. [`Footer::decode`] chooses the reader of each version.
pub(crate) const VERSION: u32 = 2;
const MAGIC: &[u8; 8] = b"cairnsst";

const _: () = assert!(FOOTER_BYTES == 8 * 8, "eight words");
const _: () = assert!(48 + 8 + MAGIC.len() == FOOTER_BYTES, "the fields, their checksum, magic");

/// The content of the footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub top: Handle,
    pub properties: Handle,
    /// The number under which the table was written.
    pub number: FileNumber,
    /// XXH3 of everything before the footer; 0 in version 1, which does not store it.
    pub body: u64,
}

/// The reason why a footer is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FooterError {
    Damaged(&'static str),
    /// Sound, but of this unsupported version.
    Version(u32),
}

impl Footer {
    pub(crate) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        bytes[..8].copy_from_slice(&self.top.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.top.len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.properties.len.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.properties.offset.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.body.to_le_bytes());
        bytes[40..44].copy_from_slice(&VERSION.to_le_bytes());
        let checksum = xxh3_64(&bytes[..48]);
        bytes[48..56].copy_from_slice(&checksum.to_le_bytes());
        bytes[56..].copy_from_slice(MAGIC);
        debug_assert_eq!(Footer::sum_of(&bytes), checksum, "the checksum is in word 6");
        bytes
    }

    /// Returns the checksum in a footer, which covers the whole table.
    pub(crate) fn sum_of(bytes: &[u8; FOOTER_BYTES]) -> u64 {
        let (words, _) = bytes.as_chunks::<8>();
        words.get(6).map_or(0, |sum| u64::from_le_bytes(*sum))
    }

    /// Decodes the footer of a file of `file_bytes`. The handles in the result lie within the file,
    /// before the footer.
    pub(crate) fn decode(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> Result<Footer, FooterError> {
        let (words, _) = bytes.as_chunks::<8>();
        let [top, lengths, properties, number, body, version, checksum, magic] = *words else {
            return Err(FooterError::Damaged("the footer is too short"));
        };
        if magic != *MAGIC {
            return Err(FooterError::Damaged("bad magic at the end of the file"));
        }
        if xxh3_64(&bytes[..48]) != u64::from_le_bytes(checksum) {
            return Err(FooterError::Damaged("the checksum of the footer is wrong"));
        }
        let fields = [top, lengths, properties, number, body].map(u64::from_le_bytes);
        let footer = match u64::from_le_bytes(version) {
            1 => Footer::of_version_1(fields)?,
            2 => Footer::of_version_2(fields),
            other => return Err(FooterError::Version(other as u32)),
        };
        let end = file_bytes.saturating_sub(FOOTER_BYTES as u64);
        for handle in [footer.top, footer.properties] {
            if handle.end() > end || (handle.len as usize) < HEADER_BYTES {
                return Err(FooterError::Damaged("the footer points outside the file"));
            }
        }
        Ok(footer)
    }

    /// Decodes the fields of version 1, which does not have the checksum of the file.
    fn of_version_1(fields: [u64; 5]) -> Result<Footer, FooterError> {
        let footer = Footer::of_version_2(fields);
        if footer.body == 0 { Ok(footer) } else { Err(FooterError::Damaged("version 1 has a zero at 32")) }
    }

    fn of_version_2([top, lengths, properties, number, body]: [u64; 5]) -> Footer {
        Footer {
            top: Handle { offset: top, len: lengths as u32 },
            properties: Handle { offset: properties, len: (lengths >> 32) as u32 },
            number,
            body,
        }
    }
}
