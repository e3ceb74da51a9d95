//! A [`cairn_kv`] store whose operations are recorded.
//!
//! [`TracedDb`] has the methods of [`Db`] and dereferences to it for everything that is not an
//! operation on records. Without a recorder an operation costs one extra branch, so a program can
//! always use it and record only when the environment requests it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
//! use cairn_kv::Db;
//! use cairn_trace::Recorder;
//! use cairn_trace::kv::TracedDb;
//!
//! let recorder = Recorder::from_env("my program")?; // None unless CAIRN_TRACE names a file
//! let db = TracedDb::new(Db::builder("/store").fs(fs).open()?, recorder);
//! db.put("apple", "red")?;
//! assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! Not recorded: transactions, ingested tables, and operations through handles that the
//! dereferenced types return.

use std::ops::Deref;

use cairn_kv::{
    Db, DbCursor, KeyRange, Keyspace, KeyspaceId, Operation, Pair, Range, ReadOptions, Result, Snapshot,
    Value, WriteBatch,
};

use crate::event::Detail;
use crate::recorder::Recorder;

/// A [`Db`] whose operations are recorded. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TracedDb {
    db: Db,
    default: TracedKeyspace,
}

/// A [`Keyspace`] whose operations are recorded. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TracedKeyspace {
    keyspace: Keyspace,
    recorder: Option<Recorder>,
    number: u32,
}

impl TracedDb {
    /// Wraps a store so that operations through the returned handle are recorded. If `recorder` is
    /// `None`, nothing is recorded.
    pub fn new(db: Db, recorder: Option<Recorder>) -> TracedDb {
        let default = TracedKeyspace { keyspace: Keyspace::clone(&db), recorder, number: 0 };
        TracedDb { db, default }
    }

    /// Returns the recorder.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.default.recorder.as_ref()
    }

    /// Like [`Db::keyspace`]. The trace numbers the keyspace by its [`Keyspace::id`].
    pub fn keyspace(&self, name: &str) -> Option<TracedKeyspace> {
        let keyspace = self.db.keyspace(name)?;
        let number = keyspace.id().0;
        Some(TracedKeyspace { keyspace, recorder: self.default.recorder.clone(), number })
    }

    /// Like [`Db::write`]. The operations are recorded as one batch.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.db.write(batch)?;
        self.record_batch(batch);
        Ok(())
    }

    /// Like [`Db::write_with`].
    pub fn write_with(&self, batch: &WriteBatch, durability: cairn_kv::Durability) -> Result<()> {
        self.db.write_with(batch, durability)?;
        self.record_batch(batch);
        Ok(())
    }

    fn record_batch(&self, batch: &WriteBatch) {
        let Some(recorder) = self.recorder() else { return };
        recorder.batch(|records| {
            records.count(batch.len());
            let sampler = records.sampler();
            let mut record = |id: KeyspaceId, operation: Operation<'_>| {
                let detail = match operation {
                    Operation::Put { value, .. } => Detail::Put(value.len() as u64),
                    Operation::Delete { .. } => Detail::Delete,
                    Operation::Merge { operand, .. } => Detail::Merge(operand.len() as u64),
                    Operation::DeleteRange { end, .. } => {
                        Detail::DeleteRange { end, end_bytes: end.len() as u32 }
                    }
                };
                records.record_counted(id.0, operation.first_key(), detail);
            };
            if sampler.takes_all() {
                batch.operations().for_each(|(id, operation)| record(id, operation));
            } else {
                let is_wanted = move |key: &[u8]| !sampler.leaves_out_of_many(key);
                batch.operations_where(is_wanted).for_each(|(id, operation)| record(id, operation));
            }
        });
    }
}

/// Dereferences to the traced default keyspace, so `db.put(..)` is recorded.
impl Deref for TracedDb {
    type Target = TracedKeyspace;

    fn deref(&self) -> &TracedKeyspace {
        &self.default
    }
}

impl AsRef<Db> for TracedDb {
    fn as_ref(&self) -> &Db {
        &self.db
    }
}

/// Dereferences to the untraced keyspace, for flushes, statistics and the like.
impl Deref for TracedKeyspace {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.keyspace
    }
}

