//! Looking after a store: keyspaces at run time, tables from outside, copies, checks and repairs.

mod ingest;
mod keyspaces;
mod placement;
mod table_builder;
mod transfer;
#[cfg(test)]
mod tests;

pub use ingest::IngestOptions;
pub use table_builder::{BuiltTable, TableBuilder};
