//! Runs every installed peer over small files, verifying that its hits match its capacity.

use crate::core::scratch::Scratch;
use crate::peers::pool::caches::Cache;
use crate::peers::pool::sqlite::SqlitePages;
use crate::peers::rocksdb::{library_path, pool::RocksDbPages};
use crate::stores::page_file::PageFile;
use crate::stores::pages::{Access, PageStore, Setup, expected};

/// Returns the misses of ten rounds over the pages, after one round that loads them.
fn misses(store: &dyn PageStore, file: &PageFile, frames: usize, pages: u32) -> u64 {
    let open = store.open(&Setup { file, frames, reach: pages, writes: false }).unwrap();
    let order: Vec<u32> = (0..pages).collect();
    let run = |times: usize| {
        let mut session = open.session().unwrap();
        for _ in 0..times {
            assert_eq!(session.run(Access::Shared, &order).unwrap(), expected(&order), "{}", store.name());
        }
    };
    run(1);
    let before = open.misses().unwrap();
    run(10);
    let misses = open.misses().unwrap() - before;
    open.close().unwrap();
    misses
}

fn check(store: &dyn PageStore) {
    let scratch = Scratch::temporary("pool-peers").unwrap();
    for page_size in [4096, 16 << 10] {
        let path = scratch.path().join(format!("pages-{page_size}"));
        let file = PageFile::create(&path, 600, page_size, false).unwrap();
        let name = store.name();
        assert!(misses(store, &file, 64, 48) <= 48, "{name}: three quarters of the capacity do not stay");
        let loops = misses(store, &file, 64, 512);
        assert!(loops >= 10 * (512 - 72), "{name}: {loops} misses of 5120, with room for 64 pages");
    }
}

/// Goal: the libraries' caches return the correct pages, and hold about as many as configured.
#[test]
fn caches_have_their_capacity() {
    check(&Cache::quick_cache());
    check(&Cache::moka());
}

/// Goal: as above, and SQLite's rows fill a page each.
#[test]
fn sqlite_has_its_capacity() {
    check(&SqlitePages);
}

/// Goal: as above, and RocksDB's blocks have one record each.
#[test]
fn rocksdb_has_its_capacity() {
    match RocksDbPages::find() {
        Ok(store) => check(&store),
        Err(error) => {
            assert!(std::env::var_os("CAIRN_REQUIRE_ROCKSDB").is_none(), "{error}");
            eprintln!("skipped: no RocksDB at {}", library_path().display());
        }
    }
}