impl TracedKeyspace {
    /// Like [`Keyspace::put`].
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.keyspace.put(key, value)?;
        self.record(key, Detail::Put(value.len() as u64));
        Ok(())
    }

    /// Like [`Keyspace::put_with`].
    #[inline]
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: cairn_kv::Durability,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.keyspace.put_with(key, value, durability)?;
        self.record(key, Detail::Put(value.len() as u64));
        Ok(())
    }

    /// Like [`Keyspace::delete`].
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.keyspace.delete(key.as_ref())?;
        self.record(key.as_ref(), Detail::Delete);
        Ok(())
    }

    /// Like [`Keyspace::delete_with`].
    #[inline]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: cairn_kv::Durability) -> Result<()> {
        self.keyspace.delete_with(key.as_ref(), durability)?;
        self.record(key.as_ref(), Detail::Delete);
        Ok(())
    }

    /// Like [`Keyspace::merge`].
    #[inline]
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.keyspace.merge(key, operand)?;
        self.record(key, Detail::Merge(operand.len() as u64));
        Ok(())
    }

    /// Like [`Keyspace::merge_with`].
    #[inline]
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        durability: cairn_kv::Durability,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.keyspace.merge_with(key, operand, durability)?;
        self.record(key, Detail::Merge(operand.len() as u64));
        Ok(())
    }

    /// Like [`Keyspace::delete_range`].
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        self.keyspace.delete_range(start, end)?;
        self.record(start, Detail::DeleteRange { end, end_bytes: end.len() as u32 });
        Ok(())
    }

    /// Like [`Keyspace::delete_range_with`].
    pub fn delete_range_with(
        &self,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        durability: cairn_kv::Durability,
    ) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        self.keyspace.delete_range_with(start, end, durability)?;
        self.record(start, Detail::DeleteRange { end, end_bytes: end.len() as u32 });
        Ok(())
    }

    /// Like [`Keyspace::get`].
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        let value = self.keyspace.get(key)?;
        self.record_get(key, value.as_ref());
        Ok(value)
    }

    /// Like [`Keyspace::get_at`].
    pub fn get_at(&self, key: impl AsRef<[u8]>, snapshot: &Snapshot) -> Result<Option<Value>> {
        let key = key.as_ref();
        let value = self.keyspace.get_at(key, snapshot)?;
        self.record_get(key, value.as_ref());
        Ok(value)
    }

    /// Like [`Keyspace::multi_get`]. The lookups are recorded as one batch.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let values = self.keyspace.multi_get(keys)?;
        self.record_gets(keys, &values);
        Ok(values)
    }

    /// Like [`Keyspace::multi_get_at`]. Recorded like [`TracedKeyspace::multi_get`].
    pub fn multi_get_at<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Value>>> {
        let values = self.keyspace.multi_get_at(keys, snapshot)?;
        self.record_gets(keys, &values);
        Ok(values)
    }

    fn record_gets<K: AsRef<[u8]>>(&self, keys: &[K], values: &[Option<Value>]) {
        let Some(recorder) = &self.recorder else { return };
        recorder.batch(|records| {
            for (key, value) in keys.iter().zip(values) {
                let found = value.as_ref().map(|value| value.len() as u64);
                records.record(self.number, key.as_ref(), Detail::Get(Some(found)));
            }
        });
    }

    /// Like [`Keyspace::cursor`]. The entries read from one position on are recorded as one scan,
    /// once the cursor is repositioned or dropped.
    pub fn cursor(&self) -> Result<TracedCursor> {
        Ok(self.traced(self.keyspace.cursor()?, Vec::new()))
    }

    /// Like [`Keyspace::cursor_in`].
    pub fn cursor_in(
        &self,
        range: impl KeyRange,
        snapshot: Option<&Snapshot>,
        options: &ReadOptions,
    ) -> Result<TracedCursor> {
        let first = range.half_open().0.unwrap_or_default();
        Ok(self.traced(self.keyspace.cursor_in(range, snapshot, options)?, first))
    }

    /// Like [`Keyspace::range`]. Recorded as a scan when the iterator is dropped.
    pub fn range(&self, range: impl KeyRange) -> TracedRange {
        let start = range.half_open().0.unwrap_or_default();
        TracedRange { range: self.keyspace.range(range), scan: self.scan(start) }
    }

    /// Like [`Keyspace::range_at`]. Recorded like [`TracedKeyspace::range`].
    pub fn range_at(&self, range: impl KeyRange, snapshot: &Snapshot) -> TracedRange {
        let start = range.half_open().0.unwrap_or_default();
        TracedRange { range: self.keyspace.range_at(range, snapshot), scan: self.scan(start) }
    }

    /// Like [`Keyspace::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TracedRange {
        let scan = self.scan(prefix.as_ref().to_vec());
        TracedRange { range: self.keyspace.prefix(prefix), scan }
    }

    /// Like [`Keyspace::iter`].
    pub fn iter(&self) -> TracedRange {
        self.range(..)
    }

    #[inline]
    fn record(&self, key: &[u8], detail: Detail<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.record(self.number, key, detail);
        }
    }

    #[inline]
    fn record_get(&self, key: &[u8], value: Option<&Value>) {
        if let Some(recorder) = &self.recorder {
            recorder
                .record_with(self.number, key, || Detail::Get(Some(value.map(|value| value.len() as u64))));
        }
    }

    fn scan(&self, start: Vec<u8>) -> Scan {
        let recorder = self.recorder.clone();
        Scan { recorder, number: self.number, start, is_used: false, entries: 0, backwards: false }
    }

    fn traced(&self, cursor: DbCursor, first: Vec<u8>) -> TracedCursor {
        TracedCursor { cursor, first, scan: self.scan(Vec::new()) }
    }
}

