//! Frames: the format of blocks in the file.
//!
//! ```text
//! frame := checksum u64 | stored u32 | raw u32 | role u8 | compression u8 | zero u16
//!          | payload of `stored` bytes
//! ```
//!
//! `stored` and `raw` are the length of the payload in the file and after decompression. The
//! checksum is XXH3 of all bytes after it, seeded with the table's number and the frame's offset. A
//! sound block of another table, from another offset, or from an earlier use of the same disk
//! blocks does not pass.

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::compress::{
    self, CompressionDictionary, Compressor, DecompressionDictionary, Decompressor, Format,
};
use cairn_codec::lz4::{self, Lz4Compressor};

use super::block::MAX_BLOCK_BYTES;
use super::bytes::BlockBytes;
use super::options::Compression;
use crate::file::FileNumber;
use crate::{Error, Result};

/// Bytes before a payload.
pub(crate) const HEADER_BYTES: usize = 20;

/// The purpose of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    Data = 1,
    Filter = 2,
    Index = 3,
    RangeTombstones = 4,
    Dictionary = 5,
    Properties = 6,
    TopIndex = 7,
}

/// The place of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    /// Its offset in the file.
    pub offset: u64,
    /// Its length, including the header.
    pub len: u32,
}

impl Handle {
    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

const _: () =
    assert!(HEADER_BYTES == 8 + 4 + 4 + 1 + 1 + 2, "checksum, two lengths, role, compression, zeros");
const _: () = assert!(MAX_BLOCK_BYTES + HEADER_BYTES <= u32::MAX as usize, "lengths of frames have 32 bits");

const STORED: u8 = 0;
const LZ4: u8 = 1;
const SNAPPY: u8 = 2;
const ZSTD: u8 = 3;
const ZSTD_WITH_DICTIONARY: u8 = 4;

const _: () = assert!(STORED < LZ4 && LZ4 < SNAPPY && SNAPPY < ZSTD && ZSTD < ZSTD_WITH_DICTIONARY);

fn seed(number: FileNumber, offset: u64) -> u64 {
    // Odd multipliers spread both numbers over the word, so that no two offsets of one table, and
    // hardly any of two tables, have the same seed.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32)
}

/// Encodes blocks as frames.
pub(crate) struct Sealer {
    number: FileNumber,
    method: Method,
}

enum Method {
    Stored,
    Lz4(Box<Lz4Compressor>),
    Other(Compressor, u8),
}

impl Sealer {
    /// Errors: [`Error::Invalid`] for a level that zstd does not support.
    pub(crate) fn new(number: FileNumber, compression: Compression) -> Result<Self> {
        let other = |compression, code| {
            Compressor::new(compression)
                .map(|compressor| Method::Other(compressor, code))
                .map_err(|error| Error::invalid(error.to_string()))
        };
        let method = match compression {
            Compression::None => Method::Stored,
            Compression::Lz4 => Method::Lz4(Box::default()),
            Compression::Snappy => other(compress::Compression::Snappy, SNAPPY)?,
            Compression::Zstd { level, .. } => other(compress::Compression::Zstd { level }, ZSTD)?,
        };
        Ok(Sealer { number, method })
    }

    /// Compresses compressible blocks with a dictionary from here on.
    pub(crate) fn set_dictionary(&mut self, dictionary: &CompressionDictionary) -> Result<()> {
        let compressor =
            Compressor::with_dictionary(dictionary).map_err(|error| Error::invalid(error.to_string()))?;
        self.method = Method::Other(compressor, ZSTD_WITH_DICTIONARY);
        Ok(())
    }

