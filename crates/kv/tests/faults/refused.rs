//! Threads that the system does not give.

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

/// A store whose entries, this many, are in the log alone.
fn logged(entries: u32) -> Arc<dyn Fs> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = builder(&fs, Background::Inline, 1 << 20).open().unwrap();
    (0..entries).for_each(|number| db.put(number.to_be_bytes(), [7; 1000]).unwrap());
    fs
}

/// Number of files, and bytes of them.
fn footprint(fs: &Arc<dyn Fs>) -> (usize, u64) {
    let names = fs.read_dir(Path::new(DIR)).unwrap();
    (names.len(), names.iter().map(|name| fs.metadata(name).unwrap().len).sum())
}

/// Goal: a store whose threads cannot all be started says so, with its place. Nothing of it is
/// left: no thread, no lock, no files that grow with each try. It opens with everything once there
/// are threads, or without any. Method: every thread of an opening is refused in turn, three times
/// each: those of a new store, of one whose log is replayed into memory, and of one that flushes
/// beside the replay.
#[test]
fn every_thread_of_an_opening() {
    // The log's, two in the background, and the one that syncs.
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
                // Not busy: that is said of a store that somebody else has open.
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                let cause = match &error {
                    Error::Vfs(cause) => cause,
                    other => panic!("{other:?}"),
                };
                assert_eq!(cause.operation, Operation::StartThread);
                assert!(error.to_string().starts_with("cannot start a thread for store"), "{error}");
                // Whatever is left of the store holds it.
                assert_eq!(Arc::strong_count(&fs), 1, "after {allowed} threads");
                footprints.push(footprint(&fs));
            }
            if memtable_bytes > 4096 {
                // The first try notes the log that the store has from then on.
                assert!(footprints[1] >= footprints[2], "after {allowed} threads: {footprints:?}");
                // A segment that was begun has 256 KiB until it is closed.
                assert!(footprints[0].1 < 100 << 10, "after {allowed} threads: {footprints:?}");
            }
            // Threads are not all that there is.
            let _none = thread::refuse_after(0);
            let db = open(Background::Inline).unwrap();
            assert_eq!(db.iter().count(), entries as usize, "after {allowed} threads");
            assert!(db.verify().unwrap().is_sound());
            drop(db);
            allowed += 1;
        }
        // Each try of those that flush beside the replay comes further.
        assert!(if memtable_bytes == 4096 { allowed > THREADS } else { allowed == THREADS }, "{allowed}");
    }
}

/// Goal: a compaction in parts does those itself that it gets no threads for. Method: a table from
/// the first key to the last over several below; as many threads as it asks for, some, and none.
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
