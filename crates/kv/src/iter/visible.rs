//! A reader's view of a merged cursor: for each key the one value that it has at a sequence number.
//!
//! Forwards, the value is borrowed from the source, and only the key is copied, to recognize its
//! older versions. Backwards, the versions of a key come oldest first, so each value is copied
//! until a newer one appears.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;

use crate::cursor::Cursor;
use crate::iter::resolve::{Resolver, Step};
use crate::kind::{Kind, Seqno, Version};
use crate::memtable::{Cover, Memtable};
use crate::merge_operator::Operator;
use crate::range_del::RangeTombstones;
use crate::table::prefix_end;
use crate::ttl::{self, Ttl};
use crate::{Error, Result};

/// After this many invisible entries, iteration seeks over the rest of the key's versions.
const STEPS_BEFORE_SEEK: u32 = 8;

/// Fetches values that are in blob files.
pub(crate) trait BlobSource: Send + Sync {
    /// Replaces `out` with the value to which `reference`, the stored value of a [`Kind::Blob`]
    /// entry, refers.
    fn load(&self, reference: &[u8], out: &mut Vec<u8>) -> Result<()>;
}

/// Everything that a reader needs besides the entries.
pub(crate) struct ReadContext {
    /// The newest visible sequence number.
    pub at: Seqno,
    /// Non-empty sets of range tombstones, of all sources.
    pub covers: Vec<RangeTombstoneSource>,
    /// Combines merge operands.
    pub operator: Operator,
    /// Tells when entries expire.
    pub ttl: Option<Ttl>,
    /// Fetches values in blob files.
    pub blobs: Arc<dyn BlobSource>,
    /// The store's directory, for messages.
    pub store: Arc<PathBuf>,
    /// The keyspace's name, for messages.
    pub keyspace: String,
}

impl ReadContext {
    /// Returns the sequence number of the newest range tombstone over `key` that the reader sees,
    /// or 0 when there is none.
    #[inline]
    pub(crate) fn covered(&mut self, key: &[u8]) -> Seqno {
        let newest = self.covers.iter_mut().map(|covers| covers.newest(key, self.at)).max();
        debug_assert!(newest.is_none_or(|newest| newest <= self.at), "{newest:?} is not visible");
        newest.unwrap_or(0)
    }
}

/// The range tombstones of a source.
pub(crate) enum RangeTombstoneSource {
    /// The range tombstones of tables.
    Set(Arc<RangeTombstones>),
    /// The range tombstones of a memtable. Tombstones added during the iteration are not visible to
    /// the reader. The second field caches the last answer, which holds for adjacent keys too.
    Memtable(Arc<Memtable>, Option<Cover>),
}

impl RangeTombstoneSource {
    /// Returns the range tombstones of `memtable`.
    pub(crate) fn of_memtable(memtable: &Arc<Memtable>) -> RangeTombstoneSource {
        RangeTombstoneSource::Memtable(Arc::clone(memtable), None)
    }

    /// Returns the sequence number of the newest one over `key` visible at `at`, or 0 when there is
    /// none.
    #[inline]
    fn newest(&mut self, key: &[u8], at: Seqno) -> Seqno {
        match self {
            RangeTombstoneSource::Set(set) => set.newest_covering(key, at).unwrap_or(0),
            RangeTombstoneSource::Memtable(_, Some(cover)) if cover.holds_for(key) => cover.seqno,
            RangeTombstoneSource::Memtable(memtable, last) => last.insert(memtable.cover(key, at)).seqno,
        }
    }
}

impl ReadContext {
    /// Returns store and keyspace, for messages.
    fn place(&self) -> (&Path, &str) {
        (&self.store, &self.keyspace)
    }

    /// Returns true when a stored value of `key` has expired.
    #[inline]
    fn is_expired(&self, key: &[u8], stored: &[u8]) -> Result<bool> {
        match self.ttl {
            None => Ok(false),
            Some(ttl) => {
                let damaged = |what| Error::corruption(&self.store, 0, what);
                Ok(ttl.is_over(ttl::written_secs(key, stored).map_err(damaged)?))
            }
        }
    }
}

