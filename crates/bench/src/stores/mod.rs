//! Stores as the lab sees them: the interface of each kind, and Cairn's own engines behind it.
//!
//! | kind | interface | measured by |
//! |---|---|---|
//! | constant store | [`constant::ConstantStore`] | `hash` |
//! | ordered key-value store | [`kv::KvStore`] | `kv`, `replay`, the adviser |
//! | SQL engine | [`sql::SqlStore`] | `sql`, `index`, the oracle |
//! | buffer pool or cache of pages | [`pages::PageStore`] | `pool` |
//! | tree with counters | [`measured::MeasuredStore`] | the simulator's validation |

pub mod bare_device;
mod cairn_hash;
pub mod cairn_hash_kv;
pub mod cairn_kv;
pub mod cairn_kv_measured;
pub mod cairn_pool;
pub mod cairn_sparkey;
#[cfg(feature = "sql")]
pub mod cairn_sql;
pub mod cairn_table;
pub mod catalog;
pub mod cells;
pub mod constant;
pub mod copy_text;
pub mod guarantee;
pub mod java;
pub mod java_frames;
pub mod kv;
pub mod lookups;
pub mod measured;
pub mod null_pages;
pub mod page_buffer;
pub mod page_file;
pub mod pages;
pub mod raw_reads;
pub mod sql;
pub mod starvation;
#[cfg(test)]
pub(crate) mod testing;
pub mod textbook_pool;

pub use constant::{BuildOutcome, Built, Compression, ConstantReader, ConstantStore, Session, Variant};
