//! Decompression with reusable working memory and a hard bound on the output.

use std::cell::RefCell;
use std::fmt;

use zstd::zstd_safe::{self, DCtx};

use super::Format;
use super::compressor::at_end;
use super::dictionary::DecompressionDictionary;
use crate::{Error, Result};

/// The maximum output of one zstd block, in bytes. A block takes at least four bytes of input (RFC
/// 8878, 3.1.1.2).
const ZSTD_BLOCK_BYTES_MAX: u64 = 128 << 10;
const _: () = assert!(ZSTD_BLOCK_BYTES_MAX.is_power_of_two());

thread_local! {
    static LOCAL: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// Decompresses blocks of any [`Format`]. Owns the working memory (about 100 KiB for zstd,
/// allocated at the first zstd block), so reuse it. One per thread serves any number of files and
/// dictionaries.
#[derive(Default)]
pub struct Decompressor {
    zstd: Option<DCtx<'static>>,
}

impl Decompressor {
    /// Creates a decompressor without allocating.
    pub fn new() -> Self {
        Decompressor::default()
    }

    /// Runs `work` with the calling thread's own decompressor. Not reentrant: a nested call gets a
    /// new one.
    pub fn local<T>(work: impl FnOnce(&mut Decompressor) -> T) -> T {
        LOCAL.with(|local| match local.try_borrow_mut() {
            Ok(mut decompressor) => work(&mut decompressor),
            Err(_) => work(&mut Decompressor::new()),
        })
    }

    /// Decompresses the block `input` into the front of `output` and returns the number of bytes.
    ///
    /// Errors: [`Error::TooLarge`] when the block does not fit `output`, [`Error::Decompress`] when
    /// it is invalid. The content of `output` is then unspecified.
    pub fn decompress(&mut self, format: Format, input: &[u8], output: &mut [u8]) -> Result<usize> {
        match format {
            Format::None => {
                let room = output.len();
                let target = output.get_mut(..input.len()).ok_or_else(|| too_large(input.len(), room))?;
                target.copy_from_slice(input);
                Ok(input.len())
            }
            Format::Snappy => {
                snappy_len(input, output.len())?;
                snap::raw::Decoder::new()
                    .decompress(input, output)
                    .map_err(|error| damaged("snappy", input, error.to_string()))
            }
            Format::Zstd => {
                zstd_len(input, output.len())?;
                let done = self.context()?.decompress(output, input);
                zstd_result(done, input)
            }
        }
    }

    /// Like [`Decompressor::decompress`], for a zstd block compressed with `dictionary`.
    pub fn decompress_with(
        &mut self,
        dictionary: &DecompressionDictionary,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize> {
        zstd_len(input, output.len())?;
        let done = self.context()?.decompress_using_ddict(output, input, &dictionary.tables);
        zstd_result(done, input)
    }

    /// Appends the decompressed content of the block `input` to `out`, at most `limit` bytes, and
    /// returns the number of bytes. On an error, `out` is unchanged.
    ///
    /// Allocates at most the smallest of `limit`, the length that the block claims, and the maximum
    /// expansion of `input`.
    pub fn append(&mut self, format: Format, input: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<usize> {
        let start = out.len();
        let done = self.append_unchecked(format, input, out, limit);
        debug_assert!(out.len() == start + done.as_ref().copied().unwrap_or(0), "{done:?} from {start}");
        debug_assert!(out.len() - start <= limit, "{} bytes, at most {limit}", out.len() - start);
        done
    }

    fn append_unchecked(
        &mut self,
        format: Format,
        input: &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<usize> {
        let start = out.len();
        match format {
            Format::None => {
                if input.len() > limit {
                    return Err(too_large(input.len(), limit));
                }
                out.extend_from_slice(input);
                Ok(input.len())
            }
            Format::Snappy => {
                let len = snappy_len(input, limit)?;
                out.resize(start + len, 0);
                let done = snap::raw::Decoder::new().decompress(input, &mut out[start..]);
                out.truncate(start + done.as_ref().copied().unwrap_or(0));
                done.map_err(|error| damaged("snappy", input, error.to_string()))
            }
            Format::Zstd => {
                let len = zstd_len(input, limit)?;
                let context = self.context()?;
                append_zstd(input, out, len, |out| context.decompress(out, input))
            }
        }
    }

    /// Like [`Decompressor::append`], for a zstd block compressed with `dictionary`.
    pub fn append_with(
        &mut self,
        dictionary: &DecompressionDictionary,
        input: &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<usize> {
        let len = zstd_len(input, limit)?;
        let context = self.context()?;
        append_zstd(input, out, len, |out| context.decompress_using_ddict(out, input, &dictionary.tables))
    }

    fn context(&mut self) -> Result<&mut DCtx<'static>> {
        if self.zstd.is_none() {
            self.zstd = DCtx::try_create();
        }
        self.zstd.as_mut().ok_or_else(|| damaged("zstd", &[], "no memory for a context".to_owned()))
    }
}

fn append_zstd(
    input: &[u8],
    out: &mut Vec<u8>,
    len: usize,
    run: impl FnOnce(&mut std::io::Cursor<&mut Vec<u8>>) -> zstd_safe::SafeResult,
) -> Result<usize> {
    debug_assert!(len as u64 <= expansion_max(Format::Zstd, input.len()), "{len} of {}", input.len());
    let start = out.len();
    out.reserve(len);
    let done = zstd_result(run(&mut at_end(out)), input);
    // The vector may have had more capacity than `len`. A block that used it decompresses to more
    // than its header claims.
    let done = done.and_then(|used| if used > len { Err(too_large(used, len)) } else { Ok(used) });
    out.truncate(start + done.as_ref().copied().unwrap_or(0));
    debug_assert!(out.len() - start <= len, "{} bytes, at most {len}", out.len() - start);
    done
}

/// Returns the maximum decompressed size of `len` bytes of `format`.
///
/// This bounds the length that a stored block may claim, so that a corrupted one cannot make a
/// reader allocate arbitrary amounts.
pub fn expansion_max(format: Format, len: usize) -> u64 {
    let len = len as u64;
    match format {
        Format::None => len,
        // The best-compressing element is a copy of 64 bytes in 3.
        Format::Snappy => len.saturating_mul(22),
        Format::Zstd => (len / 4).saturating_mul(ZSTD_BLOCK_BYTES_MAX),
    }
}

/// Returns the length that a snappy block claims, if it is within both bounds.
fn snappy_len(input: &[u8], limit: usize) -> Result<usize> {
    let claimed =
        snap::raw::decompress_len(input).map_err(|error| damaged("snappy", input, error.to_string()))?;
    check_claim(Format::Snappy, input, claimed as u64, limit)
}

/// Returns the length that a zstd frame claims, or the bound if it claims none.
fn zstd_len(input: &[u8], limit: usize) -> Result<usize> {
    match zstd_safe::get_frame_content_size(input) {
        Ok(Some(claimed)) => check_claim(Format::Zstd, input, claimed, limit),
        Ok(None) => Ok(limit.min(usize::try_from(expansion_max(Format::Zstd, input.len())).unwrap_or(limit))),
        Err(_) => Err(damaged("zstd", input, "no valid frame header".to_owned())),
    }
}

fn check_claim(format: Format, input: &[u8], claimed: u64, limit: usize) -> Result<usize> {
    let limit = expansion_max(format, input.len()).min(limit as u64);
    match usize::try_from(claimed) {
        Ok(len) if claimed <= limit => {
            debug_assert!(len as u64 <= expansion_max(format, input.len()));
            Ok(len)
        }
        _ => Err(Error::TooLarge { claimed, limit }),
    }
}

fn zstd_result(done: zstd_safe::SafeResult, input: &[u8]) -> Result<usize> {
    done.map_err(|code| damaged("zstd", input, zstd_safe::get_error_name(code).to_owned()))
}

fn damaged(format: &'static str, input: &[u8], what: String) -> Error {
    Error::Decompress { format, len: input.len(), what }
}

fn too_large(claimed: usize, limit: usize) -> Error {
    Error::TooLarge { claimed: claimed as u64, limit: limit as u64 }
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").field("zstd", &self.zstd.is_some()).finish()
    }
}
