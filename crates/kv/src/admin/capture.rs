//! Captures the state of an open store at one moment and holds it while it is copied.
//!
//! Table files are immutable and exist as long as their version is held. The contents of memtables
//! are written to one additional table per keyspace in the copy's directory, so the copy needs no
//! log. It then depends neither on the log's file formats nor on a consistent copy of a log that is
//! being written to and recycled meanwhile.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::{Arc, lock, read};
use cairn_vfs::{Fs, OpenOptions, ensure};
use cairn_wal::Known;

use super::transfer::Content;
use crate::Result;
use crate::compaction::stream::{Rules, Stream};
use crate::cursor::Cursor;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::output::{add_range_tombstones, keyspace_table_options, note_expiry};
use crate::db::view::View;
use crate::file::{FileNumber, TableMeta};
use crate::iter::merge::MergeCursor;
use crate::kind::{Kind, Seqno};
use crate::memtable::Memtable;
use crate::merge_operator::Operator;
use crate::range_del::RangeTombstones;
use crate::table::{TableOptions, TableWriter};
use crate::version::{FileName, KeyspaceEdit, KeyspaceId, NewKeyspace, NewTable, VersionEdit};

/// The state of all keyspaces when `last_seqno` was the newest write.
pub(super) struct Capture {
    pub last_seqno: Seqno,
    next_keyspace: u32,
    keyspaces: Vec<Captured>,
}

/// A keyspace of a [`Capture`].
struct Captured {
    state: Arc<KeyspaceState>,
    /// Encoded as in the manifest.
    options: Vec<u8>,
    view: Arc<View>,
}

/// A file of a captured store.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreFile {
    pub name: FileName,
    pub content: Content,
}

/// Returns the files that an edit adds.
pub(super) fn files_of(edit: &VersionEdit) -> Vec<StoreFile> {
    let mut files = Vec::new();
    for change in edit.keyspaces.values() {
        files.extend(change.added.iter().map(|new| StoreFile {
            name: FileName::Table(new.meta.number),
            content: Content { bytes: new.meta.bytes, checksum: new.meta.checksum },
        }));
        files.extend(change.blobs_added.iter().map(|blob| StoreFile {
            name: FileName::Blob(blob.number),
            content: Content { bytes: blob.bytes, checksum: blob.checksum },
        }));
    }
    files
}

impl Inner {
    /// Captures the current state of all keyspaces: every write that has returned, and every batch
    /// completely or not at all. Waits for writes that are in progress.
    pub(super) fn capture(&self) -> Capture {
        let _structure = read(&self.structure);
        let stored = self.versions.keyspaces();
        let (last_seqno, keyspaces) = {
            // Memtables are switched only under this lock, so each view contains all writes up to
            // the sequence number.
            let commit = lock(&self.commit);
            let all = self.all_keyspaces().into_iter().map(|state| {
                let options = stored.iter().find(|(id, _)| *id == state.id);
                debug_assert!(
                    options.is_some(),
                    "keyspace {:?} is open, but not in the manifest",
                    state.name
                );
                let options = options.map_or_else(Vec::new, |(_, stored)| stored.options.clone());
                Captured { options, view: state.view.load_full(), state }
            });
            (commit.next_seqno - 1, all.collect())
        };
        self.order.wait_for(last_seqno);
        // Lower after a failed write, which never becomes visible.
        let last_seqno = last_seqno.min(self.order.visible());
        let next_keyspace = self.versions.next_keyspace_id().0;
        let capture = Capture { last_seqno, next_keyspace, keyspaces };
        debug_assert!(
            capture.keyspaces.iter().all(|keyspace| keyspace.state.id.0 < next_keyspace),
            "the copy would use the id of a keyspace again, from {next_keyspace} on"
        );
        capture
    }

