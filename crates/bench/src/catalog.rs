//! The catalogue: the one place that names every store, and hands them to the suites below.
//!
//! A peer is added by its file under `peers` and one line here.

use std::sync::LazyLock;

use crate::core::error::Error;
use crate::core::worker::{self, Job};
use crate::peers::sparkey_java::SparkeyJava;
use crate::stores::ConstantStore;
use crate::stores::catalog::{Catalog, Registry};
use crate::stores::kv::KvStore;
use crate::stores::pages::PageStore;
use crate::stores::sql::SqlStore;
use crate::stores::{cairn_hash_kv, cairn_kv, cairn_sparkey, cairn_table, textbook_pool};
use crate::suites::counts::CountJob;
use crate::suites::hash::job::{Build, Read};
use crate::suites::kv::job::KvJob;

/// Returns the catalogue of this build. Stores are searched for only when they are asked for.
pub fn installed() -> &'static Catalog {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(catalog);
    &CATALOG
}

/// Does a worker's work: parses a job from JSON, carries it out with the stores of the catalogue,
/// and returns the reply as JSON. Never fails: errors are part of the reply.
pub fn serve(input: &str) -> String {
    let catalog = installed();
    worker::serve(input, |received| match received.kind() {
        Build::KIND => received.carry_out(|job: Build| job.carry_out(&catalog.constant)),
        Read::KIND => received.carry_out(|job: Read| job.carry_out(&catalog.constant)),
        KvJob::KIND => received.carry_out(|job: KvJob| Ok(job.carry_out(&catalog.kv))),
        CountJob::KIND => received.carry_out(|job: CountJob| job.carry_out()),
        kind => Err(Error::invalid(format!("the job cannot be read: no job is of kind {kind:?}"))),
    })
}

fn catalog() -> Catalog {
    let mut catalog = own();
    #[cfg(feature = "sql")]
    add_sql(&mut catalog);
    #[cfg(feature = "peers")]
    add_peers(&mut catalog);
    // The constant store is built once, so it supports only some of the operations.
    catalog.kv.on_request(cairn_hash_kv::NAME, || Ok(Box::new(cairn_hash_kv::CairnHashKv)));
    catalog
}

/// Cairn's own stores.
fn own() -> Catalog {
    let mut constant: Registry<dyn ConstantStore> = Registry::new("store", "");
    constant.own(cairn_table::NAME, || Ok(Box::new(cairn_table::CairnTable)));
    constant.own(cairn_sparkey::NAME, || Ok(Box::new(cairn_sparkey::CairnSparkey)));
    let mut kv: Registry<dyn KvStore> = Registry::new("db", "");
    kv.own(cairn_kv::NAME, || Ok(Box::new(cairn_kv::CairnKv)));
    let sql: Registry<dyn SqlStore> = Registry::new("engine", ", all or none");
    let mut pages: Registry<dyn PageStore> = Registry::new("peer", ", all or none");
    pages.peer(textbook_pool::NAME, || Ok(Box::new(textbook_pool::Textbook)));
    Catalog {
        constant,
        kv,
        sql,
        pages,
        java: |stop| Ok(Box::new(SparkeyJava::find(stop)?)),
        postgres: None,
        measured_rocksdb: None,
    }
}

/// Cairn's relational engine, embedded and as a server.
#[cfg(feature = "sql")]
fn add_sql(catalog: &mut Catalog) {
    use crate::stores::cairn_sql;

    catalog.sql.own(cairn_sql::NAME, || Ok(Box::new(cairn_sql::CairnSql)));
    // The server is queried through PostgreSQL's client library.
    #[cfg(feature = "peers")]
    catalog.sql.own(crate::peers::sql::cairn_server::NAME, || {
        Ok(Box::new(crate::peers::sql::cairn_server::CairnServer::find()?))
    });
}

