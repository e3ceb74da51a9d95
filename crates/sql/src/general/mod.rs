//! The general path: DataFusion plans and runs, over our tables, the statements that the direct
//! path does not handle.
//!
//! The rest of the crate sees only [`GENERAL`], through the traits in `session/general.rs`, and
//! only this folder names DataFusion; `tests/it/layers.rs` checks it.

mod aggregates;
mod change;
mod engine;
mod errors;
mod functions;
mod internal_names;
mod markers;
mod operators;
mod path;
mod plan;
mod rewrite;
mod rules;
mod run;
mod scan;
mod tree;

pub(crate) use path::DataFusion;

/// The general path of all sessions.
pub(crate) static GENERAL: DataFusion = DataFusion;
