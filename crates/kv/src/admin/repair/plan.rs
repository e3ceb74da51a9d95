//! The plan of a repair: which table belongs where.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_vfs::sync::Arc;

use super::Repair;
use crate::admin::verify::check_table;
use crate::batch::DEFAULT;
use crate::blob::BlobReader;
use crate::cache::Cache;
use crate::db::open::DEFAULT_NAME;
use crate::db::output::table_options;
use crate::db::stored_options::StoredOptions;
use crate::file::{BlobMeta, FileNumber, Ingested, TableMeta};
use crate::kind::Seqno;
use crate::options::KeyspaceOptions;
use crate::table::{OpenOptions, Table, TableOptions};
use crate::version::{FileName, KeyspaceId, NewKeyspace, NewTable, Version, VersionEdit, VersionSet};
use crate::{Error, Result};

/// A keyspace of the repaired store.
#[derive(Debug)]
pub(super) struct PlannedKeyspace {
    pub name: String,
    /// Encoded as in the manifest.
    pub stored: Vec<u8>,
    pub options: KeyspaceOptions,
    pub tables: Vec<NewTable>,
    pub blobs: Vec<(BlobMeta, u64)>,
    /// Log records after this position and above this sequence number are not in tables.
    pub log_start: u64,
    pub flushed: Seqno,
}

impl PlannedKeyspace {
    /// Returns the time to live of its entries; 0 means forever. An error in the stored options is
    /// not reported here; opening the store reports it.
    pub(super) fn ttl_secs(&self, store: &Path) -> u64 {
        StoredOptions::decode(&self.stored, store).map_or(0, |kept| kept.ttl_secs)
    }

    /// Returns the options for writing its tables; see [`table_options`].
    pub(super) fn table_options(
        &self,
        id: KeyspaceId,
        level: usize,
        last_level: usize,
        secs: (u64, u64),
    ) -> TableOptions {
        let options = table_options(&self.options, level, last_level, secs);
        TableOptions { keyspace: Some((id.0, self.name.clone())), ..options }
    }
}

/// The state of the repaired store.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub keyspaces: BTreeMap<KeyspaceId, PlannedKeyspace>,
    pub last_seqno: Seqno,
    /// True when keyspaces are known only from tables and the log, because the manifest is lost.
    pub is_open_ended: bool,
}

/// A table of a store without manifest, read completely.
#[derive(Debug)]
pub(super) struct FoundTable {
    pub meta: TableMeta,
    keyspace: Option<(u32, String)>,
    /// Writes up to this sequence number are in tables. An ingested table does not tell.
    flushed_seqno: Seqno,
}

impl Plan {
    /// Returns the edit that creates this state from an empty store.
    pub(super) fn edit(&self, next_file: FileNumber) -> VersionEdit {
        let mut edit = VersionEdit {
            last_seqno: Some(self.last_seqno),
            next_file: Some(next_file),
            ..VersionEdit::default()
        };
        for (&id, keyspace) in &self.keyspaces {
            let (name, options) = (keyspace.name.clone(), keyspace.stored.clone());
            edit.created.push(NewKeyspace { id, name, options });
            let change = edit.keyspace(id);
            change.added = keyspace.tables.clone();
            for (blob, garbage) in &keyspace.blobs {
                change.blobs_added.push(blob.clone());
                if *garbage > 0 {
                    change.blob_garbage.push((blob.number, *garbage));
                }
            }
        }
        edit
    }

    /// Returns the keyspace of a log record or a table, or `None` when it was dropped.
    pub(super) fn keyspace(
        &mut self,
        id: KeyspaceId,
        name: Option<&str>,
        options: impl FnOnce(&str) -> KeyspaceOptions,
    ) -> Option<&mut PlannedKeyspace> {
        if self.is_open_ended && !self.keyspaces.contains_key(&id) {
            let fallback =
                if id == DEFAULT { DEFAULT_NAME.to_owned() } else { format!("recovered-{}", id.0) };
            let mut name = name.map_or(fallback.clone(), str::to_owned);
            if self.keyspaces.values().any(|keyspace| keyspace.name == name) {
                // The name belongs to a keyspace that was dropped and created again.
                name = fallback;
            }
            let options = options(&name);
            let stored = StoredOptions::of(&options).encode();
            let (tables, blobs) = (Vec::new(), Vec::new());
            let planned = PlannedKeyspace { name, stored, options, tables, blobs, log_start: 0, flushed: 0 };
            self.keyspaces.insert(id, planned);
        }
        self.keyspaces.get_mut(&id)
    }
}

