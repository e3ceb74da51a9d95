//! Tests of strategies that take over trees left by others.

use std::sync::Arc;

use cairn_kv::strategy::{LazyOptions, LeveledOptions, StrategyOptions, UniversalOptions};
use cairn_kv::{Background, Builder, Db, Durability, KeyspaceOptions, Options};
use cairn_vfs::{Fs, MemFs};

const KEYS: usize = 400;

fn lazy() -> StrategyOptions {
    // Assumes small flushes, so that there is a level in between; disables merges of an idle store.
    let (flush_bytes, idle_space_ratio) = (16, f64::INFINITY);
    StrategyOptions::LazyLeveled(LazyOptions {
        size_ratio: 8,
        levels: 3,
        flush_bytes,
        idle_space_ratio,
        ..LazyOptions::default()
    })
}

fn universal() -> StrategyOptions {
    StrategyOptions::Universal(UniversalOptions { runs: 5, ..UniversalOptions::default() })
}

fn leveled() -> StrategyOptions {
    StrategyOptions::Leveled(LeveledOptions { level_zero_runs_min: 1, ..LeveledOptions::default() })
}

fn builder(fs: &Arc<dyn Fs>) -> Builder {
    let options = Options { background: Background::Inline, ..Options::default() };
    Db::builder("/store").fs(Arc::clone(fs)).seed(1).options(options)
}

fn with(compaction: StrategyOptions) -> KeyspaceOptions {
    KeyspaceOptions { compaction, ..KeyspaceOptions::default() }
}

fn key(at: usize) -> Vec<u8> {
    format!("key {at:04}").into_bytes()
}

/// Checks that every key has the newest generation, with lookups and with a scan, and that the
/// files are consistent.
fn check(db: &Db, name: &str, newest: &[u8], what: &str) {
    let keyspace = db.keyspace(name).unwrap();
    for at in 0..KEYS {
        let value = keyspace.get(key(at)).unwrap().unwrap();
        assert!(&value[..] == newest, "{what}: {name}: key {at} has {} bytes", value.len());
    }
    let scanned = keyspace.iter().map(Result::unwrap).filter(|(_, value)| value == newest).count();
    assert_eq!(scanned, KEYS, "{what}: {name}");
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{what}: {report}");
}

/// Returns a store of two keyspaces, each with a base and four generations of all keys, the last
/// one of 100 bytes; level 1 has a run for each generation.
fn filled() -> Arc<dyn Fs> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = builder(&fs).default_keyspace(with(lazy())).keyspace("other", with(lazy())).open().unwrap();
    for name in ["default", "other"] {
        let keyspace = db.keyspace(name).unwrap();
        for (generation, bytes) in [50, 2400, 500, 700, 100].into_iter().enumerate() {
            for part in 0..8 {
                for at in (0..KEYS).filter(|at| at % 8 == part) {
                    let value = vec![b'a' + generation as u8; bytes];
                    keyspace.put_with(key(at), value, Durability::Buffered).unwrap();
                }
                keyspace.flush().unwrap();
            }
            if generation == 0 {
                keyspace.compact_range(..).unwrap();
            }
        }
        let levels: Vec<usize> = (0..3)
            .map(|level| keyspace.tables().unwrap().iter().filter(|it| it.level == level).count())
            .collect();
        assert_eq!(levels, [0, 4, 1], "{name}");
    }
    fs
}

/// Goal: the newest values stay the newest, whichever strategy a keyspace is opened with next.
/// Method: a tree reported in an issue, with four runs in a level that universal compaction took
/// for one; then universal, then leveled, each until nothing is due.
#[test]
fn the_newest_stays_the_newest() {
    let fs = filled();
    for (name, strategy) in [
        ("universal", universal()),
        ("leveled", leveled()),
        ("lazy", lazy()),
        ("universal again", universal()),
    ] {
        let db = builder(&fs)
            .default_keyspace(with(strategy.clone()))
            .keyspace("other", with(strategy))
            .open()
            .unwrap();
        check(&db, "default", &[b'e'; 100], name);
        db.wait_idle().unwrap();
        check(&db, "default", &[b'e'; 100], name);
        check(&db, "other", &[b'e'; 100], name);
        for at in (0..KEYS).step_by(3) {
            db.put(key(at), [b'e'; 100]).unwrap();
        }
        db.flush().unwrap();
        check(&db, "default", &[b'e'; 100], name);
    }
}

/// Goal: a keyspace that an opening does not name is compacted as before, and not like the default
/// keyspace; the same holds for the default keyspace.
/// Method: both are created with the lazy strategy, and the store is opened naming neither, naming
/// the default one, and naming both.
#[test]
fn a_keyspace_that_is_not_named_keeps_its_strategy() {
    let fs = filled();
    let runs = |db: &Db, name: &str| {
        let keyspace = db.keyspace(name).unwrap();
        let tables = keyspace.tables().unwrap();
        tables.iter().filter(|table| table.level == 1).count()
    };
    for (what, builder, kept) in [
        ("nothing is named", builder(&fs), [true, true]),
        ("the default one is", builder(&fs).default_keyspace(with(leveled())), [false, true]),
        ("nothing is, again", builder(&fs), [false, true]),
        (
            "both are",
            builder(&fs).default_keyspace(with(lazy())).keyspace("other", with(leveled())),
            [false, false],
        ),
    ] {
        let db = builder.open().unwrap();
        db.wait_idle().unwrap();
        for (name, kept) in ["default", "other"].into_iter().zip(kept) {
            assert_eq!(runs(&db, name) == 4, kept, "{what}: {name}");
            check(&db, name, &[b'e'; 100], what);
        }
    }
}
