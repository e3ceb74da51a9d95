//! Where flushes and compactions write: tables, cut at the target size and never within a key.

use std::collections::{BTreeMap, HashSet};

use cairn_vfs::OpenOptions;
use cairn_vfs::sync::Arc;

use crate::blob::{BlobRef, BlobWriter};
use crate::db::inner::{Inner, KeyspaceState};
use crate::file::{FileNumber, TableMeta};
use crate::iter::visible::{BlobSource, Bounds};
use crate::kind::{Kind, Seqno};
use crate::options::KeyspaceOptions;
use crate::range_del::RangeTombstones;
use crate::table::{TableOptions, TableWriter};
use crate::ttl::{self, Ttl};
use crate::version::{BlobMeta, FileName, KeyspaceEdit, LiveBlob, Version};
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// How the tables of a job are cut.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    /// A table is finished when it has reached this size. `u64::MAX`: never.
    pub table_bytes: u64,
    /// Keys at which a table must end: it may reach over no more than a few tables of the level
    /// below, or the compaction of it would be large. Ascending.
    pub at: Vec<Vec<u8>>,
}

/// The limiter is asked for so many bytes at a time.
const PAYMENT_BYTES: u64 = 64 << 10;

/// Writes the tables of one job. Unless [`Output::finish`] is reached, dropping it removes what it
/// wrote.
pub(crate) struct Output<'a> {
    inner: &'a Inner,
    options: TableOptions,
    blobs: BlobOutput,
    /// How long entries live; 0 for ever.
    ttl_secs: u64,
    cut: Cut,
    /// How many of `cut.at` are behind.
    cuts_passed: usize,
    /// Range tombstones that the tables share out among themselves.
    tombstones: Arc<RangeTombstones>,
    current: Option<TableWriter>,
    /// Bytes added since the limiter was asked; `None` for what is not limited.
    unpaid: Option<u64>,
    /// The key that was added last.
    last_key: Vec<u8>,
    /// Where the tombstones of the next table begin, and those of the last end.
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    numbers: Vec<FileNumber>,
    done: Vec<TableMeta>,
    is_finished: bool,
}

impl<'a> Output<'a> {
    /// An output of keys within `bounds`; `tombstones` are clipped to them.
    pub(crate) fn new(
        inner: &'a Inner,
        options: TableOptions,
        cut: Cut,
        tombstones: Arc<RangeTombstones>,
        bounds: Bounds,
    ) -> Self {
        Output {
            inner,
            options,
            blobs: BlobOutput::default(),
            ttl_secs: 0,
            cut,
            cuts_passed: 0,
            tombstones,
            current: None,
            unpaid: None,
            last_key: Vec::new(),
            start: bounds.lower,
            end: bounds.upper,
            numbers: Vec::new(),
            done: Vec::new(),
            is_finished: false,
        }
    }

    /// Puts large values into blob files, by `policy`.
    pub(crate) fn with_blobs(mut self, policy: BlobPolicy) -> Self {
        self.blobs.policy = Some(policy);
        self
    }

    /// Holds the output to the store's rate limit.
    pub(crate) fn limited(mut self) -> Self {
        self.unpaid = Some(0);
        self
    }

    /// Pays for an entry. Errors: [`Error::Busy`] when the store is closing.
    #[inline]
    fn pay(&mut self, bytes: usize) -> Result<()> {
        if let Some(unpaid) = &mut self.unpaid {
            *unpaid += bytes as u64;
            if *unpaid >= PAYMENT_BYTES {
                let (inner, bytes) = (self.inner, std::mem::take(unpaid));
                let look = || inner.background.check_running(&inner.path);
                return inner.limiter.take(bytes, &*inner.clock, look);
            }
        }
        Ok(())
    }

    /// Notes when entries expire.
    pub(crate) fn with_ttl(mut self, ttl: Option<Ttl>) -> Self {
        self.ttl_secs = ttl.map_or(0, |ttl| ttl.secs);
        self
    }

