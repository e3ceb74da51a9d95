//! zstd dictionaries: the common content of many small values, trained once and shared.
//!
//! A value of a few dozen bytes has almost nothing to refer back to. A dictionary supplies that:
//! bytes that the samples share, and statistics of their symbols. Writer and reader need the same
//! dictionary.

use std::fmt;
use std::sync::Arc;

use zstd::zstd_safe::{self, CDict, DDict};

use super::compressor::check_level;
use crate::{Error, Result};

/// The magic number of a dictionary. zstd accepts any other bytes as raw content to refer back to.
const MAGIC: [u8; 4] = 0xec30_a437_u32.to_le_bytes();

/// A dictionary in its stored form.
#[derive(Clone, PartialEq, Eq)]
pub struct Dictionary {
    bytes: Arc<[u8]>,
}

impl Dictionary {
    /// Trains a dictionary of at most `max_bytes` from `samples`.
    ///
    /// zstd recommends samples of about 100 times the size of the dictionary, and 100 KiB as a
    /// reasonable dictionary for many small values. Equal samples give equal dictionaries. Costs a
    /// few seconds for 10 MB of samples.
    ///
    /// Errors: [`Error::Dictionary`] when there are too few samples, or they have nothing in
    /// common.
    pub fn train<S: AsRef<[u8]>>(samples: &[S], max_bytes: usize) -> Result<Self> {
        let total = samples.iter().map(|sample| sample.as_ref().len()).sum();
        let mut joined = Vec::with_capacity(total);
        let mut lengths = Vec::with_capacity(samples.len());
        for sample in samples {
            joined.extend_from_slice(sample.as_ref());
            lengths.push(sample.as_ref().len());
        }
        debug_assert!(joined.len() == total && lengths.iter().sum::<usize>() == total);
        let mut bytes = Vec::with_capacity(max_bytes);
        match zstd_safe::train_from_buffer(&mut bytes, &joined, &lengths) {
            Ok(len) => {
                debug_assert!(
                    len == bytes.len() && bytes.starts_with(&MAGIC),
                    "{len} bytes are no dictionary"
                );
                Ok(Dictionary { bytes: bytes.into() })
            }
            Err(code) => Err(Error::Dictionary {
                what: format!(
                    "{} samples of {total} bytes do not give a dictionary of up to {max_bytes} bytes: {}",
                    samples.len(),
                    zstd_safe::get_error_name(code)
                ),
            }),
        }
    }

    /// Wraps a dictionary read from a file. It is not checked before it is digested.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Dictionary { bytes: bytes.into() }
    }

    /// Returns the bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Digests the dictionary for compression at `level`.
    ///
    /// Do this once per file, since it costs far more than compressing a small block. Clones share
    /// the result.
    ///
    /// Errors: [`Error::Level`], and [`Error::Dictionary`] when the bytes are not a dictionary.
    pub fn for_compression(&self, level: i32) -> Result<CompressionDictionary> {
        let level = check_level(level)?;
        self.check_magic()?;
        let tables = CDict::try_create(&self.bytes, level).ok_or_else(|| self.unsound())?;
        Ok(CompressionDictionary { tables: Arc::new(tables) })
    }

    /// Digests the dictionary for decompression. Do this once per file, as above.
    ///
    /// Errors: [`Error::Dictionary`] when the bytes are not a dictionary.
    pub fn for_decompression(&self) -> Result<DecompressionDictionary> {
        self.check_magic()?;
        let tables = DDict::try_create(&self.bytes).ok_or_else(|| self.unsound())?;
        Ok(DecompressionDictionary { tables: Arc::new(tables) })
    }

    fn check_magic(&self) -> Result<()> {
        if self.bytes.starts_with(&MAGIC) { Ok(()) } else { Err(self.unsound()) }
    }

    fn unsound(&self) -> Error {
        Error::Dictionary { what: format!("{} bytes are not a valid dictionary", self.bytes.len()) }
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("bytes", &self.bytes.len()).finish()
    }
}

/// A dictionary digested for compression at one level. Any number of compressors on any threads can
/// share it.
#[derive(Clone)]
pub struct CompressionDictionary {
    pub(super) tables: Arc<CDict<'static>>,
}

/// A dictionary digested for decompression. Any number of decompressors on any threads can share
/// it.
#[derive(Clone)]
pub struct DecompressionDictionary {
    pub(super) tables: Arc<DDict<'static>>,
}

impl CompressionDictionary {
    /// Returns the memory of the digested tables, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.tables.sizeof()
    }
}

impl DecompressionDictionary {
    /// Returns the memory of the digested tables, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.tables.sizeof()
    }
}

impl fmt::Debug for CompressionDictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompressionDictionary").field("memory_bytes", &self.memory_bytes()).finish()
    }
}

impl fmt::Debug for DecompressionDictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecompressionDictionary").field("memory_bytes", &self.memory_bytes()).finish()
    }
}
