//! Whole pools under seeded thread schedules.
//!
//! Run `RUSTFLAGS="--cfg cairn_shuttle" cargo test -p cairn-pool --test shuttle`, with a target
//! directory of its own; `testing/schedules.rs` describes what this can and cannot show. Page bytes
//! are plain memory, so half-changed pages in optimistic reads are tested by
//! `tests/faults/threads.rs` with real threads.
#![cfg(cairn_shuttle)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

#[path = "../../../../testing/schedules.rs"]
mod schedules;

use cairn_pool::{BackgroundWriter, Error, FileOptions, Lsn, PolicyKind, Pool, PoolFile};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU32, Ordering::SeqCst};
use cairn_vfs::{FaultFs, FaultOptions, Fs, OpenOptions, Operation, thread};

mod journal_check;

use schedules::explore;

fn pool(
    disk: &FaultFs,
    frames: usize,
    pages: u32,
    policy: PolicyKind,
    background: BackgroundWriter,
) -> (Pool, Arc<PoolFile>) {
    let pool = Pool::builder()
        .frames(frames)
        .max_frames(4)
        .policy(policy)
        .background_writer(background)
        .build()
        .unwrap();
    let file = disk.open("/pages".as_ref(), OpenOptions::create()).unwrap();
    let file = pool.open(file, FileOptions::new()).unwrap();
    (0..pages).for_each(|page| drop(file.create(page).unwrap()));
    file.flush().unwrap();
    (pool, Arc::new(file))
}

fn disk() -> FaultFs {
    FaultFs::new(FaultOptions::seeded(1))
}

fn count(bytes: &[u8]) -> u32 {
    u32::from(bytes[0])
}

fn raise(file: &PoolFile, page: u32) {
    let mut guard = file.write(page).unwrap();
    assert_eq!(guard.id().page(), page);
    let count = guard[0] + 1;
    guard.payload_mut(Lsn::NONE)[0] = count;
}

fn total(file: &PoolFile, pages: u32) -> u32 {
    (0..pages).map(|page| count(&file.read(page).unwrap())).sum()
}

/// Goal: no update is lost and no thread waits forever while pages evict each other. Method:
/// threads increment counts in pages of a pool with fewer frames, with a policy that uses marks and
/// with one that uses logged hits.
#[test]
fn updates_beside_evictions() {
    for policy in [PolicyKind::Clock, PolicyKind::Lru] {
        explore(1_500, move || {
            let (_pool, file) = pool(&disk(), 2, 3, policy, BackgroundWriter::Off);
            thread::scope(|scope| {
                for thread in 0..3u32 {
                    let file = &file;
                    scope.spawn(move || (0..2).for_each(|round| raise(file, (thread + round) % 3)));
                }
            });
            assert_eq!(total(&file, 3), 6);
        });
    }
}

/// Goal: threads that all want the only frame get it in turn. Method: one frame, a page for each
/// thread.
#[test]
fn one_frame_for_all() {
    explore(1_500, || {
        let (_pool, file) = pool(&disk(), 1, 3, PolicyKind::Sieve, BackgroundWriter::Off);
        thread::scope(|scope| {
            for thread in 0..3u32 {
                let file = &file;
                scope.spawn(move || {
                    for page in [thread, (thread + 1) % 3] {
                        assert_eq!(file.read(page).unwrap().id().page(), page);
                    }
                });
            }
        });
    });
}

/// Goal: readers, latched or optimistic, see a page as some writer left it, and writers get their
/// turn. Method: writers change two bytes of a page together, in two steps with a scheduling point
/// in between.
#[test]
fn readers_beside_writers() {
    explore(1_500, || {
        let (_pool, file) = pool(&disk(), 2, 3, PolicyKind::Clock, BackgroundWriter::Off);
        let step = AtomicU32::new(0);
        thread::scope(|scope| {
            let (file, step) = (&file, &step);
            scope.spawn(move || {
                for value in 1..3 {
                    let mut guard = file.write(0).unwrap();
                    guard.payload_mut(Lsn::NONE)[0] = value;
                    step.fetch_add(1, SeqCst);
                    guard.payload_mut(Lsn::NONE)[9] = value;
                }
            });
            scope.spawn(move || {
                for _ in 0..2 {
                    let pair = file.read_with(0, |view| {
                        let first = view.u8(0)?;
                        step.fetch_add(1, SeqCst);
                        Ok((first, view.u8(9)?))
                    });
                    let (first, second) = pair.unwrap();
                    assert_eq!(first, second);
                    let guard = file.read(0).unwrap();
                    let first = guard[0];
                    step.fetch_add(1, SeqCst);
                    assert_eq!(first, guard[9]);
                }
            });
            scope.spawn(move || (1..3).for_each(|page| drop(file.read(page).unwrap())));
        });
        assert_eq!(count(&file.read(0).unwrap()), 2);
    });
}