    /// Adds an entry whose value is in a blob file, or goes there.
    fn add_blob(&mut self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        let Some(reference) = self.blobs.place(self.inner, kind, value)? else {
            return self.current.as_mut().map_or(Ok(()), |writer| writer.add(key, seqno, Kind::Put, &[]));
        };
        let mut encoded = std::mem::take(&mut self.blobs.encoded);
        reference.encode(&mut encoded);
        let result = match &mut self.current {
            Some(writer) => writer.add(key, seqno, Kind::Blob, &encoded),
            None => Ok(()),
        };
        self.blobs.encoded = encoded;
        result?;
        if let Some(writer) = &mut self.current {
            writer.note_blob(reference.number, reference.bytes);
        }
        Ok(())
    }

    /// Adds the next entry.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        if let Some(writer) = &self.current
            && (writer.estimated_bytes() >= self.cut.table_bytes || self.is_next_cut(key))
            && key != self.last_key.as_slice()
        {
            self.finish_table(Some(key))?;
        }
        while self.is_next_cut(key) {
            self.cuts_passed += 1;
        }
        self.pay(key.len() + value.len())?;
        if self.current.is_none() {
            self.current = Some(self.begin_table()?);
        }
        if kind == Kind::Blob || (kind == Kind::Put && value.len() >= self.blobs.bytes_min()) {
            self.add_blob(key, seqno, kind, value)?;
        } else if let Some(writer) = &mut self.current {
            writer.add(key, seqno, kind, value)?;
            note_expiry(writer, self.ttl_secs, key, kind, value);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    #[inline]
    fn is_next_cut(&self, key: &[u8]) -> bool {
        self.cut.at.get(self.cuts_passed).is_some_and(|cut| cut.as_slice() <= key)
    }

    fn begin_table(&mut self) -> Result<TableWriter> {
        let number = self.inner.versions.new_file_number();
        let path = FileName::Table(number).path(&self.inner.path);
        let file = self.inner.fs.open(&path, OpenOptions::create_new())?;
        self.numbers.push(number);
        TableWriter::new(Arc::from(file), number, self.options.clone())
    }

    /// Ends the current table before `end`, the next one's first key.
    fn finish_table(&mut self, end: Option<&[u8]>) -> Result<()> {
        let tombstones = self.tombstones.clip(self.start.as_deref(), end);
        if self.current.is_none() && !tombstones.is_empty() {
            self.current = Some(self.begin_table()?);
        }
        self.start = end.map(<[u8]>::to_vec);
        if let Some(mut writer) = self.current.take() {
            if !tombstones.is_empty() {
                add_range_tombstones(&mut writer, &tombstones)?;
            }
            let meta = writer.finish()?;
            self.done.push(meta);
        }
        Ok(())
    }

    /// Finishes the last table and makes all of them durable, names included. Empty when nothing
    /// was added.
    pub(crate) fn finish(mut self) -> Result<Written> {
        let end = self.end.take();
        self.finish_table(end.as_deref())?;
        self.blobs.finish_file()?;
        if !self.done.is_empty() {
            self.inner.fs.sync_dir(&self.inner.path)?;
        }
        self.is_finished = true;
        Ok(Written {
            tables: std::mem::take(&mut self.done),
            blobs: std::mem::take(&mut self.blobs.done),
            garbage: std::mem::take(&mut self.blobs.garbage),
        })
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.current = None;
            self.blobs.current = None;
            self.inner.remove_tables(&self.numbers);
            self.inner.remove_blobs(&self.blobs.numbers);
        }
    }
}

/// What a job has written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub tables: Vec<TableMeta>,
    pub blobs: Vec<BlobMeta>,
    /// Bytes in older blob files that nothing of the output points at any more, by file.
    pub garbage: BTreeMap<FileNumber, u64>,
}

