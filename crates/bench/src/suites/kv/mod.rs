//! The suite of key-value stores: DKV's six modes, YCSB, db_bench, and the long-term costs of a
//! store.
//!
//! ```text
//!   options ─► plan: groups, one for each mode and shape
//!                 └─► for each round, for each store in shuffled order: one turn in a new process
//!                        │   turn: open ─ phases, answers checked ─ settle ─ store checked ─ close
//!                        └─► recorder: samples ─► medians and intervals ─► Run
//! ```
//!
//! Every turn begins with an empty directory and a fresh process. So the bytes that the kernel
//! counts for the process are those that this store wrote, background threads included, and its
//! memory is the store's own.

mod baseline;
mod crud;
mod db_bench;
pub mod job;
mod keys;
mod large;
pub mod layout;
pub mod matrix;
pub(crate) mod meters;
mod options;
pub mod outcome;
mod overwrite;
mod plan;
pub mod replay;
mod suite;
mod threads;
mod turn;
mod values;
mod writers;
mod ycsb;

pub use db_bench::Benchmark;
pub use keys::KEY_BYTES_MAX;
pub use options::{Mode, Options};
pub(crate) use plan::map_bytes;
pub use plan::{KvGroup, plan};
pub use suite::{NAME, run, run_with};
pub use values::{VALUE_BYTES_MAX, VALUE_BYTES_MIN};
pub use ycsb::{Mix, Spec as YcsbSpec};
pub(crate) use ycsb::{TIMED_SHARE as YCSB_TIMED_SHARE, YcsbRun};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
