//! The SQL engines that Cairn is compared with: SQLite, DuckDB and PostgreSQL.

#[cfg(all(feature = "sql", feature = "peers"))]
pub mod cairn_server;
pub mod duckdb;
pub mod postgres;
pub mod sqlite;
#[cfg(test)]
mod tests;
