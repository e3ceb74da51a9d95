//! Finding a key in a block without building the keys that are passed.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use super::layout::{Entry, Layout};
use super::{common_len, head_of};
use crate::kind::{Kind, Seqno};

/// Up to so many heads are counted through, which the compiler does four at a time; more are halved
/// first.
const LINEAR_HEADS: usize = 32;

/// A checked block, taken apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries<'a> {
    pub(super) layout: &'a Layout,
    /// The entries.
    pub(super) body: &'a [u8],
    /// What all keys begin with.
    pub(super) prefix: &'a [u8],
    heads: &'a [[u8; 4]],
    offsets: &'a [[u8; 4]],
}

/// How a lookup of a key in a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// There is nothing more of this key.
    Done,
    /// The block ends with a version of this key, so that the next block may begin with older ones.
    More,
}

/// Where a key would stand among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// All keys are less.
    End,
    /// At the first entry that is not less: where it begins, and whether its key is equal.
    At { at: usize, entry: Entry, equal: bool },
}

impl<'a> Entries<'a> {
    /// Takes apart `bytes`, whose check gave `layout`.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], layout: &'a Layout) -> Self {
        let (body, rest) = bytes.split_at_checked(layout.prefix as usize).unwrap_or_default();
        let (prefix, rest) =
            rest.split_at_checked((layout.heads - layout.prefix) as usize).unwrap_or_default();
        let (words, _) = rest.as_chunks::<4>();
        let (heads, words) = words.split_at_checked(layout.restarts as usize).unwrap_or_default();
        let offsets = words.get(..heads.len()).unwrap_or_default();
        Entries { layout, body, prefix, heads, offsets }
    }

    #[inline(always)]
    pub(super) fn entry(&self, at: usize) -> Option<Entry> {
        self.layout.entry(self.body, at)
    }

    pub(super) fn offset(&self, restart: usize) -> usize {
        self.offsets.get(restart).map_or(self.body.len(), |offset| u32::from_le_bytes(*offset) as usize)
    }

    /// The last restart that begins before `at`.
    pub(super) fn restart_before(&self, at: usize) -> usize {
        self.offsets.partition_point(|offset| (u32::from_le_bytes(*offset) as usize) < at).saturating_sub(1)
    }

    /// Where `key` stands relative to what all keys begin with: less than all, greater than all,
    /// or, equal, it goes on with these bytes.
    #[inline(always)]
    pub(super) fn rest_of<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], Ordering> {
        match key.strip_prefix(self.prefix) {
            Some(rest) => Ok(rest),
            // A key that is itself a part of the prefix is less than all.
            None => Err(key.cmp(self.prefix)),
        }
    }

    /// Shows the versions of `key` that were written at or before `at`, newest first, as long as
    /// `visit` goes on.
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

    /// The value of the first entry whose key is not less than `key`: how the index is asked.
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
        // Every entry is a restart: heads alone lead to the right one, and no other is touched.
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

    /// The first key that is not less than `key`.
    pub(crate) fn key_at_or_after(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut cursor = super::BlockCursor::default();
        cursor.seek(self, key);
        cursor.valid().then(|| cursor.key().to_vec())
    }

    /// The value of the first entry.
    pub(crate) fn first_value(&self) -> Option<Range<usize>> {
        self.entry(0).map(|entry| entry.value..entry.end)
    }

    /// The value of the entry after the one whose value is `value`.
    pub(crate) fn value_after(&self, value: &Range<usize>) -> Option<Range<usize>> {
        self.entry(value.end).map(|entry| entry.value..entry.end)
    }

    /// Finds the first entry whose suffix is not less than `rest`.
    ///
    /// Passing an entry takes no more than its lengths, unless it shares exactly as much with the
    /// one before as `rest` does. If it shares more, it differs from `rest` where the one before
    /// did, and is less as well. If it shares fewer, it is greater than the one before at a byte in
    /// which that one equals `rest`.
    #[inline]
    pub(super) fn place(&self, rest: &[u8]) -> Place {
        let mut at = self.run_of(rest).map_or(0, |run| self.offset(run));
        let Some(mut entry) = self.entry(at) else { return Place::End };
        let mut matched = 0;
        // The first of a run shares nothing and has its whole suffix with it, even an empty one.
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

    /// The last run that begins at or before `rest`; `None` when all begin after it.
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

    /// How many heads are less than `head`. They ascend.
    #[inline(always)]
    fn heads_below(&self, head: u32) -> usize {
        let (mut base, mut heads) = (0, self.heads);
        while heads.len() > LINEAR_HEADS {
            let (low, high) = heads.split_at(heads.len() / 2);
            let below = high.first().is_some_and(|middle| u32::from_le_bytes(*middle) < head);
            (base, heads) = if below { (base + low.len(), high) } else { (base, low) };
        }
        base + heads.iter().filter(|other| u32::from_le_bytes(**other) < head).count()
    }

    /// The first run from `first` on that has another head, or whose suffix is not `below`.
    fn first_among_ties(&self, head: u32, first: usize, below: impl Fn(&[u8]) -> bool) -> Option<usize> {
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
        Some(low)
    }
}