impl Written {
    /// Adds what another part of the job has written.
    pub(crate) fn extend(&mut self, other: Written) {
        self.tables.extend(other.tables);
        self.blobs.extend(other.blobs);
        self.add_garbage(other.garbage);
    }

    /// Adds garbage that the job has found.
    pub(crate) fn add_garbage(&mut self, garbage: BTreeMap<FileNumber, u64>) {
        for (number, bytes) in garbage {
            *self.garbage.entry(number).or_default() += bytes;
        }
    }

    /// Removes all files: the job that they belong to has failed.
    pub(crate) fn remove(&self, inner: &Inner) {
        inner.remove_tables(&self.tables.iter().map(|meta| meta.number).collect::<Vec<_>>());
        inner.remove_blobs(&self.blobs.iter().map(|meta| meta.number).collect::<Vec<_>>());
    }

    /// Puts blob files and garbage into the edit of a keyspace. Tables are put there by the job,
    /// which knows their place.
    pub(crate) fn note_blobs(&self, change: &mut KeyspaceEdit) {
        change.blobs_added.extend(self.blobs.iter().cloned());
        change.blob_garbage.extend(self.garbage.iter().map(|(&number, &bytes)| (number, bytes)));
    }
}

/// Which values go to blob files.
#[derive(Clone)]
pub(crate) struct BlobPolicy {
    /// Values of at least this many bytes do, but for empty ones.
    pub bytes_min: Option<u32>,
    /// Files whose values are moved to new ones.
    pub collect: HashSet<FileNumber>,
    /// Where the values of those are read.
    pub source: Arc<dyn BlobSource>,
}

/// A blob file is finished at this size.
const BLOB_FILE_BYTES: u64 = 256 << 20;

/// The blob files of one job.
#[derive(Default)]
struct BlobOutput {
    policy: Option<BlobPolicy>,
    current: Option<BlobWriter>,
    numbers: Vec<FileNumber>,
    done: Vec<BlobMeta>,
    garbage: BTreeMap<FileNumber, u64>,
    encoded: Vec<u8>,
    value: Vec<u8>,
}

impl BlobOutput {
    /// The least bytes of a value that goes to a blob file. Never an empty one: what is alive in a
    /// file is counted in bytes.
    #[inline]
    fn bytes_min(&self) -> usize {
        let bytes = self.policy.as_ref().and_then(|policy| policy.bytes_min);
        bytes.map_or(usize::MAX, |bytes| (bytes as usize).max(1))
    }

    /// Where an entry's value is from now on; `None` for an empty one, as earlier versions put into
    /// blob files, which is to be in the table.
    fn place(&mut self, inner: &Inner, kind: Kind, value: &[u8]) -> Result<Option<BlobRef>> {
        if kind != Kind::Blob {
            return self.write(inner, value).map(Some);
        }
        let damaged = || Error::corruption(&inner.path, 0, "a reference to a blob file that cannot be read");
        let reference = BlobRef::decode(value).ok_or_else(damaged)?;
        if reference.bytes == 0 {
            // No bytes, and yet the file may have nothing else.
            self.garbage.entry(reference.number).or_default();
            return Ok(None);
        }
        let Some(policy) = self.policy.as_ref().filter(|policy| policy.collect.contains(&reference.number))
        else {
            return Ok(Some(reference));
        };
        let mut moved = std::mem::take(&mut self.value);
        let result = policy.source.load(value, &mut moved).and_then(|()| self.write(inner, &moved));
        self.value = moved;
        let new = result?;
        *self.garbage.entry(reference.number).or_default() += reference.bytes;
        Ok(Some(new))
    }

