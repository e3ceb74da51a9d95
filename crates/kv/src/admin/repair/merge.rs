//! Tables whose order nobody knows any more.
//!
//! Lookups ask the runs from the newest to the oldest and stop at the first hit. Of two tables one is the newer when all its
//! numbers are higher. Where ranges of numbers overlap, as they do in tables of different levels, one may be newer in one key and
//! older in another, and then all are merged, by key and number, into one run. Compactions forget numbers, so that versions of a key may
//! have the same one, 0: the newer of them is in the table that was written later.

use std::cmp::Reverse;

use cairn_vfs::OpenOptions;
use cairn_vfs::sync::Arc;

use super::Repair;
use crate::Result;
use crate::blob::BlobRef;
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::db::output::{add_range_tombstones, note_expiry, table_options};
use crate::file::TableMeta;
use crate::iter::merge::MergeCursor;
use crate::kind::{Kind, Seqno};
use crate::options::KeyspaceOptions;
use crate::range_del::RangeTombstones;
use crate::table::{self, CursorOptions, Table, TableOptions, TableWriter};
use crate::version::{FileName, NewTable};

/// Size of the tables that are written.
const TABLE_BYTES: u64 = 64 << 20;

/// True when one may be newer in one key and older in another.
fn is_ambiguous(a: &TableMeta, b: &TableMeta) -> bool {
    let share_keys = a.smallest <= b.largest && b.smallest <= a.largest;
    share_keys && a.seqnos.0 <= b.seqnos.1 && b.seqnos.0 <= a.seqnos.1
}

impl Repair<'_> {
    /// Gives the tables of a keyspace, which say nothing of levels, places in level 0.
    pub(super) fn arrange(
        &mut self,
        mut metas: Vec<TableMeta>,
        options: &KeyspaceOptions,
        tag: (u32, String),
        flushed_seqno: Seqno,
        ttl_secs: u64,
    ) -> Result<Vec<NewTable>> {
        metas.sort_by_key(|meta| (meta.seqnos, meta.number));
        let pairs =
            metas.iter().enumerate().flat_map(|(at, a)| metas.iter().skip(at + 1).map(move |b| (a, b)));
        if pairs.into_iter().any(|(a, b)| is_ambiguous(a, b)) {
            let secs = TableMeta::secs_of(&metas).unwrap_or((self.now_secs, self.now_secs));
            let options = table_options(options, 0, 0, secs);
            let options = TableOptions { keyspace: Some(tag), flushed_seqno, ..options };
            // Among equal numbers the table that was written last comes first.
            metas.sort_by_key(|meta| Reverse(meta.number));
            let merged = self.merge(&metas, &options, ttl_secs)?;
            return Ok(merged.into_iter().map(|meta| NewTable { level: 0, run: 1, meta }).collect());
        }
        // Ascending by number, and higher runs are newer.
        let place = |(run, meta)| NewTable { level: 0, run, meta };
        Ok((1..).zip(metas).map(place).collect())
    }

    /// All entries of the tables, by key and number, in new tables.
    fn merge(
        &mut self,
        metas: &[TableMeta],
        options: &TableOptions,
        ttl_secs: u64,
    ) -> Result<Vec<TableMeta>> {
        let cache = Arc::new(Cache::new(0));
        let mut cursors = Vec::new();
        let mut sets = Vec::new();
        for meta in metas {
            let number = meta.ingested.map_or(meta.number, |ingested| ingested.number);
            let seqno = meta.ingested.map_or(0, |ingested| ingested.seqno);
            let open = table::OpenOptions { seqno, ..table::OpenOptions::default() };
            let table =
                Table::open(&self.fs, &FileName::Table(meta.number).path(self.dir), number, &cache, open)?;
            sets.push(Arc::clone(table.range_tombstones()));
            cursors.push(table.cursor(&CursorOptions { fill_cache: false, ..CursorOptions::default() }));
        }
        let tombstones = RangeTombstones::merge(sets.iter().map(|set| &**set));
        let mut cursor = MergeCursor::new(cursors);
        cursor.seek_first()?;
        let (last, start, done) = (None, None, Vec::new());
        let mut out = Merged { options, ttl_secs, tombstones, writer: None, last, start, done };
        while cursor.valid() {
            out.add(self, cursor.key(), cursor.seqno(), cursor.kind(), cursor.value())?;
            cursor.next()?;
        }
        out.finish_table(self, None)?;
        Ok(out.done)
    }
}

/// The tables of a merge.
struct Merged<'o> {
    options: &'o TableOptions,
    /// How long entries live; 0 for ever.
    ttl_secs: u64,
    tombstones: RangeTombstones,
    writer: Option<TableWriter>,
    last: Option<(Vec<u8>, Seqno)>,
    /// Where the range tombstones of the next table begin.
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
        // A table whose inputs were not removed yet has the same entries as they.
        if is_same_key && self.last.as_ref().is_some_and(|(_, last)| *last == seqno) {
            return Ok(());
        }
        if !is_same_key && self.writer.as_ref().is_some_and(|writer| writer.estimated_bytes() >= TABLE_BYTES)
        {
            self.finish_table(repair, Some(key))?;
        }
        let ttl_secs = self.ttl_secs;
        let writer = self.writer(repair)?;
        writer.add(key, seqno, kind, value)?;
        note_expiry(writer, ttl_secs, key, kind, value);
        if let Some(reference) = BlobRef::decode(value).filter(|_| kind == Kind::Blob) {
            writer.note_blob(reference.number, reference.bytes);
        }
        self.last = Some((key.to_vec(), seqno));
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

    /// Ends the current table before `end`, the next one's first key.
    fn finish_table(&mut self, repair: &mut Repair<'_>, end: Option<&[u8]>) -> Result<()> {
        let tombstones = self.tombstones.clip(self.start.as_deref(), end);
        if !tombstones.is_empty() {
            add_range_tombstones(self.writer(repair)?, &tombstones)?;
        }
        self.start = end.map(<[u8]>::to_vec);
        if let Some(writer) = self.writer.take() {
            self.done.push(writer.finish()?);
        }
        Ok(())
    }
}
