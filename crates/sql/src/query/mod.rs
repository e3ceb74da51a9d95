//! The general path: DataFusion plans and runs what the direct path does not, over our tables.

mod aggregate_rule;
mod aggregate_scan;
mod aside;
mod batches;
mod change;
mod days;
mod enclosing;
mod engine;
mod errors;
mod extremes;
mod filter;
mod functions;
mod join_keys;
mod kept;
mod keys;
mod literals;
mod names;
mod numbers;
mod own;
mod plan;
mod provider;
mod read;
mod rewrite;
mod scan;
mod sequences;
mod share;
mod single;
mod spans;
mod stream;
mod sums;
mod value;

pub(crate) use change::Change;
pub(crate) use engine::{Engine, General};
pub(crate) use errors::{arrow_error, external};
pub(crate) use plan::Query;
pub(crate) use stream::Batches;
