//! The costs of the log: appending with one, two and eight threads, and syncing compared with a
//! bare device flush.
//!
//! `cargo bench -p cairn-wal` prints one line for each case, with the best and the median of
//! several rounds, on a log in the temporary directory. `cargo bench -p cairn-wal -- append` runs
//! the cases whose names contain a word.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::append_map::Zeros;
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{AppendMap, Clock, Fs, OpenOptions, SeededRng, StdFs, SystemClock, thread};
use cairn_wal::{Appender, Log, Lsn, Options, Recovery, RecoveryOptions};

const ROUNDS: usize = 7;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let run = |name: &str, case: &dyn Fn() -> f64, unit: &str| {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            return;
        }
        let mut figures: Vec<f64> = (0..ROUNDS).map(|_| case()).collect();
        figures.sort_by(f64::total_cmp);
        println!("{name:<36} best {:>9.1} {unit}   middle {:>9.1} {unit}", figures[0], figures[ROUNDS / 2]);
    };
    for bytes in [40, 1024] {
        for background in [true, false] {
            let helper = if background { "" } else { "/no helper" };
            run(&format!("append/1 thread/{bytes} B{helper}"), &|| append_alone(bytes, background), "ns");
        }
        for threads in [2, 8] {
            run(&format!("append/{threads} threads/{bytes} B"), &|| append_together(threads, bytes), "ns");
        }
    }
    run("memory/fill and hash/40 B", &|| fill_and_hash(40), "ns");
    run("memory/fill and hash/1024 B", &|| fill_and_hash(1024), "ns");
    run("write/1 thread/40 B", &|| bare_write(40), "ns");
    for bytes in [40, 1024] {
        run(&format!("fdatasync/overwrite/{bytes} B"), &|| bare_sync(bytes, true), "us");
        run(&format!("fdatasync/growing/{bytes} B"), &|| bare_sync(bytes, false), "us");
        run(&format!("sync_to/1 writer/{bytes} B"), &|| sync_together(1, bytes), "us");
        run(&format!("sync_to/16 writers/{bytes} B"), &|| sync_together(16, bytes), "us");
    }
    run("recover/1 thread/40 B", &|| recover(40), "ns");
}

/// A temporary directory for a log.
struct Bench {
    fs: Arc<dyn Fs>,
    dir: tempfile::TempDir,
    clock: SystemClock,
}

impl Bench {
    fn new() -> Bench {
        Bench { fs: Arc::new(StdFs::new()), dir: tempfile::tempdir().unwrap(), clock: SystemClock::new() }
    }

    fn log(&self, options: &Options) -> (Log, Appender) {
        let dir = self.dir.path().join("log");
        let recovery = Recovery::open(&self.fs, &dir, Lsn::ZERO, &RecoveryOptions::default()).unwrap();
        Log::open(&self.fs, options, recovery.finish().unwrap(), &mut SeededRng::new(1)).unwrap()
    }

    /// Returns the nanoseconds that `work` takes per item, for `count` items.
    fn time(&self, count: u64, work: impl FnOnce()) -> f64 {
        let start = self.clock.now();
        work();
        (self.clock.now() - start).as_nanos() as f64 / count as f64
    }
}

fn append_alone(bytes: usize, background: bool) -> f64 {
    let bench = Bench::new();
    let (log, mut appender) = bench.log(&Options::default().background(background));
    let count = (192 << 20) / (bytes as u64 + 16);
    let payload = vec![7; bytes];
    let nanos = bench.time(count, || {
        for index in 0..count {
            let mut reservation = appender.reserve(bytes).unwrap();
            reservation.payload_mut().copy_from_slice(&payload);
            reservation.commit().unwrap();
            if index % (1 << 20) == 0 {
                log.release_before(appender.position()).unwrap();
            }
        }
    });
    drop(log);
    nanos
}

/// Returns the nanoseconds of wall-clock time per record, for all threads together.
fn append_together(threads: u64, bytes: usize) -> f64 {
    let bench = Bench::new();
    let (log, appender) = bench.log(&Options::default());
    let appender = Mutex::new(appender);
    let each = (192 << 20) / (bytes as u64 + 16) / threads;
    let nanos = bench.time(each * threads, || {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let payload = vec![7; bytes];
                    for _ in 0..each {
                        let mut reservation = lock(&appender).reserve(bytes).unwrap();
                        reservation.payload_mut().copy_from_slice(&payload);
                        reservation.commit().unwrap();
                    }
                });
            }
        });
    });
    drop(log);
    nanos
}

