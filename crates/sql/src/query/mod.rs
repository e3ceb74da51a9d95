//! The general path: DataFusion plans and runs what the direct path does not, over our tables.

mod batches;
mod change;
mod engine;
mod errors;
mod filter;
mod functions;
mod names;
mod numbers;
mod plan;
mod provider;
mod rewrite;
mod scan;
mod stream;
mod value;

pub(crate) use change::Change;
pub(crate) use engine::{Engine, General};
pub(crate) use errors::arrow_error;
pub(crate) use functions::{RowFunction, number_of, text_of};
pub(crate) use plan::Query;
pub(crate) use stream::Batches;
