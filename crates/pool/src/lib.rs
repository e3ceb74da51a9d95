//! Buffer pool: pages of files in memory, shared by threads.
//!
//! A resident page is found without a lock and can be read without writing to shared memory. Any
//! other page is read into a frame that the [replacement policy](policy) frees. A changed page is
//! written back only after the log record of the change. `docs/src/design/pool.md` describes the
//! design.
#![deny(unsafe_code)]

mod arena;
mod background;
mod error;
mod fetch;
mod file;
mod format;
mod frames;
mod guard;
mod hits;
mod journal;
mod latch;
mod optimistic;
mod options;
mod page;
mod parking;
pub mod policy;
mod pool;
mod replacer;
pub mod replay;
mod scan;
mod signal;
mod staging;
mod state;
mod stats;
mod translation;
mod write_ahead;
mod write_back;

pub use error::{Error, Result};
pub use file::{FileOptions, PoolFile};
pub use format::{Format, PAGE_HEADER_LEN, stamp, verify};
pub use guard::{Exclusive, Shared};
pub use journal::{Copies, Owner, double_write_bytes};
pub use optimistic::{Changed, Optimistic, PageVersion};
pub use options::{BackgroundWriter, MAX_PAGE_SIZE, MIN_PAGE_SIZE, Options};
pub use page::{Frame, PageId};
pub use policy::{Policy, PolicyKind};
pub use pool::{Builder, Pool};
pub use scan::Scan;
pub use stats::Stats;
pub use write_ahead::{Lsn, WriteAhead};

/// `cargo test --doc` compiles the Rust examples of the user documentation.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/src/engines/pool.md")]
    struct Engine;

    #[doc = include_str!("../../../docs/src/tutorials/pool.md")]
    struct Tutorial;
}
