//! Administration of a store: creating keyspaces at run time, ingestion, copies, verification and
//! repair.

mod backup;
mod capture;
mod checkpoint;
mod destroy;
mod ingest;
mod inspect;
mod keyspaces;
mod list;
mod placement;
mod read_only;
mod repair;
mod staging;
mod table_builder;
#[cfg(test)]
mod tests;
mod transfer;
mod verify;

pub use backup::{BackupInfo, Backups, Damage};
pub use destroy::{destroy, destroy_in};
pub use ingest::IngestOptions;
pub use inspect::TableInfo;
pub use list::{KeyspaceInfo, list_keyspaces, list_keyspaces_in};
pub(crate) use read_only::ReadOnly;
pub use repair::{RepairOptions, RepairReport, repair};
pub use table_builder::{BuiltTable, TableBuilder};
pub use verify::{VerifyReport, verify, verify_in};

/// Returns a count with the fitting noun: `1 table`, `2 tables`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