/// Returns a stored value without the time stamp after it.
fn without_stamp(stored: &[u8]) -> &[u8] {
    debug_assert!(stored.len() >= ttl::STAMP_BYTES, "the time stamp was not checked");
    &stored[..stored.len().saturating_sub(ttl::STAMP_BYTES)]
}

/// Half-open bounds of an iteration: `lower` is the first key included, `upper` the first key
/// excluded after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub lower: Option<Vec<u8>>,
    pub upper: Option<Vec<u8>>,
}

impl Bounds {
    /// Returns true when `key` lies within the bounds.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| lower <= key)
            && self.upper.as_deref().is_none_or(|upper| key < upper)
    }

    /// Returns the bounds of all keys that begin with `prefix`.
    pub(crate) fn of_prefix(prefix: &[u8]) -> Bounds {
        Bounds { lower: Some(prefix.to_vec()), upper: prefix_end(prefix) }
    }

    /// Returns the common prefix of all keys within the bounds, if the bounds are those of a
    /// prefix. Filters may be able to check it.
    pub(crate) fn prefix(&self) -> Option<&[u8]> {
        self.lower.as_deref().filter(|lower| !lower.is_empty() && prefix_end(lower) == self.upper)
    }
}

/// Iterates over the visible entries of `C`.
pub(crate) struct VisibleCursor<C> {
    inner: C,
    context: ReadContext,
    bounds: Bounds,
    place: Place,
    /// The current key unless `place` is `Inner`. During a move, the key whose older versions are
    /// skipped.
    key: Vec<u8>,
    /// The current value unless it is borrowed from `inner`.
    value: Vec<u8>,
    resolver: Resolver,
}

/// The place of the current entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// There is no current entry.
    Invalid,
    /// `inner` is positioned on it and holds its value.
    Inner,
    /// `inner` is positioned on it; the value was fetched into `value`.
    Fetched,
    /// The entry was merged into `key` and `value`; `inner` is positioned within or after its
    /// versions.
    Merged,
    /// The entry was copied into `key` and `value`; `inner` is positioned before all its versions.
    Backward,
}

