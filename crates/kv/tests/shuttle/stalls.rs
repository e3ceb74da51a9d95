//! Tests of stalled writers and of closing stores: nothing waits forever.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Goal: writers that reach the limits of memtables and of level 0 stop and continue, in every
/// schedule.
/// Method: limits of one sealed memtable and two runs, which nearly every write reaches; three
/// writers with two background threads, and two with one, which no other thread covers for if it
/// misses a wakeup.
#[test]
fn writers_stop_and_go() {
    for (threads, writers) in [(2, 3), (1, 2)] {
        explore(300, move || {
            let fs = memory();
            let options =
                KeyspaceOptions { sealed_memtables_max: 1, level_zero_limits: (2, 3), ..keyspace() };
            let db = builder(&fs, threads, &options).open().unwrap();
            thread::scope(|scope| {
                for writer in 0..writers {
                    let db = &db;
                    scope.spawn(move || (0..3u8).for_each(|at| db.put([writer, at], [at]).unwrap()));
                }
            });
            assert_eq!(db.iter().count(), 3 * usize::from(writers));
            db.wait_idle().unwrap();
            assert_eq!(db.iter().count(), 3 * usize::from(writers));
        });
    }
}

/// Goal: `flush`, `compact_range` and `wait_idle` return, in every combination of callers.
/// Method: all at once, on both keyspaces, with a writer and background threads.
#[test]
fn everybody_waits() {
    explore(300, || {
        let fs = memory();
        let db = builder(&fs, 2, &keyspace()).open().unwrap();
        let other = db.keyspace(OTHER).unwrap();
        thread::scope(|scope| {
            let (db, other) = (&db, &other);
            scope.spawn(move || {
                for at in 0..3u8 {
                    db.put([at], "first").unwrap();
                    other.put([at], "second").unwrap();
                }
            });
            scope.spawn(move || {
                db.compact_range(..).unwrap();
                other.flush().unwrap();
            });
            scope.spawn(move || {
                other.compact_range([0u8]..[2u8]).unwrap();
                db.wait_idle().unwrap();
            });
        });
        assert_eq!((db.iter().count(), other.iter().count()), (3, 3));
    });
}

/// Goal: closing a store while jobs run ends, whichever thread has the last handle, and the
/// reopened store has everything.
/// Method: two threads with their own handles write and exit; an iterator outlives both; one more
/// background thread has nothing to do.
#[test]
fn closing_beside_jobs() {
    explore(400, || {
        let fs = memory();
        // This thread sleeps until the store is closed, because no time passes here.
        let sync = Duration::from_secs(1);
        let db = builder(&fs, 2, &keyspace()).sync_interval(sync).open().unwrap();
        let writers: Vec<_> = (0..2u8)
            .map(|writer| {
                let db = db.clone();
                let work = move || (0..3u8).for_each(|at| db.put([writer, at], [at; 40]).unwrap());
                thread::spawn("writer", work).unwrap()
            })
            .collect();
        let mut iterator = db.iter();
        drop(db);
        let first = iterator.next();
        assert!(first.is_none_or(|pair| pair.is_ok()));
        drop(iterator);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let db = builder(&fs, 0, &keyspace()).open().unwrap();
        assert_eq!(db.iter().count(), 6);
    });
}

/// Goal: a log replayed with concurrent flushes is recovered completely.
/// Method: everything is in the log; the store is opened with memtables so small that the replay
/// has to flush, on a separate thread.
#[test]
fn replay_beside_flushes() {
    explore(300, || {
        let fs = memory();
        let large = KeyspaceOptions { memtable_bytes: 1 << 20, ..keyspace() };
        let db = builder(&fs, 0, &large).open().unwrap();
        for round in 0..5u8 {
            db.keyspaces().iter().for_each(|keyspace| keyspace.put([round], [round; 40]).unwrap());
        }
        drop(db);
        let db = builder(&fs, 1, &keyspace()).open().unwrap();
        db.put([9], [9]).unwrap();
        let counts: Vec<_> = db.keyspaces().iter().map(|keyspace| keyspace.iter().count()).collect();
        assert_eq!(counts, [6, 5]);
    });
}

