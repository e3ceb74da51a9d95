//! Measures the waits for syncing and removing files on this machine: alone, on busy cores, and
//! while other threads do the same.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_sim::hardware::Disk;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use cairn_vfs::{Clock, Fs, OpenOptions, StdFs, SystemClock, thread};
use cairn_vfs::{Rng, SeededRng};

use super::cores::{EndsAtDrop, while_busy};
use crate::core::error::{Error, Result};
use crate::core::procfs::own_cpu_secs;
use crate::core::scratch::Scratch;

/// Numbers of files that are synced one after another, large and small. Some small ones wait a
/// hundred times as long as others.
const SYNCS: usize = 24;
const SMALL_SYNCS: usize = 160;

/// Size of a small file in bytes.
const SMALL: u64 = 4096;

/// Number of existing files beside the current one, because a merge removes files that were synced
/// some time ago.
const FILES_KEPT: usize = 8;

/// Measures a disk's bandwidth and latency for syncing files, by files of this size and small ones;
/// its latency for removing them; and how much longer both take while the cores are busy, and while
/// another thread creates and removes files of this size. Only waits count. The processor time is
/// part of the costs of operations.
///
/// Errors: the disk fails, the system cannot create a thread. Cost: one or two seconds.
pub fn measure_syncs(disk: &mut Disk, dir: &Path, file_bytes: u64) -> Result<()> {
    let large = file_bytes.max(2 * SMALL);
    let scratch = Scratch::in_dir(dir, super::LABEL)?;
    let dir = scratch.path();
    let of_large = waits(dir, large, SYNCS)?;
    let of_small = waits(dir, SMALL, SMALL_SYNCS)?;
    // Each sync involves kernel threads, which wait for a core like any other thread.
    let of_busy = while_busy(|| waits(dir, SMALL, SMALL_SYNCS))?;
    let (of_among, share) = among_files(dir, large, || {
        Ok((waits(dir, SMALL, SMALL_SYNCS)?.sync, waits(dir, large, SYNCS)?.remove))
    })?;
    let more = |then: f64, alone: f64| (then - alone).max(0.0) * 1e6;
    disk.busy_sync_us = more(of_busy.sync, of_small.sync);
    disk.busy_remove_us = more(of_busy.remove, of_small.remove);
    // The other thread does something else for part of the time.
    disk.among_files_sync_us = more(of_among.0, of_small.sync) / share;
    disk.among_files_remove_us = more(of_among.1, of_large.remove) / share;
    let byte_secs = ((of_large.sync - of_small.sync) / (large - SMALL) as f64).max(1e-12);
    disk.write_mb_per_sec = (1e-6 / byte_secs).min(1e6);
    disk.sync_latency_us = of_small.sync * 1e6;
    disk.remove_latency_us = of_large.remove * 1e6;
    Ok(())
}

/// Elapsed seconds in which the thread itself does nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    /// Until a new file is synced.
    sync: f64,
    /// Until a file is removed.
    remove: f64,
}

/// Files of one size that a thread creates. It removes each one several files later.
struct Files {
    fs: StdFs,
    clock: SystemClock,
    dir: PathBuf,
    name: &'static str,
    content: Vec<u8>,
    made: usize,
}

impl Files {
    fn new(dir: &Path, name: &'static str, bytes: u64) -> Files {
        let mut rng = SeededRng::new(bytes);
        let content = (0..bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        Files { fs: StdFs::new(), clock: SystemClock::new(), dir: dir.to_owned(), name, content, made: 0 }
    }

    fn path(&self, at: usize) -> PathBuf {
        self.dir.join(format!("{}-{}-{at}", self.name, self.content.len()))
    }

    /// Returns the elapsed time and the processor time of the thread.
    fn now(&self) -> (Duration, Option<f64>) {
        (self.clock.now(), own_cpu_secs())
    }

    fn waited_since(&self, (start, own): (Duration, Option<f64>)) -> f64 {
        let (end, ended) = self.now();
        let worked = ended.zip(own).map_or(0.0, |(now, then)| now - then);
        ((end - start).as_secs_f64() - worked).max(0.0)
    }

    /// Creates one more file, and removes an old one if there are enough.
    fn step(&mut self) -> Result<Waits> {
        let mut waits = Waits::default();
        let start = self.now();
        let file = self.fs.open(&self.path(self.made), OpenOptions::create())?;
        waits.sync += self.waited_since(start);
        file.write_all_at(&self.content, 0)?;
        let start = self.now();
        file.sync_data()?;
        waits.sync += self.waited_since(start);
        if let Some(old) = self.made.checked_sub(FILES_KEPT) {
            let start = self.now();
            self.fs.remove(&self.path(old))?;
            waits.remove += self.waited_since(start);
        }
        self.made += 1;
        Ok(waits)
    }
}

/// Returns the mean waits of new files.
fn waits(dir: &Path, bytes: u64, count: usize) -> Result<Waits> {
    let mut files = Files::new(dir, "own", bytes);
    let mut all = Waits::default();
    for _ in 0..count + FILES_KEPT {
        let waits = files.step()?;
        all.sync += waits.sync;
        all.remove += waits.remove;
    }
    Ok(Waits { sync: all.sync / (count + FILES_KEPT) as f64, remove: all.remove / count as f64 })
}

/// Runs `run` while another thread creates and removes files of this size. Also returns the share
/// of time that the other thread waits for its files.
fn among_files<T>(dir: &Path, bytes: u64, run: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let is_over = AtomicBool::new(false);
    let others = || {
        let mut files = Files::new(dir, "other", bytes);
        let (start, mut waited) = (files.clock.now(), 0.0);
        loop {
            let waits = files.step()?;
            waited += waits.sync + waits.remove;
            if is_over.load(Ordering::Relaxed) {
                return Ok(waited / (files.clock.now() - start).as_secs_f64());
            }
        }
    };
    thread::scope(|scope| {
        let handle = thread::spawn_scoped(scope, "cairn-files", others)
            .map_err(|error| Error::invalid(format!("no thread to make files: {error}")))?;
        let end = EndsAtDrop(&is_over);
        let result = run();
        drop(end);
        let share: Result<f64> =
            handle.join().map_err(|_| Error::invalid("a thread that made files panicked"))?;
        Ok((result?, share?.clamp(0.05, 1.0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a disk has a bandwidth and a latency, and the waits that others cause are not
    /// negative. Method: files of a megabyte in the temporary directory.
    #[test]
    fn syncs_are_measured() {
        let mut disk = Disk { write_mb_per_sec: 0.0, sync_latency_us: 0.0, ..Disk::default() };
        measure_syncs(&mut disk, &std::env::temp_dir(), 1 << 20).unwrap();
        assert!(disk.write_mb_per_sec > 0.0 && disk.sync_latency_us > 0.0, "{disk:?}");
        for waits in [disk.remove_latency_us, disk.among_files_sync_us, disk.among_files_remove_us] {
            assert!((0.0..1e7).contains(&waits), "{disk:?}");
        }
    }
}