/// Goal: a reader that finds a page latched and turns away is visible to a writer for a moment; a
/// writer that went to sleep because of it is woken. Method: writers and readers of one page.
#[test]
fn failed_shared_attempt_wakes_writers() {
    explore(3_000, || {
        let (_pool, file) = pool(&disk(), 1, 1, PolicyKind::Clock, BackgroundWriter::Off);
        thread::scope(|scope| {
            for _ in 0..2 {
                let file = &file;
                scope.spawn(move || raise(file, 0));
                scope.spawn(move || drop(file.read(0).unwrap()));
            }
        });
        assert_eq!(count(&file.read(0).unwrap()), 2);
    });
}

/// Goal: an optimistic view upgrades to a latch only if nothing has changed since. Method: two
/// threads increment a count that way.
#[test]
fn optimistic_upgrade_needs_an_unchanged_page() {
    explore(1_500, || {
        let (_pool, file) = pool(&disk(), 1, 2, PolicyKind::Lru, BackgroundWriter::Off);
        thread::scope(|scope| {
            for _ in 0..2 {
                let file = &file;
                scope.spawn(move || {
                    loop {
                        let view = file.optimistic(0).unwrap();
                        let Ok(count) = view.u8(0) else { continue };
                        if let Ok(mut guard) = view.upgrade_exclusive() {
                            guard.payload_mut(Lsn::NONE)[0] = count + 1;
                            break;
                        }
                        thread::yield_now();
                    }
                    drop(file.read(1).unwrap());
                });
            }
        });
        assert_eq!(count(&file.read(0).unwrap()), 2);
    });
}

/// Goal: the pool can shrink and grow while threads use it. Method: resizes beside updates.
#[test]
fn resizes_beside_updates() {
    explore(1_000, || {
        let (pool, file) = pool(&disk(), 2, 3, PolicyKind::Clock, BackgroundWriter::Above(0.01));
        thread::scope(|scope| {
            for thread in 0..2u32 {
                let file = &file;
                scope.spawn(move || (0..2).for_each(|round| raise(file, (thread + round) % 3)));
            }
            scope.spawn(|| [3, 1, 2].into_iter().for_each(|frames| pool.resize(frames).unwrap()));
        });
        assert_eq!((total(&file, 3), pool.stats().frames), (4, 2));
    });
}

/// Goal: background writes, flushes and evictions of the same pages lose nothing, and all of them
/// finish. Method: updates beside a flush, with a background writer that the first dirty page
/// wakes; another pool reads the final disk.
#[test]
fn writers_of_the_same_pages() {
    explore(1_000, || {
        let disk = disk();
        let (pool, file) = pool(&disk, 2, 3, PolicyKind::Lru, BackgroundWriter::Above(0.01));
        thread::scope(|scope| {
            let file = &file;
            scope.spawn(move || (0..3).for_each(|page| raise(file, page)));
            scope.spawn(move || raise(file, 0));
            scope.spawn(move || file.flush().unwrap());
        });
        file.flush().unwrap();
        let other =
            Pool::builder().frames(1).max_frames(1).background_writer(BackgroundWriter::Off).build().unwrap();
        let raw = disk.open("/pages".as_ref(), OpenOptions::read()).unwrap();
        let other = other.open(raw, FileOptions::new()).unwrap();
        assert_eq!(total(&other, 3), 4);
        drop((file, pool));
    });
}

/// Goal: read-ahead, truncation and reads of the same pages all finish. Method: each on a thread of
/// its own.
#[test]
fn prefetch_and_truncate() {
    explore(1_000, || {
        let (_pool, file) = pool(&disk(), 2, 4, PolicyKind::Clock, BackgroundWriter::Above(0.01));
        thread::scope(|scope| {
            let file = &file;
            scope.spawn(move || file.prefetch(0..2));
            scope.spawn(move || (0..2).for_each(|page| raise(file, page)));
            scope.spawn(move || file.truncate(2).unwrap());
        });
        assert!(matches!(file.read(2).unwrap_err(), Error::BeyondEnd { .. }));
        assert_eq!(total(&file, 2), 2);
    });
}

/// Goal: a failing read or write wakes all threads that wait for it, and loses nothing. Method:
/// each read and each write of a run fails in turn.
#[test]
fn failures_beside_waiters() {
    for (operation, nth) in (0..4).flat_map(|nth| [(Operation::Read, nth), (Operation::Write, nth)]) {
        explore(200, move || {
            let disk = disk();
            let (_pool, file) = pool(&disk, 1, 2, PolicyKind::Clock, BackgroundWriter::Off);
            let before = disk.operation_count_of(operation);
            disk.inject(Rule::nth(operation, before + nth, Fault::Io));
            let raised = AtomicU32::new(0);
            thread::scope(|scope| {
                for thread in 0..3u32 {
                    let (file, raised) = (&file, &raised);
                    scope.spawn(move || {
                        for round in 0..2 {
                            if let Ok(mut guard) = file.write((thread + round) % 2) {
                                let count = guard[0] + 1;
                                guard.payload_mut(Lsn::NONE)[0] = count;
                                raised.fetch_add(1, SeqCst);
                            }
                        }
                    });
                }
            });
            disk.clear_rules();
            assert_eq!(total(&file, 2), raised.load(SeqCst));
        });
    }
}

