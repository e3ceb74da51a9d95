//! Merging tables whose order is unknown.
//!
//! Lookups search the runs from the newest to the oldest and stop at the first hit. Of two tables,
//! one is newer if all its sequence numbers are higher. Where the ranges of sequence numbers
//! overlap, as they do between tables of different levels, one table may be newer for one key and
//! older for another. Repair then merges all tables, by key and sequence number, into one run.
//! Compactions set sequence numbers to 0, so versions of a key may have the same number, 0. The
//! newer one is then in the table that was written later.

use std::cmp::Reverse;

use cairn_vfs::sync::Arc;
use cairn_vfs::{OpenOptions, ensure};

use super::Repair;
use super::blobs::{Fate, Salvage};
use super::plan::PlannedKeyspace;
use crate::Result;
use crate::blob::BlobRef;
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::db::output::{add_range_tombstones, note_expiry};
use crate::file::TableMeta;
use crate::iter::merge::MergeCursor;
use crate::kind::{Kind, Seqno};
use crate::range_del::RangeTombstones;
use crate::table::{self, CursorOptions, Expected, Table, TableOptions, TableWriter};
use crate::version::{FileName, KeyspaceId, NewTable};

/// Size of the tables that a merge writes.
const TABLE_BYTES: u64 = 64 << 20;

/// Returns true when the order of two tables is unknown, in either of two cases. One table may be
/// newer for one key and older for another. Or, judging by the blob files that both refer to, one
/// may be the output of a compaction and the other an input that was not deleted yet; a value that
/// is in both would be counted twice.
fn is_ambiguous(a: &TableMeta, b: &TableMeta) -> bool {
    let share_keys = a.smallest <= b.largest && b.smallest <= a.largest;
    let share_numbers = a.seqnos.0 <= b.seqnos.1 && b.seqnos.0 <= a.seqnos.1;
    let share_blobs = || a.blobs.iter().any(|(a, _)| b.blobs.iter().any(|(b, _)| a == b));
    share_keys && (share_numbers || share_blobs())
}

impl Repair<'_> {
    /// Assigns places in level 0 to the tables of a keyspace, whose levels are unknown.
    pub(super) fn arrange(
        &mut self,
        id: KeyspaceId,
        keyspace: &PlannedKeyspace,
        mut metas: Vec<TableMeta>,
    ) -> Result<Vec<NewTable>> {
        debug_assert!(
            metas.iter().all(|meta| meta.smallest <= meta.largest),
            "a table ends before it begins"
        );
        metas.sort_by_key(|meta| (meta.seqnos, meta.number));
        let pairs =
            metas.iter().enumerate().flat_map(|(at, a)| metas.iter().skip(at + 1).map(move |b| (a, b)));
        if pairs.into_iter().any(|(a, b)| is_ambiguous(a, b)) {
            let secs = TableMeta::secs_of(&metas).unwrap_or((self.now_secs, self.now_secs));
            let options = keyspace.table_options(id, 0, 0, secs);
            // Among equal sequence numbers, the table that was written last comes first.
            metas.sort_by_key(|meta| Reverse(meta.number));
            let merged = self.merge(&metas, &options, keyspace.ttl_secs(self.dir), None)?;
            return Ok(merged.into_iter().map(|meta| NewTable { level: 0, run: 1, meta }).collect());
        }
        // The tables are sorted by ascending sequence numbers, and higher runs are newer.
        let place = |(run, meta)| NewTable { level: 0, run, meta };
        Ok((1..).zip(metas).map(place).collect())
    }

    /// Writes all entries of the tables, by key and sequence number, to new tables. Among entries
    /// with the same key and number, the one from the table given first is kept.
    pub(super) fn merge(
        &mut self,
        metas: &[TableMeta],
        options: &TableOptions,
        ttl_secs: u64,
        salvage: Option<&mut Salvage>,
    ) -> Result<Vec<TableMeta>> {
        let cache = Arc::new(Cache::new(0));
        let mut options = options.clone();
        let mut cursors = Vec::new();
        let mut sets = Vec::new();
        for meta in metas {
            let number = meta.ingested.map_or(meta.number, |ingested| ingested.number);
            let seqno = meta.ingested.map_or(0, |ingested| ingested.seqno);
            let expected = Expected::of(meta);
            let open = table::OpenOptions { seqno, expected, ..table::OpenOptions::default() };
            let table =
                Table::open(&self.fs, &FileName::Table(meta.number).path(self.dir), number, &cache, open)?;
            options.flushed_seqno = options.flushed_seqno.max(table.properties().flushed_seqno);
            sets.push(Arc::clone(table.range_tombstones()));
            cursors.push(table.cursor(&CursorOptions { fill_cache: false, ..CursorOptions::default() }));
        }
        let tombstones = RangeTombstones::merge(sets.iter().map(|set| &**set));
        let mut cursor = MergeCursor::new(cursors);
        cursor.seek_first()?;
        let (last, values, start, done) = (None, Vec::new(), None, Vec::new());
        let options = &options;
        let mut out =
            Merged { options, ttl_secs, salvage, tombstones, writer: None, last, values, start, done };
        while cursor.valid() {
            out.add(self, cursor.key(), cursor.seqno(), cursor.kind(), cursor.value())?;
            cursor.next()?;
        }
        out.finish_table(self, None)?;
        ensure!(out.writer.is_none(), "the last table is not finished");
        ensure!(
            out.done.is_sorted_by(|a, b| a.largest <= b.smallest),
            "the tables {:?} of one merge overlap",
            out.done.iter().map(|meta| meta.number).collect::<Vec<_>>()
        );
        Ok(out.done)
    }
}

