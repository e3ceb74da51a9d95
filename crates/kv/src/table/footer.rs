//! The last bytes of a table, by which a reader finds the rest.
//!
//! ```text
//!  0 offset of the top index u64    8 its length u32    12 length of the properties u32
//! 16 offset of the properties u64  24 number u64        32 zero u64
//! 40 version u32 = 1               44 zero u32          48 XXH3 of bytes 0 to 47    56 magic "cairnsst"
//! ```

use cairn_codec::checksum::xxh3_64;

use super::frame::{HEADER_BYTES, Handle};
use crate::file::FileNumber;

pub(crate) const FOOTER_BYTES: usize = 64;
pub(crate) const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"cairnsst";

/// What the footer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub top: Handle,
    pub properties: Handle,
    /// The number that the table was written under.
    pub number: FileNumber,
}

/// Why a footer is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FooterError {
    Damaged(&'static str),
    /// Sound, but of this version.
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
        bytes[40..44].copy_from_slice(&VERSION.to_le_bytes());
        let checksum = xxh3_64(&bytes[..48]);
        bytes[48..56].copy_from_slice(&checksum.to_le_bytes());
        bytes[56..].copy_from_slice(MAGIC);
        bytes
    }

    /// Reads the footer of a file of `file_bytes`. The handles it gives lie within the file, in front of the footer.
    pub(crate) fn decode(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> Result<Footer, FooterError> {
        let (words, _) = bytes.as_chunks::<8>();
        let [top, lengths, properties, number, zero, version, checksum, magic] = *words else {
            return Err(FooterError::Damaged("the footer is too short"));
        };
        if magic != *MAGIC {
            return Err(FooterError::Damaged("the file does not end as a table does"));
        }
        if xxh3_64(&bytes[..48]) != u64::from_le_bytes(checksum) {
            return Err(FooterError::Damaged("the checksum of the footer is wrong"));
        }
        let version = u64::from_le_bytes(version);
        if version != u64::from(VERSION) || zero != [0; 8] {
            return Err(FooterError::Version(version as u32));
        }
        let lengths = u64::from_le_bytes(lengths);
        let footer = Footer {
            top: Handle { offset: u64::from_le_bytes(top), len: lengths as u32 },
            properties: Handle { offset: u64::from_le_bytes(properties), len: (lengths >> 32) as u32 },
            number: u64::from_le_bytes(number),
        };
        let end = file_bytes.saturating_sub(FOOTER_BYTES as u64);
        for handle in [footer.top, footer.properties] {
            if handle.end() > end || (handle.len as usize) < HEADER_BYTES {
                return Err(FooterError::Damaged("the footer points outside the file"));
            }
        }
        Ok(footer)
    }
}
