//! The stores that Cairn is compared with, each configured as an expert would configure it for this
//! workload. Every setting that is not a default is recorded with the figures.

#[cfg(feature = "peers")]
mod c_api;
#[cfg(feature = "peers")]
mod c_kv;
#[cfg(feature = "peers")]
pub mod cdb;
#[cfg(feature = "peers")]
pub mod kv;
#[cfg(feature = "peers")]
pub mod leveldb;
#[cfg(feature = "peers")]
pub mod lmdb;
#[cfg(feature = "peers")]
pub mod pool;
#[cfg(feature = "peers")]
pub mod redb;
#[cfg(feature = "peers")]
pub mod rocksdb;
pub mod sparkey_java;
#[cfg(feature = "peers")]
pub mod sql;
#[cfg(feature = "peers")]
pub mod sqlite;
#[cfg(feature = "peers")]
mod sqlite_wal;

#[cfg(all(test, feature = "peers"))]
mod tests;
