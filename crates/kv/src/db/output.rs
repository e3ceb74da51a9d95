//! The output of flushes and compactions: tables of the target size, never split within a key.

use std::collections::{BTreeMap, HashSet};

use cairn_vfs::sync::Arc;
use cairn_vfs::{OpenOptions, ensure};

use crate::blob::{BlobRef, BlobWriter};
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::file::{BlobMeta, FileNumber, TableMeta};
use crate::iter::visible::{BlobSource, Bounds};
use crate::kind::{Kind, Seqno};
use crate::options::KeyspaceOptions;
use crate::range_del::RangeTombstones;
use crate::table::{TableOptions, TableWriter};
use crate::ttl::{self, Ttl};
use crate::version::{FileName, KeyspaceEdit, LiveBlob, Version};
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// The points at which the output of a job is split into tables.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    /// Size at which a table is finished; `u64::MAX` for no limit.
    pub table_bytes: u64,
    /// Keys at which a table must end, in ascending order. They keep a table from overlapping more
    /// than a few tables of the level below, because compacting it would then be expensive.
    pub at: Vec<Vec<u8>>,
}

/// Number of bytes for which the rate limiter is asked at a time.
const PAYMENT_BYTES: u64 = 64 << 10;

/// Writes the tables of one job. Dropping it before [`Output::finish`] has succeeded removes all
/// its files.
pub(crate) struct Output<'a> {
    inner: &'a Inner,
    options: TableOptions,
    blobs: BlobOutput,
    /// Lifetime of entries in seconds; 0 if they do not expire.
    ttl_secs: u64,
    cut: Cut,
    /// Number of keys of `cut.at` that have been passed.
    cuts_passed: usize,
    /// Range tombstones, which are distributed over the tables.
    tombstones: Arc<RangeTombstones>,
    current: Option<TableWriter>,
    /// Bytes added since the limiter was last asked; `None` if the output is not limited.
    unpaid: Option<u64>,
    /// The most recently added key.
    last_key: Vec<u8>,
    /// The start of the next table's tombstones, and the end of the last table's.
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    numbers: Vec<FileNumber>,
    done: Vec<TableMeta>,
    is_finished: bool,
}

impl<'a> Output<'a> {
    /// Creates an output for keys within `bounds`, to which `tombstones` are clipped.
    pub(crate) fn new(
        inner: &'a Inner,
        options: TableOptions,
        cut: Cut,
        tombstones: Arc<RangeTombstones>,
        bounds: Bounds,
    ) -> Self {
        debug_assert!(cut.at.is_sorted(), "tables are cut in key order");
        debug_assert!(cut.table_bytes > 0, "a table has at least one entry");
        debug_assert!(
            bounds.lower.as_ref().zip(bounds.upper.as_ref()).is_none_or(|(lower, upper)| lower < upper),
            "a job without keys: {bounds:?}"
        );
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

    /// Moves large values into blob files according to `policy`.
    pub(crate) fn with_blobs(mut self, policy: BlobPolicy) -> Self {
        self.blobs.policy = Some(policy);
        self
    }

    /// Applies the store's rate limit to the output.
    pub(crate) fn limited(mut self) -> Self {
        self.unpaid = Some(0);
        self
    }

    /// Accounts for the bytes of an entry in the rate limit. Errors: [`Error::Busy`] if the store
    /// is closing.
    #[inline]
    fn pay(&mut self, bytes: usize) -> Result<()> {
        if let Some(unpaid) = &mut self.unpaid {
            debug_assert!(*unpaid < PAYMENT_BYTES, "{unpaid} bytes are due before the next entry");
            *unpaid += bytes as u64;
            if *unpaid >= PAYMENT_BYTES {
                let (inner, bytes) = (self.inner, std::mem::take(unpaid));
                let interrupt = || inner.background.check_running(&inner.path);
                return inner.limiter.take(bytes, &*inner.clock, interrupt);
            }
        }
        Ok(())
    }

    /// Records in the tables when entries expire.
    pub(crate) fn with_ttl(mut self, ttl: Option<Ttl>) -> Self {
        debug_assert!(
            ttl.is_none() || self.blobs.bytes_min() == usize::MAX,
            "values that expire would move into blob files"
        );
        self.ttl_secs = ttl.map_or(0, |ttl| ttl.secs);
        self
    }

    /// Adds an entry whose value is in a blob file or is moved into one.
    fn add_blob(&mut self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        debug_assert!(self.current.is_some(), "the entry's table is begun before its value is moved");
        debug_assert!(
            matches!(kind, Kind::Put | Kind::Blob),
            "an entry of kind {kind:?} has no value to move"
        );
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
        debug_assert!(
            self.cuts_passed <= self.cut.at.len(),
            "{} of {} cuts are passed",
            self.cuts_passed,
            self.cut.at.len()
        );
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
        debug_assert!(self.current.is_none(), "the last table is not finished");
        let number = self.inner.versions.new_file_number();
        debug_assert!(
            self.numbers.last().is_none_or(|last| *last < number),
            "table {number} follows table {:?}",
            self.numbers.last()
        );
        let path = FileName::Table(number).path(&self.inner.path);
        let file = self.inner.fs.open(&path, OpenOptions::create_new())?;
        self.numbers.push(number);
        TableWriter::new(Arc::from(file), number, self.options.clone())
    }

    /// Finishes the current table before `end`, the first key of the next one.
    fn finish_table(&mut self, end: Option<&[u8]>) -> Result<()> {
        debug_assert!(
            end.is_none_or(|end| self.start.as_deref().is_none_or(|start| start <= end)),
            "a table ends before it starts"
        );
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
            debug_assert_eq!(Some(&meta.number), self.numbers.last(), "the newest table is finished");
            self.done.push(meta);
        }
        Ok(())
    }

