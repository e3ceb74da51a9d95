//! The metadata of a table file, known without opening the file.

use crate::kind::Seqno;

/// The number in a file name. A store never reuses a number, not even for a file of another type.
pub type FileNumber = u64;

/// The manifest's record of one table. Immutable once the table is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMeta {
    /// The number in the file name: `000042.table`.
    pub number: FileNumber,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The first key, including range tombstones.
    pub smallest: Vec<u8>,
    /// The last key (inclusive), including the ends of range tombstones.
    pub largest: Vec<u8>,
    /// The lowest and highest sequence number in the table.
    pub seqnos: (Seqno, Seqno),
    /// Number of entries, including tombstones and range tombstones.
    pub entries: u64,
    /// Number of tombstones and range tombstones.
    pub tombstones: u64,
    /// Bytes of keys and values before prefix compression and block compression.
    pub raw_bytes: u64,
    /// The time when the oldest entry reached the store, in wall clock seconds since the Unix epoch
    /// (the flush time of the oldest input). Used to compact tables by age.
    pub oldest_secs: u64,
    /// The same for the newest entry; FIFO uses it. An earlier version stored only the oldest time,
    /// which then stands here too.
    pub newest_secs: u64,
    /// The earliest expiry of an entry, in seconds since the Unix epoch; `u64::MAX` if none
    /// expires.
    pub expires_secs: u64,
    /// XXH3 of the whole file as written.
    pub checksum: u64,
    /// The checksum in the footer, which stands for the whole file. When the store opens the table,
    /// it compares this with the file it finds. 0 if unknown.
    pub footer: u64,
    /// The blob files that the entries refer to, each with the number of bytes referred to. In
    /// ascending order of numbers.
    pub blobs: Vec<(FileNumber, u64)>,
    /// Set for a table that was built outside the store.
    pub ingested: Option<Ingested>,
}

impl TableMeta {
    /// Returns the times of the oldest and the newest entry of all `metas`, or `None` if there are
    /// none.
    pub(crate) fn secs_of<'a>(metas: impl IntoIterator<Item = &'a TableMeta>) -> Option<(u64, u64)> {
        let all = metas.into_iter().map(|meta| (meta.oldest_secs, meta.newest_secs));
        all.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }
}

/// The store's description of a blob file, available without opening it. Immutable once it is
/// installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobMeta {
    /// The number in its name: `000042.blob`.
    pub number: FileNumber,
    /// Length of the file.
    pub bytes: u64,
    /// Number of values in it.
    pub values: u64,
    /// Bytes of its values as counted by tables ([`TableMeta::blobs`]). Garbage is compared with
    /// this number.
    pub value_bytes: u64,
    /// XXH3 of the whole file, as written.
    pub checksum: u64,
    /// The checksum in its footer, which covers the whole file. Opening the file compares it with
    /// the footer. 0 if unknown.
    pub footer: u64,
}

/// Properties of an ingested table that readers must know. In the file itself, all entries have
/// sequence number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ingested {
    /// The sequence number of all entries.
    pub seqno: Seqno,
    /// The file number under which the table was written. It seeds the checksums of the blocks.
    pub number: FileNumber,
}
