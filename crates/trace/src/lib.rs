//! Traces of storage workloads: which operations a program sent to its storage engine, when, and on
//! which keys.
//!
//! ```text
//!   program ─► kv, hash (wrappers) ─► Recorder ─┐
//!   other formats ─► import ─► Writer ──────────┴─► file ─► Trace ─► events ─► stats, replay, sim
//! ```
//!
//! A trace holds kinds, times, keys (hashed by default) and sizes. It never holds values. The file
//! format is documented in `docs/src/formats/trace.md`, the design in `docs/src/design/lab.md`.
//!
//! ```
//! # fn main() -> cairn_trace::Result<()> {
//! use std::sync::Arc;
//! use cairn_trace::{Event, Kind, Options, Recorder, Trace};
//!
//! let fs: Arc<dyn cairn_vfs::Fs> = Arc::new(cairn_vfs::MemFs::new());
//! let recorder = Recorder::create_in(&fs, "/app.trace".as_ref(), Options::default())?;
//! recorder.put(0, b"apple", 3);
//! recorder.get(0, b"apple", Some(3));
//! let summary = recorder.finish()?;
//! assert_eq!(summary.records, 2);
//!
//! let trace = Trace::open(&*fs, "/app.trace".as_ref())?;
//! let kinds = trace.events().map(|event| Ok(event?.kind()));
//! let kinds: Vec<Kind> = kinds.collect::<cairn_trace::Result<_>>()?;
//! assert_eq!(kinds, [Kind::Put, Kind::Get]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod error;
mod event;
pub mod format;
#[cfg(feature = "hash")]
pub mod hash;
#[cfg(feature = "import")]
pub mod import;
#[cfg(feature = "kv")]
pub mod kv;
#[doc(hidden)]
pub mod reader;
mod recorder;
mod sample;
#[cfg(feature = "sql")]
pub mod sql;
pub mod stats;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
mod writer;

pub use error::{Error, Result};
pub use event::{Detail, Event, Kind};
pub use format::{Header, KeyForm};
pub use reader::{Ending, Events, Trace};
pub use recorder::{Batch, ENV_KEYS, ENV_PATH, ENV_SAMPLE, Options, Recorder, Sampler, Summary};
pub use sample::{Lowered, Sample};
pub use writer::Writer;
