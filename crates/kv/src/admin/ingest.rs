//! Ingesting tables that were built outside the store.
//!
//! ```text
//!  verify ─► sync ─► link or copy ─► sync dir ─► commit lock: number, place, manifest ─► visible
//! ```
//!
//! The entries of such a table have sequence number 0 in the file. The manifest assigns one
//! sequence number of the store, the next one, to all of them, and readers substitute it
//! ([`crate::file::Ingested`]). The entries must be newer than everything written before and older
//! than everything written later. Therefore the number is taken while writers are blocked, and at
//! that moment no memtable may contain an older entry of the same keys, because lookups read
//! memtables before tables.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::{Arc, lock, read};
use cairn_vfs::{OpenOptions, ensure};

use super::placement::{Place, deepest, last_level};
use super::transfer::{Content, Undo, copy, link_or_copy};
use crate::cache::Cache;
use crate::cursor::Cursor;
use crate::db::Keyspace;
use crate::db::inner::{Commit, Inner};
use crate::db::keyspace_state::KeyspaceState;
use crate::db::view::{Sealed, View};
use crate::file::{Ingested, TableMeta};
use crate::kind::SEQNO_MAX;
use crate::memtable::Memtable;
use crate::range_del::RangeTombstoneRef;
use crate::table::{self, Table};
use crate::version::{FileName, NewTable, VersionEdit, VersionSet};
use crate::{Error, Result};

/// How often the memtables are flushed before the ingestion gives up on catching up with the
/// writers.
const ROUNDS_MAX: u32 = 64;

/// Options of [`Keyspace::ingest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IngestOptions {
    /// Moves the files into the store, by a hard link where possible, instead of copying them.
    /// Nobody may change the files afterwards. Default: false.
    pub move_files: bool,
}

/// A verified table outside the store.
#[derive(Debug)]
struct Outside {
    path: PathBuf,
    content: Content,
    /// File and sequence numbers are filled in later.
    meta: TableMeta,
    written_number: u64,
}

impl Keyspace {
    /// Ingests tables written by a [`crate::TableBuilder`], all of them atomically: after a crash,
    /// either all or none are in the store. Durable when it returns, whatever durability the store
    /// has.
    ///
    /// Their entries are newer than everything written before the call and older than everything
    /// written after it. Snapshots taken before the call do not see them. The locks of pessimistic
    /// transactions are not checked; optimistic transactions detect the conflict.
    ///
    /// Costs a full read of each table, and a copy unless [`IngestOptions::move_files`] is set.
    /// Memtables with keys in the range of a table are flushed first. Writers wait for one sync of
    /// the manifest.
    ///
    /// Errors: [`Error::Corruption`] of a file that is not a sound table; [`Error::Invalid`] when a
    /// table was not made by a builder, when it is a file of a store, or when two of them overlap;
    /// [`Error::NotFound`] for a keyspace that was dropped; [`Error::Busy`] when writers keep
    /// filling memtables with keys of the tables faster than these can be flushed. After an error
    /// nothing has changed.
    pub fn ingest<P: AsRef<Path>>(&self, paths: &[P], options: &IngestOptions) -> Result<()> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        self.core.inner.ingest(&self.state, &paths, options)
    }
}

impl Inner {
    fn ingest(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        paths: &[&Path],
        options: &IngestOptions,
    ) -> Result<()> {
        self.check_writable()?;
        keyspace.check_open()?;
        let mut tables = paths.iter().map(|path| self.examine(path)).collect::<Result<Vec<_>>>()?;
        tables.iter().try_for_each(|table| check_expiry(table, keyspace))?;
        tables.sort_by(|a, b| a.meta.smallest.cmp(&b.meta.smallest));
        check_disjoint(&tables)?;
        if tables.is_empty() {
            return Ok(());
        }
        debug_assert!(tables.is_sorted_by(|a, b| a.meta.largest < b.meta.smallest), "the tables overlap");
        let mut undo = Undo::new(&self.fs);
        for table in &mut tables {
            self.bring_in(table, options, &mut undo)?;
        }
        debug_assert!(
            tables.is_sorted_by(|a, b| a.meta.number < b.meta.number),
            "two tables have one number"
        );
        // ORDER: content and names are durable before the manifest refers to them.
        self.fs.sync_dir(&self.path)?;
        self.take_over(keyspace, &tables, &mut undo)?;
        if options.move_files {
            for table in &tables {
                // The table is in the store; a name left behind outside does no harm.
                let _ = self.fs.remove(&table.path);
            }
        }
        // The tables are ingested whether or not the scheduling succeeds. Its failure is latched,
        // and the next write reports it.
        let _ = self.work_is_due(keyspace);
        Ok(())
    }

