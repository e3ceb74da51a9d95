//! Values compressed one by one, with what they have in common kept in a dictionary.
//!
//! Stores that compress whole blocks decompress a block for each lookup. A short value by itself
//! hardly compresses; with a dictionary trained on its siblings it does, and a lookup pays for one
//! value only. snappy knows no dictionaries: it is for values that repeat themselves, and for the
//! fastest lookups among the compressed.

use cairn_codec::compress::{self, CompressionDictionary, Compressor, Dictionary};
use cairn_codec::varint;

use super::options::Compression;
use super::record::Tag;
use crate::{Error, Result};

/// Shorter values are stored as they are: a zstd frame alone takes about ten bytes.
const ZSTD_VALUE_BYTES_MIN: usize = 16;
/// The snappy encoder looks for no repetition in less: it hashes four bytes and keeps 15 from the
/// end.
const SNAPPY_VALUE_BYTES_MIN: usize = 17;
/// Samples of this many times the dictionary's size are what zstd advises.
const SAMPLE_FACTOR: usize = 100;

/// Keeps an even sample of the values that come by, without knowing how many will come.
///
/// Every `stride`-th value is kept; when the budget is full, every other kept one is dropped and
/// the stride doubles. No randomness, so equal input gives an equal dictionary.
#[derive(Debug)]
pub(crate) struct Sampler {
    samples: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
    stride: u64,
    seen: u64,
}

impl Sampler {
    /// A sampler for the dictionary that `compression` asks for, or `None`.
    pub fn new(compression: Compression) -> Option<Sampler> {
        match compression {
            Compression::Zstd { dictionary_bytes, .. } if dictionary_bytes > 0 => Some(Sampler {
                samples: Vec::new(),
                bytes: 0,
                bytes_max: dictionary_bytes as usize * SAMPLE_FACTOR,
                stride: 1,
                seen: 0,
            }),
            _ => None,
        }
    }

    /// Looks at one value.
    #[inline]
    pub fn offer(&mut self, value: &[u8]) {
        self.seen += 1;
        if self.seen.is_multiple_of(self.stride) && value.len() >= ZSTD_VALUE_BYTES_MIN {
            self.keep(value);
        }
    }

    fn keep(&mut self, value: &[u8]) {
        self.samples.push(value.to_vec());
        self.bytes += value.len();
        if self.bytes > self.bytes_max {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.bytes = self.samples.iter().map(Vec::len).sum();
            self.stride *= 2;
        }
    }

    /// The dictionary, or `None` when the values have too little in common for one to be of use.
    pub fn train(self, dictionary_bytes: u32) -> Option<Dictionary> {
        Dictionary::train(&self.samples, dictionary_bytes as usize).ok()
    }
}

/// Compresses values, one at a time. One for each thread.
#[derive(Debug)]
pub(crate) struct ValueCompressor {
    compressor: Option<Compressor>,
    /// Shorter values are not tried.
    value_bytes_min: usize,
    stored: Vec<u8>,
}

impl ValueCompressor {
    /// Errors: a level that zstd does not have.
    pub fn new(
        compression: Compression,
        dictionary: Option<&CompressionDictionary>,
    ) -> Result<ValueCompressor> {
        let (compressor, value_bytes_min) = match (compression, dictionary) {
            (Compression::None, _) => (None, usize::MAX),
            (Compression::Snappy, _) => {
                (Some(Compressor::new(compress::Compression::Snappy)), SNAPPY_VALUE_BYTES_MIN)
            }
            (Compression::Zstd { .. }, Some(dictionary)) => {
                (Some(Compressor::with_dictionary(dictionary)), ZSTD_VALUE_BYTES_MIN)
            }
            (Compression::Zstd { level, .. }, None) => {
                (Some(Compressor::new(compress::Compression::Zstd { level })), ZSTD_VALUE_BYTES_MIN)
            }
        };
        let compressor = compressor.transpose().map_err(|error| Error::invalid(error.to_string()))?;
        Ok(ValueCompressor { compressor, value_bytes_min, stored: Vec::new() })
    }

    /// What to store for `value`: itself, or its length and its compressed form when that is
    /// shorter.
    pub fn store<'a>(&'a mut self, value: &'a [u8]) -> Result<(&'a [u8], Tag)> {
        let Some(compressor) = &mut self.compressor else { return Ok((value, Tag::Raw)) };
        if value.len() < self.value_bytes_min {
            return Ok((value, Tag::Raw));
        }
        self.stored.clear();
        varint::push(value.len() as u64, &mut self.stored);
        compressor.compress(value, &mut self.stored).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(if self.stored.len() < value.len() { (&self.stored, Tag::Compressed) } else { (value, Tag::Raw) })
    }
}
