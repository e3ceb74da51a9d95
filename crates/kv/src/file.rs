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
    /// Wall clock in seconds since the Unix epoch when its oldest entry came to the store (flush time of the oldest
    /// input), for FIFO and TTL.
    pub oldest_secs: u64,
    /// The soonest that an entry of it expires, in seconds since the Unix epoch; `u64::MAX` when none does.
    pub expires_secs: u64,
    /// XXH3 of the whole file, as written.
    pub checksum: u64,
    /// Blob files that its entries point into, with the bytes that they point at. Ascending by number.
    pub blobs: Vec<(FileNumber, u64)>,
    /// Set for a table that was built outside of the store.
    pub ingested: Option<Ingested>,
}

/// What readers of an ingested table have to know. In the file, all its entries have sequence number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ingested {
    /// The sequence number that all its entries have.
    pub seqno: Seqno,
    /// The number that it was written under: it seeds the checksums of its blocks.
    pub number: FileNumber,
}
