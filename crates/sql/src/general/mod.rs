//! The general path: DataFusion plans and runs, over our tables, the statements that the direct
//! path does not handle.

mod aggregates;
mod change;
mod engine;
mod errors;
mod functions;
mod operators;
mod plan;
mod rewrite;
mod rules;
mod run;
mod scan;
mod tree;

pub(crate) use change::Change;
pub(crate) use engine::{Engine, General};
pub(crate) use errors::external;
pub(crate) use plan::query::Query;
pub(crate) use run::batches::Batches;
pub(crate) use run::materialized::MaterializedRows;
