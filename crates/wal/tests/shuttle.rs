//! The log under seeded thread schedules.
//!
//! Run `RUSTFLAGS="--cfg cairn_shuttle" cargo test -p cairn-wal --test shuttle`, with a target
//! directory of its own. A failing schedule is printed, and can be run again with
//! `shuttle::replay`.
#![cfg(cairn_shuttle)]
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{CrashImage, FaultFs, FaultOptions, Fs, Operation, SeededRng, thread};
use cairn_wal::{Appender, Log, Lsn, Options, Recovery, RecoveryOptions};
use shuttle::scheduler::{PctScheduler, RandomScheduler};

const DIR: &str = "log";

fn schedules() -> usize {
    if std::env::var_os("CAIRN_SOAK").is_some() { 200_000 } else { 1_000 }
}

/// Runs a test under random schedules, and under schedules that target bugs of few preemptions.
fn explore(test: impl Fn() + Send + Sync + Copy + 'static) {
    // The simulated disk's stack frames exceed shuttle's default thread stack.
    let config = || {
        let mut config = shuttle::Config::new();
        config.stack_size = 1 << 20;
        config
    };
    shuttle::Runner::new(RandomScheduler::new(schedules()), config()).run(test);
    shuttle::Runner::new(PctScheduler::new(3, schedules()), config()).run(test);
}

fn open(fs: &FaultFs, background: bool) -> (Log, Mutex<Appender>) {
    open_with(fs, &Options::default().segment_bytes(8192).window_bytes(4096).background(background))
}

fn open_with(fs: &FaultFs, options: &Options) -> (Log, Mutex<Appender>) {
    let fs: Arc<dyn Fs> = Arc::new(fs.clone());
    let recovery = Recovery::open(&fs, Path::new(DIR), Lsn::ZERO, &RecoveryOptions::default()).unwrap();
    let tail = recovery.finish().unwrap();
    let (log, appender) = Log::open(&fs, options, tail, &mut SeededRng::new(1)).unwrap();
    (log, Mutex::new(appender))
}

/// Returns the positions that a recovery finds.
fn recovered(fs: &FaultFs) -> Vec<Lsn> {
    let fs: Arc<dyn Fs> = Arc::new(fs.clone());
    let mut recovery = Recovery::open(&fs, Path::new(DIR), Lsn::ZERO, &RecoveryOptions::default()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = recovery.next().unwrap() {
        found.push(record.lsn);
    }
    found
}

fn fresh() -> FaultFs {
    FaultFs::new(FaultOptions::seeded(1))
}

/// Goal: a sync that returned has put its record and all earlier ones on disk, whichever thread
/// led. Method: three threads append and sync; at each return, check the disk that a crash would
/// leave.
#[test]
fn returned_sync_is_durable() {
    explore(|| {
        let fs = fresh();
        let (log, appender) = open(&fs, false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let reservation = lock(&appender).reserve(30).unwrap();
                    let lsn = reservation.commit().unwrap();
                    log.sync_to(lsn).unwrap();
                    let safe = recovered(&fs.crash_point().image(CrashImage::None));
                    assert!(safe.contains(&lsn), "{lsn} is not among {safe:?}");
                });
            }
        });
        assert!(log.stats().flushes <= 3);
    });
}

/// Goal: the same holds across rotations, with the helper preparing memory and segments and a
/// thread releasing synced records. No schedule hangs, and none loses a record that was not
/// released.
#[test]
fn rotation_release_and_the_helper() {
    explore(|| {
        let fs = fresh();
        let (log, appender) = open(&fs, true);
        let lsns = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for round in 0..2 {
                let (fs, log, appender, lsns) = (&fs, &log, &appender, &lsns);
                scope.spawn(move || {
                    for _ in 0..3 {
                        let lsn = lock(appender).append(&[&[7; 2500]]).unwrap();
                        lock(lsns).push(lsn);
                        if round == 0 {
                            log.sync_to(lsn).unwrap();
                            let safe = recovered(&fs.crash_point().image(CrashImage::None));
                            assert!(safe.contains(&lsn), "{lsn} is not among {safe:?}");
                        }
                    }
                });
            }
        });
        let mut all = lsns.into_inner().unwrap();
        all.sort_unstable();
        log.release_before(all[2]).unwrap();
        drop(log);
        let found = recovered(&fs);
        assert!(all.ends_with(&found) && found.len() >= 3, "{found:?} of {all:?}");
    });
}

/// Goal: a trim never removes a prepared segment that is in use: no schedule hangs, and none loses
/// a record. Method: two threads append over growing segments, the helper prepares, and a third
/// thread trims and releases durable records.
#[test]
fn trims_beside_appends() {
    explore(|| {
        let fs = fresh();
        let options = Options::default().segment_bytes(16_384).first_segment_bytes(8192).window_bytes(4096);
        let (log, appender) = open_with(&fs, &options);
        let lsns = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let lsn = lock(&appender).append(&[&[7; 3500]]).unwrap();
                        lock(&lsns).push(lsn);
                    }
                    log.sync().unwrap();
                });
            }
            scope.spawn(|| {
                for _ in 0..2 {
                    log.trim().unwrap();
                    log.release_before(log.synced()).unwrap();
                }
            });
        });
        let mut all = lsns.into_inner().unwrap();
        all.sort_unstable();
        log.trim().unwrap();
        drop(log);
        let found = recovered(&fs);
        assert!(all.ends_with(&found) && !found.is_empty(), "{found:?} of {all:?}");
    });
}

/// Goal: dropped reservations, and appenders dropped while a reservation is open, neither hang nor
/// leave a hole.
#[test]
fn dropped_reservations_leave_no_hole() {
    explore(|| {
        let fs = fresh();
        let (log, appender) = open(&fs, false);
        let mut appender = appender.into_inner().unwrap();
        let kept = appender.reserve(20).unwrap();
        let given_up = appender.reserve(20).unwrap();
        let last = appender.append(&[b"last"]).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| drop(given_up));
            scope.spawn(|| kept.commit().unwrap());
            scope.spawn(|| log.sync_to(last).unwrap());
            drop(appender);
        });
        let safe = recovered(&fs.crash_point().image(CrashImage::None));
        assert!(safe.len() == 2 && safe.last() == Some(&last), "{safe:?}");
    });
}

/// Goal: every thread that waits for a sync is woken, whichever thread led and whatever it covered,
/// also when syncs fail or are no longer needed. Method: four threads append and sync twice each,
/// in segments of three records, beside one that releases durable records; in two of three
/// explorations a sync fails. Shuttle reports threads that sleep forever.
#[test]
fn every_sync_waiter_is_woken() {
    for failing in [None, Some(1), Some(2)] {
        explore(move || {
            let fs = fresh();
            let (log, appender) = open(&fs, false);
            if let Some(nth) = failing {
                let before = fs.operation_count_of(Operation::SyncData);
                fs.inject(Rule::nth(Operation::SyncData, before + nth, Fault::Io));
            }
            let told = AtomicU64::new(0);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..2 {
                            let Ok(lsn) = lock(&appender).append(&[&[7; 2500]]) else { return };
                            match log.sync_to(lsn) {
                                Ok(()) => assert!(log.synced() >= lsn),
                                Err(_) => _ = told.fetch_add(1, Ordering::SeqCst),
                            }
                        }
                    });
                }
                scope.spawn(|| (0..3).for_each(|_| _ = log.release_before(log.synced())));
            });
            assert!(failing.is_some() || told.load(Ordering::SeqCst) == 0);
            assert_eq!(log.stats().waiting, 0);
        });
    }
}
