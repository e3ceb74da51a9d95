//! The names for completion.

use cairn_sql::{Connection, TransactionStatus};

use super::catalog::tables_of;
use super::editor::Names;
use super::keywords::OTHERS;

/// The commands that can be completed.
const COMMANDS: [&str; 32] = [
    ".backup",
    ".databases",
    ".describe",
    ".dump",
    ".echo",
    ".expanded",
    ".explain",
    ".headers",
    ".help",
    ".import",
    ".indexes",
    ".mode",
    ".null",
    ".output",
    ".quit",
    ".read",
    ".schema",
    ".settings",
    ".tables",
    ".timer",
    "\\conninfo",
    "\\copy",
    "\\d",
    "\\di",
    "\\dn",
    "\\dt",
    "\\dv",
    "\\i",
    "\\l",
    "\\o",
    "\\timing",
    "\\x",
];

/// Refreshes the names of tables and columns, which are added to the constant ones.
pub fn refresh(names: &Names, connection: &mut Connection) {
    let mut all: Vec<String> = [&cairn_sql::RESERVED_WORDS[..], &OTHERS, &COMMANDS]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect();
    // The catalog cannot be read in a failed transaction.
    if connection.status() != TransactionStatus::Failed
        && let Ok(catalog) = super::catalog::catalog(connection)
    {
        for table in tables_of(&catalog) {
            all.push(table.def().name.clone());
            all.extend(table.def().columns.iter().map(|column| column.name.clone()));
        }
        all.extend(catalog.views().map(|(_, view)| view.name.clone()));
    }
    all.sort();
    all.dedup();
    *names.borrow_mut() = all;
}
