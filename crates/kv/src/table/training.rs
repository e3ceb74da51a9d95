//! Holds back the first blocks of a table until there are enough to train a dictionary.

use cairn_codec::compress::{CompressionDictionary, Dictionary};

/// zstd recommends samples of a hundred times the dictionary's size. Ten times gives nearly the
/// same result here and bounds the memory of the writer.
const SAMPLES_PER_DICTIONARY: usize = 10;

/// A data block that is not written yet, with its data for the index and the filter.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) raw: Vec<u8>,
    pub(super) separator: Vec<u8>,
    pub(super) hashes: Vec<u64>,
}

/// The first blocks of a table.
#[derive(Debug)]
pub(super) struct Training {
    pub(super) waiting: Vec<Waiting>,
    bytes: usize,
    dictionary_bytes: usize,
    level: i32,
}

impl Training {
    pub(super) fn new(level: i32, dictionary_bytes: usize) -> Self {
        debug_assert!(dictionary_bytes > 0, "a table without a dictionary needs no training");
        Training { waiting: Vec::new(), bytes: 0, dictionary_bytes, level }
    }

    /// Keeps a block. Returns true when there are enough.
    pub(super) fn push(&mut self, raw: &[u8], separator: &[u8], hashes: &[u64]) -> bool {
        debug_assert!(
            self.bytes < self.dictionary_bytes * SAMPLES_PER_DICTIONARY,
            "a block is held back although {} bytes suffice",
            self.bytes
        );
        self.bytes += raw.len();
        let (raw, separator, hashes) = (raw.to_vec(), separator.to_vec(), hashes.to_vec());
        self.waiting.push(Waiting { raw, separator, hashes });
        self.bytes >= self.dictionary_bytes * SAMPLES_PER_DICTIONARY
    }

    /// Returns the total bytes of the blocks held back.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Trains a dictionary from the blocks. Returns `None` when they are too few or too dissimilar,
    /// which is not an error.
    pub(super) fn train(&self) -> Option<(Dictionary, CompressionDictionary)> {
        debug_assert_eq!(
            self.bytes,
            self.waiting.iter().map(|block| block.raw.len()).sum::<usize>(),
            "the bytes of the blocks held back"
        );
        // Samples of about the size of a few records, because zstd looks for sequences that many
        // samples share.
        let samples: Vec<&[u8]> = self.waiting.iter().flat_map(|block| block.raw.chunks(512)).collect();
        let dictionary_bytes = self.dictionary_bytes.min(self.bytes / SAMPLES_PER_DICTIONARY);
        if dictionary_bytes < 256 || samples.len() < 8 {
            return None;
        }
        let dictionary = Dictionary::train(&samples, dictionary_bytes).ok()?;
        let digested = dictionary.for_compression(self.level).ok()?;
        Some((dictionary, digested))
    }
}
