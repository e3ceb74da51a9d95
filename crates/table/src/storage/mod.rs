//! Pages, their changes, and trees of them.

mod change;
mod log;
mod node;
mod ops;
mod redo;
mod source;
mod space;
mod store;
mod tree;
mod wal;

pub use log::{Log, Unlogged};
pub use space::Space;
pub use store::{Store, StoreOptions};
pub use tree::{Cursor, Direction, Tree, TreeStats};