    /// Returns the edit that creates the captured state from an empty store. Writes the contents of
    /// the memtables to tables in `dir`; their content is durable afterwards, their names are not.
    pub(super) fn materialize(&self, capture: &Capture, dir: &Path) -> Result<VersionEdit> {
        let mut edit = VersionEdit {
            last_seqno: Some(capture.last_seqno),
            next_keyspace: Some(capture.next_keyspace),
            // The copy starts a log of its own when it is opened; it has nothing of this store's
            // log.
            log: Some(Known::default()),
            ..VersionEdit::default()
        };
        for keyspace in &capture.keyspaces {
            let Captured { state, options, view } = keyspace;
            edit.created.push(NewKeyspace {
                id: state.id,
                name: state.name.clone(),
                options: options.clone(),
            });
            let memtables =
                std::iter::once(&view.active).chain(view.sealed.iter().map(|sealed| &sealed.memtable));
            let last_level = view.version.levels().len().saturating_sub(1);
            let now_secs = self.clock.wall().as_secs();
            let options = keyspace_table_options(state, 0, last_level, (now_secs, now_secs));
            let writer = MemtableWriter {
                fs: &*self.fs,
                dir,
                number: self.versions.new_file_number(),
                options: TableOptions { flushed_seqno: capture.last_seqno, ..options },
                memtables: memtables.cloned().collect(),
                last: capture.last_seqno,
                operator: state.options.merge_operator.clone(),
                ttl_secs: state.options.ttl.map_or(0, |ttl| ttl.as_secs()),
                store: Arc::clone(&self.path),
                keyspace: &state.name,
            };
            let written = writer.write()?;
            if let Some(meta) = &written {
                ensure!(
                    meta.seqnos.1 <= capture.last_seqno,
                    "a copy of the state at {} has number {}",
                    capture.last_seqno,
                    meta.seqnos.1
                );
            }
            add_files(&mut edit, state.id, view, written);
        }
        debug_assert!(edit.created.is_sorted_by(|a, b| a.id < b.id), "keyspaces are created in order of ids");
        let next_file = self.versions.new_file_number();
        for file in files_of(&edit) {
            ensure!(file.name.number() < Some(next_file), "{} has a number of the future", file.name);
        }
        edit.next_file = Some(next_file);
        // An empty keyspace changes nothing; a decoded edit does not have it either.
        edit.keyspaces.retain(|_, change| *change != KeyspaceEdit::default());
        Ok(edit)
    }
}

fn add_files(edit: &mut VersionEdit, id: KeyspaceId, view: &View, written: Option<TableMeta>) {
    let change = edit.keyspace(id);
    for (level, runs) in view.version.levels().iter().enumerate() {
        for run in runs.runs() {
            let tables = run.tables().iter();
            change.added.extend(tables.map(|table| NewTable {
                level,
                run: run.id(),
                meta: table.meta.clone(),
            }));
        }
    }
    debug_assert!(
        written.iter().all(|meta| {
            view.version
                .levels()
                .first()
                .is_none_or(|level| level.runs().iter().all(|run| run.id() < meta.number))
        }),
        "a run of level 0 is newer than the memtables"
    );
    // This table's number was allocated last, so its run is the newest.
    change.added.extend(written.map(|meta| NewTable { level: 0, run: meta.number, meta }));
    for blob in view.version.blobs() {
        change.blobs_added.push(blob.file.meta.clone());
        if blob.garbage_bytes > 0 {
            change.blob_garbage.push((blob.file.meta.number, blob.garbage_bytes));
        }
    }
}

/// Writes memtables to one table.
pub(super) struct MemtableWriter<'a> {
    pub fs: &'a dyn Fs,
    pub dir: &'a Path,
    pub number: FileNumber,
    pub options: TableOptions,
    /// Newest first.
    pub memtables: Vec<Arc<Memtable>>,
    /// Writes with higher sequence numbers are left out.
    pub last: Seqno,
    pub operator: Operator,
    /// The time to live of entries; 0 means forever.
    pub ttl_secs: u64,
    /// For error messages.
    pub store: Arc<PathBuf>,
    pub keyspace: &'a str,
}

