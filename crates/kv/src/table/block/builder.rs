//! Builds a block from entries in order.

use cairn_codec::varint;

use super::layout::{LONG, Layout, MAX_BLOCK_BYTES, RESTART_BYTES, TRAILER_BYTES};
use super::{common_len, head_of};
use crate::kind::{Kind, SEQNO_MAX, Seqno};

/// Collects entries, then encodes them. Their common properties are known only at the end, so until
/// then they are kept unencoded. Reusable: `finish` leaves the builder empty but keeps its memory.
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    restart_interval: u32,
    /// Concatenated keys; older versions of a key add nothing.
    keys: Vec<u8>,
    values: Vec<u8>,
    entries: Vec<Pending>,
    /// Start of the last key in `keys`.
    last_key: usize,
    /// Length of the first key.
    first_len: usize,
    /// Entries since the last restart.
    run: u32,
    estimate: usize,
    /// The restarts' heads and offsets, used while the block is encoded.
    heads: Vec<u32>,
    offsets: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    key_len: u32,
    /// Number of bytes that the key shares with the previous one.
    shared: u32,
    value_len: u32,
    role: Role,
    kind: Kind,
    seqno: Seqno,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Restart,
    NewKey,
    SameKey,
}

impl BlockBuilder {
    /// Creates a builder that starts a new run at the first new key after `restart_interval`
    /// entries (at least 1).
    pub(crate) fn new(restart_interval: u32) -> Self {
        BlockBuilder {
            restart_interval: restart_interval.max(1),
            keys: Vec::new(),
            values: Vec::new(),
            entries: Vec::new(),
            last_key: 0,
            first_len: 0,
            run: 0,
            estimate: TRAILER_BYTES,
            heads: Vec::new(),
            offsets: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the last key added; empty when there is none.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.keys[self.last_key..]
    }

    /// Returns the first key added; empty when there is none.
    pub(crate) fn first_key(&self) -> &[u8] {
        &self.keys[..self.first_len]
    }

    /// Returns the approximate length of the block.
    pub(crate) fn estimated_bytes(&self) -> usize {
        self.estimate
    }

    /// Adds an entry. `shared` is the number of bytes that `key` shares with the last key, or
    /// `None` for the same key again. The caller ensures that keys ascend and that sequence numbers
    /// descend within a key.
    pub(crate) fn add(&mut self, key: &[u8], shared: Option<usize>, seqno: Seqno, kind: Kind, value: &[u8]) {
        self.add_last(key, shared, seqno, kind, value);
        self.values.extend_from_slice(value);
    }

    /// Adds the last entry of the block, as [`BlockBuilder::add`] does, without copying its value.
    /// The value must be passed again to [`BlockBuilder::finish_with`], right after this.
    pub(crate) fn add_last(
        &mut self,
        key: &[u8],
        shared: Option<usize>,
        seqno: Seqno,
        kind: Kind,
        value: &[u8],
    ) {
        debug_assert!(key.len() + value.len() <= MAX_BLOCK_BYTES, "an entry larger than any block");
        debug_assert!(
            self.entries.is_empty()
                || match shared {
                    None => key == self.last_key(),
                    Some(shared) => key != self.last_key() && shared == common_len(self.last_key(), key),
                },
            "{shared:?} bytes shared with the last key"
        );
        debug_assert!(self.entries.is_empty() || self.last_key() <= key, "the keys of a block ascend");
        debug_assert!(seqno <= SEQNO_MAX, "sequence number {seqno}");
        let role = match shared {
            _ if self.entries.is_empty() => Role::Restart,
            None => Role::SameKey,
            Some(_) if self.run >= self.restart_interval => Role::Restart,
            Some(_) => Role::NewKey,
        };
        let shared = shared.unwrap_or(0);
        self.estimate += 3 + value.len();
        match role {
            Role::Restart => {
                self.run = 0;
                self.estimate += RESTART_BYTES + key.len() - common_len(key, self.first_key());
            }
            Role::NewKey => self.estimate += key.len() - shared,
            Role::SameKey => {}
        }
        if let Some(first) = self.entries.first() {
            let distance = (first.seqno ^ seqno) << 2;
            self.estimate += if distance == 0 { 0 } else { varint::encoded_len(distance) };
        } else {
            self.first_len = key.len();
        }
        if role != Role::SameKey {
            self.last_key = self.keys.len();
            self.keys.extend_from_slice(key);
        }
        self.run += 1;
        let (key_len, shared, value_len) = (key.len() as u32, shared as u32, value.len() as u32);
        self.entries.push(Pending { key_len, shared, value_len, role, kind, seqno });
    }

    /// Appends the block to `out` and clears the builder. There must be at least one entry.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.finish_with(None, out);
    }

