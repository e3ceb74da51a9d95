//! Compression of single values, with a shared dictionary for their common content.
//!
//! Stores that compress whole blocks decompress a block for each lookup. A short value by itself
//! hardly compresses. With a dictionary trained on similar values it does, and a lookup
//! decompresses one value only. snappy supports no dictionaries. It suits values with internal
//! repetition, and gives the fastest lookups of compressed values.

use cairn_codec::compress::{self, CompressionDictionary, Compressor, Dictionary};
use cairn_codec::varint;

use super::format::BLOB_MIN_BYTES;
use super::options::Compression;
use super::record::Tag;
use crate::{Error, Result};

/// Shorter values are stored uncompressed: a zstd frame alone takes about ten bytes.
const ZSTD_VALUE_BYTES_MIN: usize = 16;
/// The snappy encoder finds no repetition in shorter values: it hashes four bytes and stops 15
/// bytes before the end.
const SNAPPY_VALUE_BYTES_MIN: usize = 17;
/// zstd advises samples of this many times the size of the dictionary.
const SAMPLE_FACTOR: usize = 100;

/// Keeps an even sample of a stream of values of unknown length.
///
/// The sampler keeps every `stride`-th value. When the budget is exceeded, it drops every other
/// value it kept and doubles the stride. It uses no randomness, so equal input gives an equal
/// dictionary.
#[derive(Debug)]
pub(crate) struct Sampler {
    samples: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
    stride: u64,
    seen: u64,
}

impl Sampler {
    /// Makes a sampler for the dictionary that `compression` asks for; `None` if it asks for none.
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

    /// Offers one value to the sample.
    #[inline]
    pub fn offer(&mut self, value: &[u8]) {
        debug_assert!((value.len() as u64) < BLOB_MIN_BYTES, "blobs are not compressed");
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
            debug_assert!(self.stride.is_power_of_two(), "the kept values stay evenly spaced");
        }
    }

    /// Trains the dictionary. Returns `None` if the values have too little in common for a
    /// dictionary to be useful.
    pub fn train(self, dictionary_bytes: u32) -> Option<Dictionary> {
        Dictionary::train(&self.samples, dictionary_bytes as usize).ok()
    }
}

/// Compresses values one at a time. Each thread has its own.
#[derive(Debug)]
pub(crate) struct ValueCompressor {
    compressor: Option<Compressor>,
    /// Shorter values are not compressed.
    value_bytes_min: usize,
    stored: Vec<u8>,
}

impl ValueCompressor {
    /// Creates a compressor. Errors: zstd does not have the level.
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

    /// Returns the bytes to store for `value`: its length and its compressed form if that is
    /// shorter, otherwise the value itself.
    pub fn store<'a>(&'a mut self, value: &'a [u8]) -> Result<(&'a [u8], Tag)> {
        let Some(compressor) = &mut self.compressor else { return Ok((value, Tag::Raw)) };
        debug_assert!((value.len() as u64) < BLOB_MIN_BYTES, "a reader refuses longer values");
        if value.len() < self.value_bytes_min {
            return Ok((value, Tag::Raw));
        }
        self.stored.clear();
        varint::push(value.len() as u64, &mut self.stored);
        compressor.compress(value, &mut self.stored).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(if self.stored.len() < value.len() { (&self.stored, Tag::Compressed) } else { (value, Tag::Raw) })
    }
}