impl Repair<'_> {
    /// Plans the state that the manifest describes, without damaged files.
    pub(super) fn plan_by_manifest(&mut self, set: &VersionSet) -> Result<Plan> {
        let mut plan = Plan { last_seqno: set.last_seqno(), ..Plan::default() };
        self.next_file = self.next_file.max(set.new_file_number());
        for (id, state) in set.keyspaces() {
            let tables = self.sound_tables(&state.version)?;
            self.check_unneeded(&state.version, &tables)?;
            let options = self.options.keyspace(&state.name);
            let (name, stored, log_start) = (state.name, state.options, state.log_start);
            let (blobs, flushed) = (Vec::new(), 0);
            let mut planned = PlannedKeyspace { name, stored, options, tables, blobs, log_start, flushed };
            let dir = self.dir;
            let describe = |number| match state.version.blob(number) {
                Some(blob) => Ok(blob.file.meta.clone()),
                None => {
                    let path = FileName::Blob(number).path(dir);
                    Err(Error::corruption(&path, 0, "a table refers to it, but the manifest does not"))
                }
            };
            self.mend_blobs(id, &mut planned, describe)?;
            plan.keyspaces.insert(id, planned);
        }
        Ok(plan)
    }

    /// Returns the version's tables that match the manifest, and sets the others aside.
    fn sound_tables(&mut self, version: &Version) -> Result<Vec<NewTable>> {
        let mut tables = Vec::new();
        for (level, runs) in version.levels().iter().enumerate() {
            for run in runs.runs() {
                for table in run.tables() {
                    let path = FileName::Table(table.number()).path(self.dir);
                    match check_table(&self.fs, self.dir, &table.meta) {
                        Ok(()) => tables.push(NewTable { level, run: run.id(), meta: table.meta.clone() }),
                        Err(error) => {
                            if self.fs.exists(&path)? {
                                self.lost.push(path.clone());
                            }
                            self.found(path, error)?;
                        }
                    }
                }
            }
        }
        Ok(tables)
    }

    /// Verifies the blob files that none of the tables refers to. They are garbage, and the next
    /// open removes them.
    fn check_unneeded(&mut self, version: &Version, tables: &[NewTable]) -> Result<()> {
        let wanted = wanted_blobs(tables);
        let unneeded = |meta: &&BlobMeta| !wanted.contains_key(&meta.number);
        for meta in version.blobs().iter().map(|blob| &blob.file.meta).filter(unneeded) {
            if let Err(error) = self.check_whole(meta) {
                self.found(FileName::Blob(meta.number).path(self.dir), error)?;
            }
        }
        Ok(())
    }

    /// Plans the state from the properties of the tables.
    pub(super) fn plan_by_tables(&mut self) -> Result<Plan> {
        let mut found = self.read_tables()?;
        self.number_ingested(&mut found);
        let mut plan = Plan { is_open_ended: true, ..Plan::default() };
        let options = |name: &str| self.options.keyspace(name);
        plan.keyspace(DEFAULT, Some(DEFAULT_NAME), options);
        let mut by_keyspace: BTreeMap<KeyspaceId, Vec<TableMeta>> = BTreeMap::new();
        for FoundTable { meta, keyspace, flushed_seqno } in found {
            let (id, name) = keyspace
                .as_ref()
                .map_or((DEFAULT, DEFAULT_NAME), |(id, name)| (KeyspaceId(*id), name.as_str()));
            plan.last_seqno = plan.last_seqno.max(meta.seqnos.1).max(flushed_seqno);
            if let Some(planned) = plan.keyspace(id, Some(name), options) {
                planned.flushed = planned.flushed.max(flushed_seqno);
            }
            by_keyspace.entry(id).or_default().push(meta);
        }
        for (id, metas) in by_keyspace {
            let Some(planned) = plan.keyspaces.get_mut(&id) else { continue };
            planned.tables = self.arrange(id, planned, metas)?;
            let (fs, dir) = (Arc::clone(&self.fs), self.dir);
            self.mend_blobs(id, planned, |number| BlobReader::describe(&*fs, dir, number))?;
        }
        Ok(plan)
    }

    /// Returns all readable tables of the directory, and sets the others aside.
    fn read_tables(&mut self) -> Result<Vec<FoundTable>> {
        let mut found = Vec::new();
        for path in self.fs.read_dir(self.dir)? {
            let Some(FileName::Table(number)) = FileName::parse(&path) else { continue };
            let foreign = OpenOptions { foreign: true, ..OpenOptions::default() };
            let table = Table::open(&self.fs, &path, number, &Arc::new(Cache::new(0)), foreign);
            match table.and_then(|table| Ok((table.verify(None)?.checksum, table))) {
                Ok((checksum, table)) => found.push(found_table(number, checksum, &table, self.now_secs)),
                Err(error) => {
                    self.lost.push(path.clone());
                    self.found(path, error)?;
                }
            }
        }
        Ok(found)
    }

    /// Assigns sequence numbers to ingested tables, whose real ones were in the manifest. Tables
    /// written earlier have lower file numbers.
    fn number_ingested(&mut self, found: &mut [FoundTable]) {
        found.sort_by_key(|table| table.meta.number);
        debug_assert!(
            found.is_sorted_by(|a, b| a.meta.number < b.meta.number),
            "a file number has one spelling, so two tables cannot share it"
        );
        let mut newest = 0;
        for table in found {
            let FoundTable { meta, keyspace, flushed_seqno } = table;
            if let Some(ingested) = &mut meta.ingested {
                newest += 1;
                ingested.seqno = newest;
                meta.seqnos = (newest, newest);
                let (number, seqno) = (meta.number, newest);
                let mut what = format!("table {number} was ingested after sequence number {}", seqno - 1);
                if keyspace.is_none() {
                    what.push_str(", into the default keyspace");
                }
                self.report.assumptions.push(what);
            }
            newest = newest.max(meta.seqnos.1).max(*flushed_seqno);
        }
    }
}