    /// Finishes the last table and makes all tables durable, including their directory entries. The
    /// result has no tables if nothing was added.
    pub(crate) fn finish(mut self) -> Result<Written> {
        let end = self.end.take();
        self.finish_table(end.as_deref())?;
        self.blobs.finish_file()?;
        let (begun, done) = (self.numbers.len(), self.done.len());
        ensure!(begun == done, "{begun} tables were begun, but {done} are finished");
        let (begun, done) = (self.blobs.numbers.len(), self.blobs.done.len());
        ensure!(begun == done, "{begun} blob files were begun, but {done} are finished");
        ensure!(
            self.done.is_sorted_by(|a, b| a.largest <= b.smallest),
            "the tables {:?} of one job overlap",
            self.numbers
        );
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

/// The files written by a job.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub tables: Vec<TableMeta>,
    pub blobs: Vec<BlobMeta>,
    /// Bytes in older blob files to which the output no longer refers, by file.
    pub garbage: BTreeMap<FileNumber, u64>,
}

impl Written {
    /// Adds the files written by another part of the job.
    pub(crate) fn extend(&mut self, other: Written) {
        debug_assert!(
            self.tables.last().is_none_or(|last| other.tables.iter().all(|it| last.largest <= it.smallest)),
            "the parts of a job are joined in key order"
        );
        self.tables.extend(other.tables);
        self.blobs.extend(other.blobs);
        self.add_garbage(other.garbage);
    }

    /// Adds garbage found by the job.
    pub(crate) fn add_garbage(&mut self, garbage: BTreeMap<FileNumber, u64>) {
        for (number, bytes) in garbage {
            *self.garbage.entry(number).or_default() += bytes;
        }
    }

    /// Removes all files after the job has failed.
    pub(crate) fn remove(&self, inner: &Inner) {
        inner.remove_tables(&self.tables.iter().map(|meta| meta.number).collect::<Vec<_>>());
        inner.remove_blobs(&self.blobs.iter().map(|meta| meta.number).collect::<Vec<_>>());
    }

    /// Adds the blob files and the garbage to a keyspace's edit. The job adds the tables itself,
    /// because it knows their level.
    pub(crate) fn note_blobs(&self, change: &mut KeyspaceEdit) {
        debug_assert!(
            change.blobs_added.is_empty() && change.blob_garbage.is_empty(),
            "the garbage of a job would count twice"
        );
        change.blobs_added.extend(self.blobs.iter().cloned());
        change.blob_garbage.extend(self.garbage.iter().map(|(&number, &bytes)| (number, bytes)));
    }
}

/// Determines which values go to blob files.
#[derive(Clone)]
pub(crate) struct BlobPolicy {
    /// Values of at least this many bytes go to blob files, except empty ones.
    pub bytes_min: Option<u32>,
    /// Blob files whose live values are moved to new ones.
    pub collect: HashSet<FileNumber>,
    /// Reads the values of those files.
    pub source: Arc<dyn BlobSource>,
}

/// Size at which a blob file is finished.
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
    /// Returns the minimum size of a value for a blob file. At least 1, because the live values of
    /// a file are accounted in bytes.
    #[inline]
    fn bytes_min(&self) -> usize {
        let bytes = self.policy.as_ref().and_then(|policy| policy.bytes_min);
        bytes.map_or(usize::MAX, |bytes| (bytes as usize).max(1))
    }