    /// Reads a whole table, verifies it and returns its description.
    fn examine(&self, path: &Path) -> Result<Outside> {
        self.check_outside(path)?;
        let foreign = table::OpenOptions { foreign: true, ..table::OpenOptions::default() };
        let table = Table::open(&self.fs, path, 0, &Arc::new(Cache::new(0)), foreign)?;
        let properties = table.properties();
        // Sequence numbers alone do not suffice: compactions to the last level set them to 0. But
        // tables that a store writes name their keyspace.
        let is_plain = properties.seqnos == (0, 0)
            && properties.range_tombstones == 0
            && properties.blobs.is_empty()
            && properties.keyspace.is_none()
            && properties.entries > 0;
        if !is_plain {
            return Err(Error::invalid(format!(
                "{} was not made by a table builder: its entries have sequence numbers, belong to a keyspace, or refer to other files",
                path.display()
            )));
        }
        let checksum = table.verify(None)?.checksum;
        let now_secs = self.clock.wall().as_secs();
        let meta = TableMeta {
            number: 0,
            bytes: table.bytes(),
            smallest: properties.smallest.clone(),
            largest: properties.largest.clone(),
            seqnos: (0, 0),
            entries: properties.entries,
            tombstones: properties.deletes,
            raw_bytes: properties.key_bytes + properties.value_bytes,
            oldest_secs: now_secs,
            newest_secs: now_secs,
            expires_secs: properties.expires_secs,
            checksum,
            footer: table.footer_sum(),
            blobs: Vec::new(),
            ingested: None,
        };
        let content = Content { bytes: meta.bytes, checksum };
        Ok(Outside { path: path.to_owned(), content, meta, written_number: table.written_number() })
    }

    /// Errors: [`Error::Invalid`] for a file of a store, this one or another: it has a table's name
    /// and lies beside `CURRENT`. Its properties do not tell, because an ingested table stays as
    /// its builder made it. It must not be moved away from its store.
    fn check_outside(&self, path: &Path) -> Result<()> {
        let dir = path.parent().unwrap_or(Path::new(""));
        if FileName::parse(path).is_none() || !VersionSet::exists(&self.fs, dir)? {
            return Ok(());
        }
        Err(Error::invalid(format!("{} belongs to the store in {}", path.display(), dir.display())))
    }

    /// Links or copies a table into the store's directory under a new number and makes its content
    /// durable. The table has no place in a level yet.
    fn bring_in(&self, table: &mut Outside, options: &IngestOptions, undo: &mut Undo) -> Result<()> {
        let number = self.versions.new_file_number();
        let to = FileName::Table(number).path(&self.path);
        undo.add(&to);
        if options.move_files {
            // Its writer may not have synced it.
            self.fs.open(&table.path, OpenOptions::read())?.sync_data()?;
            link_or_copy(&self.fs, &table.path, &to, table.content)?;
        } else {
            copy(&self.fs, &table.path, &to, table.content)?;
        }
        debug_assert_eq!(table.meta.number, 0, "the table was brought in before");
        table.meta.number = number;
        Ok(())
    }

    /// Adds the tables to the keyspace.
    fn take_over(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        tables: &[Outside],
        undo: &mut Undo,
    ) -> Result<()> {
        debug_assert!(!tables.is_empty(), "a sequence number would be taken for nothing");
        // BOUND: each round flushes the memtables with overlapping keys. Only memtables filled and
        // sealed meanwhile can overlap again.
        for _ in 0..ROUNDS_MAX {
            let view = keyspace.view.load_full();
            let mut memtables = view.sealed.iter().map(|sealed| &sealed.memtable).chain([&view.active]);
            if memtables.any(|memtable| overlaps(memtable, tables)) {
                self.flush(keyspace)?;
            }
            // Syncs most of the log while writers still run, so that little is left to sync under
            // the lock.
            self.sync_all()?;
            if self.try_take_over(keyspace, tables, undo)? {
                return Ok(());
            }
        }
        Err(Error::Busy {
            what: "writers keep filling memtables with keys in the range of the tables to ingest".to_owned(),
        })
    }