/// A merge in progress and its output tables.
struct Merged<'o> {
    options: &'o TableOptions,
    /// The time to live of entries; 0 means forever.
    ttl_secs: u64,
    /// Decides the fate of values in damaged blob files.
    salvage: Option<&'o mut Salvage>,
    tombstones: RangeTombstones,
    writer: Option<TableWriter>,
    last: Option<(Vec<u8>, Seqno)>,
    /// The blob references of the current key's versions.
    values: Vec<BlobRef>,
    /// The start of the next table's range, for its range tombstones.
    start: Option<Vec<u8>>,
    done: Vec<TableMeta>,
}

impl Merged<'_> {
    fn add(
        &mut self,
        repair: &mut Repair<'_>,
        key: &[u8],
        seqno: Seqno,
        kind: Kind,
        value: &[u8],
    ) -> Result<()> {
        let is_same_key = self.last.as_ref().is_some_and(|(last, _)| last == key);
        // A compaction's output contains the same entries as those of its inputs that were not
        // removed yet.
        if is_same_key && self.last.as_ref().is_some_and(|(_, last)| *last == seqno) {
            return Ok(());
        }
        if !is_same_key {
            self.values.clear();
            if self.writer.as_ref().is_some_and(|writer| writer.estimated_bytes() >= TABLE_BYTES) {
                self.finish_table(repair, Some(key))?;
            }
        }
        let reference = BlobRef::decode(value).filter(|_| kind == Kind::Blob);
        if let Some(reference) = reference {
            // Both entries come from one write; one of the tables has its sequence number set to 0.
            if self.values.contains(&reference) {
                return Ok(());
            }
            self.values.push(reference);
        }
        self.last = Some((key.to_vec(), seqno));
        let fate = match (reference, &mut self.salvage) {
            (Some(reference), Some(salvage)) => salvage.place(repair, reference)?,
            _ => Fate::Stays,
        };
        match fate {
            Fate::Stays => self.write(repair, key, seqno, kind, value, reference),
            Fate::Moved(moved) => {
                let mut encoded = Vec::new();
                moved.encode(&mut encoded);
                self.write(repair, key, seqno, Kind::Blob, &encoded, Some(moved))
            }
            // If the manifest is lost, this table may be one that was about to be removed, and so
            // may its blob file, while another table has the value: the entry is dropped. Where the
            // order is known, this entry is the newest, and a tombstone replaces it so that older
            // versions do not come back.
            Fate::Lost if repair.report.is_rebuilt => Ok(()),
            Fate::Lost => self.write(repair, key, seqno, Kind::Delete, &[], None),
        }
    }

    fn write(
        &mut self,
        repair: &mut Repair<'_>,
        key: &[u8],
        seqno: Seqno,
        kind: Kind,
        value: &[u8],
        reference: Option<BlobRef>,
    ) -> Result<()> {
        debug_assert!(
            reference.is_none() || kind == Kind::Blob,
            "a value of kind {kind:?} is in {reference:?}"
        );
        let ttl_secs = self.ttl_secs;
        let writer = self.writer(repair)?;
        writer.add(key, seqno, kind, value)?;
        note_expiry(writer, ttl_secs, key, kind, value);
        if let Some(reference) = reference {
            writer.note_blob(reference.number, reference.bytes);
        }
        Ok(())
    }

    fn writer(&mut self, repair: &mut Repair<'_>) -> Result<&mut TableWriter> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none @ None => {
                let number = repair.number();
                let path = FileName::Table(number).path(repair.dir);
                let file = repair.fs.open(&path, OpenOptions::create_new())?;
                Ok(none.insert(TableWriter::new(Arc::from(file), number, self.options.clone())?))
            }
        }
    }

    /// Ends the current table before `end`, the first key of the next one.
    fn finish_table(&mut self, repair: &mut Repair<'_>, end: Option<&[u8]>) -> Result<()> {
        let tombstones = self.tombstones.clip(self.start.as_deref(), end);
        if !tombstones.is_empty() {
            add_range_tombstones(self.writer(repair)?, &tombstones)?;
        }
        self.start = end.map(<[u8]>::to_vec);
        if let Some(writer) = self.writer.take() {
            if let Some(salvage) = &mut self.salvage {
                salvage.finish_file(repair)?;
            }
            let meta = writer.finish()?;
            debug_assert!(
                self.done.last().is_none_or(|last| last.number < meta.number),
                "table {} was numbered before the last one",
                meta.number
            );
            self.done.push(meta);
        }
        Ok(())
    }
}
