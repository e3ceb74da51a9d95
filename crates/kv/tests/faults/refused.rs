//! Tests of threads that the system refuses to start.

use std::time::Duration;

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Background, Builder, Error, KeyspaceOptions, Options, WriteBatch};
use cairn_vfs::{ErrorKind, MemFs, Operation, thread};

use super::*;

fn builder(fs: &Arc<dyn Fs>, background: Background, memtable_bytes: u64) -> Builder {
    let sync_interval = (background != Background::Inline).then_some(Duration::from_secs(3600));
    let leveled = LeveledOptions { table_bytes: 4 << 10, parts: 3, ..LeveledOptions::default() };
    let keyspace = KeyspaceOptions {
        memtable_bytes,
        compaction: StrategyOptions::Leveled(leveled),
        ..KeyspaceOptions::default()
    };
    Db::builder(DIR)
        .fs(Arc::clone(fs))
        .seed(1)
        .options(Options { background, sync_interval, ..Options::default() })
        .default_keyspace(keyspace)
}

/// Returns a store with this many entries, all of them only in the log.
fn logged(entries: u32) -> Arc<dyn Fs> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = builder(&fs, Background::Inline, 1 << 20).open().unwrap();
    (0..entries).for_each(|number| db.put(number.to_be_bytes(), [7; 1000]).unwrap());
    fs
}

/// Returns the number of files, and their total bytes.
fn footprint(fs: &Arc<dyn Fs>) -> (usize, u64) {
    let names = fs.read_dir(Path::new(DIR)).unwrap();
    (names.len(), names.iter().map(|name| fs.metadata(name).unwrap().len).sum())
}

/// Goal: a store whose threads cannot all be started returns an error that names it. The attempt
/// leaves no thread, no lock, and no files that grow with each attempt. The store opens with all
/// its data once there are threads, or without any.
/// Method: every thread of an opening is refused in turn, three times each: for a new store, for
/// one whose log is replayed into memory, and for one that flushes during the replay.
#[test]
fn every_thread_of_an_opening() {
    // The log's thread, two background threads, and the one that syncs.
    const THREADS: usize = 4;
    for (memtable_bytes, entries) in [(1 << 20, 0), (1 << 20, 20), (4096, 20)] {
        let mut allowed = 0;
        'more: loop {
            let fs = if entries > 0 { logged(entries) } else { Arc::new(MemFs::new()) };
            let open = |background| builder(&fs, background, memtable_bytes).open();
            let mut footprints = Vec::new();
            for _ in 0..3 {
                let refusal = thread::refuse_after(allowed);
                let opened = open(Background::Threads(2));
                drop(refusal);
                let error = match opened {
                    Ok(db) => {
                        assert_eq!(db.iter().count(), entries as usize);
                        break 'more;
                    }
                    Err(error) => error,
                };
                // Not `Busy`, which means that another process has the store open.
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                let cause = match &error {
                    Error::Vfs(cause) => cause,
                    other => panic!("{other:?}"),
                };
                assert_eq!(cause.operation, Operation::StartThread);
                assert!(error.to_string().starts_with("cannot start a thread for store"), "{error}");
                // Anything left of the store would hold a reference.
                assert_eq!(Arc::strong_count(&fs), 1, "after {allowed} threads");
                footprints.push(footprint(&fs));
            }
            if memtable_bytes > 4096 {
                // The first attempt records the identity of the log in the manifest.
                assert!(footprints[1] >= footprints[2], "after {allowed} threads: {footprints:?}");
                // A segment in use has 256 KiB until it is closed.
                assert!(footprints[0].1 < 100 << 10, "after {allowed} threads: {footprints:?}");
            }
            // The store also opens without threads.
            let _none = thread::refuse_after(0);
            let db = open(Background::Inline).unwrap();
            assert_eq!(db.iter().count(), entries as usize, "after {allowed} threads");
            assert!(db.verify().unwrap().is_sound());
            drop(db);
            allowed += 1;
        }
        // Each attempt of those that flush during the replay gets further.
        assert!(if memtable_bytes == 4096 { allowed > THREADS } else { allowed == THREADS }, "{allowed}");
    }
}

/// Goal: a compaction in parts runs those parts itself for which it gets no threads.
/// Method: a table from the first key to the last over several below; with as many threads as it
/// requests, some, and none.
#[test]
fn parts_of_a_compaction() {
    for allowed in [usize::MAX, 1, 0] {
        let fs = logged(60);
        let db = builder(&fs, Background::Threads(1), 4096).open().unwrap();
        db.compact_range(..).unwrap();
        let mut batch = WriteBatch::new();
        [0u32, 59].iter().for_each(|number| batch.put(number.to_be_bytes(), [8; 10]).unwrap());
        db.write(&batch).unwrap();
        db.flush().unwrap();
        let refusal = thread::refuse_after(allowed);
        db.compact_range(..).unwrap();
        drop(refusal);
        assert_eq!(db.iter().count(), 60);
        assert!(db.verify().unwrap().is_sound());
    }
}
