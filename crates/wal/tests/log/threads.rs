//! Many threads, on the real disk and on one that counts operations.

use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{FaultOptions, Operation, StdFs, thread};

use super::*;

/// Appends and syncs records from several threads, each record identified by its number. Returns
/// the number of acknowledged records.
fn hammer(log: &Log, appender: &Mutex<Appender>, threads: u64, each: u64, sync_every: u64) -> u64 {
    let acked = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..threads {
            let acked = &acked;
            scope.spawn(move || {
                for index in 0..each {
                    let bytes = payload(thread << 32 | index);
                    let mut reservation = lock(appender).reserve(bytes.len()).unwrap();
                    reservation.payload_mut().copy_from_slice(&bytes);
                    let lsn = reservation.commit().unwrap();
                    if index % sync_every == 0 {
                        log.sync_to(lsn).unwrap();
                        assert!(log.synced() >= lsn);
                        acked.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    acked.into_inner()
}

/// Asserts that all records of all threads are there, each thread's in order.
fn assert_whole(fs: &Arc<dyn Fs>, dir: &Path, threads: u64, each: u64) {
    let mut recovery = Recovery::open(fs, dir, Lsn::ZERO, &RecoveryOptions::default()).unwrap();
    let mut next = vec![0; threads as usize];
    while let Some(record) = recovery.next().unwrap() {
        let number = number_of(record.payload);
        let thread = (number >> 32) as usize;
        assert_eq!(number & 0xffff_ffff, next[thread], "thread {thread}");
        next[thread] += 1;
    }
    assert_eq!(next, vec![each; threads as usize]);
}

/// Goal: concurrent threads that append and sync lose nothing and mix nothing up, across rotations,
/// with and without the helper, on the real disk and in memory.
#[test]
fn threads_append_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    for background in [true, false] {
        for threads in [2, 8] {
            let options =
                Options::default().segment_bytes(256 << 10).window_bytes(16 << 10).background(background);
            let real: Arc<dyn Fs> = Arc::new(StdFs::new());
            for (fs, dir) in
                [(real, dir.path().join(format!("{background}-{threads}"))), (memory(), DIR.into())]
            {
                let recovery = Recovery::open(&fs, &dir, Lsn::ZERO, &RecoveryOptions::default()).unwrap();
                let tail = recovery.finish().unwrap();
                let (log, appender) = Log::open(&fs, &options, tail, &mut SeededRng::new(1)).unwrap();
                let appender = Mutex::new(appender);
                let each = 8000 / threads;
                let acked = hammer(&log, &appender, threads, each, 50);
                let stats = log.stats();
                assert!(stats.segments > 3 && stats.flushes > 0 && stats.flushes <= 2 * acked, "{stats:?}");
                drop(log);
                assert_whole(&fs, &dir, threads, each);
            }
        }
    }
}

/// Goal: a thread that syncs every record costs one flush per record, and several threads never
/// cost more than that. Method: a disk that counts.
#[test]
fn concurrent_syncs_are_not_repeated() {
    for threads in [1, 2, 8] {
        let fs = FaultFs::new(FaultOptions::seeded(seed(41)));
        let options = small().segment_bytes(4 << 20).first_segment_bytes(4 << 20).window_bytes(64 << 10);
        let (log, appender, _) = open(&shared(&fs), &options, 1).unwrap();
        let appender = Mutex::new(appender);
        let before = fs.operation_count_of(Operation::SyncData);
        let acked = hammer(&log, &appender, threads, 400, 1);
        let syncs = fs.operation_count_of(Operation::SyncData) - before;
        println!("{threads} threads: {syncs} syncs for {acked} acknowledgements");
        assert_eq!((acked, syncs), (threads * 400, log.stats().flushes));
        assert!(if threads == 1 { syncs == acked } else { syncs <= acked }, "{syncs}");
        assert_whole(&shared(&fs), Path::new(DIR), threads, 400);
    }
}

/// Goal: waiting threads share a flush. Method: delay a sync by an uncommitted reservation; let
/// seven more threads wait; commit, and count flushes. Repeat with the earlier records already
/// synced.
#[test]
fn waiters_share_a_flush() {
    let fs = FaultFs::new(FaultOptions::seeded(seed(42)));
    let (log, mut appender, _) = open(&shared(&fs), &small().segment_bytes(1 << 20), 1).unwrap();
    for round in 1..=20 {
        let held = appender.reserve(10).unwrap();
        let lsns: Vec<Lsn> = (0..8).map(|number| appender.append(&[&payload(number)]).unwrap()).collect();
        thread::scope(|scope| {
            for lsn in &lsns {
                scope.spawn(|| log.sync_to(*lsn).unwrap());
            }
            while log.stats().waiting < 8 {
                thread::yield_now();
            }
            assert!(log.synced() < lsns[0], "all wait for the reservation");
            held.commit().unwrap();
        });
        assert_eq!((log.stats().flushes, log.stats().waiting), (round, 0));
        assert!(log.synced() >= lsns[7]);
    }
}

/// Goal: different threads reserve, fill, sync, rotate and release at once without a deadlock, and
/// the number of files stays small.
#[test]
fn everything_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let recovery = Recovery::open(&fs, dir.path(), Lsn::ZERO, &RecoveryOptions::default()).unwrap();
    let options = Options::default()
        .segment_bytes(64 << 10)
        .first_segment_bytes(16 << 10)
        .window_bytes(8192)
        .recycled_max(2);
    let (log, appender) =
        Log::open(&fs, &options, recovery.finish().unwrap(), &mut SeededRng::new(1)).unwrap();
    let appender = Mutex::new(appender);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (log, appender) = (&log, &appender);
            scope.spawn(move || {
                for index in 0..1500 {
                    let lsn = lock(appender).append(&[&payload(thread << 32 | index)]).unwrap();
                    match index % 97 {
                        0 => log.sync_to(lsn).unwrap(),
                        30 => log.sync().unwrap(),
                        60 => drop(lock(appender).rotate().unwrap()),
                        90 => log.release_before(lsn).unwrap(),
                        93 if index > 1200 => log.trim().unwrap(),
                        _ => {}
                    }
                }
            });
        }
    });
    log.release_before(log.reserved()).unwrap();
    let stats = log.stats();
    assert!(stats.recycled > 5, "{stats:?}");
    drop(log);
    let count = fs.read_dir(dir.path()).unwrap().len();
    // The current one, one prepared, two kept.
    assert!(count <= 4, "{count} files");
    lock(&appender).append(&[b"an appender outlives its log"]).unwrap();
}

/// Goal: if the helper cannot be started, opening fails with that error, leaves nothing behind, and
/// the log can be recovered unchanged. Its files do not grow with each attempt. Method: the thread
/// is refused a few times, then allowed.
#[test]
fn refused_helper_thread_is_an_error() {
    let fs = memory();
    let helped = small().background(true);
    let (log, mut appender, _) = open(&fs, &helped, 1).unwrap();
    append(&mut appender, 0..20).unwrap();
    log.sync().unwrap();
    drop((log, appender));
    let mut bytes = Vec::new();
    for seed in 2..6 {
        let refusal = thread::refuse_after(0);
        let error = open(&fs, &helped, seed).unwrap_err();
        drop(refusal);
        assert_eq!(error.kind(), cairn_vfs::ErrorKind::Io);
        assert!(error.to_string().starts_with("cannot start a thread for log"), "{error}");
        assert_eq!(Arc::strong_count(&fs), 1, "nobody holds it");
        bytes.push(files(&*fs).iter().map(|(_, bytes)| bytes.len()).sum::<usize>());
    }
    assert!(bytes[0] >= bytes[3], "{bytes:?}");
    let (_log, _appender, numbers) = open(&fs, &helped, 9).unwrap();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}
