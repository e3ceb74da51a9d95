//! Tables: immutable sorted files. `docs/src/formats/sstable.md` shows the whole format; each part
//! is also documented with its code.
//!
//! ```text
//!  add(key, …) ─► BlockBuilder ─► Sealer ─► data blocks ────────────────┐
//!                     │ hash of each key                                ▼
//!                     ├────────────► FilterBuilder ─► filter partitions ─► file ─► footer, sync
//!                     │ separator of each block                         ▲
//!                     └────────────► BlockBuilder ─► index partitions ──┘
//!
//!  get(key, hash) ─► top index (pinned) ─► filter partition ─► index partition ─► data block
//!                                               └── each in its own block cache slot ───┘
//! ```

pub(crate) mod block;
mod blocks;
mod bytes;
mod cursor;
mod footer;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod get;
mod get_many;
mod index;
mod load;
mod open;
mod options;
mod properties;
mod shared_block;
mod source;
#[cfg(test)]
mod tests;
mod training;
mod verify;
mod writer;

pub use blocks::BlockInfo;
pub use cairn_codec::filter::{FilterKind, FilterPolicy};
pub(crate) use cursor::TableCursor;
pub(crate) use cursor::prefix_end;
pub(crate) use get_many::Query;
pub(crate) use open::Table;
pub use options::{Compression, PrefixExtractor};
pub(crate) use options::{CursorOptions, Expected, OpenOptions, TableOptions};
pub(crate) use shared_block::{Block, BlockRef};
pub(crate) use writer::{ENTRY_BYTES_MAX, TableWriter};

/// Computes the hash of a user key for filters. A lookup computes it once and passes it to every
/// table.
#[inline]
pub(crate) fn hash_key(key: &[u8]) -> u64 {
    cairn_codec::checksum::xxh3_64(key)
}

/// Computes the hash of a prefix. The seed differs from that of [`hash_key`], so that a prefix does
/// not pass as an equal key.
#[inline]
fn hash_prefix(prefix: &[u8]) -> u64 {
    cairn_codec::checksum::xxh3_64_seeded(prefix, 0x7072_6566_6978)
}
