//! Blocks that wait until there are enough of them to learn a dictionary from.

use cairn_codec::compress::{CompressionDictionary, Dictionary};

/// zstd advises a hundred times the dictionary's size as samples. Ten times does nearly as well
/// here and bounds what the writer holds.
const SAMPLES_PER_DICTIONARY: usize = 10;

/// A data block that is not written yet, with what the index and the filter will need.
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
        Training { waiting: Vec::new(), bytes: 0, dictionary_bytes, level }
    }

    /// Keeps a block; true when there are enough.
    pub(super) fn push(&mut self, raw: &[u8], separator: &[u8], hashes: &[u64]) -> bool {
        self.bytes += raw.len();
        let (raw, separator, hashes) = (raw.to_vec(), separator.to_vec(), hashes.to_vec());
        self.waiting.push(Waiting { raw, separator, hashes });
        self.bytes >= self.dictionary_bytes * SAMPLES_PER_DICTIONARY
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Learns a dictionary from the blocks; none when they are too few or have too little in
    /// common, which is no error.
    pub(super) fn train(&self) -> Option<(Dictionary, CompressionDictionary)> {
        // Pieces of about the size of a few records: zstd looks for what many samples have in
        // common.
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
