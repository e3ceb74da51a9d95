//! Finds a key in a block without building the keys before it.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use super::layout::{Entry, Layout};
use super::{common_len, head_of};
use crate::kind::{Kind, Seqno};

/// Up to this many heads are counted linearly, which the compiler vectorizes four at a time. More
/// heads are first reduced by binary search.
const LINEAR_HEADS: usize = 32;

/// The parts of a validated block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries<'a> {
    pub(super) layout: &'a Layout,
    /// The bytes of the entries.
    pub(super) body: &'a [u8],
    /// The common prefix of all keys.
    pub(super) prefix: &'a [u8],
    heads: &'a [[u8; 4]],
    offsets: &'a [[u8; 4]],
}

/// The outcome of a lookup in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The block has no more versions of this key, and the next block has none either.
    Done,
    /// The block ends with a version of this key, so the next block may begin with older ones.
    More,
}

/// The position of a key among the block's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// All keys of the block are less.
    End,
    /// At the first entry that is not less: its offset, and whether its key is equal.
    At { at: usize, entry: Entry, equal: bool },
}

impl<'a> Entries<'a> {
    /// Splits `bytes` into its parts. `layout` is the result of validating them.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], layout: &'a Layout) -> Self {
        let (body, rest) = bytes.split_at_checked(layout.prefix as usize).unwrap_or_default();
        let (prefix, rest) =
            rest.split_at_checked((layout.heads - layout.prefix) as usize).unwrap_or_default();
        let (words, _) = rest.as_chunks::<4>();
        let (heads, words) = words.split_at_checked(layout.restarts as usize).unwrap_or_default();
        let offsets = words.get(..heads.len()).unwrap_or_default();
        debug_assert_eq!(body.len(), layout.prefix as usize, "the layout of another block");
        debug_assert_eq!(heads.len(), layout.restarts as usize, "the layout of another block");
        debug_assert_eq!(offsets.len(), heads.len(), "a restart has a head and an offset");
        Entries { layout, body, prefix, heads, offsets }
    }

    #[inline(always)]
    pub(super) fn entry(&self, at: usize) -> Option<Entry> {
        self.layout.entry(self.body, at)
    }

    pub(super) fn offset(&self, restart: usize) -> usize {
        self.offsets.get(restart).map_or(self.body.len(), |offset| u32::from_le_bytes(*offset) as usize)
    }

    /// Returns the last restart that begins before `at`.
    pub(super) fn restart_before(&self, at: usize) -> usize {
        self.offsets.partition_point(|offset| (u32::from_le_bytes(*offset) as usize) < at).saturating_sub(1)
    }

    /// Compares `key` with the common prefix of all keys. Returns the rest of `key` after the
    /// prefix, or the order if `key` is less or greater than all keys.
    #[inline(always)]
    pub(super) fn rest_of<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], Ordering> {
        match key.strip_prefix(self.prefix) {
            Some(rest) => Ok(rest),
            // A key that is a proper part of the prefix is less than all keys.
            None => Err(key.cmp(self.prefix)),
        }
    }

    /// Passes the versions of `key` written at or before `at` to `visit`, newest first, until
    /// `visit` breaks.
    #[inline]
    pub(crate) fn lookup(
        &self,
        key: &[u8],
        at: Seqno,
        visit: &mut impl FnMut(Seqno, Kind, Range<usize>) -> ControlFlow<()>,
    ) -> Lookup {
        let Ok(rest) = self.rest_of(key) else { return Lookup::Done };
        let Place::At { entry, equal: true, .. } = self.place(rest) else { return Lookup::Done };
        let mut entry = entry;
        loop {
            let seqno = entry.seqno(self.layout);
            if seqno <= at && visit(seqno, entry.kind(), entry.value..entry.end).is_break() {
                return Lookup::Done;
            }
            match self.entry(entry.end) {
                None => return Lookup::More,
                Some(next) if next.same_key(entry.end) => entry = next,
                Some(_) => return Lookup::Done,
            }
        }
    }

    /// Returns the value of the first entry whose key is not less than `key`. Index lookups use
    /// this.
    #[inline]
    pub(crate) fn value_at_or_after(&self, key: &[u8]) -> Option<Range<usize>> {
        let rest = match self.rest_of(key) {
            Ok(rest) => rest,
            Err(Ordering::Greater) => return None,
            Err(_) => return self.first_value(),
        };
        if self.layout.restarts != self.layout.entries {
            return match self.place(rest) {
                Place::At { entry, .. } => Some(entry.value..entry.end),
                Place::End => None,
            };
        }
        // Every entry is a restart: the heads alone lead to the right one, and no other entry is
        // read.
        let head = head_of(rest);
        let first = self.heads_below(head);
        let restart = match self.heads.get(first) {
            Some(tie) if u32::from_le_bytes(*tie) == head => {
                self.first_among_ties(head, first, |suffix| suffix < rest)?
            }
            _ => first,
        };
        self.entry(self.offset(restart)).map(|entry| entry.value..entry.end)
    }

    /// Returns the value of the first entry.
    pub(crate) fn first_value(&self) -> Option<Range<usize>> {
        self.entry(0).map(|entry| entry.value..entry.end)
    }

    /// Returns the value of the entry after the one whose value is `value`.
    pub(crate) fn value_after(&self, value: &Range<usize>) -> Option<Range<usize>> {
        debug_assert!(value.end <= self.body.len(), "the value of another block");
        self.entry(value.end).map(|entry| entry.value..entry.end)
    }

    /// Finds the first entry whose suffix is not less than `rest`.
    ///
    /// Skipping an entry needs only its lengths, unless it shares exactly as many bytes with the
    /// previous entry as `rest` does. If it shares more, it differs from `rest` at the same byte as
    /// the previous entry and is less as well. If it shares fewer, it is greater than the previous
    /// entry at a byte where that entry equals `rest`.
    #[inline]
    pub(super) fn place(&self, rest: &[u8]) -> Place {
        let mut at = self.run_of(rest).map_or(0, |run| self.offset(run));
        let Some(mut entry) = self.entry(at) else { return Place::End };
        let mut matched = 0;
        // The first entry of a run shares nothing and stores its whole suffix, even an empty one.
        let mut compare = true;
        loop {
            if compare {
                let (suffix, want) = (&self.body[entry.unshared..entry.value], &rest[matched..]);
                let common = common_len(suffix, want);
                match (suffix.get(common), want.get(common)) {
                    (None, None) => return Place::At { at, entry, equal: true },
                    (Some(_), None) => return Place::At { at, entry, equal: false },
                    (Some(have), Some(want)) if have > want => return Place::At { at, entry, equal: false },
                    _ => matched += common,
                }
            }
            at = entry.end;
            entry = match self.entry(at) {
                Some(entry) => entry,
                None => return Place::End,
            };
            let new_key = !entry.same_key(at);
            if new_key && entry.shared < matched {
                return Place::At { at, entry, equal: false };
            }
            compare = new_key && entry.shared == matched;
        }
    }

    /// Returns the last run that begins at or before `rest`, or `None` when all begin after it.
    #[inline(always)]
    fn run_of(&self, rest: &[u8]) -> Option<usize> {
        let head = head_of(rest);
        let first = self.heads_below(head);
        match self.heads.get(first) {
            Some(tie) if u32::from_le_bytes(*tie) == head => {
                self.first_among_ties(head, first, |suffix| suffix <= rest)?.checked_sub(1)
            }
            _ => first.checked_sub(1),
        }
    }

    /// Returns the number of heads less than `head`. The heads ascend.
    #[inline(always)]
    fn heads_below(&self, head: u32) -> usize {
        let (mut base, mut heads) = (0, self.heads);
        while heads.len() > LINEAR_HEADS {
            let (low, high) = heads.split_at(heads.len() / 2);
            let below = high.first().is_some_and(|middle| u32::from_le_bytes(*middle) < head);
            (base, heads) = if below { (base + low.len(), high) } else { (base, low) };
        }
        let below = base + heads.iter().filter(|other| u32::from_le_bytes(**other) < head).count();
        debug_assert!(below <= self.heads.len(), "{below} of {} heads", self.heads.len());
        below
    }

    /// Returns the first run from `first` on that has a different head, or whose suffix is not
    /// `below`.
    fn first_among_ties(&self, head: u32, first: usize, below: impl Fn(&[u8]) -> bool) -> Option<usize> {
        debug_assert!(first < self.heads.len(), "restart {first} of {}", self.heads.len());
        let ties = self.heads[first..].partition_point(|other| u32::from_le_bytes(*other) <= head);
        let (mut low, mut high) = (first, first + ties);
        while low < high {
            let middle = (low + high) / 2;
            let entry = self.entry(self.offset(middle))?;
            if below(&self.body[entry.unshared..entry.value]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        debug_assert!(first <= low && low <= self.heads.len(), "restart {low} of {}", self.heads.len());
        Some(low)
    }
}