impl MemtableWriter<'_> {
    /// Writes the newest version of each key, and the range tombstones. Returns `None` when there
    /// is nothing to write.
    pub(super) fn write(&self) -> Result<Option<TableMeta>> {
        debug_assert!(!self.memtables.is_empty(), "table {} is written from no memtable", self.number);
        // For each fragment of the key space, the newest range tombstone up to `last` hides
        // everything that older ones hide.
        let sets: Vec<_> =
            self.memtables.iter().map(|memtable| memtable.range_tombstones_for(&[self.last])).collect();
        let all = sets.iter().flat_map(|set| set.iter()).filter(|tombstone| tombstone.seqno <= self.last);
        let tombstones = Arc::new(RangeTombstones::build(all));
        let cursors =
            self.memtables.iter().map(|memtable| UpTo { cursor: memtable.cursor(), last: self.last });
        let mut cursor = MergeCursor::new(cursors.collect());
        cursor.seek_first()?;
        let rules = Rules {
            snapshots: Vec::new(),
            tombstones: Arc::clone(&tombstones),
            operator: self.operator.clone(),
            // Expired entries are kept, because the copy may be opened with a different clock.
            ttl: None,
            blobs: None,
            filter: None,
            level: 0,
            interrupt: None,
            store: Arc::clone(&self.store),
            keyspace: self.keyspace,
            keeps_unmerged: true,
        };
        let mut stream = Stream::new(cursor, rules, |_: &[u8]| Ok(true));
        let mut writer = None;
        while stream.advance()? {
            let (key, kind, value) = (stream.key(), stream.kind(), stream.value());
            let writer = self.begin(&mut writer)?;
            writer.add(key, stream.seqno(), kind, value)?;
            note_expiry(writer, self.ttl_secs, key, kind, value);
        }
        if !tombstones.is_empty() {
            add_range_tombstones(self.begin(&mut writer)?, &tombstones)?;
        }
        let meta = writer.map(TableWriter::finish).transpose()?;
        debug_assert!(
            meta.as_ref().is_none_or(|meta| meta.number == self.number),
            "the table is not found as {}",
            self.number
        );
        Ok(meta)
    }

    /// Returns the table's writer, and creates it on the first call.
    fn begin<'w>(&self, writer: &'w mut Option<TableWriter>) -> Result<&'w mut TableWriter> {
        match writer {
            Some(writer) => Ok(writer),
            none @ None => {
                let path = FileName::Table(self.number).path(self.dir);
                let file = self.fs.open(&path, OpenOptions::create_new())?;
                Ok(none.insert(TableWriter::new(Arc::from(file), self.number, self.options.clone())?))
            }
        }
    }
}

/// A cursor over the entries of a memtable up to a sequence number.
struct UpTo<C> {
    cursor: C,
    last: Seqno,
}

impl<C: Cursor> UpTo<C> {
    fn forward(&mut self) -> Result<()> {
        while self.cursor.valid() && self.cursor.seqno() > self.last {
            self.cursor.next()?;
        }
        Ok(())
    }

    fn backward(&mut self) -> Result<()> {
        while self.cursor.valid() && self.cursor.seqno() > self.last {
            self.cursor.prev()?;
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for UpTo<C> {
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.cursor.seek_first()?;
        self.forward()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.cursor.seek_last()?;
        self.backward()
    }

    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.cursor.seek(key, seqno)?;
        self.forward()
    }

    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        self.cursor.seek_back(key, inclusive)?;
        self.backward()
    }

    fn next(&mut self) -> Result<()> {
        self.cursor.next()?;
        self.forward()
    }

    fn prev(&mut self) -> Result<()> {
        self.cursor.prev()?;
        self.backward()
    }

    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    fn seqno(&self) -> Seqno {
        self.cursor.seqno()
    }

    fn kind(&self) -> Kind {
        self.cursor.kind()
    }

    fn value(&self) -> &[u8] {
        self.cursor.value()
    }
}
