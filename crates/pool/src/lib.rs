//! Buffer pool: pages of files in memory, shared by threads.
//!
//! A page that is resident is found without a lock and read without writing to shared memory; one that is not is read into the
//! frame that the [replacement policy](policy) gives up; a changed one is written back after the log record that describes the change.
//! `docs/src/design/pool.md` tells how and why.
#![deny(unsafe_code)]

mod page;
pub mod policy;
pub mod replay;

pub use page::{Frame, PageId};
pub use policy::{Policy, PolicyKind};
