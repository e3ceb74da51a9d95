//! Runs every constant peer on a small data set, verifying that it returns the data.

use super::*;
use crate::stores::ConstantStore;
use crate::stores::testing::check_store;

/// Goal: LMDB answers correctly. Method: see [`check_store`].
#[test]
fn lmdb_answers_right() {
    check_store(&lmdb::Lmdb);
}

/// Goal: SQLite answers correctly, even from a directory whose name has special characters of a
/// URI.
#[test]
fn sqlite_answers_right() {
    check_store(&sqlite::Sqlite);
}

/// Goal: redb answers correctly.
#[test]
fn redb_answers_right() {
    check_store(&redb::Redb);
}

/// Goal: CDB answers correctly.
#[test]
fn cdb_answers_right() {
    check_store(&cdb::Cdb);
}

/// Goal: RocksDB answers correctly with every compression, mapped and cached, one by one and in
/// batches. Without its library, the error names the place where it was expected, and the test
/// ends; with `CAIRN_REQUIRE_ROCKSDB` it fails.
#[test]
fn rocksdb_answers_right_or_says_what_is_missing() {
    match rocksdb::RocksDb::find() {
        Ok(store) => {
            assert!(store.version().split('.').count() >= 3, "{}", store.version());
            check_store(&store);
        }
        Err(error) => {
            assert!(error.to_string().contains("CAIRN_ROCKSDB_LIB"), "{error}");
            assert!(std::env::var_os("CAIRN_REQUIRE_ROCKSDB").is_none(), "{error}");
        }
    }
}