    /// Returns the new location of an entry's value. Returns `None` for an empty value, which
    /// earlier versions put into blob files and which now goes into the table.
    fn place(&mut self, inner: &Inner, kind: Kind, value: &[u8]) -> Result<Option<BlobRef>> {
        if kind != Kind::Blob {
            return self.write(inner, value).map(Some);
        }
        let damaged = || Error::corruption(&inner.path, 0, "a reference to a blob file that cannot be read");
        let reference = BlobRef::decode(value).ok_or_else(damaged)?;
        if reference.bytes == 0 {
            // No bytes of garbage, but the entry makes sure that a file with only empty values is
            // removed.
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
        debug_assert_eq!(new.bytes, reference.bytes, "a value has another length after its move");
        *self.garbage.entry(reference.number).or_default() += reference.bytes;
        Ok(Some(new))
    }

    fn write(&mut self, inner: &Inner, value: &[u8]) -> Result<BlobRef> {
        if self.current.as_ref().is_some_and(|writer| writer.bytes() >= BLOB_FILE_BYTES) {
            self.finish_file()?;
        }
        debug_assert!(!value.is_empty(), "live values of a blob file are accounted in bytes");
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
        let reference = writer.add(value)?;
        debug_assert_eq!(reference.bytes, value.len() as u64, "garbage is counted by the length of values");
        Ok(reference)
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some(writer) = self.current.take() {
            let meta = writer.finish()?;
            debug_assert_eq!(Some(&meta.number), self.numbers.last(), "the newest blob file is finished");
            self.done.push(meta);
        }
        Ok(())
    }
}

/// Records the expiry of an entry that lives for `ttl_secs`; 0 means that it does not expire.
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
    debug_assert!(span.0 < span.1, "range tombstones without keys: {span:?}");
    let mut encoded = Vec::new();
    tombstones.encode(&mut encoded);
    writer.add_range_tombstones(&encoded, tombstones.len() as u64, span, seqnos)
}

impl Inner {
    /// Removes blob files that were never installed, like [`Inner::remove_tables`].
    pub(crate) fn remove_blobs(&self, numbers: &[FileNumber]) {
        for number in numbers {
            let _ = self.fs.remove(&FileName::Blob(*number).path(&self.path));
        }
    }

    /// Returns the policy for large values in jobs on `keyspace`.
    pub(crate) fn blob_policy(&self, keyspace: &KeyspaceState, version: &Arc<Version>) -> BlobPolicy {
        let options = &keyspace.options;
        let collect = version.blobs().iter().filter(|blob| is_garbage(blob, options));
        BlobPolicy {
            bytes_min: options.blob_bytes_min,
            collect: collect.map(|blob| blob.file.meta.number).collect(),
            source: self.blob_source(version),
        }
    }

    /// Removes tables that were never installed. The next open finds and removes a file that cannot
    /// be removed now.
    pub(crate) fn remove_tables(&self, numbers: &[FileNumber]) {
        for number in numbers {
            let _ = self.fs.remove(&FileName::Table(*number).path(&self.path));
        }
    }
}

/// Returns the options for tables of a keyspace; see [`table_options`].
pub(crate) fn keyspace_table_options(
    keyspace: &KeyspaceState,
    level: usize,
    last_level: usize,
    secs: (u64, u64),
) -> TableOptions {
    let options = table_options(&keyspace.options, level, last_level, secs);
    TableOptions { keyspace: Some((keyspace.id.0, keyspace.name.clone())), ..options }
}

/// Returns the options for tables of `level` in a tree whose last level is `last_level`. Their
/// entries reached the store between `oldest_secs` and `newest_secs`.
pub(crate) fn table_options(
    options: &KeyspaceOptions,
    level: usize,
    last_level: usize,
    (oldest_secs, newest_secs): (u64, u64),
) -> TableOptions {
    debug_assert!(level <= last_level, "level {level} of a tree whose last level is {last_level}");
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

/// Returns true if a blob file has so much garbage that its live values should be moved. Always
/// true in a keyspace with a TTL: values move back into tables, because blob files are not checked
/// for expiry.
pub(crate) fn is_garbage(blob: &LiveBlob, options: &KeyspaceOptions) -> bool {
    debug_assert!(blob.garbage_bytes <= blob.file.meta.value_bytes, "more garbage than values");
    let garbage_max = options.blob_garbage_max;
    options.ttl.is_some()
        || blob.garbage_bytes as f64 >= garbage_max * blob.file.meta.value_bytes as f64
            && blob.garbage_bytes > 0
}