/// The peers, in the order of tables.
#[cfg(feature = "peers")]
fn add_peers(catalog: &mut Catalog) {
    use crate::peers::{cdb, kv, leveldb, lmdb, pool, redb, rocksdb, sql, sqlite};
    use crate::stores::catalog::PostgresTools;

    let constant = &mut catalog.constant;
    constant.peer(lmdb::NAME, || Ok(Box::new(lmdb::Lmdb)));
    constant.peer(sqlite::NAME, || Ok(Box::new(sqlite::Sqlite)));
    constant.peer(redb::NAME, || Ok(Box::new(redb::Redb)));
    constant.peer(cdb::NAME, || Ok(Box::new(cdb::Cdb)));
    constant.peer(rocksdb::NAME, || Ok(Box::new(rocksdb::RocksDb::find()?)));

    let all = &mut catalog.kv;
    all.peer(rocksdb::NAME, || Ok(Box::new(rocksdb::kv::RocksDbKv::find()?)));
    all.peer(leveldb::NAME, || Ok(Box::new(leveldb::LevelDb::find()?)));
    all.peer(kv::sqlite::NAME, || Ok(Box::new(kv::sqlite::SqliteKv)));
    all.peer(kv::lmdb::NAME, || Ok(Box::new(kv::lmdb::LmdbKv)));
    all.peer(kv::redb::NAME, || Ok(Box::new(kv::redb::RedbKv)));
    all.peer(kv::fjall::NAME, || Ok(Box::new(kv::fjall::FjallKv)));
    all.peer(kv::sled::NAME, || Ok(Box::new(kv::sled::SledKv)));

    let engines = &mut catalog.sql;
    engines.peer(sql::sqlite::NAME, || Ok(Box::new(sql::sqlite::Sqlite)));
    engines.peer(sql::duckdb::NAME, || Ok(Box::new(sql::duckdb::DuckDb::find()?)));
    engines.peer(sql::postgres::NAME, || Ok(Box::new(sql::postgres::Postgres::find()?)));

    let pages = &mut catalog.pages;
    pages.peer(pool::caches::QUICK_CACHE, || Ok(Box::new(pool::caches::Cache::quick_cache())));
    pages.peer(pool::caches::MOKA, || Ok(Box::new(pool::caches::Cache::moka())));
    pages.peer(rocksdb::NAME, || Ok(Box::new(rocksdb::pool::RocksDbPages::find()?)));
    pages.peer(pool::sqlite::NAME, || Ok(Box::new(pool::sqlite::SqlitePages)));

    catalog.postgres = Some(PostgresTools {
        find: || sql::postgres::Postgres::find().map(drop),
        start: |dir, settings| Ok(Box::new(sql::postgres::Server::start(dir, settings)?)),
        program: sql::postgres::program,
    });
    catalog.measured_rocksdb = Some(|path| Ok(Box::new(rocksdb::measured::Library::find(path)?)));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::core::workload::Durability;
    use crate::stores::kv::KvSettings;

    /// Goal: names of contenders are unique, and each constant store is found by its name.
    #[test]
    fn names_are_unique() {
        let registry = &installed().constant;
        let selection = registry.all();
        let variants = selection.stores.iter().flat_map(|store| store.variants());
        let names: Vec<String> = variants.map(|variant| variant.name).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
        for name in registry.all_names() {
            assert!(registry.get(name).map_or(true, |store| store.name() == name), "{name}");
        }
        for known in &selection.stores {
            assert_eq!(registry.get(known.name()).unwrap().version(), known.version());
        }
        assert!(registry.get("no such").unwrap_err().to_string().contains("no such"));
    }

    /// Goal: every key-value store is found by its own name, unknown names are refused with a list
    /// of the known ones, and the requested order is kept.
    #[test]
    fn names_lead_to_stores() {
        let registry = &installed().kv;
        for name in registry.names() {
            assert!(registry.get(name).map_or(true, |store| store.name() == name), "{name}");
        }
        let asked = ["sqlite", "lmdb"];
        if cfg!(feature = "peers") {
            let selection = registry.select(&asked).unwrap();
            assert_eq!(selection.stores.iter().map(|store| store.name()).collect::<Vec<_>>(), asked);
        }
        let error = registry.select(&["dkv"]).unwrap_err().to_string();
        assert!(error.contains("dkv") && error.contains(cairn_kv::NAME), "{error}");
        assert!(installed().sql.check("oracle").unwrap_err().to_string().ends_with(", all or none"));
        let error = installed().pages.check("foyer").unwrap_err().to_string();
        assert!(error.contains(textbook_pool::NAME), "{error}");
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
        for name in installed().kv.all_names() {
            let Ok(store) = installed().kv.get(name) else { continue };
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
                cairn_kv::NAME => &["Compression::None", "Background::Threads(2)", "durability"],
                cairn_hash_kv::NAME => &["Mode::Mmap"],
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
