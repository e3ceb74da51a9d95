//! Which stores there are, here and now.

use crate::engine::cairn_sparkey::CairnSparkey;
use crate::engine::cairn_table::CairnTable;
use crate::engine::{ConstantStore, Settings};
use crate::error::{Error, Result};
use crate::results::Contender;

/// The stores that can run, and those that cannot with the reason.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Ready to build.
    pub stores: Vec<Box<dyn ConstantStore>>,
    /// In the run's list of contenders all the same.
    pub skipped: Vec<Contender>,
}

/// Every constant store that this program was built with and whose libraries are here.
pub fn all() -> Catalog {
    let mut catalog =
        Catalog { stores: vec![Box::new(CairnTable), Box::new(CairnSparkey)], skipped: Vec::new() };
    add_peers(&mut catalog);
    catalog
}

/// The store called `name`.
///
/// Errors: [`Error::Invalid`] when there is none, or the reason why it cannot run.
pub fn store(name: &str) -> Result<Box<dyn ConstantStore>> {
    let Catalog { stores, skipped } = all();
    if let Some(store) = stores.into_iter().find(|store| store.name() == name) {
        return Ok(store);
    }
    let reason =
        skipped.into_iter().find(|contender| contender.name == name).and_then(|contender| contender.skipped);
    Err(match reason {
        Some(reason) => Error::engine(name, reason),
        None => Error::invalid(format!("no store is called {name:?}")),
    })
}

#[cfg(feature = "peers")]
fn add_peers(catalog: &mut Catalog) {
    use crate::peers::{cdb, lmdb, redb, rocksdb, sqlite};
    catalog.stores.push(Box::new(lmdb::Lmdb));
    catalog.stores.push(Box::new(sqlite::Sqlite));
    catalog.stores.push(Box::new(redb::Redb));
    catalog.stores.push(Box::new(cdb::Cdb));
    match rocksdb::RocksDb::find() {
        Ok(store) => catalog.stores.push(Box::new(store)),
        Err(error) => catalog.skipped.push(skipped("rocksdb", "rocksdb", &error)),
    }
}

#[cfg(not(feature = "peers"))]
fn add_peers(_: &mut Catalog) {}

/// The entry of a contender that cannot run.
pub fn skipped(name: &str, family: &str, error: &Error) -> Contender {
    Contender {
        name: name.to_owned(),
        family: family.to_owned(),
        version: String::new(),
        ours: false,
        settings: Settings::new(),
        skipped: Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Goal: contenders can be told apart by name, and each store is found by its own.
    #[test]
    fn names_are_unique() {
        let catalog = all();
        let variants = catalog.stores.iter().flat_map(|store| store.variants());
        let names: Vec<String> = variants.map(|variant| variant.name).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
        for known in &catalog.stores {
            assert_eq!(store(known.name()).unwrap().version(), known.version());
        }
        assert!(store("no such").unwrap_err().to_string().contains("no such"));
    }
}