/// The work that no log can avoid: copying into memory and hashing.
fn fill_and_hash(bytes: usize) -> f64 {
    let bench = Bench::new();
    let mut memory = vec![0_u8; 1 << 20];
    let payload = vec![7; bytes];
    let count = 2_000_000;
    let mut sum = 0;
    let nanos = bench.time(count, || {
        for index in 0..count as usize {
            let at = index * bytes % (memory.len() - bytes);
            memory[at..at + bytes].copy_from_slice(&payload);
            sum ^= cairn_codec::checksum::xxh3_64(std::hint::black_box(&memory[at..at + bytes]));
        }
    });
    std::hint::black_box(sum);
    nanos
}

fn bare_write(bytes: usize) -> f64 {
    let bench = Bench::new();
    let file = bench.fs.open(&bench.dir.path().join("file"), OpenOptions::create()).unwrap();
    let payload = vec![7; bytes + 16];
    let count = 300_000;
    bench.time(count, || {
        for index in 0..count {
            file.write_all_at(&payload, index * payload.len() as u64).unwrap();
        }
    })
}

/// A store and a flush, overwriting existing bytes or extending a file.
fn bare_sync(bytes: usize, overwrite: bool) -> f64 {
    let bench = Bench::new();
    let count = 3_000;
    let file: Arc<dyn cairn_vfs::File> =
        Arc::from(bench.fs.open(&bench.dir.path().join("file"), OpenOptions::create()).unwrap());
    if !overwrite {
        let payload = vec![7; bytes + 16];
        return bench.time(count, || {
            for index in 0..count {
                file.write_all_at(&payload, index * payload.len() as u64).unwrap();
                file.sync_data().unwrap();
            }
        }) / 1e3;
    }
    let mut map = AppendMap::new(Arc::clone(&file), 0..4 << 20).unwrap();
    map.progress().prepare(4 << 20, Zeros::Small).unwrap();
    file.sync_data().unwrap();
    let payload = vec![7; bytes + 16];
    bench.time(count, || {
        for _ in 0..count {
            let mut slot = map.reserve(payload.len()).unwrap();
            slot.bytes_mut().copy_from_slice(&payload);
            slot.commit().unwrap();
            file.sync_data().unwrap();
        }
    }) / 1e3
}

/// Returns the microseconds of wall-clock time per synced record, for all writers together.
fn sync_together(writers: u64, bytes: usize) -> f64 {
    let bench = Bench::new();
    let (log, appender) = bench.log(&Options::default());
    let appender = Mutex::new(appender);
    let each = 3_000 / writers.min(4);
    let done = AtomicU64::new(0);
    let micros = bench.time(each * writers, || {
        thread::scope(|scope| {
            for _ in 0..writers {
                scope.spawn(|| {
                    let payload = vec![7; bytes];
                    for _ in 0..each {
                        let lsn = lock(&appender).append(&[&payload]).unwrap();
                        log.sync_to(lsn).unwrap();
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
    }) / 1e3;
    assert_eq!(done.into_inner(), each * writers);
    if writers > 1 {
        println!("  records for each flush: {:.1}", (each * writers) as f64 / log.stats().flushes as f64);
    }
    micros
}

fn recover(bytes: usize) -> f64 {
    let bench = Bench::new();
    let (log, mut appender) = bench.log(&Options::default());
    let count = (192 << 20) / (bytes as u64 + 16);
    let payload = vec![7; bytes];
    for _ in 0..count {
        appender.append(&[&payload]).unwrap();
    }
    drop((log, appender));
    bench.time(count, || {
        let dir = bench.dir.path().join("log");
        let mut recovery =
            Recovery::open(&bench.fs, Path::new(&dir), Lsn::ZERO, &RecoveryOptions::default()).unwrap();
        let mut found = 0;
        while recovery.next().unwrap().is_some() {
            found += 1;
        }
        assert_eq!(found, count);
    })
}
