//! Flush: writes sealed memtables to a table of level 0.

use cairn_vfs::ensure;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, RwLockReadGuard, lock, read};
use cairn_wal::Lsn;

use crate::Result;
use crate::compaction::stream::{Rules, Stream};
use crate::cursor::Cursor;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::output::{Cut, Output, Written, keyspace_table_options};
use crate::db::view::Sealed;
use crate::events::Event;
use crate::file::FileNumber;
use crate::iter::merge::MergeCursor;
use crate::iter::visible::Bounds;
use crate::range_del::RangeTombstones;
use crate::version::{FileName, KeyspaceEdit, NewTable, VersionEdit};

impl Inner {
    /// Writes all memtables of `keyspace` that are sealed at the time of the call to one table, and
    /// installs it.
    ///
    /// A keyspace runs one flush at a time, so memtables are installed in the order of their
    /// writes.
    pub(crate) fn flush_sealed(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>) -> Result<()> {
        let sealed = keyspace.view.load().sealed.clone();
        let Some(newest) = sealed.first() else { return Ok(()) };
        // Writers that took a sequence number before the seal may still be inserting.
        self.order.wait_for(newest.last_seqno);
        // ORDER: after the wait, which also ends when a write fails. A failed write must not get
        // into a table in part.
        self.check_alive()?;
        ensure!(
            self.order.visible() >= newest.last_seqno,
            "writes up to {} are flushed, but only those up to {} are complete",
            newest.last_seqno,
            self.order.visible()
        );
        ensure!(
            sealed
                .is_sorted_by(|newer, older| newer.last_seqno >= older.last_seqno && newer.end >= older.end),
            "sealed memtables are not listed from the newest to the oldest"
        );
        self.sync_before_flush(keyspace, newest.end)?;
        let start = self.clock.now();
        let mut edit = VersionEdit::default();
        let (tables, written) = self.write_level_zero(keyspace, &sealed)?;
        ensure!(tables.len() <= 1, "a flush wrote {} tables, expected one at most", tables.len());
        for new in &tables {
            ensure!(
                new.meta.seqnos.1 <= newest.last_seqno,
                "a flush of writes up to {} wrote number {}",
                newest.last_seqno,
                new.meta.seqnos.1
            );
        }
        let tables_bytes: u64 = tables.iter().map(|table| table.meta.bytes).sum();
        let bytes = tables_bytes + written.blobs.iter().map(|blob| blob.bytes).sum::<u64>();
        let table = tables.first().map(|table| table.meta.number);
        let change = edit.keyspace(keyspace.id);
        change.log_start = Some(newest.end.get());
        change.added = tables;
        written.note_blobs(change);
        edit.last_seqno = Some(newest.last_seqno);
        self.advance_idle_keyspaces(keyspace, &mut edit)?;
        self.install(keyspace, edit, &sealed)?;
        self.note_edit(&mut lock(&self.commit));
        keyspace.abandoned.flushed();
        self.release_log()?;
        self.counters.flushes.fetch_add(1, Relaxed);
        self.counters.flush_bytes.fetch_add(bytes, Relaxed);
        let took = self.clock.now().saturating_sub(start);
        self.controller.flushed(sealed.iter().map(|sealed| sealed.memtable.raw_bytes()).sum(), took);
        self.notify(|| Event::Flushed { keyspace: keyspace.name.clone(), table, bytes, took });
        Ok(())
    }

    /// Makes the log durable up to `end`, unless `flushed` is the only keyspace with unflushed
    /// writes.
    ///
    /// ORDER: before the flush is installed. A power loss may lose the end of the log but not the
    /// table. Without this sync it could lose the part of a batch that went to another keyspace,
    /// and all earlier writes there.
    fn sync_before_flush(&self, flushed: &KeyspaceState, end: Lsn) -> Result<()> {
        let Some(log) = self.log.get() else { return Ok(()) };
        let others = self.all_keyspaces();
        if others.iter().all(|other| other.id == flushed.id || other.view.load().is_empty()) {
            return Ok(());
        }
        self.sync_log(log, end)
    }