/// Goal: a disk that is full and then has space blocks nothing forever, and loses nothing.
/// Method: writers and a flush reach a limit that another thread lifts; those that get the full
/// disk's error retry.
#[test]
fn a_full_disk_that_lifts() {
    use cairn_vfs::{FaultFs, FaultOptions};
    explore(300, || {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        disk.set_quota(Some(1 << 40));
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let options = KeyspaceOptions { sealed_memtables_max: 1, ..keyspace() };
        let db = builder(&fs, 2, &options).open().unwrap();
        disk.set_quota(Some(disk.used_bytes()));
        thread::scope(|scope| {
            for writer in 0..2u8 {
                let db = &db;
                scope.spawn(move || {
                    for at in 0..3u8 {
                        while let Err(error) = db.put([writer, at], [at; 40]) {
                            assert!(error.is_full(), "{error}");
                            thread::yield_now();
                        }
                    }
                    while let Err(error) = db.flush() {
                        assert!(error.is_full(), "{error}");
                        thread::yield_now();
                    }
                });
            }
            scope.spawn(|| disk.set_quota(Some(1 << 40)));
        });
        assert_eq!(db.iter().count(), 6);
    });
}

/// Goal: a store that gets too few threads from the system does not open, and the threads that it
/// got end, whatever they are doing; nothing keeps a reference to it or waits forever, and it can
/// be opened again.
/// Method: each thread is refused in turn, until there are enough, including the thread that
/// flushes during the replay; there is work from the first moment on. Merges run in parts and
/// compete for threads.
#[test]
fn threads_that_are_refused() {
    let (opens, mut allowed) = (Arc::new(AtomicBool::new(false)), 0);
    while !opens.load(Ordering::Relaxed) {
        let opens = Arc::clone(&opens);
        explore(60, move || {
            let fs = memory();
            let large = KeyspaceOptions { memtable_bytes: 1 << 20, ..keyspace() };
            let db = builder(&fs, 0, &large).open().unwrap();
            (0..3u8).for_each(|round| db.put([round], [round; 40]).unwrap());
            drop(db);
            let refusal = thread::refuse_after(allowed);
            let opened = builder(&fs, 2, &keyspace()).sync_interval(Duration::from_secs(1)).open();
            drop(refusal);
            match opened {
                Ok(db) => {
                    assert_eq!(db.iter().count(), 3);
                    opens.store(true, Ordering::Relaxed);
                }
                Err(error) => assert_eq!(error.kind(), cairn_vfs::ErrorKind::Io, "{error}"),
            }
            assert_eq!(Arc::strong_count(&fs), 1, "after {allowed} threads");
            let db = builder(&fs, 2, &keyspace()).open().unwrap();
            assert_eq!(db.iter().count(), 3);
        });
        allowed += 1;
    }
    // The log's thread, two background threads, and the one that syncs; then those of flushes.
    assert!(allowed > 5, "opened with {} threads", allowed - 1);
}

/// Goal: when a wait for the idle store returns, its log is released, whatever other threads are
/// doing.
/// Method: everything is in tables; two threads wait for the idle store beside the background
/// threads, then a third does. The log's helper thread may have prepared one more segment.
#[test]
fn idle_logs_are_given_back() {
    explore(200, || {
        let fs = memory();
        let db = builder(&fs, 2, &keyspace()).open().unwrap();
        for at in 0..5u8 {
            db.put([at], [at; 3000]).unwrap();
        }
        db.flush().unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| db.wait_idle().unwrap());
            }
        });
        db.wait_idle().unwrap();
        let names = fs.read_dir(DIR.as_ref()).unwrap();
        let of_log =
            names.iter().filter(|path| path.extension().is_some_and(|it| it == "wal" || it == "free"));
        assert!(of_log.count() <= 2, "{names:?}");
        assert_eq!(db.iter().count(), 5);
    });
}