/// Goal: copies in the double write stay until their pages are in place and the file is synced.
/// Method: threads flush different pages; the journal must not be written during a write in place.
#[test]
fn double_writes_of_two_threads() {
    explore(1_000, || {
        let disk = disk();
        let pool = Pool::builder().frames(4).max_frames(4).background_writer(BackgroundWriter::Off);
        let pool = pool.build().unwrap();
        let (file, journal) = journal_check::pair(&disk);
        let file = pool.open(file, FileOptions::new().double_write(journal)).unwrap();
        thread::scope(|scope| {
            for page in 0..2 {
                let file = &file;
                scope.spawn(move || {
                    file.create(page).unwrap().payload_mut(Lsn::NONE)[0] = 1;
                    file.flush().unwrap();
                });
            }
        });
        assert_eq!(total(&file, 2), 2);
    });
}

/// Goal: a sync beside a failing one does not succeed, although the system reports a failure only
/// once. Method: two threads sync; the first call fails.
#[test]
fn syncs_beside_one_that_fails() {
    explore(1_000, || {
        let disk = disk();
        let (_pool, file) = pool(&disk, 2, 2, PolicyKind::Clock, BackgroundWriter::Off);
        let syncs = disk.operation_count_of(Operation::SyncData);
        disk.inject(Rule::nth(Operation::SyncData, syncs, Fault::Io));
        thread::scope(|scope| {
            for _ in 0..2 {
                let file = &file;
                scope.spawn(move || assert!(file.sync().is_err()));
            }
        });
    });
}

/// Goal: a flush writes all earlier changes of its own thread, even while the pool grows.
#[test]
fn flush_beside_growth() {
    explore(1_500, || {
        let disk = disk();
        let (pool, file) = pool(&disk, 1, 3, PolicyKind::Clock, BackgroundWriter::Off);
        thread::scope(|scope| {
            let (disk, file) = (&disk, &file);
            scope.spawn(|| pool.resize(3).unwrap());
            scope.spawn(move || {
                (0..3).for_each(|page| raise(file, page));
                file.flush().unwrap();
                let bytes = disk.bytes_of("/pages".as_ref()).unwrap();
                // After the 16-byte page header.
                (0..3).for_each(|page| assert_eq!(bytes[page * 4096 + 16], 1, "page {page}"));
            });
        });
    });
}

/// Goal: a flush that waits for a page does not keep frames that the holder of the page waits for.
/// Method: two frames, both dirty; a thread that holds the second page requests a third one, beside
/// a flush.
#[test]
fn flush_does_not_starve_a_latch_holder() {
    explore(1_500, || {
        let (_pool, file) = pool(&disk(), 2, 3, PolicyKind::Clock, BackgroundWriter::Off);
        (0..2).for_each(|page| raise(&file, page));
        thread::scope(|scope| {
            let file = &file;
            scope.spawn(move || file.flush().unwrap());
            scope.spawn(move || {
                let guard = file.write(1).unwrap();
                assert_eq!(count(&file.read(2).unwrap()), 0);
                drop(guard);
            });
        });
        assert_eq!(total(&file, 3), 2);
    });
}

/// Goal: a flush of all files and a resize never take pages of one file for those of a file that
/// was closed meanwhile. Method: both beside a thread that closes a file and opens another; the
/// closed file's pages are on disk afterwards.
#[test]
fn flush_of_all_and_shrinking_beside_close_and_open() {
    explore(1_500, || {
        let disk = disk();
        let (pool, file) = pool(&disk, 3, 1, PolicyKind::Clock, BackgroundWriter::Above(0.01));
        let open = |path: &str| {
            let file = disk.open(path.as_ref(), OpenOptions::create()).unwrap();
            pool.open(file, FileOptions::new()).unwrap()
        };
        raise(&file, 0);
        let first = open("/first");
        first.create(0).unwrap().payload_mut(Lsn::NONE)[0] = 2;
        thread::scope(|scope| {
            scope.spawn(|| pool.flush().unwrap());
            scope.spawn(|| [2, 3].into_iter().for_each(|frames| pool.resize(frames).unwrap()));
            scope.spawn(|| {
                first.close().unwrap();
                let second = open("/second");
                second.create(0).unwrap().payload_mut(Lsn::NONE)[0] = 3;
                second.close().unwrap();
            });
        });
        for (path, value) in [("/first", 2), ("/second", 3)] {
            // After the 16-byte page header.
            assert_eq!(disk.bytes_of(path.as_ref()).unwrap()[16], value, "{path}");
        }
    });
}
