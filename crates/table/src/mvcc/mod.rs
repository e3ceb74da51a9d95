//! Multi-version concurrency control: visibility of rows, row locks, and removal of old versions.
//!
//! Rows are changed in place. The previous versions of a row are kept in memory ([`rows`]) for as
//! long as a transaction runs that must not see the change. Most rows have none, and a page whose
//! last change is older than every running transaction needs no check at all. After a crash no
//! transaction runs, so versions need not be on disk. The idea is that of Freitag, Kemper, Neumann,
//! "Memory-Optimized Multi-Version Concurrency Control for Disk-Based Database Systems", VLDB 2022.

mod cleaning;
mod commit;
mod key;
mod reads;
mod rows;
mod schema_lock;
mod slots;
mod state;
mod waits;

pub(crate) use cleaning::Cleaning;
pub(crate) use commit::{CommitQueue, Ended, Ghost, Taken};
pub(crate) use key::Key;
pub(crate) use reads::ReadSet;
pub(crate) use rows::{Claim, KeptVersions, Mode, Rows, Seen, Write};
pub(crate) use schema_lock::{SchemaHolder, SchemaLock};
pub(crate) use slots::{Slots, Snapshot, WriterSlot};
pub(crate) use state::{ACTIVE, State};
pub use waits::Canceller;
pub(crate) use waits::Waits;
