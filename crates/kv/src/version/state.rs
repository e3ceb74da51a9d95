//! The state of all keyspaces in memory: the sum of a manifest's edits.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use cairn_vfs::sync::Arc;
use cairn_wal::Known;

use super::apply::apply;
use super::edit::{KeyspaceEdit, KeyspaceId, NewKeyspace, NewTable, VersionEdit};
use super::handle::{BlobFile, ObsoleteFiles, TableFile};
use super::levels::Version;
use crate::file::FileNumber;
use crate::kind::{SEQNO_MAX, Seqno};

/// File numbers stay below this, so that increments never overflow.
pub(super) const FILE_NUMBER_MAX: FileNumber = 1 << 62;

/// One keyspace as described by the manifest.
#[derive(Debug, Clone)]
pub(crate) struct KeyspaceState {
    /// Its name.
    pub name: String,
    /// Its options, as encoded by their owner.
    pub options: Vec<u8>,
    /// The position where log replay starts for it.
    pub log_start: u64,
    /// Its files.
    pub version: Arc<Version>,
}

/// The state of the store.
#[derive(Debug, Default)]
pub(super) struct StoreState {
    pub(super) keyspaces: BTreeMap<KeyspaceId, KeyspaceState>,
    pub(super) last_seqno: Seqno,
    pub(super) last_ingest: Option<Seqno>,
    /// The identity and durable end of the log; `None` in a store of an earlier version, which does
    /// not record it.
    pub(super) log: Option<Known>,
    pub(super) next_file: FileNumber,
    pub(super) next_keyspace: u32,
    /// The names of all keyspaces.
    names: HashSet<String>,
    /// The numbers of all tables and blob files.
    files: HashSet<FileNumber>,
    obsolete: Arc<ObsoleteFiles>,
}

/// A validated edit, ready to be applied to the state.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The changed keyspaces; `None` for a dropped one.
    pub(super) keyspaces: BTreeMap<KeyspaceId, Option<KeyspaceState>>,
    last_seqno: Seqno,
    last_ingest: Option<Seqno>,
    log: Option<Known>,
    next_file: FileNumber,
    next_keyspace: u32,
    files_new: Vec<FileNumber>,
    tables_gone: Vec<Arc<TableFile>>,
    blobs_gone: Vec<Arc<BlobFile>>,
}

/// Combines the known state of the log with that in an edit. Parallel jobs may write their edits in
/// any order, so for the same log the higher position wins.
fn later(before: Option<Known>, edit: Option<Known>) -> Option<Known> {
    match (before, edit) {
        (Some(before), Some(edit)) if before.log_id == edit.log_id && before.reached >= edit.reached => {
            Some(before)
        }
        (before, edit) => edit.or(before),
    }
}

impl StoreState {
    pub(super) fn new(obsolete: Arc<ObsoleteFiles>) -> StoreState {
        StoreState { obsolete, ..StoreState::default() }
    }

    /// Validates `edit` against the state and computes the next state without changing anything.
    /// Returns a description of the conflict if there is one.
    pub(super) fn prepare(&self, edit: &VersionEdit) -> Result<Prepared, String> {
        let mut next = Prepared {
            keyspaces: BTreeMap::new(),
            last_seqno: self.last_seqno.max(edit.last_seqno.unwrap_or(0)),
            last_ingest: self.last_ingest.max(edit.last_ingest),
            log: later(self.log, edit.log),
            next_file: self.next_file.max(edit.next_file.unwrap_or(0)),
            next_keyspace: self.next_keyspace,
            files_new: Vec::new(),
            tables_gone: Vec::new(),
            blobs_gone: Vec::new(),
        };
        if next.last_seqno > SEQNO_MAX {
            return Err(format!("sequence number {} is above the highest, {SEQNO_MAX}", next.last_seqno));
        }
        if next.next_file > FILE_NUMBER_MAX {
            return Err(format!("file number {} is above the highest, {FILE_NUMBER_MAX}", next.next_file));
        }
        self.create(&edit.created, &mut next)?;
        next.next_keyspace = next.next_keyspace.max(edit.next_keyspace.unwrap_or(0));
        for (id, options) in &edit.options {
            self.changing(*id, &mut next)?.options.clone_from(options);
        }
        for (&id, change) in &edit.keyspaces {
            self.change(id, change, &mut next)?;
        }
        for &id in &edit.dropped {
            let keyspace = self.changing(id, &mut next)?;
            let version = Arc::clone(&keyspace.version);
            next.tables_gone.extend(version.tables().map(|(_, table)| Arc::clone(table)));
            next.blobs_gone.extend(version.blobs().iter().map(|blob| Arc::clone(&blob.file)));
            next.keyspaces.insert(id, None);
        }
        self.check_files(&next)?;
        Ok(next)
    }

