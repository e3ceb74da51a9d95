//! Looking after a store: keyspaces at run time, tables from outside, copies, checks and repairs.

mod backup;
mod capture;
mod checkpoint;
mod ingest;
mod keyspaces;
mod placement;
mod read_only;
mod staging;
mod table_builder;
mod transfer;
#[cfg(test)]
mod tests;

pub use backup::{BackupInfo, Backups, Damage};
pub(crate) use read_only::ReadOnly;
pub use ingest::IngestOptions;
pub use table_builder::{BuiltTable, TableBuilder};
