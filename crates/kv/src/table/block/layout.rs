//! The layout of a block, and its validation.

use cairn_codec::varint;

use super::head_of;
use crate::kind::{Kind, SEQNO_MAX, Seqno};

/// The most bytes of a block before compression. The writer refuses a single larger entry.
pub(crate) const MAX_BLOCK_BYTES: usize = 1 << 30;

/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 24;
/// Bytes of a restart: its head and its offset.
pub(super) const RESTART_BYTES: usize = 8;
/// The value of a length nibble if a varint follows.
pub(super) const LONG: u8 = 15;

const UNTAGGED: u64 = 1 << 56;
const KIND_SHIFT: u32 = 57;
const FIXED_VALUES: u64 = 1 << 59;

const _: () = assert!(TRAILER_BYTES == 8 + 4 * 4, "the base and four words");
const _: () = assert!(RESTART_BYTES == 4 + 4, "a head and an offset");
const _: () = assert!(SEQNO_MAX < UNTAGGED && UNTAGGED < 1 << KIND_SHIFT, "the base has room for the flag");
const _: () = assert!(3 << KIND_SHIFT < FIXED_VALUES, "the kind has two bits");
const _: () = assert!(FIXED_VALUES >> 60 == 0, "the reader refuses higher bits of the base");
const _: () = assert!(LONG < 1 << 4, "a length has a nibble");
const _: () =
    assert!((Kind::Blob as u64) < 1 << 2 && SEQNO_MAX << 2 >> 2 == SEQNO_MAX, "both fit into a tag");

/// The decoded trailer of a block. For a validated block, all positions lie within its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// End of the entries and start of the prefix.
    pub(super) prefix: u32,
    /// End of the prefix and start of the heads.
    pub(super) heads: u32,
    /// Number of restarts; at least one.
    pub(super) restarts: u32,
    /// Number of entries; at least one.
    pub(crate) entries: u32,
    /// The lowest sequence number.
    pub(super) base: Seqno,
    /// The kind of all entries, if they have no tags.
    pub(super) untagged: Option<Kind>,
    /// The length of all values, if it is the same.
    pub(super) value_len: Option<u32>,
}

/// One entry, as positions in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Number of bytes that its suffix shares with the previous suffix.
    pub(super) shared: usize,
    /// Start of the unshared bytes.
    pub(super) unshared: usize,
    /// End of the unshared bytes and start of the value.
    pub(super) value: usize,
    /// End of the value and start of the next entry.
    pub(super) end: usize,
    /// Sequence number relative to the block's lowest, and kind.
    pub(super) tag: u64,
}

impl Entry {
    #[inline(always)]
    pub(super) fn seqno(&self, layout: &Layout) -> Seqno {
        debug_assert!(self.tag >> 2 <= SEQNO_MAX - layout.base, "a tag that validation refuses");
        layout.base + (self.tag >> 2)
    }

    #[inline(always)]
    pub(super) fn kind(&self) -> Kind {
        match self.tag & 3 {
            0 => Kind::Delete,
            1 => Kind::Put,
            2 => Kind::Merge,
            _ => Kind::Blob,
        }
    }

    /// Returns true when the entry repeats the key of the previous one. `at` is its start.
    #[inline(always)]
    pub(super) fn same_key(&self, at: usize) -> bool {
        self.unshared == self.value && at != 0
    }
}

impl Layout {
    pub(super) fn push_trailer(&self, out: &mut Vec<u8>) {
        debug_assert!(self.base <= SEQNO_MAX, "the base {} exceeds 56 bits", self.base);
        debug_assert!(
            self.prefix <= self.heads,
            "the prefix ends at {}, the heads begin at {}",
            self.prefix,
            self.heads
        );
        debug_assert!(
            (1..=self.entries).contains(&self.restarts),
            "{} restarts of {} entries",
            self.restarts,
            self.entries
        );
        let untagged = self.untagged.map_or(0, |kind| UNTAGGED | (kind as u64) << KIND_SHIFT);
        let fixed = self.value_len.map_or(0, |_| FIXED_VALUES);
        let start = out.len();
        out.extend_from_slice(&(self.base | untagged | fixed).to_le_bytes());
        let prefix_len = self.heads - self.prefix;
        for word in [self.value_len.unwrap_or(0), self.entries, self.restarts, prefix_len] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        debug_assert_eq!(out.len() - start, TRAILER_BYTES, "a trailer of another length");
    }

