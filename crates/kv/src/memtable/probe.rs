//! A key while it is looked for: what of it stands against prefixes and heads.
//!
//! A *head* is eight bytes of a key as a number, most significant first, zeros after the key's end.
//! Numbers order as the bytes do, with one gap: `a` and `a\0` have the same head. Equal heads
//! therefore decide nothing, and whoever meets them compares the keys.

/// Bytes of a prefix that a node has inline.
pub(super) const INLINE_PREFIX_BYTES: usize = 24;

/// A key to look for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe<'k> {
    /// The whole key.
    pub(super) key: &'k [u8],
    /// Its first bytes as heads, to stand against a node's inline prefix.
    pub(super) words: [u64; INLINE_PREFIX_BYTES / 8],
}

impl<'k> Probe<'k> {
    /// Prepares `key` for lookups.
    #[inline]
    pub(super) fn new(key: &'k [u8]) -> Self {
        Probe { key, words: prefix_words(key) }
    }

    /// The head after the first `at` bytes.
    #[inline]
    pub(super) fn head(&self, at: usize) -> u64 {
        head(self.key, at)
    }
}

/// The first bytes of `key` as heads.
#[inline]
pub(super) fn prefix_words(key: &[u8]) -> [u64; INLINE_PREFIX_BYTES / 8] {
    [head(key, 0), head(key, 8), head(key, 16)]
}

/// The head of `key` after its first `at` bytes; 0 past its end.
#[inline]
pub(super) fn head(key: &[u8], at: usize) -> u64 {
    let Some(rest) = key.get(at..) else { return 0 };
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => short_head(key, rest),
    }
}

/// The head of `rest`, the last bytes of `key`, fewer than eight.
#[inline]
fn short_head(key: &[u8], rest: &[u8]) -> u64 {
    let word = match key.last_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    // What is wanted stands in the low bytes. In two steps, because a shift by 64 is not allowed.
    word << 8 << (8 * (7 - rest.len() % 8))
}

/// How many leading bytes `a` and `b` have in common.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
