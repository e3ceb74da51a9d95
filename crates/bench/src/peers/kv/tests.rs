//! Runs every installed peer through every mode at a small size, verifying that reads return the
//! data written.

use std::path::PathBuf;

use crate::core::process::Stop;
use crate::core::progress::Silent;
use crate::core::results::Run;
use crate::core::workload::Durability;
use crate::peers::{kv, leveldb, rocksdb};
use crate::stores::catalog::Selection;
use crate::stores::kv::{KvSettings, KvStore};
use crate::suites::kv::{Mode, Options, run_with};

fn options(words: &str, durability: Durability) -> Options {
    Options {
        n: 3_000,
        batch: 500,
        threads: vec![3],
        ops_per_thread: 300,
        sync_n: 60,
        modes: words.split(',').flat_map(|word| Mode::parse(word).unwrap()).collect(),
        settings: KvSettings {
            durability,
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 20,
            ..KvSettings::default()
        },
        data_bytes: 1 << 20,
        overwrite_bytes: 2 << 20,
        sweep_bytes: 1 << 20,
        rounds: 1,
        latencies: false,
        work_dir: work_dir(),
        probes: None,
        ..Options::default()
    }
}

/// Returns a directory on disk if possible, because syncs to a memory file system would show
/// nothing.
fn work_dir() -> PathBuf {
    std::env::current_dir().unwrap().join("../../target/kv-tests")
}

fn check(store: impl KvStore + 'static) {
    let name = store.name().to_owned();
    let stores: [Box<dyn KvStore>; 1] = [Box::new(store)];
    let selection = Selection { stores: stores.into(), skipped: Vec::new() };
    let run =
        run_with(&options("dkv,sync-writers", Durability::Buffered), selection, &Silent, &Stop::default());
    measured_all(
        &run.unwrap(),
        &name,
        &["seq", "rand", "batch", "mt", "sync-seq", "sync-rand", "sync-writers"],
    );
}

fn check_more(store: impl KvStore + 'static) {
    let name = store.name().to_owned();
    let stores: [Box<dyn KvStore>; 1] = [Box::new(store)];
    let selection = Selection { stores: stores.into(), skipped: Vec::new() };
    let words = "ycsb-a,ycsb-d,ycsb-e,ycsb-f,db_bench,overwrite-long,larger-than-cache";
    let mut options = options(words, Durability::Memory);
    options.value_bytes = Some(200);
    let run = run_with(&options, selection, &Silent, &Stop::default());
    measured_all(
        &run.unwrap(),
        &name,
        &["ycsb-a", "ycsb-d", "ycsb-e", "db_bench", "overwrite-long", "larger-than-cache"],
    );
}

fn measured_all(run: &Run, name: &str, modes: &[&str]) {
    let contender = run.contenders.iter().find(|contender| contender.name == name).unwrap();
    assert!(contender.settings.keys().all(|setting| !setting.starts_with("not measured")), "{contender:#?}");
    assert!(contender.settings.keys().any(|setting| setting.starts_with("durability")));
    for mode in modes {
        let found = run.measurements.iter().any(|m| m.contender == name && m.case.dataset == *mode);
        assert!(found, "{name} has no figure in {mode}");
    }
}

macro_rules! peers {
    ($($module:ident: $store:expr;)*) => {$(
        mod $module {
            use super::*;

            /// Goal: DKV's modes and durable writers answer correctly. Method: every answer is
            /// checked.
            #[test]
            fn answers_right() {
                check($store);
            }

            /// Goal: YCSB, db_bench and the long modes answer correctly. Method: every answer is
            /// checked.
            #[test]
            fn answers_right_in_the_other_suites() {
                check_more($store);
            }
        }
    )*};
}

peers! {
    sqlite: kv::sqlite::SqliteKv;
    lmdb: kv::lmdb::LmdbKv;
    redb: kv::redb::RedbKv;
    fjall: kv::fjall::FjallKv;
    sled: kv::sled::SledKv;
}

/// Goal: RocksDB answers correctly. Without its library, the error names the place where it was
/// expected, and the test ends; with `CAIRN_REQUIRE_ROCKSDB` it fails.
#[test]
fn rocksdb_answers_right_or_says_what_is_missing() {
    match (rocksdb::kv::RocksDbKv::find(), rocksdb::kv::RocksDbKv::find()) {
        (Ok(store), Ok(again)) => {
            check(store);
            check_more(again);
        }
        (Err(error), _) | (_, Err(error)) => {
            assert!(error.to_string().contains("CAIRN_ROCKSDB_LIB"), "{error}");
            assert!(std::env::var_os("CAIRN_REQUIRE_ROCKSDB").is_none(), "{error}");
        }
    }
}

/// Goal: LevelDB answers correctly. Without its library, the error names the libraries that were
/// tried, and the test ends; with `CAIRN_REQUIRE_LEVELDB` it fails.
#[test]
fn leveldb_answers_right_or_says_what_is_missing() {
    match (leveldb::LevelDb::find(), leveldb::LevelDb::find()) {
        (Ok(store), Ok(again)) => {
            assert_eq!(store.version().split('.').count(), 2, "{}", store.version());
            check(store);
            check_more(again);
        }
        (Err(error), _) | (_, Err(error)) => {
            assert!(error.to_string().contains("CAIRN_LEVELDB_LIB"), "{error}");
            assert!(std::env::var_os("CAIRN_REQUIRE_LEVELDB").is_none(), "{error}");
        }
    }
}
