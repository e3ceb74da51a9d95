//! Cursors and iterators over the entries of a keyspace that a reader sees.

use std::ops::Bound;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::cursor::Cursor;
use crate::db::core::Core;
use crate::db::inner::Inner;
use crate::db::key_range::KeyRange;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::level_cursor::LevelCursor;
use crate::db::snapshots::SnapshotGuard;
use crate::db::view::View;
use crate::iter::merge::MergeCursor;
use crate::iter::visible::{Bounds, RangeTombstoneSource, ReadContext, VisibleCursor};
use crate::kind::{Kind, Seqno};
use crate::memtable::MemCursor;
use crate::options::ReadOptions;
use crate::table::TableCursor;

#[cfg(test)]
mod tests;

/// One of the sources merged by a cursor.
pub(crate) enum Source {
    Memtable(MemCursor),
    Table(TableCursor),
    Level(LevelCursor),
}

macro_rules! each {
    ($self:expr, $cursor:ident => $body:expr) => {
        match $self {
            Source::Memtable($cursor) => $body,
            Source::Table($cursor) => $body,
            Source::Level($cursor) => $body,
        }
    };
}

impl Cursor for Source {
    #[inline]
    fn valid(&self) -> bool {
        each!(self, cursor => cursor.valid())
    }

    fn seek_first(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        each!(self, cursor => cursor.seek_last())
    }

    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        each!(self, cursor => cursor.seek(key, seqno))
    }

    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        each!(self, cursor => cursor.seek_back(key, inclusive))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        each!(self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        each!(self, cursor => cursor.prev())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        each!(self, cursor => cursor.key())
    }

    #[inline]
    fn seqno(&self) -> Seqno {
        each!(self, cursor => cursor.seqno())
    }

    #[inline]
    fn kind(&self) -> Kind {
        each!(self, cursor => cursor.kind())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }
}

/// A cursor over the entries of a keyspace that one reader sees.
///
/// It streams: it takes the memory of one block per source, however long the scan. It shows the
/// keyspace as of its creation and keeps the files of that moment alive. A cursor is either
/// positioned on an entry or invalid. After an error it is invalid, and `seek*` may be tried again.
///
/// ```
/// # fn main() -> cairn_kv::Result<()> {
/// # let fs = std::sync::Arc::new(cairn_vfs::MemFs::new());
/// let db = cairn_kv::Db::builder("/store").fs(fs).open()?;
/// for number in 0..10u8 {
///     db.put([b'k', number], [number])?;
/// }
/// let mut cursor = db.cursor()?;
/// cursor.seek([b'k', 7])?;
/// while cursor.valid() {
///     println!("{:?} = {:?}", cursor.key(), cursor.value());
///     cursor.next()?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct DbCursor {
    visible: VisibleCursor<MergeCursor<Source>>,
    _snapshot: SnapshotGuard,
    /// Keeps the store open.
    _core: RemoveObsolete,
}

/// Dropped after the sources of a cursor: deletes the files of which the cursor was the last
/// reader.
struct RemoveObsolete(Arc<Core>);

impl Drop for RemoveObsolete {
    fn drop(&mut self) {
        self.0.inner.remove_obsolete();
    }
}

impl std::fmt::Debug for DbCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("DbCursor");
        if self.valid() {
            debug.field("key", &crate::escape::printable(self.key()));
        }
        debug.finish_non_exhaustive()
    }
}

impl DbCursor {
    /// Returns true if the cursor is positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.visible.valid()
    }

    /// Moves to the first entry of the range.
    pub fn seek_first(&mut self) -> Result<()> {
        self.visible.seek_first()
    }

    /// Moves to the last entry of the range.
    pub fn seek_last(&mut self) -> Result<()> {
        self.visible.seek_last()
    }

    /// Moves to the first entry at or after `key`.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.visible.seek(key.as_ref())
    }

    /// Moves to the last entry at or before `key`.
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.visible.seek_for_prev(key.as_ref())
    }

    /// Moves to the next entry. Does nothing if the cursor is invalid.
    #[inline]
    #[allow(clippy::should_implement_trait)] // a cursor's `next` moves it and returns no item
    pub fn next(&mut self) -> Result<()> {
        self.visible.next()
    }

    /// Moves to the previous entry. Does nothing if the cursor is invalid.
    pub fn prev(&mut self) -> Result<()> {
        self.visible.prev()
    }

    /// Returns the key, or an empty slice if the cursor is invalid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.valid() { self.visible.key() } else { &[] }
    }

    /// Returns the value, or an empty slice if the cursor is invalid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        if self.valid() { self.visible.value() } else { &[] }
    }
}

/// Converts any kind of key range to half-open bounds.
pub(crate) fn half_open(range: &impl KeyRange) -> Bounds {
    let (lower, upper) = range.half_open();
    Bounds { lower, upper }
}