/// A scan in progress.
#[derive(Debug)]
struct Scan {
    recorder: Option<Recorder>,
    number: u32,
    start: Vec<u8>,
    /// True once the caller has requested an entry. A scan that finds nothing counts as an
    /// operation.
    is_used: bool,
    entries: u64,
    backwards: bool,
}

impl Scan {
    fn note(&mut self) {
        if let Some(recorder) = &self.recorder
            && self.is_used
        {
            recorder.scan(self.number, &self.start, self.entries, self.backwards);
        }
        (self.is_used, self.entries) = (false, 0);
    }

    /// Notes that an entry of a range was requested, and whether there was one.
    #[inline]
    fn step(&mut self, is_there: bool) {
        self.is_used = true;
        self.entries += u64::from(is_there);
    }

    /// Records the scan so far and begins a new one.
    fn begin(&mut self, start: &[u8], backwards: bool) {
        self.note();
        if self.recorder.is_some() {
            self.start.clear();
            self.start.extend_from_slice(start);
        }
        (self.is_used, self.entries, self.backwards) = (true, 1, backwards);
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.note();
    }
}

/// A [`DbCursor`] whose scans are recorded. A scan begins at a position and counts the entries that
/// the cursor returned from there. Positioning where there is no entry counts as a scan of one
/// entry.
#[derive(Debug)]
pub struct TracedCursor {
    cursor: DbCursor,
    /// The first key of the cursor's range.
    first: Vec<u8>,
    scan: Scan,
}

impl TracedCursor {
    /// Like [`DbCursor::valid`].
    #[inline]
    pub fn valid(&self) -> bool {
        self.cursor.valid()
    }

    /// Like [`DbCursor::seek_first`].
    pub fn seek_first(&mut self) -> Result<()> {
        self.scan.begin(&self.first, false);
        self.cursor.seek_first()
    }

    /// Like [`DbCursor::seek_last`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.cursor.seek_last()?;
        self.scan.begin(self.cursor.key(), true);
        Ok(())
    }

    /// Like [`DbCursor::seek`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.scan.begin(key.as_ref(), false);
        self.cursor.seek(key)
    }

    /// Like [`DbCursor::seek_for_prev`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.scan.begin(key.as_ref(), true);
        self.cursor.seek_for_prev(key)
    }

    /// Like [`DbCursor::next`].
    #[inline]
    #[allow(clippy::should_implement_trait)] // a cursor's `next` moves it and returns no item
    pub fn next(&mut self) -> Result<()> {
        self.cursor.next()?;
        self.scan.entries += u64::from(self.cursor.valid());
        Ok(())
    }

    /// Like [`DbCursor::prev`].
    pub fn prev(&mut self) -> Result<()> {
        self.cursor.prev()?;
        self.scan.entries += u64::from(self.cursor.valid());
        Ok(())
    }

    /// Like [`DbCursor::key`].
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    /// Like [`DbCursor::value`].
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.cursor.value()
    }
}

/// A [`Range`] that is recorded as a scan, with the number of entries taken from either end. An
/// iterator that finds nothing is recorded with 0 entries; one that is never advanced is not
/// recorded.
#[derive(Debug)]
pub struct TracedRange {
    range: Range,
    scan: Scan,
}

impl Iterator for TracedRange {
    type Item = Result<Pair>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.range.next();
        self.scan.step(next.is_some());
        next
    }
}

impl DoubleEndedIterator for TracedRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next = self.range.next_back();
        if self.scan.entries == 0
            && let Some(Ok((key, _))) = &next
        {
            // A scan from the back is recorded with the first key that it returns, not with the
            // start of the range.
            self.scan.begin(key, true);
            self.scan.entries = 0;
        }
        self.scan.step(next.is_some());
        next
    }
}

#[cfg(test)]
mod tests;