    /// Appends the frame of `raw` at `offset` of the file to `out`.
    pub(crate) fn seal(&mut self, role: Role, raw: &[u8], offset: u64, out: &mut Vec<u8>) -> Result<Handle> {
        if raw.len() > MAX_BLOCK_BYTES {
            return Err(Error::invalid(format!(
                "a block of {} bytes exceeds the limit of {MAX_BLOCK_BYTES}",
                raw.len()
            )));
        }
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let mut compression = STORED;
        if matches!(role, Role::Data | Role::Index) {
            compression = self.compress(raw, out)?;
        }
        // Savings of less than an eighth are not worth the decompression at every read.
        if compression == STORED || out.len() - start - HEADER_BYTES > raw.len() - raw.len() / 8 {
            compression = STORED;
            out.truncate(start + HEADER_BYTES);
            out.extend_from_slice(raw);
        }
        debug_assert!(out.len() - start - HEADER_BYTES <= raw.len(), "a block became longer by compression");
        Ok(self.head(&mut out[start..], raw.len(), role, compression, offset))
    }

    /// Encodes a block that has room for the header before it, as [`Sealer::seal`] does. The frame
    /// is in `scratch` if the returned flag is true; otherwise the block is unchanged and the frame
    /// is in `framed`.
    pub(crate) fn seal_in_place(
        &mut self,
        role: Role,
        framed: &mut [u8],
        offset: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<(Handle, bool)> {
        debug_assert!(framed.len() >= HEADER_BYTES, "{} bytes have no room for the header", framed.len());
        let raw = framed.get(HEADER_BYTES..).unwrap_or_default();
        if !matches!(self.method, Method::Stored) {
            scratch.clear();
            let handle = self.seal(role, raw, offset, scratch)?;
            return Ok((handle, true));
        }
        let raw_bytes = raw.len();
        if raw_bytes > MAX_BLOCK_BYTES {
            return Err(Error::invalid(format!(
                "a block of {raw_bytes} bytes exceeds the limit of {MAX_BLOCK_BYTES}"
            )));
        }
        Ok((self.head(framed, raw_bytes, role, STORED, offset), false))
    }

    /// Fills in the header of the frame of a block with `raw_bytes` after decompression.
    fn head(&self, frame: &mut [u8], raw_bytes: usize, role: Role, compression: u8, offset: u64) -> Handle {
        assert!(frame.len() >= HEADER_BYTES, "a frame of {} bytes has no header", frame.len());
        debug_assert!(frame.len() <= MAX_BLOCK_BYTES + HEADER_BYTES, "a frame of {} bytes", frame.len());
        let stored = (frame.len() - HEADER_BYTES) as u32;
        debug_assert!(raw_bytes <= MAX_BLOCK_BYTES, "a block of {raw_bytes} bytes");
        debug_assert!(
            compression != STORED || stored as usize == raw_bytes,
            "{stored} bytes are stored of {raw_bytes}"
        );
        frame[8..12].copy_from_slice(&stored.to_le_bytes());
        frame[12..16].copy_from_slice(&(raw_bytes as u32).to_le_bytes());
        frame[16] = role as u8;
        frame[17] = compression;
        frame[18..HEADER_BYTES].fill(0);
        let checksum = xxh3_64_seeded(&frame[8..], seed(self.number, offset));
        frame[..8].copy_from_slice(&checksum.to_le_bytes());
        debug_assert!(
            Header::check(frame, self.number, offset, role).is_ok(),
            "a frame of role {role:?} that would not be read back"
        );
        Handle { offset, len: frame.len() as u32 }
    }

    fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<u8> {
        let (code, done) = match &mut self.method {
            Method::Stored => return Ok(STORED),
            Method::Lz4(compressor) => (LZ4, compressor.compress(raw, out)),
            Method::Other(compressor, code) => (*code, compressor.compress(raw, out)),
        };
        done.map_err(|error| Error::invalid(error.to_string()))?;
        Ok(code)
    }
}

/// Corrects the checksum of a frame, for fuzzing the decoders behind it.
pub(super) fn reseal(frame: &mut [u8], number: FileNumber, offset: u64) {
    if let Some((checksum, rest)) = frame.split_first_chunk_mut::<8>() {
        *checksum = xxh3_64_seeded(rest, seed(number, offset)).to_le_bytes();
    }
}

/// The header of a frame whose checksum matches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    raw: u32,
    compression: u8,
}

impl Header {
    /// Returns true when the payload is the uncompressed block.
    pub(crate) fn is_stored(self) -> bool {
        self.compression == STORED
    }

