//! The catalog of constant stores in this build and on this machine.

use crate::engine::{ConstantStore, cairn_sparkey, cairn_table};
use crate::error::{Error, Result};
use crate::results::Contender;

/// The stores that can run, and those that cannot, with the reason.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Stores that are ready to build.
    pub stores: Vec<Box<dyn ConstantStore>>,
    /// Stores that cannot run. The run lists them as contenders all the same.
    pub skipped: Vec<Contender>,
}

/// Constructor of a store. It fails if a library that the store needs is missing.
type Make = fn() -> Result<Box<dyn ConstantStore>>;

/// Returns every store that this program was built with, by name.
fn makers() -> Vec<(&'static str, Make)> {
    let mut makers: Vec<(&'static str, Make)> = vec![
        (cairn_table::NAME, || Ok(Box::new(cairn_table::CairnTable))),
        (cairn_sparkey::NAME, || Ok(Box::new(cairn_sparkey::CairnSparkey))),
    ];
    add_peers(&mut makers);
    makers
}

/// Returns every constant store that this program was built with; those whose libraries are missing
/// are among the skipped ones.
pub fn all() -> Catalog {
    let mut catalog = Catalog::default();
    for (name, make) in makers() {
        match make() {
            Ok(store) => catalog.stores.push(store),
            Err(error) => catalog.skipped.push(Contender::left_out(name, name, &error)),
        }
    }
    catalog
}

/// Returns the store called `name` without loading any other, because a fresh process that measures
/// one store must not have loaded another.
///
/// Errors: [`Error::Invalid`] if there is no such store, or the reason why it cannot run.
pub fn store(name: &str) -> Result<Box<dyn ConstantStore>> {
    let maker = makers().into_iter().find(|(known, _)| *known == name);
    let (_, make) = maker.ok_or_else(|| Error::invalid(format!("no store is called {name:?}")))?;
    make()
}

#[cfg(feature = "peers")]
fn add_peers(makers: &mut Vec<(&'static str, Make)>) {
    use crate::peers::{cdb, lmdb, redb, rocksdb, sqlite};
    makers.push((lmdb::NAME, || Ok(Box::new(lmdb::Lmdb))));
    makers.push((sqlite::NAME, || Ok(Box::new(sqlite::Sqlite))));
    makers.push((redb::NAME, || Ok(Box::new(redb::Redb))));
    makers.push((cdb::NAME, || Ok(Box::new(cdb::Cdb))));
    makers.push((rocksdb::NAME, || Ok(Box::new(rocksdb::RocksDb::find()?))));
}

#[cfg(not(feature = "peers"))]
fn add_peers(_: &mut Vec<(&'static str, Make)>) {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Goal: names of contenders are unique, and each store is found by its name.
    #[test]
    fn names_are_unique() {
        let catalog = all();
        let variants = catalog.stores.iter().flat_map(|store| store.variants());
        let names: Vec<String> = variants.map(|variant| variant.name).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
        for (name, make) in makers() {
            assert!(make().map_or(true, |store| store.name() == name), "{name}");
        }
        for known in &catalog.stores {
            assert_eq!(store(known.name()).unwrap().version(), known.version());
        }
        assert!(store("no such").unwrap_err().to_string().contains("no such"));
    }
}
