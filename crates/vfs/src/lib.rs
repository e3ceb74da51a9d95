//! Everything Cairn asks of the operating system, behind traits that tests can implement.
//!
//! The engines reach files through [`Fs`] and [`File`], time through [`Clock`], randomness through
//! [`Rng`] and threads through [`thread`] and [`sync`]. The same engine code therefore runs on the
//! real disk ([`StdFs`]), in memory ([`MemFs`]) and on a simulated disk that loses power, tears
//! writes and fills up ([`FaultFs`]).
//!
//! Durability has one meaning throughout. Written data is *pending* until [`File::sync_data`]
//! returns. A name that was created, renamed or removed is pending until [`Fs::sync_dir`] of its
//! directory returns.

// The lint sends every other crate here; this crate has to call the disallowed methods itself.
#![allow(clippy::disallowed_methods)]

mod append;
pub mod append_map;
mod atomic;
mod bug;
mod checks;
mod clock;
#[cfg(test)]
mod conformance;
mod error;
pub mod fault;
mod fs;
mod map;
mod mem;
pub mod memory;
mod open_files;
mod output;
mod rng;
mod std_fs;
pub mod sync;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
pub mod thread;

pub use append::AppendWriter;
pub use append_map::{AppendMap, AppendProgress};
pub use atomic::AtomicFile;
pub use bug::Bug;
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{Error, ErrorKind, Operation, Result};
pub use fault::{CrashImage, FaultFs, FaultOptions};
pub use fs::{Access, Advice, Create, File, FileId, Fs, Metadata, OpenOptions, ReadRequest, WriteRequest};
pub use map::{Load, LoadReport, Map};
pub use mem::MemFs;
pub use open_files::{open_files_limit, raise_open_files_limit};
pub use output::OutputFile;
pub use rng::{Rng, SeededRng, SystemRng};
pub use std_fs::StdFs;
