//! Every store that is compared, on a small data set: what it returns must be what the data holds.

use super::*;
use crate::engine::ConstantStore;
use crate::engine::testing::check_store;

/// Goal: LMDB answers right. Method: see [`check_store`].
#[test]
fn lmdb_answers_right() {
    check_store(&lmdb::Lmdb);
}

/// Goal: SQLite answers right, also from a directory whose name is special in a URI.
#[test]
fn sqlite_answers_right() {
    check_store(&sqlite::Sqlite);
}

/// Goal: redb answers right.
#[test]
fn redb_answers_right() {
    check_store(&redb::Redb);
}

/// Goal: CDB answers right.
#[test]
fn cdb_answers_right() {
    check_store(&cdb::Cdb);
}

/// Goal: RocksDB answers right with every compression, mapped and cached, one by one and in
/// batches; without its library it says where that was looked for, and the test ends there, or with
/// `CAIRN_REQUIRE_ROCKSDB` fails.
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