    /// Validates a frame: length, checksum, role.
    ///
    /// Errors: a description of the damage.
    pub(crate) fn check(
        frame: &[u8],
        number: FileNumber,
        offset: u64,
        role: Role,
    ) -> std::result::Result<Header, String> {
        let Some((header, payload)) = frame.split_first_chunk::<HEADER_BYTES>() else {
            return Err(format!("{} bytes are too short for a block", frame.len()));
        };
        let (
            [
                c0,
                c1,
                c2,
                c3,
                c4,
                c5,
                c6,
                c7,
                s0,
                s1,
                s2,
                s3,
                r0,
                r1,
                r2,
                r3,
                found_role,
                compression,
                zero0,
                zero1,
            ],
            body,
        ) = (*header, &frame[8..]);
        let checksum = u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]);
        let stored = u32::from_le_bytes([s0, s1, s2, s3]);
        let raw = u32::from_le_bytes([r0, r1, r2, r3]);
        if stored as usize != payload.len() {
            return Err(format!("a block of {} bytes says that it has {stored}", payload.len()));
        }
        if xxh3_64_seeded(body, seed(number, offset)) != checksum {
            return Err("the checksum of a block is wrong".to_owned());
        }
        if found_role != role as u8 || zero0 != 0 || zero1 != 0 {
            return Err(format!("a block has role {found_role}, expected {role:?}"));
        }
        Ok(Header { raw, compression })
    }

    /// Decompresses a payload. Allocates no more than that many compressed bytes can expand to.
    pub(crate) fn unpack(
        self,
        payload: &[u8],
        dictionary: Option<&DecompressionDictionary>,
    ) -> std::result::Result<BlockBytes, String> {
        let possible = match self.compression {
            STORED => payload.len() as u64,
            LZ4 => lz4::expansion_max(payload.len()),
            SNAPPY => compress::expansion_max(Format::Snappy, payload.len()),
            ZSTD | ZSTD_WITH_DICTIONARY => compress::expansion_max(Format::Zstd, payload.len()),
            other => return Err(format!("compression {other} is not one of 0 to 4")),
        };
        let raw = self.raw as usize;
        if raw > MAX_BLOCK_BYTES || u64::from(self.raw) > possible {
            return Err(format!("{} compressed bytes cannot hold {raw}", payload.len()));
        }
        let mut bytes = BlockBytes::zeroed(0, raw);
        let done = match (self.compression, dictionary) {
            (STORED, _) if raw == payload.len() => {
                bytes.bytes_mut().copy_from_slice(payload);
                Ok(raw)
            }
            (STORED, _) => Ok(payload.len()),
            (LZ4, _) => lz4::decompress(payload, bytes.bytes_mut()),
            (SNAPPY, _) => {
                Decompressor::local(|local| local.decompress(Format::Snappy, payload, bytes.bytes_mut()))
            }
            (ZSTD, _) => {
                Decompressor::local(|local| local.decompress(Format::Zstd, payload, bytes.bytes_mut()))
            }
            (_, Some(dictionary)) => {
                Decompressor::local(|local| local.decompress_with(dictionary, payload, bytes.bytes_mut()))
            }
            (_, None) => return Err("a block needs a dictionary that the table does not have".to_owned()),
        };
        match done {
            Ok(len) if len == raw => Ok(bytes),
            Ok(len) => Err(format!("a block decompresses to {len} bytes, expected {raw}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("number", &self.number).finish_non_exhaustive()
    }
}
