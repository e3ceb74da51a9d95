//! Compression with reusable working memory.

use std::fmt;

use zstd::zstd_safe::{self, CCtx};

use super::dictionary::CompressionDictionary;
use super::{Compression, Format};
use crate::{Error, Result};

/// Compresses one block after another. Owns the working memory, so reuse it, one per thread:
/// setting up a zstd context takes about 100 KiB.
pub struct Compressor {
    method: Method,
}

enum Method {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd { context: CCtx<'static>, level: i32 },
    ZstdWithDictionary { context: CCtx<'static>, dictionary: CompressionDictionary },
}

impl Compressor {
    /// Creates a compressor without a dictionary.
    ///
    /// Errors: [`Error::Level`] for an invalid zstd level, [`Error::Compress`] when memory runs
    /// out.
    pub fn new(compression: Compression) -> Result<Self> {
        let method = match compression {
            Compression::None => Method::None,
            Compression::Snappy => Method::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Zstd { level } => Method::Zstd { context: context()?, level: check_level(level)? },
        };
        Ok(Compressor { method })
    }

    /// Creates a zstd compressor whose blocks need `dictionary` for decompression. Cheap, since the
    /// digested tables are shared.
    ///
    /// Errors: [`Error::Compress`] when memory runs out.
    pub fn with_dictionary(dictionary: &CompressionDictionary) -> Result<Self> {
        let method = Method::ZstdWithDictionary { context: context()?, dictionary: dictionary.clone() };
        Ok(Compressor { method })
    }

    /// Returns the format of its blocks.
    pub fn format(&self) -> Format {
        match self.method {
            Method::None => Format::None,
            Method::Snappy(_) => Format::Snappy,
            Method::Zstd { .. } | Method::ZstdWithDictionary { .. } => Format::Zstd,
        }
    }

    /// Appends the compressed form of `input` to `out` and returns its length. On an error, `out`
    /// is unchanged.
    ///
    /// Errors: [`Error::Compress`]; snappy accepts at most 4 GiB - 1 per block.
    pub fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize> {
        let start = out.len();
        let done = self.append(input, out);
        debug_assert!(out.len() == start + done.as_ref().copied().unwrap_or(0), "{done:?} from {start}");
        done
    }

    fn append(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize> {
        let start = out.len();
        match &mut self.method {
            Method::None => {
                out.extend_from_slice(input);
                Ok(input.len())
            }
            Method::Snappy(encoder) => {
                out.resize(start + snap::raw::max_compress_len(input.len()), 0);
                let done = encoder.compress(input, &mut out[start..]);
                out.truncate(start + done.as_ref().copied().unwrap_or(0));
                done.map_err(|error| failed("snappy", input, error.to_string()))
            }
            Method::Zstd { context, level } => {
                out.reserve(zstd_safe::compress_bound(input.len()));
                let done = context.compress(&mut at_end(out), input, *level);
                zstd_result(done, input)
            }
            Method::ZstdWithDictionary { context, dictionary } => {
                out.reserve(zstd_safe::compress_bound(input.len()));
                let done = context.compress_using_cdict(&mut at_end(out), input, &dictionary.tables);
                zstd_result(done, input)
            }
        }
    }
}

/// Returns a cursor with which zstd appends to `out`, into its spare capacity.
pub(super) fn at_end(out: &mut Vec<u8>) -> std::io::Cursor<&mut Vec<u8>> {
    let mut cursor = std::io::Cursor::new(out);
    cursor.set_position(cursor.get_ref().len() as u64);
    cursor
}

fn context() -> Result<CCtx<'static>> {
    CCtx::try_create().ok_or_else(|| failed("zstd", &[], "no memory for a context".to_owned()))
}

/// Checks that zstd supports the level, and returns it.
pub(super) fn check_level(level: i32) -> Result<i32> {
    let (min, max) = (-7, zstd_safe::max_c_level());
    debug_assert!(min < 0 && max >= 19, "zstd's levels are {min} to {max}");
    if (min..=max).contains(&level) { Ok(level) } else { Err(Error::Level { level, min, max }) }
}

fn zstd_result(done: zstd_safe::SafeResult, input: &[u8]) -> Result<usize> {
    done.map_err(|code| failed("zstd", input, zstd_safe::get_error_name(code).to_owned()))
}

fn failed(format: &'static str, input: &[u8], what: String) -> Error {
    Error::Compress { format, len: input.len(), what }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("format", &self.format()).finish_non_exhaustive()
    }
}