    /// Installs the tables while writers are blocked. Returns false when sealed memtables overlap
    /// with them.
    fn try_take_over(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        tables: &[Outside],
        undo: &mut Undo,
    ) -> Result<bool> {
        let _structure = read(&self.structure);
        keyspace.check_open()?;
        let mut commit = lock(&self.commit);
        self.check_alive()?;
        // Waits until every write with a number is in its memtable.
        self.order.wait_for(commit.next_seqno - 1);
        // ORDER: after the wait, because a failed write ends the wait as well.
        self.check_alive()?;
        ensure!(
            self.order.visible() == commit.next_seqno - 1,
            "writes up to {} are visible, but numbers up to {} are taken",
            self.order.visible(),
            commit.next_seqno - 1
        );
        self.check_numbers(&commit, 1)?;
        // ORDER: a power loss that takes the end of the log must not leave the ingested tables,
        // which are newer.
        if let Some(log) = self.log.get() {
            self.sync_log(log, commit.position())?;
        }
        let view = keyspace.view.load_full();
        let active_is_in_the_way = overlaps(&view.active, tables);
        let sealed = |sealed: &Arc<Sealed>| overlaps(&sealed.memtable, tables);
        // Flushing the active memtable before the sealed ones would break the order of flushes.
        if view.sealed.iter().any(sealed) || (active_is_in_the_way && !view.sealed.is_empty()) {
            return Ok(false);
        }
        let mut edit = VersionEdit::default();
        let active = self.sealed_active(&commit, &view);
        let mut flushed = Vec::new();
        if active_is_in_the_way {
            // Writes since the last flush, usually a few entries.
            let (tables, written) = self.write_level_zero(keyspace, std::slice::from_ref(&active))?;
            tables.iter().for_each(|new| undo.add(&FileName::Table(new.meta.number).path(&self.path)));
            written.blobs.iter().for_each(|new| undo.add(&FileName::Blob(new.number).path(&self.path)));
            written.note_blobs(edit.keyspace(keyspace.id));
            debug_assert!(tables.len() <= 1, "a flush writes one table at most");
            flushed = tables;
            edit.keyspace(keyspace.id).log_start = Some(active.end.get());
        }
        let seqno = commit.next_seqno;
        edit.last_seqno = Some(seqno);
        edit.last_ingest = Some(seqno);
        let installed = {
            // Held until the tables are installed, so that no compaction is chosen without regard
            // to them.
            let running = lock(&keyspace.running);
            // ORDER: under the lock. A job is installed before it leaves the list, so the result of
            // every job that is not in the list is in this version.
            let version = Arc::clone(&keyspace.view.load().version);
            let state = self.strategy_state(keyspace, &version, &running);
            let last = last_level(&keyspace.options.compaction);
            let run = self.versions.new_file_number();
            let added = tables.iter().map(|table| {
                let (smallest, largest) = (table.meta.smallest.as_slice(), table.meta.largest.as_slice());
                let is_under =
                    |new: &NewTable| *new.meta.smallest <= *largest && *smallest <= *new.meta.largest;
                let place = if flushed.iter().any(is_under) {
                    None
                } else {
                    deepest(&state, last, smallest, largest)
                };
                let Place { level, run } = place.unwrap_or(Place { level: 0, run });
                let ingested = Some(Ingested { seqno, number: table.written_number });
                NewTable {
                    level,
                    run,
                    meta: TableMeta { seqnos: (seqno, seqno), ingested, ..table.meta.clone() },
                }
            });
            let added: Vec<NewTable> = added.collect();
            let change = edit.keyspace(keyspace.id);
            change.added = flushed;
            change.added.extend(added);
            self.install_ingested(keyspace, edit, &active, active_is_in_the_way, undo, &mut commit)
        };
        // ORDER: only after the lock on the running jobs is released. A failure wakes the
        // background threads, and one of them may be choosing work and waiting for that lock.
        installed.map_err(|error| self.manifest_failed(error))?;
        self.note_edit(&mut commit);
        commit.next_seqno = seqno + 1;
        // ORDER: readers that see the number load their view after this, and that view has the
        // tables.
        let is_visible = self.order.publish(seqno, seqno);
        debug_assert!(is_visible, "write {seqno} was the only one under way");
        Ok(true)
    }

    /// Returns the active memtable as if it were sealed now.
    fn sealed_active(&self, commit: &Commit, view: &View) -> Arc<Sealed> {
        let memtable = Arc::clone(&view.active);
        Arc::new(Sealed { memtable, last_seqno: commit.next_seqno - 1, end: commit.position() })
    }

