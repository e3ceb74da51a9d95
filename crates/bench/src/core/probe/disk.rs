//! Disk speed, bypassing the page cache if the file system allows it.

use std::path::Path;

use cairn_vfs::{Clock, File, Fs, OpenOptions, Rng, SeededRng, StdFs};

use super::{ProbeEffort, elapsed_seconds, probe};
use crate::core::error::Result;
use crate::core::results::Probe;
use crate::core::scratch::Scratch;

/// Alignment of buffers and offsets for direct I/O.
const ALIGNMENT: usize = 4096;

const BLOCK_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

/// Bytes at an aligned address.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Aligned {
        let mut bytes = vec![0; len + ALIGNMENT];
        // Random bytes, which no layer below can compress or store as a hole.
        SeededRng::new(2).fill(&mut bytes);
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Aligned { bytes, start, len }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// Measures sequential bandwidth, random reads, and the time to make a small write durable.
pub fn speeds(dir: &Path, clock: &dyn Clock, effort: ProbeEffort) -> Result<Vec<Probe>> {
    let scratch = Scratch::in_dir(dir, "disk-probe")?;
    let path = scratch.path().join("file");
    let fs = StdFs::new();
    let direct = OpenOptions { direct: true, ..OpenOptions::create() };
    let (file, note) = match fs.open(&path, direct) {
        Ok(file) => (file, ""),
        Err(_) => (fs.open(&path, OpenOptions::create())?, " (through the page cache)"),
    };
    let disk = Disk { file: &*file, clock, seconds: effort.seconds };
    let blocks = (effort.file_bytes / BLOCK_BYTES as u64).max(1);
    let (written, write) = disk.sequential(blocks, true)?;
    let (_, read) = disk.sequential(written, false)?;
    let (latency, random) = disk.random_reads(written * BLOCK_BYTES as u64 / PAGE_BYTES as u64)?;
    let mut syncs = disk.syncs()?;
    syncs.sort_unstable_by(f64::total_cmp);
    let at = |quantile: f64| syncs[((syncs.len() - 1) as f64 * quantile).round() as usize];
    Ok(vec![
        probe(format!("sequential write 1 MiB{note}"), write / 1e6, "MB/s"),
        probe(format!("sequential read 1 MiB{note}"), read / 1e6, "MB/s"),
        probe(format!("random read 4 KiB{note}"), random, "reads/s"),
        probe(format!("random read 4 KiB p50{note}"), latency / 1e3, "µs"),
        probe("fdatasync p50", at(0.5) * 1e3, "ms"),
        probe("fdatasync p99", at(0.99) * 1e3, "ms"),
    ])
}

struct Disk<'a> {
    file: &'a dyn File,
    clock: &'a dyn Clock,
    seconds: f64,
}

impl Disk<'_> {
    /// Returns the number of blocks transferred and bytes per second. Stops early when the time is
    /// up.
    fn sequential(&self, blocks: u64, write: bool) -> Result<(u64, f64)> {
        let mut buffer = Aligned::new(BLOCK_BYTES);
        let start = self.clock.now();
        let mut done = 0;
        while done < blocks && (done == 0 || self.since(start) < self.seconds) {
            let offset = done * BLOCK_BYTES as u64;
            if write {
                self.file.write_all_at(buffer.get(), offset)?;
            } else {
                self.file.read_exact_at(buffer.get(), offset)?;
            }
            done += 1;
        }
        if write {
            self.file.sync_data()?;
        }
        Ok((done, (done * BLOCK_BYTES as u64) as f64 / self.since(start)))
    }

    /// Returns the median latency in ns and reads per second, one read at a time.
    fn random_reads(&self, pages: u64) -> Result<(f64, f64)> {
        let mut buffer = Aligned::new(PAGE_BYTES);
        let mut rng = SeededRng::new(3);
        let mut latencies = Vec::new();
        let start = self.clock.now();
        while latencies.is_empty() || (self.since(start) < self.seconds && latencies.len() < 20_000) {
            let offset = rng.below(pages) * PAGE_BYTES as u64;
            let (read, seconds) =
                elapsed_seconds(self.clock, || self.file.read_exact_at(buffer.get(), offset));
            read?;
            latencies.push(seconds * 1e9);
        }
        let rate = latencies.len() as f64 / self.since(start);
        Ok((crate::core::stats::median(&latencies), rate))
    }

    /// Returns the seconds of each sync after a write of one page, which is the wait of a commit.
    fn syncs(&self) -> Result<Vec<f64>> {
        let mut buffer = Aligned::new(PAGE_BYTES);
        let mut syncs = Vec::new();
        let start = self.clock.now();
        while syncs.len() < 5 || (self.since(start) < self.seconds && syncs.len() < 500) {
            self.file.write_all_at(buffer.get(), (syncs.len() * PAGE_BYTES) as u64)?;
            let (synced, seconds) = elapsed_seconds(self.clock, || self.file.sync_data());
            synced?;
            syncs.push(seconds);
        }
        Ok(syncs)
    }

    fn since(&self, start: std::time::Duration) -> f64 {
        (self.clock.now() - start).as_secs_f64()
    }
}