    fn write(&mut self, inner: &Inner, value: &[u8]) -> Result<BlobRef> {
        if self.current.as_ref().is_some_and(|writer| writer.bytes() >= BLOB_FILE_BYTES) {
            self.finish_file()?;
        }
        let writer = match &mut self.current {
            Some(writer) => writer,
            current @ None => {
                let number = inner.versions.new_file_number();
                let path = FileName::Blob(number).path(&inner.path);
                let file = inner.fs.open(&path, OpenOptions::create_new())?;
                self.numbers.push(number);
                current.insert(BlobWriter::new(Arc::from(file), number)?)
            }
        };
        writer.add(value)
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some(writer) = self.current.take() {
            self.done.push(writer.finish()?);
        }
        Ok(())
    }
}

/// Says when an entry expires that lives for `ttl_secs`; 0 is for ever.
#[inline]
pub(crate) fn note_expiry(writer: &mut TableWriter, ttl_secs: u64, key: &[u8], kind: Kind, value: &[u8]) {
    if ttl_secs > 0
        && kind == Kind::Put
        && let Ok(written) = ttl::written_secs(key, value)
    {
        writer.note_expiry(written.saturating_add(ttl_secs));
    }
}

pub(crate) fn add_range_tombstones(writer: &mut TableWriter, tombstones: &RangeTombstones) -> Result<()> {
    let (Some(span), Some(seqnos)) = (tombstones.span(), tombstones.seqno_range()) else { return Ok(()) };
    let mut encoded = Vec::new();
    tombstones.encode(&mut encoded);
    writer.add_range_tombstones(&encoded, tombstones.len() as u64, span, seqnos)
}

impl Inner {
    /// Removes blob files that were never installed, as [`Inner::remove_tables`].
    pub(crate) fn remove_blobs(&self, numbers: &[FileNumber]) {
        for number in numbers {
            let _ = self.fs.remove(&FileName::Blob(*number).path(&self.path));
        }
    }

    /// What a job on `keyspace` does about large values.
    pub(crate) fn blob_policy(&self, keyspace: &KeyspaceState, version: &Arc<Version>) -> BlobPolicy {
        let options = &keyspace.options;
        let collect = version.blobs().iter().filter(|blob| is_garbage(blob, options));
        BlobPolicy {
            bytes_min: options.blob_bytes_min,
            collect: collect.map(|blob| blob.file.meta.number).collect(),
            source: self.blob_source(version),
        }
    }

    /// Removes tables that were never installed. What cannot be removed now is found when the store
    /// is opened again.
    pub(crate) fn remove_tables(&self, numbers: &[FileNumber]) {
        for number in numbers {
            let _ = self.fs.remove(&FileName::Table(*number).path(&self.path));
        }
    }
}

/// How tables of a keyspace are written; see [`table_options`].
pub(crate) fn keyspace_table_options(
    keyspace: &KeyspaceState,
    level: usize,
    last_level: usize,
    secs: (u64, u64),
) -> TableOptions {
    let options = table_options(&keyspace.options, level, last_level, secs);
    TableOptions { keyspace: Some((keyspace.id.0, keyspace.name.clone())), ..options }
}

/// How tables of `level` are written in a tree whose last level is `last_level`, with entries that
/// came from `oldest_secs` to `newest_secs`.
pub(crate) fn table_options(
    options: &KeyspaceOptions,
    level: usize,
    last_level: usize,
    (oldest_secs, newest_secs): (u64, u64),
) -> TableOptions {
    TableOptions {
        block_bytes: options.block_bytes as usize,
        restart_interval: options.restart_interval,
        compression: options.compression_at(level),
        filter: options.filter_at(level, last_level),
        prefix: options.prefix_extractor,
        oldest_secs,
        newest_secs,
        ..TableOptions::default()
    }
}

/// True when the live values of a blob file are worth moving. Those that expire always are, back
/// into tables: nothing else would look at their time again.
pub(crate) fn is_garbage(blob: &LiveBlob, options: &KeyspaceOptions) -> bool {
    let garbage_max = options.blob_garbage_max;
    options.ttl.is_some()
        || blob.garbage_bytes as f64 >= garbage_max * blob.file.meta.value_bytes as f64
            && blob.garbage_bytes > 0
}
