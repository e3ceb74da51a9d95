//! Timed runs: how fast a real store takes writes, and how long writers wait.

use std::path::Path;
use std::time::Duration;

use cairn_sim::traffic::Traffic;
use cairn_sim::{Config, Hardware, Preload, Simulation, WriteStream, preload_order};
use cairn_vfs::{Clock, SystemClock};

use super::{Case, Comparison, Data, Opener, compare};
use crate::error::{Error, Result};
use crate::process::Stop;

/// Writes of the short runs that tell what operations cost.
const TRIED: u32 = 60_000;

/// What operations of this store cost on this machine: single-threaded, from its own totals.
///
/// A write alone; then flushing all at once; then merging once. No figure of the run that is predicted goes into it.
fn costs(config: &Config, data: &Data, opener: &Opener, dir: &Path) -> Result<Hardware> {
    let mut hardware = config.hardware.clone();
    let mut data = data.clone();
    let clock = SystemClock::new();
    let mut config = config.clone();
    config.options.level0_file_num_compaction_trigger = 4;
    let mut store = opener.open(&dir.join("costs"), &config, false, config.options.wal)?;
    let mut key = Vec::new();
    let entry = config.entry_bytes() as f64;
    let keys = config.workload.keys.min(u64::from(TRIED)) as u32;
    let (mut put, mut flush, mut compact) = (0.0, 0.0, 0.0);
    let mut flushed = 0.0;
    for round in 0..4u32 {
        let start = clock.now();
        for at in 0..keys / 4 {
            data.key((at.wrapping_mul(2_654_435_761) ^ round) % keys, &mut key);
            store.put(&key, data.value())?;
        }
        put += (clock.now() - start).as_secs_f64();
        let start = clock.now();
        store.flush()?;
        let end = clock.now();
        store.settle()?;
        // The last flush makes the compaction due.
        if round < 3 {
            flush += (end - start).as_secs_f64();
            flushed += f64::from(keys / 4);
        } else {
            compact = (clock.now() - end).as_secs_f64();
        }
    }
    let totals = store.totals();
    let writes = f64::from(keys / 4 * 4);
    let merged = totals.compact_read_bytes / entry;
    if merged < 1.0 {
        return Err(Error::invalid("the store did not compact while its costs were measured".to_owned()));
    }
    let split = |secs: f64, entries: f64| {
        // Half by entry, half by byte: values of one size cannot tell the two apart.
        let each = secs / entries;
        (each * 0.5e6, each * 0.5e9 / entry)
    };
    hardware.cpu.put_us = put / writes * 1e6;
    (hardware.cpu.flush_entry_us, hardware.cpu.flush_byte_ns) = split(flush, flushed);
    (hardware.cpu.compact_entry_us, hardware.cpu.compact_byte_ns) = split(compact, merged);
    hardware.cpu.writers = 1.0;
    hardware.cores = cairn_vfs::thread::available_parallelism() as f64;
    // These stores fit into the page cache, which the disk is behind.
    hardware.page_cache_hit = 1.0;
    hardware.disk.write_mb_per_sec = 2000.0;
    Ok(hardware)
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
    config.hardware = costs(&config, data, opener, dir)?;
    let mut store = opener.open(&dir.join("run"), &config, true, config.options.wal)?;
    if let Some(version) = opener.rules_version(&*store, &config) {
        config.options.rocksdb_version = version;
    }
    let mut data = data.clone();
    let mut key = Vec::new();
    let keys = config.workload.keys;
    let order = preload_order(keys);
    for at in 0..keys {
        data.key(order.of(at) as u32, &mut key);
        store.put(&key, data.value())?;
        if at % 4096 == 0 {
            stop.check()?;
        }
    }
    store.flush()?;
    store.settle()?;
    let before = store.totals();
    let workload = &config.workload;
    let mut writes = WriteStream::new(&workload.distribution, keys, 1, workload.deletes, config.seed);
    let clock = SystemClock::new();
    let start = clock.now();
    let limit = match workload.traffic {
        Traffic::Constant { mb_per_sec } => mb_per_sec * 1e6,
        _ => f64::INFINITY,
    };
    let (mut done, mut elapsed) = (0u64, 0.0);
    while elapsed < config.duration_secs {
        for _ in 0..64 {
            let (id, _) = writes.next_write();
            data.key(id, &mut key);
            store.put(&key, data.value())?;
        }
        done += 64;
        elapsed = (clock.now() - start).as_secs_f64();
        let due = done as f64 * config.entry_bytes() as f64 / limit;
        if due > elapsed + 1e-3 {
            clock.sleep(Duration::from_secs_f64(due - elapsed));
        }
        stop.check()?;
    }
    let totals = store.totals().since(before);
    config.preload = Preload::Random;
    let predicted = Simulation::run(&config).map_err(|error| Error::invalid(error.to_string()))?;
    let speed = done as f64 * config.entry_bytes() as f64 / elapsed / 1e6;
    let stalled = (totals.stall_secs / elapsed).min(1.0);
    let amplification = (totals.flush_bytes + totals.compact_write_bytes) / totals.flush_bytes.max(1.0);
    let figures = [(predicted.user_mb_per_sec, speed), (predicted.stopped + predicted.delayed, stalled)];
    let version = store.version();
    Ok(compare::timed(case, &version, figures, (predicted.write_amplification, amplification)))
}
