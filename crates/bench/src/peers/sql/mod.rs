//! The SQL engines that Cairn is compared with: SQLite, DuckDB and PostgreSQL.

pub mod duckdb;
pub mod postgres;
pub mod sqlite;
#[cfg(test)]
mod tests;