    fn create(&self, created: &[NewKeyspace], next: &mut Prepared) -> Result<(), String> {
        let mut names = HashSet::new();
        for new in created {
            if new.id.0 < next.next_keyspace || new.id.0 == u32::MAX {
                return Err(format!("keyspace id {} was used before", new.id.0));
            }
            let is_new = !self.names.contains(&new.name) && names.insert(new.name.as_str());
            if new.name.is_empty() || !is_new {
                return Err(format!("keyspace name {:?} is empty or taken", new.name));
            }
            next.next_keyspace = new.id.0 + 1;
            debug_assert!(!self.keyspaces.contains_key(&new.id), "keyspace {} exists", new.id.0);
            let (name, options) = (new.name.clone(), new.options.clone());
            let version = Arc::new(Version::empty());
            next.keyspaces.insert(new.id, Some(KeyspaceState { name, options, log_start: 0, version }));
        }
        Ok(())
    }

    fn change(&self, id: KeyspaceId, edit: &KeyspaceEdit, next: &mut Prepared) -> Result<(), String> {
        let is_made = !self.keyspaces.contains_key(&id);
        let keyspace = self.changing(id, next)?;
        // Parallel jobs may log their positions in any order. Both are valid, so the higher one
        // wins.
        keyspace.log_start = keyspace.log_start.max(edit.log_start.unwrap_or(0));
        if !edit.changes_files() {
            return Ok(());
        }
        let change = apply(&keyspace.version, edit, is_made, &self.obsolete)
            .map_err(|what| format!("keyspace {}: {what}", id.0))?;
        keyspace.version = Arc::new(change.version);
        next.tables_gone.extend(change.tables_gone);
        next.blobs_gone.extend(change.blobs_gone);
        next.files_new.extend(change.files_new);
        Ok(())
    }