fn found_table(number: FileNumber, checksum: u64, table: &Table, now_secs: u64) -> FoundTable {
    let found = table.properties();
    // In a table that the store wrote, the number inside equals the one in its name.
    let is_ingested = table.written_number() != number && found.seqnos == (0, 0);
    let ingested = is_ingested.then(|| Ingested { seqno: 0, number: table.written_number() });
    // The age of ingested tables was in the manifest. They count as written now, so that strategies
    // that drop the oldest tables do not drop them first.
    let (oldest_secs, newest_secs) = match found.oldest_secs {
        0 => (now_secs, now_secs),
        oldest_secs => (oldest_secs, found.newest_secs),
    };
    let meta = TableMeta {
        number,
        bytes: table.bytes(),
        smallest: found.smallest.clone(),
        largest: found.largest.clone(),
        seqnos: found.seqnos,
        entries: found.entries + found.range_tombstones,
        tombstones: found.deletes + found.range_tombstones,
        raw_bytes: found.key_bytes + found.value_bytes,
        oldest_secs,
        newest_secs,
        expires_secs: found.expires_secs,
        checksum,
        footer: table.footer_sum(),
        blobs: found.blobs.clone(),
        ingested,
    };
    FoundTable { meta, keyspace: found.keyspace.clone(), flushed_seqno: found.flushed_seqno }
}

/// Returns the blob files that the tables refer to, each with the total bytes of the referenced
/// values. Empty values need no file.
pub(super) fn wanted_blobs(tables: &[NewTable]) -> BTreeMap<FileNumber, u64> {
    let mut wanted = BTreeMap::new();
    for &(number, bytes) in tables.iter().flat_map(|new| &new.meta.blobs).filter(|(_, bytes)| *bytes > 0) {
        *wanted.entry(number).or_default() += bytes;
    }
    wanted
}
