//! Edits: changes from one state of the store to the next.

use std::collections::BTreeMap;

use cairn_wal::Known;

use crate::file::{BlobMeta, FileNumber, Ingested, TableMeta};
use crate::kind::Seqno;

/// The id of a keyspace in log and manifest. Never reused, so that old log records are not applied
/// to a new keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyspaceId(pub u32);

/// A table that an edit adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewTable {
    /// Its level.
    pub level: usize,
    /// The run of the level that it belongs to; higher ids are newer. A flush uses a file number
    /// allocated when its memtable was sealed, so that flushes may finish out of order. A
    /// compaction's output has the highest id of its inputs, and 0 in levels of one run.
    pub run: u64,
    /// The table.
    pub meta: TableMeta,
}

/// A table that an edit removes from a level. An edit that removes and adds the same number moves
/// the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OldTable {
    /// Its level.
    pub level: usize,
    /// Its file number.
    pub number: FileNumber,
}

/// The changes of one keyspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyspaceEdit {
    /// The position where log replay starts for this keyspace: everything before it is in tables.
    /// It never moves back; a lower position than the previous one has no effect.
    pub log_start: Option<u64>,
    /// Tables to remove.
    pub removed: Vec<OldTable>,
    /// Tables to add.
    pub added: Vec<NewTable>,
    /// Blob files to remove.
    pub blobs_removed: Vec<FileNumber>,
    /// Blob files to add, without garbage.
    pub blobs_added: Vec<BlobMeta>,
    /// Garbage to add to blob files, in bytes. Increments, so that the changes of parallel jobs add
    /// up.
    pub blob_garbage: Vec<(FileNumber, u64)>,
}

impl KeyspaceEdit {
    /// Returns false when nothing but the log's start changes.
    pub(crate) fn changes_files(&self) -> bool {
        let KeyspaceEdit { log_start: _, removed, added, blobs_removed, blobs_added, blob_garbage } = self;
        let tables = !removed.is_empty() || !added.is_empty();
        tables || !blobs_removed.is_empty() || !blobs_added.is_empty() || !blob_garbage.is_empty()
    }
}

/// A keyspace that an edit creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewKeyspace {
    /// Its id, never used before.
    pub id: KeyspaceId,
    /// Its name, not empty and not in use.
    pub name: String,
    /// Its options, as encoded by their owner.
    pub options: Vec<u8>,
}

/// One atomic change of the whole store. After a crash it has either happened completely or not at
/// all.
///
/// Changes are applied in this order: keyspaces created, options changed, tables and blobs,
/// keyspaces dropped, counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VersionEdit {
    /// Keyspaces to create.
    pub created: Vec<NewKeyspace>,
    /// New options of keyspaces.
    pub options: Vec<(KeyspaceId, Vec<u8>)>,
    /// Keyspaces to drop, with all their files.
    pub dropped: Vec<KeyspaceId>,
    /// Changes of files and log starts, by keyspace.
    pub keyspaces: BTreeMap<KeyspaceId, KeyspaceEdit>,
    /// A lower bound of the highest sequence number in use.
    pub last_seqno: Option<Seqno>,
    /// The sequence number of the last ingested tables. They are in no log, and a compaction may
    /// merge them with others. A read-only process beside the writer compares this number to detect
    /// ingestions.
    pub last_ingest: Option<Seqno>,
    /// The id of the store's log and a lower bound of its durable end; zeros for a store without a
    /// log.
    pub log: Option<Known>,
    /// All file numbers in use are lower. The version set fills this in.
    pub next_file: Option<FileNumber>,
    /// All keyspace ids ever used are lower. The version set fills this in.
    pub next_keyspace: Option<u32>,
}

impl VersionEdit {
    /// Returns the changes of one keyspace.
    pub(crate) fn keyspace(&mut self, id: KeyspaceId) -> &mut KeyspaceEdit {
        self.keyspaces.entry(id).or_default()
    }
}

/// Returns an edit with all kinds of changes, for tests and the fuzz corpus.
pub(super) fn example() -> VersionEdit {
    let table = |number: FileNumber, smallest: &str, largest: &str| TableMeta {
        number,
        bytes: 4096 * number,
        smallest: smallest.into(),
        largest: largest.into(),
        seqnos: (number, number + 300),
        entries: 128,
        tombstones: 1,
        raw_bytes: 9000,
        oldest_secs: 1_700_000_000,
        newest_secs: 1_700_000_000,
        expires_secs: u64::MAX,
        checksum: 0x0123_4567_89ab_cdef,
        footer: 0xfedc_ba98_7654_3210,
        blobs: vec![(12, 100), (13, 4000)],
        ingested: None,
    };
    let mut edit = VersionEdit { last_seqno: Some(1000), next_file: Some(20), ..VersionEdit::default() };
    let name =
        |id: u32, name: &str| NewKeyspace { id: KeyspaceId(id), name: name.into(), options: vec![1, 2, 3] };
    edit.created = vec![name(0, "default"), name(1, "other"), name(2, "short-lived")];
    edit.options = vec![(KeyspaceId(1), b"later".to_vec())];
    edit.dropped = vec![KeyspaceId(2)];
    edit.next_keyspace = Some(9);
    let keyspace = edit.keyspace(KeyspaceId(0));
    keyspace.log_start = Some(1 << 40);
    let place = |level, run, meta| NewTable { level, run, meta };
    keyspace.added = vec![place(0, 9, table(9, "a", "z")), place(0, 8, table(8, "b", "y"))];
    let outside = TableMeta {
        seqnos: (99, 99),
        ingested: Some(Ingested { seqno: 99, number: 1 << 50 }),
        ..table(6, "k", "zz")
    };
    keyspace.added.extend([place(3, 0, table(5, "a", "k")), place(3, 0, outside)]);
    edit.log = Some(Known { log_id: 77, reached: (7 << 32 | 4096).into(), salt: 99 });
    let keyspace = edit.keyspace(KeyspaceId(0));
    let blob = |number: FileNumber| BlobMeta {
        number,
        bytes: 10_000,
        values: 8,
        value_bytes: 9000,
        checksum: number,
        footer: number + 1,
    };
    keyspace.blobs_added = vec![blob(12), blob(13), blob(14)];
    keyspace.blob_garbage = vec![(12, 500)];
    keyspace.blobs_removed = vec![14];
    edit
}
