//! The contenders, in the order of tables.

use super::options::Options;
use super::store::SqlStore;
use crate::error::{Error, Result};
use crate::results::Contender;

/// The contenders that can run, and those that cannot with the reasons.
#[derive(Debug, Default)]
pub struct SqlCatalog {
    /// Ready to be opened.
    pub stores: Vec<Box<dyn SqlStore>>,
    /// Unavailable contenders, which the run still lists.
    pub skipped: Vec<Contender>,
}

type Make = fn() -> Result<Box<dyn SqlStore>>;

#[cfg(feature = "sql")]
fn our_makers() -> Vec<(&'static str, Make)> {
    use crate::engine::cairn_sql;
    let mut makers: Vec<(&'static str, Make)> = Vec::new();
    makers.push((cairn_sql::NAME, || Ok(Box::new(cairn_sql::CairnSql))));
    // It is queried through PostgreSQL's client library.
    #[cfg(feature = "peers")]
    makers.push((crate::engine::cairn_server::NAME, || {
        Ok(Box::new(crate::engine::cairn_server::CairnServer::find()?))
    }));
    makers
}

#[cfg(not(feature = "sql"))]
fn our_makers() -> Vec<(&'static str, Make)> {
    Vec::new()
}

#[cfg(feature = "peers")]
fn peer_makers() -> Vec<(&'static str, Make)> {
    use crate::peers::sql::{duckdb, postgres, sqlite};
    vec![
        (sqlite::NAME, || Ok(Box::new(sqlite::Sqlite))),
        (duckdb::NAME, || Ok(Box::new(duckdb::DuckDb::find()?))),
        (postgres::NAME, || Ok(Box::new(postgres::Postgres::find()?))),
    ]
}

#[cfg(not(feature = "peers"))]
fn peer_makers() -> Vec<(&'static str, Make)> {
    Vec::new()
}

/// Returns the names of Cairn's own contenders.
pub fn our_names() -> Vec<&'static str> {
    our_makers().into_iter().map(|(name, _)| name).collect()
}

/// Returns the names for `--peers`, in the order of tables.
pub fn peer_names() -> Vec<&'static str> {
    peer_makers().into_iter().map(|(name, _)| name).collect()
}

/// Refuses an unknown name, and lists the known ones.
pub fn check(name: &str) -> Result<()> {
    let known: Vec<&str> = our_names().into_iter().chain(peer_names()).collect();
    if known.contains(&name) {
        return Ok(());
    }
    Err(Error::invalid(format!("engine {name:?}: expected {}, all or none", known.join(", "))))
}

/// Returns all requested contenders.
pub fn select(options: &Options) -> Result<SqlCatalog> {
    let mut catalog = SqlCatalog::default();
    for (name, make) in our_makers().into_iter().chain(peer_makers()) {
        if !options.ours.iter().chain(&options.peers).any(|asked| asked == name) {
            continue;
        }
        match make() {
            Ok(store) => catalog.stores.push(store),
            Err(error) => catalog.skipped.push(Contender::left_out(name, name, &error)),
        }
    }
    Ok(catalog)
}
