//! Where flushes and compactions write: tables, cut at the target size and never within a key.

use cairn_vfs::OpenOptions;
use cairn_vfs::sync::Arc;

use crate::Result;
use crate::db::inner::Inner;
use crate::file::{FileNumber, TableMeta};
use crate::iter::visible::Bounds;
use crate::kind::{Kind, Seqno};
use crate::options::KeyspaceOptions;
use crate::range_del::RangeTombstones;
use crate::table::{TableOptions, TableWriter};
use crate::version::FileName;

/// How the tables of a job are cut.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    /// A table is finished when it has reached this size. `u64::MAX`: never.
    pub table_bytes: u64,
    /// Keys at which a table must end: it may reach over no more than a few tables of the level below, or the compaction of it
    /// would be large. Ascending.
    pub at: Vec<Vec<u8>>,
}

/// Writes the tables of one job. Unless [`Output::finish`] is reached, dropping it removes what it wrote.
pub(crate) struct Output<'a> {
    inner: &'a Inner,
    options: TableOptions,
    cut: Cut,
    /// How many of `cut.at` are behind.
    cuts_passed: usize,
    /// Range tombstones that the tables share out among themselves.
    tombstones: Arc<RangeTombstones>,
    current: Option<TableWriter>,
    /// The key that was added last.
    last_key: Vec<u8>,
    /// Where the tombstones of the next table begin, and those of the last end.
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    numbers: Vec<FileNumber>,
    done: Vec<TableMeta>,
    bytes_done: u64,
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
            cut,
            cuts_passed: 0,
            tombstones,
            current: None,
            last_key: Vec::new(),
            start: bounds.lower,
            end: bounds.upper,
            numbers: Vec::new(),
            done: Vec::new(),
            bytes_done: 0,
            is_finished: false,
        }
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
        if self.current.is_none() {
            self.current = Some(self.begin_table()?);
        }
        if let Some(writer) = &mut self.current {
            writer.add(key, seqno, kind, value)?;
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
            self.bytes_done += meta.bytes;
            self.done.push(meta);
        }
        Ok(())
    }

    /// Bytes written so far, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_done + self.current.as_ref().map_or(0, TableWriter::estimated_bytes)
    }

    /// Finishes the last table and makes all of them durable, names included. Empty when nothing was added.
    pub(crate) fn finish(mut self) -> Result<Vec<TableMeta>> {
        let end = self.end.take();
        self.finish_table(end.as_deref())?;
        if !self.done.is_empty() {
            self.inner.fs.sync_dir(&self.inner.path)?;
        }
        self.is_finished = true;
        Ok(std::mem::take(&mut self.done))
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.current = None;
            self.inner.remove_tables(&self.numbers);
        }
    }
}

pub(crate) fn add_range_tombstones(writer: &mut TableWriter, tombstones: &RangeTombstones) -> Result<()> {
    let (Some(span), Some(seqnos)) = (tombstones.span(), tombstones.seqno_range()) else { return Ok(()) };
    let mut encoded = Vec::new();
    tombstones.encode(&mut encoded);
    writer.add_range_tombstones(&encoded, tombstones.len() as u64, span, seqnos)
}

impl Inner {
    /// Removes tables that were never installed. What cannot be removed now is found when the store is opened again.
    pub(crate) fn remove_tables(&self, numbers: &[FileNumber]) {
        for number in numbers {
            let _ = self.fs.remove(&FileName::Table(*number).path(&self.path));
        }
    }
}

/// How tables of `level` are written in a tree whose last level is `last_level`.
pub(crate) fn table_options(
    options: &KeyspaceOptions,
    level: usize,
    last_level: usize,
    oldest_secs: u64,
) -> TableOptions {
    TableOptions {
        block_bytes: options.block_bytes as usize,
        restart_interval: options.restart_interval,
        compression: options.compression_at(level),
        filter: options.filter_at(level, last_level),
        prefix: options.prefix_extractor,
        oldest_secs,
        ..TableOptions::default()
    }
}
