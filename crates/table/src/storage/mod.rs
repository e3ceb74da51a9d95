//! Pages, changes of pages, and trees.

mod chain;
mod change;
mod first;
mod foreign;
mod giving;
mod log;
mod node;
mod ops;
mod packed;
mod record;
mod redo;
mod reserve;
mod source;
mod space;
mod store;
mod together;
mod tree;
mod unfinished;
mod wal;

pub(crate) use chain::{chain_pages, free_chain, relocate_chain, write_chain};
pub(crate) use giving::{Giving, is_giving};
pub use log::{Log, Unlogged};
pub(crate) use node::{GHOST, Node, is_ghost};
pub use packed::StreamForm;
#[doc(hidden)]
pub use packed::fuzz;
pub(crate) use packed::{CHUNK as UNPACKED_AT_ONCE, Column, ColumnSet, Layout, Lead, Packed, Unpacked};
pub(crate) use record::{Before, Record};
pub use space::Space;
pub(crate) use space::page_size_of;
pub(crate) use store::Debt;
pub use store::{Store, StoreOptions, log_dir, pages_path, real_path};
pub(crate) use tree::{Builder, Edit, Gone, RunMemory};
pub use tree::{Cursor, Direction, Tree, TreeStats};
