//! Many versions of rows at the same time: who sees which, who may change what, and when old ones
//! go.
//!
//! Rows are changed in place. What a row was before is kept in memory ([`rows`]) for as long as
//! somebody runs who must not see the change; most rows have no such thing, and a page whose last
//! change is older than every transaction that runs needs no look at all. After a crash nobody
//! runs, so none of it has to be on disk. The idea is that of Freitag, Kemper, Neumann,
//! "Memory-Optimized Multi-Version Concurrency Control for Disk-Based Database Systems", VLDB 2022.

mod commit;
mod key;
mod reads;
mod rows;
mod slots;
mod state;
mod waits;

pub(crate) use commit::{CommitQueue, Ended, Ghost, Taken};
pub(crate) use key::Key;
pub(crate) use reads::ReadSet;
pub(crate) use rows::{Claim, Kept, Mode, Rows, Seen, Write};
pub(crate) use slots::{Slots, Snapshot, WriterSlot};
pub(crate) use state::State;
pub use waits::Canceller;
pub(crate) use waits::Waits;
