//! Pages, changes of pages, and trees.

mod chain;
mod change;
mod file_identity;
mod file_match;
mod foreign_file;
mod log;
mod long_record;
mod node;
mod ops;
mod packed;
mod reclaiming;
mod record;
mod recovery_work;
mod redo;
mod reserve;
mod source;
mod space;
mod store;
mod tree;
mod version;
mod wal;

pub(crate) use chain::{chain_pages, free_chain, relocate_chain, write_chain};
pub use log::{Log, Unlogged};
pub(crate) use long_record::{LONG, LongRecord};
pub(crate) use node::{GHOST, Node, is_ghost};
pub use packed::StreamForm;
#[doc(hidden)]
pub use packed::fuzz;
pub(crate) use packed::{CHUNK as UNPACK_CHUNK, Column, ColumnSet, Layout, Lead, Packed, Unpacked};
pub(crate) use reclaiming::{Reclaiming, is_reclaiming};
pub(crate) use record::{Before, DroppedTree, Record};
pub use space::Space;
pub(crate) use space::page_size_of;
pub(crate) use store::UndoReservation;
pub use store::{Store, StoreOptions, log_dir, pages_path, real_path};
pub(crate) use tree::{Builder, Edit, RunMemory};
pub use tree::{Cursor, Direction, Tree, TreeStats};
