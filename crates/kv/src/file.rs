//! What the store knows of a table file without opening it.

use crate::kind::Seqno;

/// The number in a file's name. Numbers are never used twice in a store, whatever the file's type.
pub type FileNumber = u64;

/// One table, as the manifest has it. Immutable once the table is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMeta {
    /// The number in its name: `000042.table`.
    pub number: FileNumber,
    /// Length of the file.
    pub bytes: u64,
    /// The first key, range tombstones counted.
    pub smallest: Vec<u8>,
    /// The last key (inclusive), ends of range tombstones counted.
    pub largest: Vec<u8>,
    /// The lowest and the highest sequence number in it.
    pub seqnos: (Seqno, Seqno),
    /// Entries, tombstones and range tombstones counted.
    pub entries: u64,
    /// Of these, tombstones and range tombstones.
    pub tombstones: u64,
    /// Bytes of keys and values before prefix compression and block compression.
    pub raw_bytes: u64,
    /// Wall clock in seconds since the Unix epoch when its oldest entry came to the store (flush
    /// time of the oldest input), for tables that are to be merged down by their age.
    pub oldest_secs: u64,
    /// The same of its newest entry, for FIFO: an earlier version knew only the oldest, which then
    /// is this too.
    pub newest_secs: u64,
    /// The soonest that an entry of it expires, in seconds since the Unix epoch; `u64::MAX` when
    /// none does.
    pub expires_secs: u64,
    /// XXH3 of the whole file, as written.
    pub checksum: u64,
    /// The checksum in its footer, which stands for the whole file: what an open holds against the
    /// file that it finds. 0 where nothing is known of it.
    pub footer: u64,
    /// Blob files that its entries point into, with the bytes that they point at. Ascending by
    /// number.
    pub blobs: Vec<(FileNumber, u64)>,
    /// Set for a table that was built outside of the store.
    pub ingested: Option<Ingested>,
}

impl TableMeta {
    /// When the oldest and the newest entry of all these tables came; `None` without tables.
    pub(crate) fn secs_of<'a>(metas: impl IntoIterator<Item = &'a TableMeta>) -> Option<(u64, u64)> {
        let all = metas.into_iter().map(|meta| (meta.oldest_secs, meta.newest_secs));
        all.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }
}

/// What readers of an ingested table have to know. In the file, all its entries have sequence
/// number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ingested {
    /// The sequence number that all its entries have.
    pub seqno: Seqno,
    /// The number that it was written under: it seeds the checksums of its blocks.
    pub number: FileNumber,
}
