//! Pages, their changes, and trees of them.

mod change;
mod log;
mod node;
mod ops;
mod source;
mod space;
mod tree;

pub use log::{Log, Unlogged};
pub use space::Space;
pub use tree::{Cursor, Direction, Tree, TreeStats};
