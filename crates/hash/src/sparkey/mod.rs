//! Reads and writes Sparkey files: the log `X.spl`, to which records are only ever appended, and
//! the index `X.spi`, a hash table over the log that is built in one pass.
//!
//! The byte layouts are documented above the code that reads and writes them.
//! `docs/src/formats/sparkey.md` collects them, with the choices that we make where the format
//! leaves them open, the checks, and the damage that the format cannot detect.
//!
//! ```
//! use cairn_hash::sparkey::{IndexOptions, LogOptions, LogWriter};
//! use cairn_hash::sparkey::{ReaderOptions, SparkeyReader, build_index};
//!
//! # fn main() -> cairn_hash::Result<()> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let path = directory.path().join("users.spl");
//! let mut log = LogWriter::create(&path, &LogOptions::default())?;
//! log.put(b"user/1", b"Ada")?;
//! log.put(b"user/2", b"Grace")?;
//! log.delete(b"user/1")?;
//! log.close()?;
//! build_index(&path, &IndexOptions::default())?;
//!
//! let reader = SparkeyReader::open(&path, &ReaderOptions::default())?;
//! assert_eq!(reader.get(b"user/2")?.as_deref(), Some(&b"Grace"[..]));
//! assert_eq!(reader.get(b"user/1")?, None);
//! # Ok(())
//! # }
//! ```

mod batch;
mod block;
mod block_cache;
mod block_writer;
mod bytes;
mod cursor;
mod fast_path;
mod garbage;
mod index;
mod index_build;
mod index_header;
mod index_sort;
mod live_scan;
mod log;
mod log_header;
mod log_lock;
mod log_reader;
mod log_scan;
mod log_writer;
mod modulus;
mod options;
mod pair_builder;
mod paths;
mod reader;
mod record;
mod record_lookup;
mod rewrite;
mod robin_hood;
mod slot;
mod slot_store;
mod value_reader;
mod verify;

pub use cairn_codec::compress::{Compression, Format};
pub use index_build::{IndexSummary, build_index, build_index_in};
pub use index_header::IndexHeader;
pub use live_scan::LiveScan;
pub use log_header::LogHeader;
pub use log_lock::LogLock;
pub use log_reader::LogReader;
pub use log_scan::{LogEntry, LogScan};
pub use log_writer::LogWriter;
pub use options::{Construction, HashWidth, IndexOptions, LogOptions, Mode, ReaderOptions};
pub use pair_builder::PairBuilder;
pub use paths::{index_path, log_path};
pub use reader::{LoadSummary, SparkeyInfo, SparkeyReader};
pub use record::RecordKind;
pub use value_reader::ValueReader;
pub use verify::VerifyReport;

#[cfg(test)]
mod tests;
