//! The key of a search, prepared for comparison with prefixes and heads.
//!
//! A *head* is eight bytes of a key as a number, most significant byte first, padded with zeros
//! past the end of the key. Heads order like keys, with one exception: `a` and `a\0` have the same
//! head. Equal heads therefore decide nothing, and the full keys must be compared.

/// Bytes of the prefix that a node stores inline.
pub(super) const INLINE_PREFIX_BYTES: usize = 24;

const _: () = assert!(INLINE_PREFIX_BYTES == 3 * 8, "`prefix_words` returns three heads");

/// A key to search for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe<'k> {
    /// The whole key.
    pub(super) key: &'k [u8],
    /// The first bytes of the key as heads, for comparison with the inline prefix of a node.
    pub(super) words: [u64; INLINE_PREFIX_BYTES / 8],
}

impl<'k> Probe<'k> {
    /// Prepares `key` for lookups.
    #[inline]
    pub(super) fn new(key: &'k [u8]) -> Self {
        Probe { key, words: prefix_words(key) }
    }

    /// Returns the head after the first `at` bytes.
    #[inline]
    pub(super) fn head(&self, at: usize) -> u64 {
        head(self.key, at)
    }
}

/// Returns the first bytes of `key` as heads.
#[inline]
pub(super) fn prefix_words(key: &[u8]) -> [u64; INLINE_PREFIX_BYTES / 8] {
    [head(key, 0), head(key, 8), head(key, 16)]
}

/// Returns the head of `key` after its first `at` bytes; 0 past its end.
#[inline]
pub(super) fn head(key: &[u8], at: usize) -> u64 {
    let Some(rest) = key.get(at..) else { return 0 };
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => short_head(key, rest),
    }
}

/// Returns the head of `rest`, which is the end of `key` and shorter than eight bytes.
#[inline]
fn short_head(key: &[u8], rest: &[u8]) -> u64 {
    debug_assert!(rest.len() < 8 && key.ends_with(rest), "{} bytes at the end of the key", rest.len());
    let word = match key.last_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    // The wanted bytes are the low ones of `word`. Shifts in two steps, because a shift by 64 is
    // not allowed.
    let head = word << 8 << (8 * (7 - rest.len() % 8));
    debug_assert!(
        rest.iter().enumerate().all(|(at, byte)| (head >> (56 - 8 * at)) as u8 == *byte),
        "the head {head:#x} of {rest:?}"
    );
    head
}

/// Returns the length of the common prefix of `a` and `b`.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
