//! The files of the store, and how their set changes atomically despite crashes.
//!
//! ```text
//!  VersionEdit ──► Manifest (append, sync) ──► StoreState: per keyspace Arc<Version>
//!                                                 Version: levels of runs of tables, blob files
//! ```
//!
//! A [`Version`] is immutable; readers hold an `Arc` of one and need no lock. An edit creates the
//! next one. For the file format, see `docs/src/formats/manifest.md`.

mod apply;
mod current;
mod edit;
mod encode;
mod fences;
mod fields;
#[doc(hidden)]
pub mod fuzz;
mod handle;
mod levels;
mod manifest;
mod names;
mod run;
mod search_order;
mod set;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    edit::{KeyspaceEdit, NewKeyspace, NewTable, OldTable, VersionEdit},
    handle::{BlobFile, TableFile},
    levels::{LiveBlob, Version},
    names::FileName,
    run::Run,
    set::{Position, VersionSet},
    state::KeyspaceState,
};
pub use edit::KeyspaceId;
pub(crate) use encode::{decode as decode_edit, encode as encode_edit};
