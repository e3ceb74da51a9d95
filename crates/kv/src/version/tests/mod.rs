//! Tests of versions, edits and the manifest.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{FaultFs, FaultOptions, Fs, MemFs, Rng, SeededRng};

use super::edit::{KeyspaceEdit, KeyspaceId, NewKeyspace, NewTable, OldTable, VersionEdit};
use super::levels::Version;
use super::set::VersionSet;
use crate::file::{BlobMeta, TableMeta};
use crate::{Error, Result};

mod codec;
mod crash;
mod damage;
mod errors;
mod files;
mod invariants;
mod lookup;

const DIR: &str = "db";
const STORE: u64 = 0x5eed;

/// Returns the number of rounds: with `CAIRN_SOAK=1`, twenty times `few`.
fn rounds(few: u64) -> u64 {
    if std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { few * 20 } else { few }
}

/// Returns the seed of a test, which `CAIRN_SEED` overrides.
fn seed() -> u64 {
    let seed = std::env::var("CAIRN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("CAIRN_SEED={seed}");
    seed
}

fn dir() -> &'static Path {
    Path::new(DIR)
}

fn memory() -> Arc<dyn Fs> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    fs.create_dir_all(dir()).unwrap();
    fs
}

/// Returns a simulated disk with a durable, empty directory.
fn faulty(options: FaultOptions) -> FaultFs {
    let fs = FaultFs::new(options);
    fs.create_dir_all(dir()).unwrap();
    fs.sync_dir(Path::new(".")).unwrap();
    fs
}

fn shared(fs: &FaultFs) -> Arc<dyn Fs> {
    Arc::new(fs.clone())
}

fn table(number: u64, smallest: &str, largest: &str) -> TableMeta {
    TableMeta {
        number,
        bytes: 1000 + number,
        smallest: smallest.into(),
        largest: largest.into(),
        seqnos: (1, number),
        entries: 10,
        tombstones: 0,
        raw_bytes: 2000,
        oldest_secs: 5,
        newest_secs: 5,
        expires_secs: u64::MAX,
        checksum: number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        footer: number + 5,
        blobs: Vec::new(),
        ingested: None,
    }
}

fn create(id: u32, name: &str) -> VersionEdit {
    let created = vec![NewKeyspace { id: KeyspaceId(id), name: name.into(), options: b"options".to_vec() }];
    VersionEdit { created, ..VersionEdit::default() }
}

fn new_store(fs: &Arc<dyn Fs>) -> Result<VersionSet> {
    VersionSet::create(fs, dir(), STORE, &create(0, "default"))
}

fn apply(set: &VersionSet, edit: &VersionEdit) -> Result<()> {
    set.log_and_apply(edit.clone(), |_, _| {})
}

/// Returns an edit that adds tables to keyspace 0.
fn add(tables: Vec<(usize, u64, TableMeta)>) -> VersionEdit {
    let mut edit = VersionEdit::default();
    let added = tables.into_iter().map(|(level, run, meta)| NewTable { level, run, meta });
    edit.keyspace(KeyspaceId(0)).added.extend(added);
    edit
}

/// Generates random valid edits for a store: flushes, compactions, moves, blob files and their
/// garbage, creation and removal of keyspaces.
struct Edits {
    rng: SeededRng,
}

impl Edits {
    fn new(seed: u64) -> Edits {
        Edits { rng: SeededRng::new(seed).fork("edits") }
    }

    fn next(&mut self, set: &VersionSet) -> VersionEdit {
        let mut edit =
            VersionEdit { last_seqno: Some(set.last_seqno() + self.rng.below(50)), ..VersionEdit::default() };
        let keyspaces = set.keyspaces();
        if keyspaces.is_empty() || (keyspaces.len() < 4 && self.rng.chance(0.1)) {
            let id = set.next_keyspace_id();
            edit.created.push(NewKeyspace {
                id,
                name: format!("keyspace {}", id.0),
                options: vec![id.0 as u8; 5],
            });
            return edit;
        }
        let (id, state) = keyspaces[self.rng.below(keyspaces.len() as u64) as usize].clone();
        if keyspaces.len() > 1 && self.rng.chance(0.05) {
            edit.dropped.push(id);
            return edit;
        }
        if self.rng.chance(0.1) {
            edit.options.push((id, vec![self.rng.below(256) as u8; 3]));
        }
        let change = match self.rng.below(4) {
            0 | 1 => self.flush(set, &state.version, state.log_start),
            2 => self.compaction(set, &state.version),
            _ => self.garbage(&state.version),
        };
        edit.keyspaces.insert(id, change);
        edit
    }

    fn flush(&mut self, set: &VersionSet, version: &Version, log_start: u64) -> KeyspaceEdit {
        let number = set.new_file_number();
        let (a, b) = (self.rng.below(500), 500 + self.rng.below(500));
        let meta = table(number, &format!("key {a:03}"), &format!("key {b:03}"));
        let mut edit =
            KeyspaceEdit { log_start: Some(log_start + 1 + self.rng.below(900)), ..KeyspaceEdit::default() };
        edit.added.push(NewTable { level: 0, run: number, meta });
        if self.rng.chance(0.3) && version.blobs().len() < 5 {
            let number = set.new_file_number();
            edit.blobs_added.push(BlobMeta {
                number,
                bytes: 900,
                values: 9,
                value_bytes: 800,
                checksum: number,
                footer: number + 7,
            });
        }
        edit
    }

    /// Compacts a whole level into the next, as two tables, or moves it if the next one has room.
    fn compaction(&mut self, set: &VersionSet, version: &Version) -> KeyspaceEdit {
        let mut edit = KeyspaceEdit::default();
        let from = self.rng.below(3) as usize;
        let tables_of =
            |level: usize| version.levels().get(level).map_or(Vec::new(), |level| level.tables().collect());
        let (upper, lower) = (tables_of(from), tables_of(from + 1));
        edit.removed.extend(upper.iter().map(|table| OldTable { level: from, number: table.number() }));
        if lower.is_empty() && upper.len() == 1 {
            edit.added.push(NewTable { level: from + 1, run: 0, meta: upper[0].meta.clone() });
            return edit;
        }
        edit.removed.extend(lower.iter().map(|table| OldTable { level: from + 1, number: table.number() }));
        if !edit.removed.is_empty() {
            for (smallest, largest) in [("key 0", "key 499"), ("key 5", "key 9")] {
                let meta = table(set.new_file_number(), smallest, largest);
                edit.added.push(NewTable { level: from + 1, run: 0, meta });
            }
        }
        edit
    }

    fn garbage(&mut self, version: &Version) -> KeyspaceEdit {
        let mut edit = KeyspaceEdit::default();
        for blob in version.blobs() {
            let left = blob.file.meta.value_bytes - blob.garbage_bytes;
            match left {
                0 => edit.blobs_removed.push(blob.file.meta.number),
                left => edit.blob_garbage.push((blob.file.meta.number, 1 + self.rng.below(left))),
            }
        }
        edit
    }
}

fn is_poisoned(error: &Error) -> bool {
    matches!(error, Error::Poisoned { .. })
}
