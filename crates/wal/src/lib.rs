//! Write-ahead log: checksummed records in recycled segments, parallel appends, group commit,
//! bounded replay.
//!
//! One [`Appender`] reserves space for records, in order. Each holder of a [`Reservation`] fills
//! and commits it, in parallel with the others. A committed record is in the page cache. It
//! survives a crash of the process once all earlier records are committed too. [`Log::sync_to`]
//! puts it on stable storage, together with the records of all other waiting threads.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//! use cairn_vfs::{Fs, MemFs, SeededRng};
//! use cairn_wal::{Log, Lsn, Options, Recovery, RecoveryOptions};
//!
//! let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
//! let dir = Path::new("log");
//! for round in 0..2 {
//!     let mut recovery = Recovery::open(&fs, dir, Lsn::ZERO, &RecoveryOptions::default())?;
//!     let mut found = 0;
//!     while let Some(record) = recovery.next()? {
//!         assert_eq!(record.payload, b"hello");
//!         found += 1;
//!     }
//!     assert_eq!(found, round);
//!     let mut rng = SeededRng::new(round);
//!     let tail = recovery.finish()?;
//!     let (log, mut appender) = Log::open(&fs, &Options::default(), tail, &mut rng)?;
//!     let lsn = appender.append(&[b"hel", b"lo"])?;
//!     log.sync_to(lsn)?;
//! }
//! # Ok::<(), cairn_wal::Error>(())
//! ```
//!
//! `docs/src/formats/wal.md` specifies the bytes. A log has no lock of its own: a process that
//! opens one for writing must hold the lock of the store that the log belongs to.
#![forbid(unsafe_code)]

mod appender;
pub mod error;
mod files;
mod format;
mod group;
mod helper;
mod log;
mod lsn;
mod options;
mod recovery;
mod segment;
mod shared;

pub use appender::{Appender, Reservation};
pub use error::{Error, Result};
pub use files::{is_log_file, is_log_leftover};
pub use format::MAX_RECORD_BYTES;
pub use log::{Log, Stats};
pub use lsn::Lsn;
pub use options::{Known, Mode, Options, RecoveryOptions};
pub use recovery::{Damage, Record, Recovery, Tail};
