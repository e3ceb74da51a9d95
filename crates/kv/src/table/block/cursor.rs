//! Iteration over a block in both directions.

use std::cmp::Ordering;
use std::ops::Range;

use super::layout::Entry;
use super::search::{Entries, Place};
use crate::kind::{Kind, Seqno};

/// A position in a block. The owner of the block passes its [`Entries`] to each call, always the
/// same ones until the next `seek`.
///
/// Forwards, a key is built from the previous one. Backwards, a run is read once and its keys are
/// kept, so that a step costs no more than forwards.
#[derive(Debug, Default)]
pub(crate) struct BlockCursor {
    /// The offset of the current entry, and the entry; `None` without a position.
    current: Option<(usize, Entry)>,
    key: Vec<u8>,
    /// Entries of the current run before the current one, if it was reached backwards.
    run: Vec<RunEntry>,
    run_keys: Vec<u8>,
}

#[derive(Debug, Clone)]
struct RunEntry {
    at: usize,
    entry: Entry,
    /// Its suffix, as a range of the run's keys.
    suffix: Range<usize>,
}

impl BlockCursor {
    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.current.is_some()
    }

    pub(crate) fn invalidate(&mut self) {
        self.current = None;
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub(crate) fn seqno(&self, entries: &Entries<'_>) -> Seqno {
        self.current.map_or(0, |(_, entry)| entry.seqno(entries.layout))
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.current.map_or(Kind::Delete, |(_, entry)| entry.kind())
    }

    /// Returns the range of the value within the block.
    #[inline]
    pub(crate) fn value(&self) -> Range<usize> {
        self.current.map_or(0..0, |(_, entry)| entry.value..entry.end)
    }

    pub(crate) fn seek_first(&mut self, entries: &Entries<'_>) {
        self.run.clear();
        self.key.clear();
        self.key.extend_from_slice(entries.prefix);
        self.load(entries, 0);
    }

    pub(crate) fn seek_last(&mut self, entries: &Entries<'_>) {
        self.key.clear();
        self.key.extend_from_slice(entries.prefix);
        self.read_run(entries, entries.body.len());
        self.pop_run(entries);
    }

    /// Moves to the newest version of the first key that is not less than `key`.
    pub(crate) fn seek(&mut self, entries: &Entries<'_>, key: &[u8]) {
        let rest = match entries.rest_of(key) {
            Ok(rest) => rest,
            Err(Ordering::Greater) => {
                self.current = None;
                return;
            }
            Err(_) => return self.seek_first(entries),
        };
        self.run.clear();
        self.current = match entries.place(rest) {
            Place::End => None,
            Place::At { at, entry, .. } => {
                // The entry shares at most as many bytes with the previous key as that key shares
                // with `key`, so the shared bytes can be copied from `key`.
                let known = entries.prefix.len() + entry.shared;
                debug_assert!(known <= key.len(), "{known} bytes shared with a key of {}", key.len());
                self.key.clear();
                self.key.extend_from_slice(key.get(..known).unwrap_or_default());
                self.key.extend_from_slice(&entries.body[entry.unshared..entry.value]);
                Some((at, entry))
            }
        };
    }

    #[inline]
    pub(crate) fn next(&mut self, entries: &Entries<'_>) {
        if let Some((_, entry)) = self.current {
            if !self.run.is_empty() {
                self.run.clear();
            }
            self.load(entries, entry.end);
        }
    }

    pub(crate) fn prev(&mut self, entries: &Entries<'_>) {
        let Some((at, _)) = self.current else { return };
        if self.run.is_empty() {
            self.read_run(entries, at);
        }
        self.pop_run(entries);
        debug_assert!(
            self.current.is_none_or(|(before, entry)| before < at && entry.end <= at),
            "the entry before that at {at} is {:?}",
            self.current
        );
    }

    /// Makes the entry at `at` the current one. `key` must be the key of the entry before it.
    #[inline(always)]
    fn load(&mut self, entries: &Entries<'_>, at: usize) {
        let Some(entry) = entries.entry(at) else {
            self.current = None;
            return;
        };
        debug_assert!(
            entry.end > at && entry.end <= entries.body.len(),
            "an entry from {at} to {}",
            entry.end
        );
        if !entry.same_key(at) {
            debug_assert!(
                self.key.len() >= entries.prefix.len() + entry.shared,
                "an entry shares {} bytes with a key of {}",
                entry.shared,
                self.key.len()
            );
            self.key.truncate(entries.prefix.len() + entry.shared);
            self.key.extend_from_slice(&entries.body[entry.unshared..entry.value]);
        }
        self.current = Some((at, entry));
    }

    /// Reads the entries of the last run that begins before `end`, up to `end`.
    fn read_run(&mut self, entries: &Entries<'_>, end: usize) {
        self.run.clear();
        self.run_keys.clear();
        if end == 0 {
            return;
        }
        let mut at = entries.offset(entries.restart_before(end));
        debug_assert!(at < end, "the run before {end} begins at {at}");
        let mut suffix = 0..0;
        while at < end {
            let Some(entry) = entries.entry(at) else { return };
            if !entry.same_key(at) {
                debug_assert!(
                    entry.shared <= suffix.len(),
                    "shares {} of {} bytes",
                    entry.shared,
                    suffix.len()
                );
                let start = self.run_keys.len();
                self.run_keys.extend_from_within(suffix.start..suffix.start + entry.shared.min(suffix.len()));
                self.run_keys.extend_from_slice(&entries.body[entry.unshared..entry.value]);
                suffix = start..self.run_keys.len();
            }
            self.run.push(RunEntry { at, entry, suffix: suffix.clone() });
            at = entry.end;
        }
        debug_assert_eq!(at, end, "the run's entries end where one begins");
    }

    /// Moves to the last of the entries read from the run.
    fn pop_run(&mut self, entries: &Entries<'_>) {
        self.current = self.run.pop().map(|last| {
            self.key.truncate(entries.prefix.len());
            self.key.extend_from_slice(&self.run_keys[last.suffix]);
            (last.at, last.entry)
        });
    }
}

impl Entries<'_> {
    /// Returns the first key that is not less than `key`.
    pub(crate) fn key_at_or_after(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut cursor = BlockCursor::default();
        cursor.seek(self, key);
        cursor.valid().then(|| cursor.key().to_vec())
    }
}
