//! The store itself: handles, and what stands behind them.

mod background;
pub(crate) mod builder;
mod changed;
mod compact;
mod control;
mod controller;
pub(crate) mod core;
mod flush;
pub(crate) mod inner;
pub(crate) mod key_range;
pub(crate) mod keyspace;
pub(crate) mod level_cursor;
mod limiter;
mod lookup;
pub(crate) mod open;
mod order;
pub(crate) mod output;
pub(crate) mod range;
pub(crate) mod recovery;
pub(crate) mod snapshots;
mod stats;
pub(crate) mod stored_options;
mod stored_strategy;
pub(crate) mod tables;
mod trust;
pub(crate) mod view;
pub(crate) mod write;

pub use builder::Builder;
pub use controller::Stalls;
pub use key_range::KeyRange;
pub use keyspace::{Db, Keyspace, Snapshot};
pub use range::{DbCursor, Pair, Range};
pub(crate) use recovery::log_options;
pub use stats::{KeyspaceStats, LevelStats, Stats};
pub(crate) use trust::check_note;
