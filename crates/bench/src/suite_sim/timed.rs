//! Timed runs: how fast a real store takes writes, and how long writers wait.

use std::path::Path;
use std::time::Duration;

use cairn_sim::traffic::Traffic;
use cairn_sim::{Config, Hardware, WriteStream};
use cairn_vfs::{Clock, SystemClock};

use super::costs::{costs_of_size, measure_syncs};
use super::{Case, Comparison, Data, Opener, compare, drive};
use crate::error::Result;
use crate::process::Stop;

/// This machine, with the costs that operations of this store have on it. No figure of the run that is predicted goes into it.
fn machine(config: &Config, opener: &Opener, dir: &Path) -> Result<Hardware> {
    let mut hardware = config.hardware.clone();
    hardware.cpu = costs_of_size(config, opener, &dir.join("costs"))?;
    hardware.cores = cairn_vfs::thread::available_parallelism() as f64;
    // These stores fit into the page cache: files are written to the disk, and not read from it.
    hardware.page_cache_hit = 1.0;
    measure_syncs(&mut hardware.disk, dir, config.options.target_file_size_base)?;
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
    config.hardware = machine(&config, opener, dir)?;
    let mut data = data.clone();
    let mut key = Vec::new();
    let keys = config.workload.keys;
    let (run, logs) = (dir.join("run"), config.options.wal);
    // Filled without threads that would go on beside the writes, then opened anew for the run.
    let mut store = opener.open(&run, &config, false, logs)?;
    drive::preload(&mut *store, &config, &mut data, &mut vec![false; keys as usize], stop)?;
    drop(store);
    let mut store = opener.open(&run, &config, true, logs)?;
    if let Some(version) = opener.rules_version(&*store, &config) {
        config.options.rocksdb_version = version;
    }
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
    let predicted = super::predict(&config)?;
    let speed = done as f64 * config.entry_bytes() as f64 / elapsed / 1e6;
    let stalled = (totals.stall_secs / elapsed).min(1.0);
    let amplification = (totals.flush_bytes + totals.compact_write_bytes) / totals.flush_bytes.max(1.0);
    let figures = [(predicted.user_mb_per_sec, speed), (predicted.stopped + predicted.delayed, stalled)];
    let version = store.version();
    Ok(compare::timed(case, &version, figures, (predicted.write_amplification, amplification)))
}
