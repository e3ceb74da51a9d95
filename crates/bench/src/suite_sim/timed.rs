//! Timed runs: how fast a real store takes writes, and how long writers wait.

use std::path::Path;
use std::time::Duration;

use cairn_sim::traffic::Traffic;
use cairn_sim::{Config, Hardware, WriteStream};
use cairn_vfs::{Clock, SystemClock};

use super::cores::{measure_cores, measure_sleep_extra_us};
use super::costs::{costs_of_size, measure_syncs};
use super::{Case, Comparison, Data, Opener, Totals, compare, drive};
use crate::error::Result;
use crate::process::Stop;

/// This machine, with the costs that operations of this store have on it. No figure of the run that is predicted goes into it.
fn machine(config: &Config, opener: &Opener, dir: &Path) -> Result<Hardware> {
    let mut hardware = config.hardware.clone();
    hardware.cpu = costs_of_size(config, opener, dir)?;
    hardware.cpu.sleep_extra_us = measure_sleep_extra_us();
    hardware.cores = measure_cores()?;
    // These stores fit into the page cache: files are written to the disk, and not read from it.
    hardware.page_cache_hit = 1.0;
    measure_syncs(&mut hardware.disk, dir, config.options.target_file_size_base)?;
    Ok(hardware)
}

/// The mean of two measurements: what else goes on below a virtual machine makes it faster and slower in seconds.
fn mean(one: &Hardware, other: &Hardware) -> Hardware {
    let mut both = one.clone();
    let halve = |value: &mut f64, other: f64| *value = f64::midpoint(*value, other);
    let (cpu, after) = (&mut both.cpu, &other.cpu);
    halve(&mut cpu.put_us, after.put_us);
    halve(&mut cpu.flush_entry_us, after.flush_entry_us);
    halve(&mut cpu.flush_byte_ns, after.flush_byte_ns);
    halve(&mut cpu.compact_entry_us, after.compact_entry_us);
    halve(&mut cpu.compact_byte_ns, after.compact_byte_ns);
    halve(&mut cpu.compact_dropped, after.compact_dropped);
    halve(&mut cpu.sleep_extra_us, after.sleep_extra_us);
    halve(&mut both.cores, other.cores);
    halve(&mut both.disk.write_mb_per_sec, other.disk.write_mb_per_sec);
    halve(&mut both.disk.sync_latency_us, other.disk.sync_latency_us);
    both
}

/// What a real store did in its time.
struct Ran {
    version: String,
    writes: u64,
    secs: f64,
    totals: Totals,
}

/// A timed run for real and in the model.
pub(super) fn run(
    case: &Case,
    mut config: Config,
    data: &Data,
    opener: &Opener,
    dir: &Path,
    stop: &Stop,
) -> Result<Comparison> {
    let before = machine(&config, opener, &dir.join("before"))?;
    let ran = write_for_its_time(&mut config, data, opener, &dir.join("run"), stop)?;
    config.hardware = mean(&before, &machine(&config, opener, &dir.join("after"))?);
    let predicted = super::predict(&config)?;
    let speed = ran.writes as f64 * config.entry_bytes() as f64 / ran.secs / 1e6;
    let stalled = (ran.totals.stall_secs / ran.secs).min(1.0);
    let flushed = ran.totals.flush_bytes;
    let amplification = (flushed + ran.totals.compact_write_bytes) / flushed.max(1.0);
    let figures = [(predicted.user_mb_per_sec, speed), (predicted.stopped + predicted.delayed, stalled)];
    Ok(compare::timed(case, &ran.version, figures, (predicted.write_amplification, amplification)))
}

/// Fills a store, then writes as fast as it or the traffic's limit lets one thread.
fn write_for_its_time(
    config: &mut Config,
    data: &Data,
    opener: &Opener,
    dir: &Path,
    stop: &Stop,
) -> Result<Ran> {
    let mut data = data.clone();
    let mut key = Vec::new();
    let (keys, logs) = (config.workload.keys, config.options.wal);
    // Filled without threads that would go on beside the writes, then opened anew for the run.
    let mut store = opener.open(dir, config, false, logs)?;
    drive::preload(&mut *store, config, &mut data, &mut vec![false; keys as usize], stop)?;
    drop(store);
    let mut store = opener.open(dir, config, true, logs)?;
    if let Some(version) = opener.rules_version(&*store, config) {
        config.options.rocksdb_version = version;
    }
    let before = store.totals();
    let workload = &config.workload;
    let mut stream = WriteStream::new(&workload.distribution, keys, 1, workload.deletes, config.seed);
    let limit = match workload.traffic {
        Traffic::Constant { mb_per_sec } => mb_per_sec * 1e6,
        _ => f64::INFINITY,
    };
    let clock = SystemClock::new();
    let start = clock.now();
    let (mut writes, mut secs) = (0u64, 0.0);
    while secs < config.duration_secs {
        for _ in 0..64 {
            let (id, _) = stream.next_write();
            data.key(id, &mut key);
            store.put(&key, data.value())?;
        }
        writes += 64;
        secs = (clock.now() - start).as_secs_f64();
        let due = writes as f64 * config.entry_bytes() as f64 / limit;
        if due > secs + 1e-3 {
            clock.sleep(Duration::from_secs_f64(due - secs));
        }
        stop.check()?;
    }
    Ok(Ran { version: store.version(), writes, secs, totals: store.totals().since(before) })
}
