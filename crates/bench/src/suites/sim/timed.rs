//! Timed runs: the write rate that a real store sustains, and how long writers wait.

use std::path::Path;
use std::time::Duration;

use cairn_sim::options::CompactionStyle;
use cairn_sim::traffic::Traffic;
use cairn_sim::{Config, Hardware, WriteStream};
use cairn_vfs::{Clock, SystemClock, thread};

use super::cores::measure_sleep_extra_us;
use super::costs::costs_of_size;
use super::files::measure_syncs;
use super::{Case, Comparison, Data, Opener, compare, drive, measure_codecs};
use crate::core::error::Result;
use crate::core::process::Stop;
use crate::core::procfs::{cpu_secs, own_cpu_secs, stolen_secs};
use crate::stores::measured::Totals;

/// Duration of a pilot run in seconds.
const PILOT_SECS: f64 = 5.0;

/// Number of steps to reconcile the costs of writes, of background work, and of the disk.
const PILOT_STEPS: usize = 16;

/// Number of last steps that are averaged. A run of seconds has few merges, so the model's results
/// jump when one more of them fits in.
const PILOT_STEPS_MEANT: usize = 6;

/// Number of runs of the model that are averaged in a step.
const PILOT_SEEDS: u64 = 3;

/// Measures this machine, with the costs of this store's operations when they have the cores for
/// themselves. No result of the predicted run is used.
fn machine(config: &Config, data: &Data, opener: &Opener, dir: &Path, stop: &Stop) -> Result<Hardware> {
    let mut hardware = config.hardware.clone();
    hardware.cpu = costs_of_size(config, opener, dir)?;
    hardware.codecs = measure_codecs(config, &Data::new(config)?)?;
    hardware.cpu.sleep_extra_us = measure_sleep_extra_us();
    // These stores fit into the page cache, so files are written to disk but not read from it.
    hardware.page_cache_hit = 1.0;
    measure_syncs(&mut hardware.disk, dir, config.options.target_file_size_base)?;
    work_side_by_side(config, &mut hardware, data, opener, &dir.join("pilot"), stop)?;
    Ok(hardware)
}

/// Adjusts costs to threads of one store that work side by side. They pass memtables from core to
/// core, evict each other's cache lines, share cores, and wait for a disk that is also busy with
/// the others' writes. Costs, however, are measured one after another.
///
/// So a pilot run, leveled regardless of the case, measures three values in a store with all its
/// threads at work: how long a write takes its thread without any waiting, how much processor time
/// flushes and merges take per write, and how long a write takes in total. Three parameters make
/// the model match these values for the same run: the cost of a write, a factor on the costs of
/// flushes and merges, and a factor on the waits for the disk.
fn work_side_by_side(
    config: &Config,
    hardware: &mut Hardware,
    data: &Data,
    opener: &Opener,
    dir: &Path,
    stop: &Stop,
) -> Result<()> {
    let mut pilot = config.clone();
    pilot.options.compaction_style = CompactionStyle::Leveled;
    pilot.options.level_compaction_dynamic_level_bytes = false;
    pilot.workload.traffic = Traffic::Unlimited;
    pilot.duration_secs = PILOT_SECS;
    pilot.seed = config.seed.wrapping_add(1);
    let ran = write_for_its_time(&mut pilot, data, opener, dir, stop)?;
    let writes = ran.writes as f64;
    let measured = WriteCosts {
        free_secs: (ran.secs - ran.stall_secs).max(0.0) / writes,
        background_secs: (ran.cpu_secs - ran.own_cpu_secs).max(0.0) / writes,
        secs: ran.secs / writes,
    };
    hardware.cores = thread::available_parallelism() as f64;
    let mut factors = Factors { put_us: measured.free_secs * 1e6, slower: 1.0, waits: 1.0 };
    let mut meant = Factors { put_us: 0.0, slower: 0.0, waits: 0.0 };
    for step in 0..PILOT_STEPS {
        pilot.hardware = factors.applied(hardware);
        let said = WriteCosts::in_the_model(&pilot)?;
        factors.put_us *= ratio(measured.free_secs, said.free_secs);
        factors.slower *= ratio(measured.background_secs, said.background_secs);
        // Clamped, because the factor would diverge if writes do not wait for the disk.
        factors.waits = (factors.waits * ratio(measured.secs, said.secs)).clamp(0.25, 4.0);
        if step >= PILOT_STEPS - PILOT_STEPS_MEANT {
            // Factors are averaged geometrically.
            meant.put_us += factors.put_us.ln() / PILOT_STEPS_MEANT as f64;
            meant.slower += factors.slower.ln() / PILOT_STEPS_MEANT as f64;
            meant.waits += factors.waits.ln() / PILOT_STEPS_MEANT as f64;
        }
    }
    let meant = Factors { put_us: meant.put_us.exp(), slower: meant.slower.exp(), waits: meant.waits.exp() };
    *hardware = meant.applied(hardware);
    Ok(())
}