    /// Makes the edit durable and shows it to readers, together with a fresh memtable: a reader
    /// that still holds the view without the tables must not see writes that come after them.
    ///
    /// Errors: the manifest's, for [`Inner::manifest_failed`].
    fn install_ingested(
        &self,
        keyspace: &KeyspaceState,
        edit: VersionEdit,
        active: &Arc<Sealed>,
        is_flushed: bool,
        undo: &mut Undo,
        commit: &mut Commit,
    ) -> Result<()> {
        debug_assert!(!is_flushed || !active.memtable.is_empty(), "an empty memtable was flushed");
        let added = edit.keyspaces.get(&keyspace.id).map_or(&[][..], |change| change.added.as_slice());
        ensure!(
            are_flushed_older(added),
            "lookups would find the flushed writes before the ingested ones: {added:?}"
        );
        let fresh = Arc::new(Memtable::new());
        let seal = !is_flushed && !active.memtable.is_empty();
        let applied = self.log_and_apply(edit, |id, version| {
            if id != keyspace.id {
                return;
            }
            keyspace.view.rcu(|view| {
                let view = match seal {
                    true => view.with_sealed(Arc::clone(&fresh), Arc::clone(active)),
                    false => {
                        debug_assert!(
                            Arc::ptr_eq(&view.active, &active.memtable),
                            "a memtable is replaced that is neither empty nor flushed"
                        );
                        View {
                            active: Arc::clone(&fresh),
                            sealed: view.sealed.clone(),
                            version: Arc::clone(version),
                        }
                    }
                };
                view.with_version(Arc::clone(version), &[])
            });
        });
        if let Err(error) = applied {
            if !self.nothing_happened(&error) {
                // The edit may be durable, so its files must stay.
                undo.keep();
            }
            return Err(error);
        }
        undo.keep();
        if let Some(Some(slot)) = commit.active.get_mut(keyspace.id.0 as usize) {
            debug_assert!(Arc::ptr_eq(slot, &active.memtable), "another memtable than the active one");
            let replaced = std::mem::replace(slot, fresh);
            if let Some(budget) = &self.budget {
                budget.sealed(keyspace.id, &replaced);
            }
        }
        Ok(())
    }
}

/// Returns true if the ingested tables among `added` that are in level 0 are in newer runs than the
/// flushed ones. In deeper levels they share no key with these.
fn are_flushed_older(added: &[NewTable]) -> bool {
    let flushed = added.iter().filter(|new| new.meta.ingested.is_none()).map(|new| new.run).max();
    let mut ingested = added.iter().filter(|new| new.meta.ingested.is_some() && new.level == 0);
    ingested.all(|new| Some(new.run) > flushed)
}

/// Checks that the table and the keyspace agree on the time to live: in a keyspace with one, the
/// time of the write follows each value; in others it does not.
fn check_expiry(table: &Outside, keyspace: &KeyspaceState) -> Result<()> {
    let (expires, ttl) = (table.meta.expires_secs != u64::MAX, keyspace.options.ttl.is_some());
    // A table without values fits every keyspace.
    if expires == ttl || table.meta.entries == table.meta.tombstones {
        return Ok(());
    }
    let (path, name) = (table.path.display(), &keyspace.name);
    Err(Error::invalid(format!(
        "{path} was not built with the options of keyspace {name:?}: only one of the two has a ttl"
    )))
}

fn check_disjoint(tables: &[Outside]) -> Result<()> {
    for pair in tables.windows(2) {
        let [a, b] = pair else { continue };
        if a.meta.largest >= b.meta.smallest {
            let (a, b) = (a.path.display(), b.path.display());
            return Err(Error::invalid(format!(
                "the tables {a} and {b} overlap: ingest them one after the other"
            )));
        }
    }
    Ok(())
}

/// Returns true when the memtable has an entry or range tombstone in the range of one of the
/// tables.
fn overlaps(memtable: &Arc<Memtable>, tables: &[Outside]) -> bool {
    let mut cursor = memtable.cursor();
    tables.iter().any(|table| {
        let (smallest, largest) = (table.meta.smallest.as_slice(), table.meta.largest.as_slice());
        let meets = |tombstone: RangeTombstoneRef<'_>| {
            (tombstone.start <= largest && smallest < tombstone.end).then_some(())
        };
        let is_covered = memtable.find_range_tombstone(0, meets).is_some();
        // A memtable's cursor never fails.
        is_covered || (cursor.seek(smallest, SEQNO_MAX).is_ok() && cursor.valid() && cursor.key() <= largest)
    })
}