impl<C: Cursor> VisibleCursor<C> {
    pub(crate) fn new(inner: C, context: ReadContext, bounds: Bounds) -> Self {
        let resolver = Resolver::default();
        VisibleCursor {
            inner,
            context,
            bounds,
            place: Place::Invalid,
            key: Vec::new(),
            value: Vec::new(),
            resolver,
        }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.place != Place::Invalid
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.place {
            Place::Inner | Place::Fetched => self.inner.key(),
            _ => &self.key,
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.place {
            Place::Inner if self.context.ttl.is_none() => self.inner.value(),
            Place::Inner => without_stamp(self.inner.value()),
            _ => &self.value,
        }
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        match self.bounds.lower.take() {
            None => self.run(|this| {
                this.inner.seek_first()?;
                this.settle_forward(false)
            }),
            Some(lower) => {
                let result = self.run(|this| this.seek_inner(&lower));
                self.bounds.lower = Some(lower);
                result
            }
        }
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        match self.bounds.upper.take() {
            None => self.run(|this| {
                this.inner.seek_last()?;
                this.settle_backward()
            }),
            Some(upper) => {
                let result = self.run(|this| {
                    this.inner.seek_back(&upper, false)?;
                    this.settle_backward()
                });
                self.bounds.upper = Some(upper);
                result
            }
        }
    }

    /// Moves to the first entry at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.bounds.lower.as_deref().is_some_and(|lower| key < lower) {
            return self.seek_first();
        }
        self.run(|this| this.seek_inner(key))
    }

    /// Moves to the last entry at or before `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        if self.bounds.upper.as_deref().is_some_and(|upper| key >= upper) {
            return self.seek_last();
        }
        self.run(|this| {
            this.inner.seek_back(key, true)?;
            this.settle_backward()
        })
    }

    /// Moves to the next entry. An invalid cursor stays invalid.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        self.run(|this| match this.place {
            Place::Invalid => Ok(()),
            Place::Inner | Place::Fetched => {
                this.key.clear();
                this.key.extend_from_slice(this.inner.key());
                this.inner.next()?;
                this.settle_forward(true)
            }
            Place::Merged => this.settle_forward(true),
            Place::Backward => {
                let key = std::mem::take(&mut this.key);
                let result = this.inner.seek(&key, 0);
                this.key = key;
                result?;
                this.settle_forward(true)
            }
        })
    }

    /// Moves to the previous entry. An invalid cursor stays invalid.
    pub(crate) fn prev(&mut self) -> Result<()> {
        self.run(|this| match this.place {
            Place::Invalid => Ok(()),
            Place::Backward => this.settle_backward(),
            Place::Inner | Place::Fetched | Place::Merged => {
                let key = this.key().to_vec();
                this.inner.seek_back(&key, false)?;
                this.settle_backward()
            }
        })
    }

    /// Performs a move. After an error the cursor is invalid.
    #[inline]
    fn run(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let result = step(self);
        if result.is_err() {
            self.place = Place::Invalid;
        }
        if matches!(self.place, Place::Inner | Place::Fetched) {
            debug_assert!(self.inner.valid(), "the source has left the current entry");
            debug_assert!(self.inner.seqno() <= self.context.at, "an entry that the reader does not see");
            debug_assert!(matches!(self.inner.kind(), Kind::Put | Kind::Blob), "an entry without a value");
        }
        debug_assert!(
            self.place != Place::Backward || !self.inner.valid() || self.inner.key() != self.key.as_slice(),
            "versions of the key were not read"
        );
        result
    }

    fn seek_inner(&mut self, key: &[u8]) -> Result<()> {
        self.inner.seek(key, self.context.at)?;
        self.settle_forward(false)
    }

    /// Moves from the position of `inner` to the next visible entry. With `skipping`, entries of
    /// `self.key` are skipped.
    #[inline]
    fn settle_forward(&mut self, mut skipping: bool) -> Result<()> {
        let mut steps = 0;
        loop {
            if !self.inner.valid() {
                self.place = Place::Invalid;
                return Ok(());
            }
            let key = self.inner.key();
            if self.bounds.upper.as_deref().is_some_and(|upper| key >= upper) {
                self.place = Place::Invalid;
                return Ok(());
            }
            if skipping && key == self.key.as_slice() {
                steps += 1;
                self.step_over(steps, 0)?;
                continue;
            }
            if self.inner.seqno() > self.context.at {
                if steps == STEPS_BEFORE_SEEK {
                    self.key.clear();
                    self.key.extend_from_slice(self.inner.key());
                    skipping = false;
                }
                steps += 1;
                self.step_over(steps, self.context.at)?;
                continue;
            }
            steps = 0;
            let covered = self.context.covered(key);
            let seqno = self.inner.seqno();
            match self.inner.kind() {
                Kind::Put
                    if seqno >= covered
                        && !self.context.is_expired(self.inner.key(), self.inner.value())? =>
                {
                    self.place = Place::Inner;
                    return Ok(());
                }
                Kind::Blob if seqno >= covered && self.fetch()? => {
                    self.place = Place::Fetched;
                    return Ok(());
                }
                Kind::Merge if seqno >= covered => {
                    self.key.clear();
                    self.key.extend_from_slice(self.inner.key());
                    return self.merge_forward(covered);
                }
                _ => {
                    self.key.clear();
                    self.key.extend_from_slice(self.inner.key());
                    skipping = true;
                    self.inner.next()?;
                }
            }
        }
    }

    /// Loads the value to which the entry under `inner` refers into `value`. Returns false when it
    /// has expired.
    fn fetch(&mut self) -> Result<bool> {
        self.context.blobs.load(self.inner.value(), &mut self.value)?;
        let is_expired = self.context.is_expired(self.inner.key(), &self.value)?;
        self.strip();
        Ok(!is_expired)
    }

    /// Removes the time stamp from `value`, if values have one.
    fn strip(&mut self) {
        if self.context.ttl.is_some() {
            self.value.truncate(without_stamp(&self.value).len());
        }
    }

    /// Skips an invisible entry with one step, or after many with a seek to (`self.key`, `seqno`).
    #[inline]
    fn step_over(&mut self, steps: u32, seqno: Seqno) -> Result<()> {
        debug_assert!(steps > 0, "the first step is number 1");
        debug_assert!(self.inner.valid(), "an entry after the last is skipped");
        if steps != STEPS_BEFORE_SEEK + 1 {
            return self.inner.next();
        }
        let key = std::mem::take(&mut self.key);
        let mut result = self.inner.seek(&key, seqno);
        // The entry with sequence number 0 itself is the last one to skip.
        if result.is_ok() && seqno == 0 && self.inner.valid() && self.inner.key() == key {
            result = self.inner.next();
        }
        self.key = key;
        result
    }

    /// Merges the operands of `self.key` with their base. `inner` must be positioned on the newest
    /// operand.
    fn merge_forward(&mut self, covered: Seqno) -> Result<()> {
        debug_assert!(self.inner.valid() && self.inner.kind() == Kind::Merge, "a merge begins at an operand");
        self.resolver.clear();
        let mut base = None;
        while self.inner.valid() && self.inner.key() == self.key.as_slice() {
            let (seqno, kind) = (self.inner.seqno(), self.inner.kind());
            match self.resolver.step(Version { seqno, kind, value: self.inner.value() }, covered) {
                Step::Older => self.inner.next()?,
                Step::Gone => break,
                Step::Found | Step::Base => {
                    base = Some(self.base(kind)?);
                    break;
                }
            }
        }
        let (operator, place) = (&self.context.operator, self.context.place());
        self.value = self.resolver.merge(&self.key, base.as_deref(), operator, place)?;
        self.place = Place::Merged;
        Ok(())
    }

    /// Returns the value under `inner`, which is of kind `Put` or `Blob`.
    fn base(&self, kind: Kind) -> Result<Vec<u8>> {
        debug_assert!(matches!(kind, Kind::Put | Kind::Blob), "a base of kind {kind:?}");
        let mut value = Vec::new();
        match kind {
            Kind::Blob => self.context.blobs.load(self.inner.value(), &mut value)?,
            _ => value.extend_from_slice(self.inner.value()),
        }
        Ok(value)
    }

    /// Moves from the position of `inner`, the oldest version of a key, to the last visible entry
    /// at or before it.
    fn settle_backward(&mut self) -> Result<()> {
        loop {
            let below = |key: &[u8]| self.bounds.lower.as_deref().is_some_and(|lower| key < lower);
            if !self.inner.valid() || below(self.inner.key()) {
                self.place = Place::Invalid;
                return Ok(());
            }
            self.key.clear();
            self.key.extend_from_slice(self.inner.key());
            let covered = self.context.covered(&self.key);
            let mut base: Option<Kind> = None;
            let mut operands: Vec<Vec<u8>> = Vec::new();
            while self.inner.valid() && self.inner.key() == self.key.as_slice() {
                let seqno = self.inner.seqno();
                if seqno <= self.context.at && seqno >= covered {
                    match self.inner.kind() {
                        Kind::Merge => operands.push(self.inner.value().to_vec()),
                        kind => {
                            operands.clear();
                            base = (kind != Kind::Delete).then_some(kind);
                            let mut value = self.inner.value();
                            if kind == Kind::Put && self.context.ttl.is_some() {
                                if self.context.is_expired(&self.key, value)? {
                                    base = None;
                                }
                                value = without_stamp(value);
                            }
                            self.value.clear();
                            self.value.extend_from_slice(value);
                        }
                    }
                }
                self.inner.prev()?;
            }
            if base == Some(Kind::Blob) {
                let reference = std::mem::take(&mut self.value);
                self.context.blobs.load(&reference, &mut self.value)?;
                if self.context.is_expired(&self.key, &self.value)? {
                    base = None;
                }
                self.strip();
            }
            if !operands.is_empty() {
                operands.reverse();
                let base = base.is_some().then_some(self.value.as_slice());
                let resolver = Resolver::from_operands(operands);
                self.value = resolver.merge(&self.key, base, &self.context.operator, self.context.place())?;
            } else if base.is_none() {
                continue;
            }
            self.place = Place::Backward;
            return Ok(());
        }
    }
}