/// The costs of a write in a run.
struct WriteCosts {
    /// The time of the writing thread, without waiting.
    free_secs: f64,
    /// Processor time of other threads.
    background_secs: f64,
    /// Total elapsed time.
    secs: f64,
}

impl WriteCosts {
    /// Returns the costs in the model, averaged over several seeds.
    fn in_the_model(config: &Config) -> Result<WriteCosts> {
        let mut config = config.clone();
        let mut mean = WriteCosts { free_secs: 0.0, background_secs: 0.0, secs: 0.0 };
        let share = 1.0 / PILOT_SEEDS as f64;
        for _ in 0..PILOT_SEEDS {
            let predicted = super::predict(&config)?;
            let secs = config.write_bytes() / (predicted.user_mb_per_sec * 1e6);
            mean.free_secs += (1.0 - predicted.stopped - predicted.delayed) * secs * share;
            mean.background_secs +=
                (predicted.cpu * config.hardware.cores * secs - config.hardware.cpu.put_us * 1e-6) * share;
            mean.secs += secs * share;
            config.seed = config.seed.wrapping_add(1);
        }
        Ok(mean)
    }
}

/// Returns the correction factor of a cost: the measurement divided by the model's value. Returns 1
/// if one of them is zero and so gives no information.
fn ratio(measured: f64, said: f64) -> f64 {
    let ratio = measured / said;
    if ratio.is_finite() && ratio > 0.0 { ratio.clamp(0.2, 5.0) } else { 1.0 }
}

/// The effect of concurrent work on costs that were measured one after another.
struct Factors {
    /// Cost of a write, in microseconds.
    put_us: f64,
    /// Factor on the processor time of flushes and merges.
    slower: f64,
    /// Factor on the waits for the disk.
    waits: f64,
}

impl Factors {
    /// Returns a machine with these costs.
    fn applied(&self, alone: &Hardware) -> Hardware {
        let mut hardware = alone.clone();
        let Hardware { cpu, disk, codecs, .. } = &mut hardware;
        cpu.put_us = self.put_us;
        for cost in [
            &mut cpu.flush_entry_us,
            &mut cpu.flush_byte_ns,
            &mut cpu.compact_entry_us,
            &mut cpu.compact_byte_ns,
        ] {
            *cost *= self.slower;
        }
        for codec in codecs.values_mut() {
            codec.compress_mb_per_sec /= self.slower;
            codec.decompress_mb_per_sec /= self.slower;
        }
        for wait in [
            &mut disk.sync_latency_us,
            &mut disk.remove_latency_us,
            &mut disk.busy_sync_us,
            &mut disk.busy_remove_us,
            &mut disk.among_files_sync_us,
            &mut disk.among_files_remove_us,
        ] {
            *wait *= self.waits;
        }
        hardware
    }
}

/// Number of real runs. The machine is measured before, between and after them, because other load
/// beneath a virtual machine changes its speed within seconds.
const TURNS: usize = 3;

/// Returns the mean of several measurements.
fn mean(mut all: Vec<Hardware>) -> Option<Hardware> {
    let fields: [fn(&mut Hardware) -> &mut f64; 15] = [
        |it| &mut it.cpu.put_us,
        |it| &mut it.cpu.flush_entry_us,
        |it| &mut it.cpu.flush_byte_ns,
        |it| &mut it.cpu.compact_entry_us,
        |it| &mut it.cpu.compact_byte_ns,
        |it| &mut it.cpu.compact_dropped,
        |it| &mut it.cpu.sleep_extra_us,
        |it| &mut it.cores,
        |it| &mut it.disk.write_mb_per_sec,
        |it| &mut it.disk.sync_latency_us,
        |it| &mut it.disk.remove_latency_us,
        |it| &mut it.disk.busy_sync_us,
        |it| &mut it.disk.busy_remove_us,
        |it| &mut it.disk.among_files_sync_us,
        |it| &mut it.disk.among_files_remove_us,
    ];
    let means: Vec<f64> = fields
        .iter()
        .map(|field| all.iter_mut().map(|it| *field(it)).sum::<f64>() / all.len() as f64)
        .collect();
    let mut one = all.pop()?;
    for (field, mean) in fields.iter().zip(means) {
        *field(&mut one) = mean;
    }
    Some(one)
}

