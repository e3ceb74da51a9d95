//! A database in memory, and helpers for tests.

use std::sync::Arc;

use cairn_sql::{Connection, Database, Datum, Error};
use cairn_vfs::MemFs;

/// Creates an empty database.
pub fn database() -> Database {
    Database::builder().fs(Arc::new(MemFs::new())).cache_bytes(16 << 20).threads(2).open("test.db").unwrap()
}

/// Returns all rows of a query as text: columns separated by `|`, NULL as `NULL`.
pub fn rows(connection: &mut Connection, sql: &str, params: &[Datum]) -> Result<Vec<String>, Error> {
    let mut rows = connection.query(sql, params)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = (0..row.len()).map(|column| row.get(column));
        let columns: Vec<String> = columns
            .map(|datum| if datum.is_null() { "NULL".to_owned() } else { datum.to_string() })
            .collect();
        all.push(columns.join("|"));
    }
    Ok(all)
}

/// Like [`rows`], without parameters and errors.
#[track_caller]
pub fn ask(connection: &mut Connection, sql: &str) -> Vec<String> {
    rows(connection, sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error} {:?}", error.detail()))
}

/// Runs a statement that must succeed. Returns its count.
#[track_caller]
pub fn run(connection: &mut Connection, sql: &str) -> u64 {
    connection.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error} {:?}", error.detail()))
}

/// Runs a statement that must fail. Returns the code.
#[track_caller]
pub fn fails(connection: &mut Connection, sql: &str) -> &'static str {
    match connection.execute(sql, &[]) {
        Ok(_) => panic!("{sql} worked"),
        Err(error) => error.sqlstate(),
    }
}