    /// Finishes the block as [`BlockBuilder::finish`] does. `last` is the value of the last entry,
    /// if that was added by [`BlockBuilder::add_last`].
    pub(crate) fn finish_with(&mut self, last: Option<&[u8]>, out: &mut Vec<u8>) {
        assert!(!self.entries.is_empty(), "a block has at least one entry");
        let start = out.len();
        let prefix_len = common_len(self.first_key(), self.last_key());
        let layout = self.layout();
        out.reserve(self.estimate + 64);
        self.encode(&layout, prefix_len, last, out);
        let prefix = (out.len() - start) as u32;
        out.extend_from_slice(&self.keys[..prefix_len]);
        let heads = (out.len() - start) as u32;
        self.heads.iter().for_each(|head| out.extend_from_slice(&head.to_le_bytes()));
        self.offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
        Layout { prefix, heads, restarts: self.heads.len() as u32, ..layout }.push_trailer(out);
        debug_assert!(
            Layout::check(&out[start..]).is_ok_and(|read| read.entries == layout.entries),
            "a block of {} entries that would not be read back",
            layout.entries
        );
        self.clear();
    }

    /// Determines the common properties of the entries. Positions are not known yet.
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            prefix: 0,
            heads: 0,
            restarts: 0,
            entries: self.entries.len() as u32,
            base: 0,
            untagged: None,
            value_len: None,
        };
        if let Some(first) = self.entries.first() {
            let (mut low, mut tags_equal, mut lengths_equal) = (first.seqno, true, true);
            for entry in &self.entries {
                low = low.min(entry.seqno);
                tags_equal &= entry.seqno == first.seqno && entry.kind == first.kind;
                lengths_equal &= entry.value_len == first.value_len;
            }
            debug_assert!(low <= SEQNO_MAX, "sequence number {low}");
            layout.base = low;
            layout.untagged = tags_equal.then_some(first.kind);
            layout.value_len = lengths_equal.then_some(first.value_len);
        }
        layout
    }

    fn encode(&mut self, layout: &Layout, prefix_len: usize, last: Option<&[u8]>, out: &mut Vec<u8>) {
        let start = out.len();
        let (mut keys, mut values) = (&self.keys[..], &self.values[..]);
        let end = self.entries.len();
        for (at, entry) in self.entries.iter().enumerate() {
            let mut suffix: &[u8] = &[];
            if entry.role != Role::SameKey {
                let (key, rest) = keys.split_at(entry.key_len as usize);
                (suffix, keys) = (&key[prefix_len..], rest);
            }
            let mut shared = 0;
            match entry.role {
                Role::Restart => {
                    self.heads.push(head_of(suffix));
                    self.offsets.push((out.len() - start) as u32);
                }
                Role::NewKey => {
                    debug_assert!(entry.shared as usize >= prefix_len, "all keys share the prefix");
                    shared = entry.shared as usize - prefix_len;
                }
                Role::SameKey => {}
            }
            let unshared = &suffix[shared..];
            let value = match last.filter(|_| at + 1 == end) {
                Some(last) => last,
                None => {
                    let (value, rest) = values.split_at(entry.value_len as usize);
                    values = rest;
                    value
                }
            };
            let (short_shared, short_unshared) = (shared.min(15) as u8, unshared.len().min(15) as u8);
            out.push(short_shared << 4 | short_unshared);
            if short_shared == LONG {
                varint::push((shared - 15) as u64, out);
            }
            if short_unshared == LONG {
                varint::push((unshared.len() - 15) as u64, out);
            }
            if layout.untagged.is_none() {
                varint::push((entry.seqno - layout.base) << 2 | entry.kind as u64, out);
            }
            if layout.value_len.is_none() {
                varint::push(u64::from(entry.value_len), out);
            }
            debug_assert!(
                value.len() == entry.value_len as usize,
                "the value of the last entry is another one"
            );
            out.extend_from_slice(unshared);
            out.extend_from_slice(value);
        }
        debug_assert!(keys.is_empty() && values.is_empty(), "keys or values without an entry are left");
        debug_assert_eq!(self.heads.len(), self.offsets.len(), "a restart has a head and an offset");
        debug_assert_eq!(self.offsets.first(), Some(&0), "the first entry is a restart");
        debug_assert!(self.offsets.is_sorted_by(|a, b| a < b), "restarts follow each other");
        debug_assert!(self.heads.is_sorted(), "a search needs ascending heads");
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.entries.clear();
        self.heads.clear();
        self.offsets.clear();
        (self.last_key, self.first_len, self.run, self.estimate) = (0, 0, 0, TRAILER_BYTES);
    }
}