    /// Writes the entries of `sealed` to a table. Returns the table, or no table if no entry
    /// survives, and the blob files written along with it.
    pub(crate) fn write_level_zero(
        &self,
        keyspace: &KeyspaceState,
        sealed: &[Arc<Sealed>],
    ) -> Result<(Vec<NewTable>, Written)> {
        debug_assert!(!sealed.is_empty(), "a flush without memtables");
        // ORDER: once all entries to be flushed are visible. A snapshot taken after this list then
        // sees the newest tombstone over each key.
        let snapshots = self.snapshots.list();
        let sets: Vec<_> =
            sealed.iter().map(|sealed| sealed.memtable.range_tombstones_for(&snapshots)).collect();
        let tombstones = Arc::new(RangeTombstones::merge(&sets).for_snapshots(&snapshots));
        let mut cursor = MergeCursor::new(sealed.iter().map(|sealed| sealed.memtable.cursor()).collect());
        cursor.seek_first()?;
        let rules = Rules {
            snapshots,
            tombstones: Arc::clone(&tombstones),
            operator: keyspace.options.merge_operator.clone(),
            ttl: self.ttl(keyspace),
            // Values in memtables are never in blob files.
            blobs: None,
            filter: None,
            level: 0,
            interrupt: None,
            store: Arc::clone(&self.path),
            keyspace: &keyspace.name,
            // A flush cannot be abandoned, as that would retain its log and memory forever.
            keeps_unmerged: true,
        };
        // Tables may hold older entries of any key.
        let mut stream = Stream::new(cursor, rules, |_: &[u8]| Ok(true));
        let run = self.versions.new_file_number();
        let version = Arc::clone(&keyspace.view.load().version);
        let last_level = version.levels().len().saturating_sub(1);
        let now_secs = self.clock.wall().as_secs();
        let mut options = keyspace_table_options(keyspace, 0, last_level, (now_secs, now_secs));
        options.flushed_seqno = sealed.first().map_or(0, |newest| newest.last_seqno);
        let cut = Cut { table_bytes: u64::MAX, at: Vec::new() };
        let mut output = Output::new(self, options, cut, tombstones, Bounds::default())
            .with_blobs(self.blob_policy(keyspace, &version))
            .with_ttl(self.ttl(keyspace));
        while stream.advance()? {
            output.add(stream.key(), stream.seqno(), stream.kind(), stream.value())?;
        }
        lock(&self.counters.dropped).add(stream.dropped());
        let mut written = output.finish()?;
        debug_assert!(
            written.garbage.is_empty(),
            "memtables do not refer to blob files: {:?}",
            written.garbage
        );
        debug_assert!(
            written.tables.iter().all(|meta| run < meta.number),
            "run {run} was numbered after its tables, so a later flush could be taken for an older one"
        );
        let tables = std::mem::take(&mut written.tables);
        Ok((tables.into_iter().map(|meta| NewTable { level: 0, run, meta }).collect(), written))
    }

    /// Advances the log start of all keyspaces other than `changed` that have no unflushed writes,
    /// so that they do not retain log segments.
    ///
    /// Errors: the store's failure.
    pub(crate) fn advance_idle_keyspaces(
        &self,
        changed: &KeyspaceState,
        edit: &mut VersionEdit,
    ) -> Result<()> {
        if self.log.get().is_none() {
            return Ok(());
        }
        let (position, last) = {
            let commit = lock(&self.commit);
            (commit.position(), commit.next_seqno - 1)
        };
        // After this wait, every write logged before `position` is in its memtable.
        self.order.wait_for(last);
        self.check_alive()?;
        for keyspace in self.all_keyspaces() {
            let view = keyspace.view.load();
            if keyspace.id != changed.id && view.is_empty() {
                debug_assert!(
                    !edit.keyspaces.contains_key(&keyspace.id),
                    "an edit of keyspace {} changes keyspace {}, which has nothing to flush",
                    changed.id.0,
                    keyspace.id.0
                );
                edit.keyspace(keyspace.id).log_start = Some(position.get());
            }
        }
        debug_assert!(self.order.visible() >= last, "an empty memtable may still get write {last}");
        Ok(())
    }

