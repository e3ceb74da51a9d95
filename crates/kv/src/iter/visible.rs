//! What a reader sees of a merge: of each key the one value that it has at a sequence number.
//!
//! Forwards the value is borrowed from the source; nothing is copied but the key, to know its older
//! versions by. Backwards the versions of a key come oldest first, so the value is copied until a
//! newer one shows up.

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

/// After this many entries that no reader sees, a walk seeks over the rest of the key's versions.
const STEPS_BEFORE_SEEK: u32 = 8;

/// Fetches values that live in blob files.
pub(crate) trait BlobSource: Send + Sync {
    /// Replaces `out` with the value that `reference`, the stored value of a [`Kind::Blob`] entry,
    /// points at.
    fn load(&self, reference: &[u8], out: &mut Vec<u8>) -> Result<()>;
}

/// All that a reader needs beside the entries.
pub(crate) struct ReadContext {
    /// The newest sequence number that is seen.
    pub at: Seqno,
    /// Range tombstones of all sources; no empty ones.
    pub covers: Vec<Covers>,
    /// For merge operands.
    pub operator: Operator,
    /// When entries expire.
    pub ttl: Option<Ttl>,
    /// For large values.
    pub blobs: Arc<dyn BlobSource>,
    /// The store's directory, for messages.
    pub store: Arc<PathBuf>,
    /// The keyspace's name, likewise.
    pub keyspace: String,
}

impl ReadContext {
    /// The newest range tombstone over `key` that the reader sees, 0 when there is none.
    #[inline]
    pub(crate) fn covered(&mut self, key: &[u8]) -> Seqno {
        let newest = self.covers.iter_mut().map(|covers| covers.newest(key, self.at)).max();
        newest.unwrap_or(0)
    }
}

/// The range tombstones of a source.
pub(crate) enum Covers {
    /// Of tables.
    Set(Arc<RangeTombstones>),
    /// Of a memtable, to which others may be added while the reader goes on: it does not see those.
    /// With the last answer, which holds for the keys around.
    Memtable(Arc<Memtable>, Option<Cover>),
}

impl Covers {
    /// Those of `memtable`.
    pub(crate) fn of_memtable(memtable: &Arc<Memtable>) -> Covers {
        Covers::Memtable(Arc::clone(memtable), None)
    }

    /// The newest one over `key` that is seen at `at`, 0 when there is none.
    #[inline]
    fn newest(&mut self, key: &[u8], at: Seqno) -> Seqno {
        match self {
            Covers::Set(set) => set.newest_covering(key, at).unwrap_or(0),
            Covers::Memtable(_, Some(cover)) if cover.holds_for(key) => cover.seqno,
            Covers::Memtable(memtable, last) => last.insert(memtable.cover(key, at)).seqno,
        }
    }
}

impl ReadContext {
    /// Store and keyspace, for messages.
    fn place(&self) -> (&Path, &str) {
        (&self.store, &self.keyspace)
    }

    /// True when a stored value of `key` has outlived its time.
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

/// A stored value without the time behind it.
fn without_stamp(stored: &[u8]) -> &[u8] {
    &stored[..stored.len().saturating_sub(ttl::STAMP_BYTES)]
}

/// Half-open bounds: `lower` is the first key of the walk, `upper` the first one after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub lower: Option<Vec<u8>>,
    pub upper: Option<Vec<u8>>,
}

impl Bounds {
    /// True when `key` lies within.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| lower <= key)
            && self.upper.as_deref().is_none_or(|upper| key < upper)
    }

    /// All keys that begin with `prefix`.
    pub(crate) fn of_prefix(prefix: &[u8]) -> Bounds {
        Bounds { lower: Some(prefix.to_vec()), upper: prefix_end(prefix) }
    }

    /// What all keys within begin with, if the bounds are those of a prefix: filters may know it.
    pub(crate) fn prefix(&self) -> Option<&[u8]> {
        self.lower.as_deref().filter(|lower| !lower.is_empty() && prefix_end(lower) == self.upper)
    }
}

/// Walks the visible entries of `C`.
pub(crate) struct VisibleCursor<C> {
    inner: C,
    context: ReadContext,
    bounds: Bounds,
    place: Place,
    /// The current key unless `place` is `Inner`; while moving, the key whose older versions are to
    /// be skipped.
    key: Vec<u8>,
    /// The current value unless it is borrowed from `inner`.
    value: Vec<u8>,
    resolver: Resolver,
}

/// Where the current entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere.
    Invalid,
    /// `inner` stands on it, and holds its value.
    Inner,
    /// `inner` stands on it; the value was fetched into `value`.
    Fetched,
    /// Merged into `key` and `value`; `inner` stands somewhere in or after its versions.
    Merged,
    /// Copied into `key` and `value`; `inner` stands before all its versions.
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

    /// To the first entry at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if self.bounds.lower.as_deref().is_some_and(|lower| key < lower) {
            return self.seek_first();
        }
        self.run(|this| this.seek_inner(key))
    }

    /// To the last entry at or before `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        if self.bounds.upper.as_deref().is_some_and(|upper| key >= upper) {
            return self.seek_last();
        }
        self.run(|this| {
            this.inner.seek_back(key, true)?;
            this.settle_backward()
        })
    }

    /// To the next entry. Stays invalid when it is.
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

    /// To the entry before. Stays invalid when it is.
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

    /// Runs a move; after an error the cursor is invalid.
    #[inline]
    fn run(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let result = step(self);
        if result.is_err() {
            self.place = Place::Invalid;
        }
        result
    }

    fn seek_inner(&mut self, key: &[u8]) -> Result<()> {
        self.inner.seek(key, self.context.at)?;
        self.settle_forward(false)
    }

    /// From where `inner` stands to the next visible entry. With `skipping`, entries of `self.key`
    /// are passed over.
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

    /// Loads the value that the entry under `inner` refers to into `value`; false when it has
    /// outlived its time.
    fn fetch(&mut self) -> Result<bool> {
        self.context.blobs.load(self.inner.value(), &mut self.value)?;
        let is_expired = self.context.is_expired(self.inner.key(), &self.value)?;
        self.strip();
        Ok(!is_expired)
    }

    /// Takes the time off `value`, where values have one.
    fn strip(&mut self) {
        if self.context.ttl.is_some() {
            self.value.truncate(without_stamp(&self.value).len());
        }
    }

    /// Leaves an entry that is not seen: by one step, or after many by a seek to (`self.key`,
    /// `seqno`).
    #[inline]
    fn step_over(&mut self, steps: u32, seqno: Seqno) -> Result<()> {
        if steps != STEPS_BEFORE_SEEK + 1 {
            return self.inner.next();
        }
        let key = std::mem::take(&mut self.key);
        let mut result = self.inner.seek(&key, seqno);
        // The entry of number 0 itself is the last one to be passed.
        if result.is_ok() && seqno == 0 && self.inner.valid() && self.inner.key() == key {
            result = self.inner.next();
        }
        self.key = key;
        result
    }

    /// Merges the operands of `self.key`, on whose newest one `inner` stands, with their base.
    fn merge_forward(&mut self, covered: Seqno) -> Result<()> {
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

    /// The value that `inner` stands on, which is of kind `Put` or `Blob`.
    fn base(&self, kind: Kind) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        match kind {
            Kind::Blob => self.context.blobs.load(self.inner.value(), &mut value)?,
            _ => value.extend_from_slice(self.inner.value()),
        }
        Ok(value)
    }

    /// From where `inner` stands, the oldest version of a key, to the last visible entry at or
    /// before.
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
