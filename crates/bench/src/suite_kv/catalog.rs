//! The stores that are available, in the order of tables.

use super::device;
use super::store::KvStore;
use crate::engine::cairn_hash_kv::{self, CairnHashKv};
use crate::engine::cairn_kv::{self, CairnKv};
use crate::error::{Error, Result};
use crate::results::Contender;

/// Creates a store, possibly after searching for its library.
type Make = fn() -> Result<Box<dyn KvStore>>;

/// Cairn's own store, by its name in `--dbs`.
pub const CAIRN: &str = cairn_kv::NAME;

/// Cairn's constant store. Only the adviser uses it as a key-value store, because it is built once.
pub const CONSTANT: &str = cairn_hash_kv::NAME;

/// The stores that can run, and those that cannot with the reasons.
#[derive(Debug, Default)]
pub struct KvCatalog {
    /// Ready to be opened.
    pub stores: Vec<Box<dyn KvStore>>,
    /// Unavailable stores, which the run still lists as contenders.
    pub skipped: Vec<Contender>,
}

fn makers() -> Vec<(&'static str, Make)> {
    let mut makers: Vec<(&'static str, Make)> = Vec::new();
    makers.push((CAIRN, || Ok(Box::new(CairnKv))));
    add_peers(&mut makers);
    makers
}

#[cfg(feature = "peers")]
fn add_peers(makers: &mut Vec<(&'static str, Make)>) {
    use crate::peers::{kv, leveldb, rocksdb};
    makers.push((rocksdb::NAME, || Ok(Box::new(rocksdb::kv::RocksDbKv::find()?))));
    makers.push((leveldb::NAME, || Ok(Box::new(leveldb::LevelDb::find()?))));
    makers.push((kv::sqlite::NAME, || Ok(Box::new(kv::sqlite::SqliteKv))));
    makers.push((kv::lmdb::NAME, || Ok(Box::new(kv::lmdb::LmdbKv))));
    makers.push((kv::redb::NAME, || Ok(Box::new(kv::redb::RedbKv))));
    makers.push((kv::fjall::NAME, || Ok(Box::new(kv::fjall::FjallKv))));
    makers.push((kv::sled::NAME, || Ok(Box::new(kv::sled::SledKv))));
}

#[cfg(not(feature = "peers"))]
fn add_peers(_: &mut Vec<(&'static str, Make)>) {}

/// Stores that take part only on request, because they do not support all operations of a suite.
fn on_demand() -> Vec<(&'static str, Make)> {
    vec![(cairn_hash_kv::NAME, || Ok(Box::new(CairnHashKv)))]
}

fn all_makers() -> impl Iterator<Item = (&'static str, Make)> {
    makers().into_iter().chain(on_demand())
}

/// Returns the names for `--dbs`, in the order of tables.
pub fn names() -> Vec<&'static str> {
    makers().into_iter().map(|(name, _)| name).collect()
}

/// Returns the same names and those of the stores that take part only on request.
pub fn all_names() -> Vec<&'static str> {
    all_makers().map(|(name, _)| name).collect()
}

/// Refuses an unknown name, and lists the known ones.
pub fn check(name: &str) -> Result<()> {
    let known = all_names();
    if known.contains(&name) {
        return Ok(());
    }
    Err(Error::invalid(format!("db {name:?}: expected {}", known.join(", "))))
}

/// Returns the stores called `names`, in that order.
///
/// Errors: [`Error::Invalid`] for an unknown name. A known store that cannot run is among the
/// skipped.
pub fn select(names: &[String]) -> Result<KvCatalog> {
    let mut catalog = KvCatalog::default();
    for name in names {
        check(name)?;
        let Some((known, make)) = all_makers().find(|(known, _)| known == name) else { continue };
        match make() {
            Ok(store) => catalog.stores.push(store),
            Err(error) => catalog.skipped.push(Contender::left_out(known, known, &error)),
        }
    }
    Ok(catalog)
}

/// Returns the store called `name` without loading any other: a fresh process for one store must
/// not have loaded another.
///
/// Errors: [`Error::Invalid`] if there is none, or the reason that it cannot run.
pub fn store(name: &str) -> Result<Box<dyn KvStore>> {
    if name == device::NAME {
        return Ok(Box::new(device::Device));
    }
    let maker = all_makers().find(|(known, _)| *known == name);
    let (_, make) = maker.ok_or_else(|| Error::invalid(format!("no store is called {name:?}")))?;
    make()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite_kv::KvSettings;
    use crate::workload::Durability;

    /// Goal: every store is found by its own name, unknown names are refused with a list of the
    /// known ones, and the requested order is kept.
    #[test]
    fn names_lead_to_stores() {
        for name in names() {
            assert!(store(name).map_or(true, |store| store.name() == name), "{name}");
        }
        let asked: Vec<String> = ["sqlite", "lmdb"].map(str::to_owned).to_vec();
        if cfg!(feature = "peers") {
            let catalog = select(&asked).unwrap();
            assert_eq!(catalog.stores.iter().map(|store| store.name()).collect::<Vec<_>>(), asked);
        }
        let error = select(&["dkv".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("dkv") && error.contains(CAIRN), "{error}");
    }

    /// Goal: the code to paste opens a store as the lab does. Method: every available store. Each
    /// setting that it claims to use, and each durability that has a different effect, changes the
    /// code; fixed settings are part of it.
    #[test]
    fn code_says_what_open_does() {
        let base = KvSettings::default();
        let others = [
            KvSettings { cache_bytes: 123 << 20, ..base.clone() },
            KvSettings { write_buffer_bytes: 17 << 20, ..base.clone() },
            KvSettings { block_bytes: 8192, ..base.clone() },
            KvSettings { filter_bits: 7.0, ..base.clone() },
            KvSettings { durability: Durability::Memory, ..base.clone() },
            KvSettings { durability: Durability::Sync, ..base.clone() },
        ];
        for (name, make) in all_makers() {
            let Ok(store) = make() else { continue };
            let code = store.code(&base);
            assert!(code.ends_with('\n') && code.contains("store"), "{name}: {code}");
            for other in &others {
                let says = |settings: &KvSettings| {
                    (store.settings(settings), store.guarantee(settings.durability).means)
                };
                // LevelDB and sled have another word for the same durability, the constant store
                // has none.
                let same_calls = matches!(name, "leveldb" | "sled" | "redb" | "lmdb")
                    && other.durability == Durability::Memory;
                if says(other) != says(&base) && !same_calls {
                    assert_ne!(store.code(other), code, "{name}: {other:?}");
                }
            }
            let fixed: &[&str] = match name {
                CAIRN => &["Compression::None", "Background::Threads(2)", "durability"],
                CONSTANT => &["Mode::Mmap"],
                "rocksdb" => &[
                    "kNoCompression",
                    "max_open_files=-1",
                    "ratio=0.75",
                    "HyperClock",
                    "level_base=268435456",
                ],
                "leveldb" => &["kNoCompression", "max_open_files = 1000"],
                "sqlite" => &["WAL", "temp_store = MEMORY", "WITHOUT ROWID", "every connection"],
                "lmdb" => &["MDB_NOTLS", "MDB_NORDAHEAD", "68719476736UL", "2048"],
                "redb" => &["1000th", "Immediate"],
                "fjall" => &["CompressionType::None", "BitsPerKey(10.0)", "manual_journal_persist(false)"],
                _ => &["HighThroughput"],
            };
            assert!(fixed.iter().all(|part| code.contains(part)), "{name}: {code}");
        }
    }
}