    /// Makes `edit` durable, then visible to the readers of its keyspaces. In `keyspace` the new
    /// tables replace the memtables `flushed`. For keyspaces that were dropped meanwhile, the
    /// changes are left out and their new files removed.
    pub(crate) fn install(
        &self,
        keyspace: &KeyspaceState,
        edit: VersionEdit,
        flushed: &[Arc<Sealed>],
    ) -> Result<()> {
        self.install_within(&read(&self.structure), keyspace, edit, flushed)
    }

    /// Like [`Inner::install`], for a caller that already holds `Inner::structure`.
    pub(crate) fn install_within(
        &self,
        _structure: &RwLockReadGuard<'_, ()>,
        keyspace: &KeyspaceState,
        mut edit: VersionEdit,
        flushed: &[Arc<Sealed>],
    ) -> Result<()> {
        debug_assert!(
            flushed.is_empty() || edit.keyspaces.contains_key(&keyspace.id),
            "memtables of keyspace {} are dropped, but the edit has nothing of theirs",
            keyspace.id.0
        );
        let keyspaces = self.keyspaces.load();
        edit.keyspaces.retain(|id, change| {
            let is_open = keyspaces.get(*id).is_some();
            if !is_open {
                self.remove_tables(&new_tables_of(change));
                self.remove_blobs(&change.blobs_added.iter().map(|blob| blob.number).collect::<Vec<_>>());
            }
            is_open
        });
        let new = new_tables(&edit);
        let blobs = edit.keyspaces.values().flat_map(|change| &change.blobs_added);
        let new_blobs: Vec<FileNumber> = blobs.map(|blob| blob.number).collect();
        let result = self.log_and_apply(edit, |id, version| {
            let Some(changed) = keyspaces.get(id) else { return };
            let flushed = if id == keyspace.id { flushed } else { &[] };
            changed.view.rcu(|view| view.with_version(Arc::clone(version), flushed));
        });
        // If the edit was refused, nothing has changed, and the new tables are removed so that they
        // do not fill a full disk. After any other failure the manifest may contain the edit, so
        // the tables must stay.
        if result.is_err() && self.versions.check().is_ok() {
            self.remove_tables(&new);
            self.remove_blobs(&new_blobs);
        }
        result
    }

    /// Releases the log segments that no keyspace needs any more.
    fn release_log(&self) -> Result<()> {
        let Some(log) = self.log.get() else { return Ok(()) };
        log.release_before(self.versions.log_start())?;
        Ok(())
    }

    /// Deletes files that no version contains any more. The next open finds and removes a file that
    /// cannot be deleted now.
    pub(crate) fn remove_obsolete(&self) {
        let obsolete = self.versions.obsolete();
        // In a read-only store, a concurrent writer deletes its own obsolete files.
        if obsolete.is_empty() || self.options.read_only {
            return;
        }
        for name in obsolete.take() {
            debug_assert!(
                matches!(name, FileName::Table(_) | FileName::Blob(_)),
                "{name} is no table or blob file"
            );
            let _ = self.fs.remove(&name.path(&self.path));
        }
    }
}

/// Returns the tables that an edit adds, without those that it only moves.
fn new_tables(edit: &VersionEdit) -> Vec<FileNumber> {
    edit.keyspaces.values().flat_map(new_tables_of).collect()
}

fn new_tables_of(change: &KeyspaceEdit) -> Vec<FileNumber> {
    let is_moved = |number| change.removed.iter().any(|old| old.number == number);
    change.added.iter().map(|new| new.meta.number).filter(|&number| !is_moved(number)).collect()
}