impl Inner {
    /// Returns a cursor over `bounds` as of `snapshot`.
    pub(crate) fn cursor(
        &self,
        core: Arc<Core>,
        keyspace: &KeyspaceState,
        bounds: Bounds,
        snapshot: SnapshotGuard,
        options: &ReadOptions,
    ) -> Result<DbCursor> {
        self.check_snapshot(&snapshot)?;
        debug_assert!(
            snapshot.seqno() <= self.order.visible(),
            "a snapshot of {}, which is not visible yet",
            snapshot.seqno()
        );
        let view = keyspace.view.load_full();
        // After loading the view, because dropping a keyspace sets the flag before it empties the
        // view.
        keyspace.check_open()?;
        let mut covers = Vec::new();
        let sources = self.sources(&view, &bounds, options, &mut covers)?;
        let context = ReadContext {
            at: snapshot.seqno(),
            covers,
            operator: keyspace.options.merge_operator.clone(),
            ttl: self.ttl(keyspace),
            blobs: self.blob_source(&view.version),
            store: Arc::clone(&self.path),
            keyspace: keyspace.name.clone(),
        };
        let visible = VisibleCursor::new(MergeCursor::new(sources), context, bounds);
        Ok(DbCursor { visible, _snapshot: snapshot, _core: RemoveObsolete(core) })
    }

    /// Returns all sources of a view that may have entries within the bounds, newest first. Adds
    /// their range tombstones to `covers`.
    fn sources(
        &self,
        view: &View,
        bounds: &Bounds,
        options: &ReadOptions,
        covers: &mut Vec<RangeTombstoneSource>,
    ) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        let memtables =
            std::iter::once(&view.active).chain(view.sealed.iter().map(|sealed| &sealed.memtable));
        for memtable in memtables {
            if memtable.has_range_tombstones() {
                covers.push(RangeTombstoneSource::of_memtable(memtable));
            }
            sources.push(Source::Memtable(memtable.cursor()));
        }
        let lower = bounds.lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let upper = bounds.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        for level in view.version.levels() {
            for (_, files) in level.overlapping(lower, upper) {
                for file in files {
                    if file.meta.tombstones > 0 {
                        let tombstones = self.tables.open(file)?.range_tombstones();
                        if !tombstones.is_empty() {
                            covers.push(RangeTombstoneSource::Set(Arc::clone(tombstones)));
                        }
                    }
                }
                sources.push(match files {
                    [file] => Source::Table(self.tables.cursor(self.tables.open(file)?, bounds, options)),
                    files => {
                        let tables = Arc::clone(&self.tables);
                        Source::Level(LevelCursor::new(tables, files.to_vec(), bounds, options))
                    }
                });
            }
        }
        Ok(sources)
    }
}

/// A double-ended iterator over the entries of a range. Returned by [`crate::Keyspace::range`] and
/// similar methods.
///
/// Each item is copied; [`DbCursor`] iterates without copies. The iterator ends after an error.
#[derive(Debug)]
pub struct Range {
    maker: RangeMaker,
    front: Option<DbCursor>,
    back: Option<DbCursor>,
    /// The last key returned at either end. The other end stops before it.
    first: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    is_over: bool,
}

/// Creates the cursors of a [`Range`], both as of the same moment.
#[derive(Debug)]
pub(crate) struct RangeMaker {
    pub core: Arc<Core>,
    pub keyspace: Arc<KeyspaceState>,
    pub bounds: Bounds,
    pub options: ReadOptions,
    pub snapshot: SnapshotGuard,
}

impl RangeMaker {
    pub(crate) fn cursor(&self) -> Result<DbCursor> {
        let (core, bounds) = (Arc::clone(&self.core), self.bounds.clone());
        let snapshot = self.snapshot.clone();
        core.inner.cursor(Arc::clone(&core), &self.keyspace, bounds, snapshot, &self.options)
    }
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

impl Range {
    pub(crate) fn new(maker: RangeMaker) -> Self {
        Range { maker, front: None, back: None, first: None, last: None, is_over: false }
    }

    fn step_front(&mut self) -> Result<Option<Pair>> {
        let cursor = match &mut self.front {
            Some(cursor) => {
                cursor.next()?;
                cursor
            }
            front @ None => {
                let cursor = front.insert(self.maker.cursor()?);
                cursor.seek_first()?;
                cursor
            }
        };
        if !cursor.valid() || self.last.as_deref().is_some_and(|last| cursor.key() >= last) {
            return Ok(None);
        }
        let pair = (cursor.key().to_vec(), cursor.value().to_vec());
        self.first = Some(pair.0.clone());
        Ok(Some(pair))
    }

    fn step_back(&mut self) -> Result<Option<Pair>> {
        let cursor = match &mut self.back {
            Some(cursor) => {
                cursor.prev()?;
                cursor
            }
            back @ None => {
                let cursor = back.insert(self.maker.cursor()?);
                cursor.seek_last()?;
                cursor
            }
        };
        if !cursor.valid() || self.first.as_deref().is_some_and(|first| cursor.key() <= first) {
            return Ok(None);
        }
        let pair = (cursor.key().to_vec(), cursor.value().to_vec());
        self.last = Some(pair.0.clone());
        Ok(Some(pair))
    }

    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<Option<Pair>>) -> Option<Result<Pair>> {
        if self.is_over {
            return None;
        }
        let item = step(self).transpose();
        self.is_over = !matches!(item, Some(Ok(_)));
        item
    }
}

impl Iterator for Range {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Self::step_front)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Self::step_back)
    }
}

impl std::iter::FusedIterator for Range {}
