//! [`cairn_kv`] with a recorder beside it.
//!
//! A [`TracedDb`] is used as a [`Db`] is, and dereferences to it for what is no operation on
//! records. Without a recorder it costs a branch; so a program can always use it, and record when
//! the environment asks for that.
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
//! Not recorded: transactions, and tables that are ingested. What the types that are dereferenced
//! to hand out is not traced either.

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
    /// Records what goes through the returned handle; nothing where `recorder` is `None`.
    pub fn new(db: Db, recorder: Option<Recorder>) -> TracedDb {
        let default = TracedKeyspace { keyspace: Keyspace::clone(&db), recorder, number: 0 };
        TracedDb { db, default }
    }

    /// The recorder.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.default.recorder.as_ref()
    }

    /// As [`Db::keyspace`]. Its number in the trace is that of [`Keyspace::id`].
    pub fn keyspace(&self, name: &str) -> Option<TracedKeyspace> {
        let keyspace = self.db.keyspace(name)?;
        let number = keyspace.id().0;
        Some(TracedKeyspace { keyspace, recorder: self.default.recorder.clone(), number })
    }

    /// As [`Db::write`]; the operations are recorded as one batch.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.db.write(batch)?;
        self.record_batch(batch);
        Ok(())
    }

    /// As [`Db::write_with`].
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

/// The traced default keyspace: `db.put(..)` is recorded.
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

/// The keyspace without a recorder, for flushes, statistics and the like.
impl Deref for TracedKeyspace {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.keyspace
    }
}

impl TracedKeyspace {
    /// As [`Keyspace::put`].
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.keyspace.put(key, value)?;
        self.record(key, Detail::Put(value.len() as u64));
        Ok(())
    }

    /// As [`Keyspace::put_with`].
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

    /// As [`Keyspace::delete`].
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.keyspace.delete(key.as_ref())?;
        self.record(key.as_ref(), Detail::Delete);
        Ok(())
    }

    /// As [`Keyspace::delete_with`].
    #[inline]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: cairn_kv::Durability) -> Result<()> {
        self.keyspace.delete_with(key.as_ref(), durability)?;
        self.record(key.as_ref(), Detail::Delete);
        Ok(())
    }

    /// As [`Keyspace::merge`].
    #[inline]
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.keyspace.merge(key, operand)?;
        self.record(key, Detail::Merge(operand.len() as u64));
        Ok(())
    }

    /// As [`Keyspace::merge_with`].
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

    /// As [`Keyspace::delete_range`].
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        self.keyspace.delete_range(start, end)?;
        self.record(start, Detail::DeleteRange { end, end_bytes: end.len() as u32 });
        Ok(())
    }

    /// As [`Keyspace::delete_range_with`].
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

    /// As [`Keyspace::get`].
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        let value = self.keyspace.get(key)?;
        self.record_get(key, value.as_ref());
        Ok(value)
    }

    /// As [`Keyspace::get_at`].
    pub fn get_at(&self, key: impl AsRef<[u8]>, snapshot: &Snapshot) -> Result<Option<Value>> {
        let key = key.as_ref();
        let value = self.keyspace.get_at(key, snapshot)?;
        self.record_get(key, value.as_ref());
        Ok(value)
    }

    /// As [`Keyspace::multi_get`]; the lookups are recorded as belonging together.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let values = self.keyspace.multi_get(keys)?;
        self.record_gets(keys, &values);
        Ok(values)
    }

    /// As [`Keyspace::multi_get_at`]; recorded as [`TracedKeyspace::multi_get`].
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

    /// As [`Keyspace::cursor`]. What is read from one position on is a scan of the trace, noted
    /// when the cursor moves elsewhere or is dropped.
    pub fn cursor(&self) -> Result<TracedCursor> {
        Ok(self.traced(self.keyspace.cursor()?, Vec::new()))
    }

    /// As [`Keyspace::cursor_in`].
    pub fn cursor_in(
        &self,
        range: impl KeyRange,
        snapshot: Option<&Snapshot>,
        options: &ReadOptions,
    ) -> Result<TracedCursor> {
        let first = range.half_open().0.unwrap_or_default();
        Ok(self.traced(self.keyspace.cursor_in(range, snapshot, options)?, first))
    }

    /// As [`Keyspace::range`]; a scan of the trace, noted when the iterator is dropped.
    pub fn range(&self, range: impl KeyRange) -> TracedRange {
        let start = range.half_open().0.unwrap_or_default();
        TracedRange { range: self.keyspace.range(range), scan: self.scan(start) }
    }

    /// As [`Keyspace::range_at`]; recorded as [`TracedKeyspace::range`].
    pub fn range_at(&self, range: impl KeyRange, snapshot: &Snapshot) -> TracedRange {
        let start = range.half_open().0.unwrap_or_default();
        TracedRange { range: self.keyspace.range_at(range, snapshot), scan: self.scan(start) }
    }

    /// As [`Keyspace::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TracedRange {
        let scan = self.scan(prefix.as_ref().to_vec());
        TracedRange { range: self.keyspace.prefix(prefix), scan }
    }

    /// As [`Keyspace::iter`].
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
    /// Something was asked of it. One that found nothing is an operation too.
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

    /// An entry of a range was asked for, and was there or not.
    #[inline]
    fn step(&mut self, is_there: bool) {
        self.is_used = true;
        self.entries += u64::from(is_there);
    }

    /// A new one begins.
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

/// A [`DbCursor`] whose scans are recorded: each from a position on, with the entries that it
/// showed, a position that had none as one of one entry.
#[derive(Debug)]
pub struct TracedCursor {
    cursor: DbCursor,
    /// Where its range begins.
    first: Vec<u8>,
    scan: Scan,
}

impl TracedCursor {
    /// As [`DbCursor::valid`].
    #[inline]
    pub fn valid(&self) -> bool {
        self.cursor.valid()
    }

    /// As [`DbCursor::seek_first`].
    pub fn seek_first(&mut self) -> Result<()> {
        self.scan.begin(&self.first, false);
        self.cursor.seek_first()
    }

    /// As [`DbCursor::seek_last`].
    pub fn seek_last(&mut self) -> Result<()> {
        self.cursor.seek_last()?;
        self.scan.begin(self.cursor.key(), true);
        Ok(())
    }

    /// As [`DbCursor::seek`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.scan.begin(key.as_ref(), false);
        self.cursor.seek(key)
    }

    /// As [`DbCursor::seek_for_prev`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.scan.begin(key.as_ref(), true);
        self.cursor.seek_for_prev(key)
    }

    /// As [`DbCursor::next`].
    #[inline]
    #[allow(clippy::should_implement_trait)] // a cursor's `next` moves; it does not hand out
    pub fn next(&mut self) -> Result<()> {
        self.cursor.next()?;
        self.scan.entries += u64::from(self.cursor.valid());
        Ok(())
    }

    /// As [`DbCursor::prev`].
    pub fn prev(&mut self) -> Result<()> {
        self.cursor.prev()?;
        self.scan.entries += u64::from(self.cursor.valid());
        Ok(())
    }

    /// As [`DbCursor::key`].
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    /// As [`DbCursor::value`].
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.cursor.value()
    }
}

/// A [`Range`] whose scan is recorded, with the entries that were taken from either end; of none
/// where nothing was found. One that is never asked is none.
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
            // From the far end it begins elsewhere than the range does.
            self.scan.begin(key, true);
            self.scan.entries = 0;
        }
        self.scan.step(next.is_some());
        next
    }
}

#[cfg(test)]
mod tests;
