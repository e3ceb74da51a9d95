//! The store itself: handles, and what stands behind them.

mod background;
mod blobs;
mod builder;
mod changed;
mod compact;
mod control;
mod controller;
pub(crate) mod core;
mod flush;
pub(crate) mod inner;
mod keyspace;
mod level_cursor;
mod lookup;
mod open;
mod order;
mod output;
pub(crate) mod range;
mod recovery;
pub(crate) mod snapshots;
mod stats;
mod stored_options;
mod tables;
mod view;
mod write;

pub use builder::Builder;
pub use controller::Stalls;
pub use keyspace::{Db, Keyspace, Snapshot};
pub use range::{DbCursor, Pair, Range};
pub use stats::Stats;
