//! Stores as the lab sees them: the interface of each kind, and Cairn's own engines behind it.

mod cairn;
pub mod cairn_hash_kv;
pub mod cairn_kv;
#[cfg(all(feature = "sql", feature = "peers"))]
pub mod cairn_server;
pub mod cairn_sparkey;
#[cfg(feature = "sql")]
pub mod cairn_sql;
pub mod cairn_table;
pub mod constant;
pub mod lookups;
#[cfg(test)]
pub(crate) mod testing;

pub use crate::data_files::{data_bytes, data_files};
pub use crate::settings::{Settings, settings};
pub use constant::{BuildOutcome, Built, Compression, ConstantReader, ConstantStore, Session, Variant};