/// The results of a real store's run.
#[derive(Default)]
struct RunResult {
    version: String,
    writes: u64,
    secs: f64,
    stall_secs: f64,
    /// Processor time of all threads.
    cpu_secs: f64,
    /// Processor time of the writing thread, which is part of it.
    own_cpu_secs: f64,
    /// Time of all cores together that the host gave to other guests.
    stolen_secs: f64,
    flush_bytes: f64,
    compact_write_bytes: f64,
}

impl RunResult {
    /// Returns the sum of both.
    fn and(self, other: RunResult) -> RunResult {
        RunResult {
            version: other.version,
            writes: self.writes + other.writes,
            secs: self.secs + other.secs,
            stall_secs: self.stall_secs + other.stall_secs,
            cpu_secs: self.cpu_secs + other.cpu_secs,
            own_cpu_secs: self.own_cpu_secs + other.own_cpu_secs,
            stolen_secs: self.stolen_secs + other.stolen_secs,
            flush_bytes: self.flush_bytes + other.flush_bytes,
            compact_write_bytes: self.compact_write_bytes + other.compact_write_bytes,
        }
    }
}

/// Performs timed runs on a real store, and one in the model.
pub(super) fn run(
    case: &Case,
    mut config: Config,
    data: &Data,
    opener: &Opener,
    dir: &Path,
    stop: &Stop,
) -> Result<Comparison> {
    let mut machines = vec![machine(&config, data, opener, &dir.join("before"), stop)?];
    let mut ran = RunResult::default();
    for turn in 0..TURNS {
        let store = dir.join(format!("run-{turn}"));
        ran = ran.and(write_for_its_time(&mut config, data, opener, &store, stop)?);
        machines.push(machine(&config, data, opener, &dir.join(format!("after-{turn}")), stop)?);
    }
    config.hardware = mean(machines).unwrap_or_default();
    // A virtual machine gets the share that its host leaves it, which changes from second to
    // second. So the share is taken from exactly the time of the runs. It says nothing about the
    // store.
    let cores = thread::available_parallelism() as f64;
    config.hardware.cores *= (1.0 - ran.stolen_secs / ran.secs / cores).max(0.1);
    let predicted = super::predict(&config)?;
    let speed = ran.writes as f64 * config.write_bytes() / ran.secs / 1e6;
    let stalled = (ran.stall_secs / ran.secs).min(1.0);
    let flushed = ran.flush_bytes;
    let amplification = (flushed + ran.compact_write_bytes) / flushed.max(1.0);
    let figures = [(predicted.user_mb_per_sec, speed), (predicted.stopped + predicted.delayed, stalled)];
    let amplifications = (predicted.write_amplification, amplification);
    Ok(compare::timed(case, &ran.version, config, figures, amplifications))
}

/// Fills a store, then writes with one thread as fast as the store or the traffic limit allows.
fn write_for_its_time(
    config: &mut Config,
    data: &Data,
    opener: &Opener,
    dir: &Path,
    stop: &Stop,
) -> Result<RunResult> {
    let mut data = data.clone();
    let mut key = Vec::new();
    let (keys, logs) = (config.workload.keys, config.options.wal);
    // Filled without background threads, which would continue during the writes, and reopened for
    // the run.
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
    let (start, worked, own, stolen) = (clock.now(), cpu_secs(), own_cpu_secs(), stolen_secs());
    let (mut writes, mut secs) = (0u64, 0.0);
    while secs < config.duration_secs {
        for _ in 0..64 {
            let (id, _) = stream.next_write();
            data.key(id, &mut key);
            store.put(&key, data.value())?;
        }
        writes += 64;
        secs = (clock.now() - start).as_secs_f64();
        let due = writes as f64 * config.write_bytes() / limit;
        if due > secs + 1e-3 {
            clock.sleep(Duration::from_secs_f64(due - secs));
        }
        stop.check()?;
    }
    let since = |now: Option<f64>, then: Option<f64>| now.zip(then).map_or(0.0, |(now, then)| now - then);
    let cpu_secs = since(cpu_secs(), worked);
    let own_cpu_secs = since(own_cpu_secs(), own);
    let stolen_secs = since(stolen_secs(), stolen);
    let Totals { stall_secs, flush_bytes, compact_write_bytes, .. } = store.totals().since(before);
    Ok(RunResult {
        version: store.version(),
        writes,
        secs,
        stall_secs,
        cpu_secs,
        own_cpu_secs,
        stolen_secs,
        flush_bytes,
        compact_write_bytes,
    })
}