    /// Decodes the trailer of `bytes` and validates the whole block, except for the order of its
    /// keys. An error contains the offset in the block and a description.
    pub(crate) fn check(bytes: &[u8]) -> Result<Self, (usize, &'static str)> {
        let layout = Layout::parse(bytes).ok_or((bytes.len(), "the trailer does not fit the block"))?;
        let prefix_len = (layout.heads - layout.prefix) as usize;
        let body = bytes.get(..layout.prefix as usize).unwrap_or_default();
        let restarts = layout.restarts as usize;
        let (words, _) = bytes.get(layout.heads as usize..).unwrap_or_default().as_chunks::<4>();
        let (heads, offsets) =
            words.split_at_checked(restarts).ok_or((bytes.len(), "restarts are missing"))?;
        let mut coming = heads.iter().zip(&offsets[..restarts.min(offsets.len())]).peekable();
        let (mut at, mut count, mut suffix_len) = (0, 0u64, 0);
        while at < body.len() {
            let entry = layout.entry(body, at).ok_or((at, "an entry does not end within the block"))?;
            let restart = coming.next_if(|(_, offset)| u32::from_le_bytes(**offset) as usize == at);
            if let Some((head, _)) = restart {
                if entry.shared != 0 || entry.same_key(at) {
                    return Err((at, "a restart needs the key before it"));
                }
                if u32::from_le_bytes(*head) != head_of(&body[entry.unshared..entry.value]) {
                    return Err((at, "the head of a restart does not match its key"));
                }
            } else if at == 0 {
                return Err((at, "the first entry is not a restart"));
            }
            if entry.same_key(at) {
                if entry.shared != 0 {
                    return Err((at, "an older version of a key shares bytes"));
                }
            } else {
                if entry.shared > suffix_len {
                    return Err((at, "an entry shares more bytes than the key before it has"));
                }
                suffix_len = entry.shared + entry.value - entry.unshared;
            }
            if entry.tag >> 2 > SEQNO_MAX - layout.base {
                return Err((at, "a sequence number exceeds 56 bits"));
            }
            if suffix_len + prefix_len > MAX_BLOCK_BYTES {
                return Err((at, "a key is too long"));
            }
            (at, count) = (entry.end, count + 1);
        }
        debug_assert_eq!(at, body.len(), "the last entry ends with the section of entries");
        if coming.next().is_some() {
            return Err((at, "a restart does not point to an entry"));
        }
        if count != u64::from(layout.entries) {
            return Err((at, "the number of entries is wrong"));
        }
        Ok(layout)
    }

    /// Decodes the trailer, if the block is long enough for it.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (rest, trailer) = bytes.split_last_chunk::<TRAILER_BYTES>()?;
        let (base, words) = trailer.split_first_chunk::<8>()?;
        let base = u64::from_le_bytes(*base);
        let (words, _) = words.as_chunks::<4>();
        let [value_len, entries, restarts, prefix_len] =
            <[[u8; 4]; 4]>::try_from(words).ok()?.map(u32::from_le_bytes);
        let heads = rest.len().checked_sub((restarts as usize).checked_mul(RESTART_BYTES)?)?;
        let prefix = heads.checked_sub(prefix_len as usize)?;
        let sound = bytes.len() <= MAX_BLOCK_BYTES
            && base >> 60 == 0
            && restarts > 0
            && restarts <= entries
            && (base & FIXED_VALUES != 0 || value_len == 0)
            && (base & UNTAGGED != 0 || base >> KIND_SHIFT & 3 == 0);
        if !sound {
            return None;
        }
        Some(Layout {
            prefix: u32::try_from(prefix).ok()?,
            heads: u32::try_from(heads).ok()?,
            restarts,
            entries,
            base: base & SEQNO_MAX,
            untagged: if base & UNTAGGED != 0 {
                Kind::from_byte((base >> KIND_SHIFT & 3) as u8)
            } else {
                None
            },
            value_len: (base & FIXED_VALUES != 0).then_some(value_len),
        })
    }

    /// Decodes the entry that begins at `at` in the entries' bytes. Returns `None` at their end,
    /// and for invalid bytes if they were not validated.
    #[inline(always)]
    pub(super) fn entry(&self, body: &[u8], at: usize) -> Option<Entry> {
        let lengths = *body.get(at)?;
        let mut at = at + 1;
        let (mut shared, mut unshared) = (usize::from(lengths >> 4), usize::from(lengths & 15));
        if shared == usize::from(LONG) {
            shared += varint32(body, &mut at)?;
        }
        if unshared == usize::from(LONG) {
            unshared += varint32(body, &mut at)?;
        }
        let tag = match self.untagged {
            Some(kind) => kind as u64,
            None => varint64(body, &mut at)?,
        };
        let value_len = match self.value_len {
            Some(len) => len as usize,
            None => varint32(body, &mut at)?,
        };
        let value = at + unshared;
        let end = value + value_len;
        if end > body.len() {
            return None;
        }
        Some(Entry { shared, unshared: at, value, end, tag })
    }
}

#[inline(always)]
fn varint64(body: &[u8], at: &mut usize) -> Option<u64> {
    let (value, used) = varint::decode(body.get(*at..)?).ok()?;
    *at += used;
    Some(value)
}

/// Decodes a varint of less than 2^32, so that sums of several do not overflow.
#[inline(always)]
fn varint32(body: &[u8], at: &mut usize) -> Option<usize> {
    let value = varint64(body, at)?;
    u32::try_from(value).ok().map(|value| value as usize)
}

const _: () = assert!(usize::BITS >= 64, "positions are sums of 32-bit lengths");