    /// Returns the keyspace in its state so far in `next`.
    fn changing<'a>(&self, id: KeyspaceId, next: &'a mut Prepared) -> Result<&'a mut KeyspaceState, String> {
        let state = next.keyspaces.entry(id).or_insert_with(|| self.keyspaces.get(&id).cloned());
        state.as_mut().ok_or_else(|| format!("keyspace {} does not exist", id.0))
    }

    /// Checks that no file has two places, and that no file has a number that will be allocated
    /// again.
    fn check_files(&self, next: &Prepared) -> Result<(), String> {
        let mut new = BTreeSet::new();
        for &number in &next.files_new {
            if self.files.contains(&number) || !new.insert(number) {
                return Err(format!("file {number} already exists"));
            }
            if number >= next.next_file {
                return Err(format!("file {number} is not below the next file number, {}", next.next_file));
            }
        }
        Ok(())
    }

    /// Applies a prepared edit to the state.
    ///
    /// ORDER: after the edit is durable, because files that it removes are marked dead here.
    pub(super) fn commit(&mut self, next: Prepared) {
        assert!(next.last_seqno >= self.last_seqno, "sequence numbers go back");
        assert!(next.next_file >= self.next_file, "file numbers go back");
        assert!(next.next_keyspace >= self.next_keyspace, "keyspace ids go back");
        debug_assert!(next.last_ingest >= self.last_ingest, "ingestions go back");
        let changed: Vec<KeyspaceId> = next.keyspaces.keys().copied().collect();
        debug_assert!(
            self.log.is_none_or(|before| {
                next.log.is_some_and(|log| log.log_id != before.log_id || log.reached >= before.reached)
            }),
            "the durable end of the log goes back"
        );
        let files = self.files.len() + next.files_new.len();
        self.files.extend(next.files_new);
        debug_assert_eq!(self.files.len(), files, "a new file has the number of another");
        for table in next.tables_gone {
            let was_listed = self.files.remove(&table.number());
            debug_assert!(was_listed, "table {} was removed twice", table.number());
            table.end();
        }
        for blob in next.blobs_gone {
            let was_listed = self.files.remove(&blob.meta.number);
            debug_assert!(was_listed, "blob file {} was removed twice", blob.meta.number);
            blob.end();
        }
        for (id, keyspace) in next.keyspaces {
            match keyspace {
                Some(keyspace) => {
                    debug_assert!(
                        self.keyspaces.get(&id).is_none_or(|before| before.log_start <= keyspace.log_start),
                        "the replay of keyspace {} starts earlier",
                        id.0
                    );
                    if !self.keyspaces.contains_key(&id) {
                        let is_new = self.names.insert(keyspace.name.clone());
                        debug_assert!(is_new, "the name {:?} is taken", keyspace.name);
                    }
                    self.keyspaces.insert(id, keyspace);
                }
                None => {
                    if let Some(dropped) = self.keyspaces.remove(&id) {
                        let was_taken = self.names.remove(&dropped.name);
                        debug_assert!(was_taken, "the name {:?} was not taken", dropped.name);
                    }
                }
            }
        }
        self.last_seqno = next.last_seqno;
        self.last_ingest = next.last_ingest;
        self.log = next.log;
        self.next_file = next.next_file;
        self.next_keyspace = next.next_keyspace;
        self.assert_sound(&changed);
    }

    /// Asserts the invariants of the state that concern the changed keyspaces. For debug builds.
    fn assert_sound(&self, changed: &[KeyspaceId]) {
        debug_assert_eq!(self.names.len(), self.keyspaces.len(), "names are unique");
        debug_assert!(self.last_seqno <= SEQNO_MAX, "sequence number {}", self.last_seqno);
        debug_assert!(self.last_ingest.is_none_or(|seqno| seqno <= SEQNO_MAX), "{:?}", self.last_ingest);
        debug_assert!(self.next_file <= FILE_NUMBER_MAX, "file number {}", self.next_file);
        for id in changed {
            let Some(keyspace) = self.keyspaces.get(id) else { continue };
            debug_assert!(id.0 < self.next_keyspace, "keyspace {} would be created again", id.0);
            debug_assert!(!keyspace.name.is_empty(), "keyspace {} has no name", id.0);
            debug_assert!(
                self.names.contains(&keyspace.name),
                "the name {:?} would be used again",
                keyspace.name
            );
            let tables = keyspace.version.tables().map(|(_, table)| table.number());
            let blobs = keyspace.version.blobs().iter().map(|blob| blob.file.meta.number);
            for number in tables.chain(blobs) {
                debug_assert!(self.files.contains(&number), "file {number} is used, but not listed");
                debug_assert!(number < self.next_file, "file number {number} would be used again");
            }
        }
    }

    /// Returns true if a table or blob file with this number belongs to the store.
    pub(super) fn has_file(&self, number: FileNumber) -> bool {
        self.files.contains(&number)
    }

    /// Returns the edit that creates this state from an empty one.
    pub(super) fn snapshot(&self) -> VersionEdit {
        let mut edit = VersionEdit {
            last_seqno: Some(self.last_seqno),
            last_ingest: self.last_ingest,
            log: self.log,
            next_file: Some(self.next_file),
            next_keyspace: Some(self.next_keyspace),
            ..VersionEdit::default()
        };
        for (&id, state) in &self.keyspaces {
            let (name, options) = (state.name.clone(), state.options.clone());
            edit.created.push(NewKeyspace { id, name, options });
            let keyspace = edit.keyspace(id);
            keyspace.log_start = Some(state.log_start);
            for (level, runs) in state.version.levels().iter().enumerate() {
                for run in runs.runs() {
                    let tables = run.tables().iter();
                    keyspace.added.extend(tables.map(|table| NewTable {
                        level,
                        run: run.id(),
                        meta: table.meta.clone(),
                    }));
                }
            }
            for blob in state.version.blobs() {
                keyspace.blobs_added.push(blob.file.meta.clone());
                if blob.garbage_bytes > 0 {
                    keyspace.blob_garbage.push((blob.file.meta.number, blob.garbage_bytes));
                }
            }
        }
        edit
    }
}
