//! Turns options into groups. A group is a workload that all stores perform in the same way, in
//! turns.

use super::crud::Crud;
use super::db_bench::DbBench;
use super::job::KvWorkload;
use super::large::Large;
use super::options::{Mode, Options};
use super::outcome::Shape;
use super::overwrite::Overwrite;
use super::threads::Threads;
use super::writers::Writers;
use super::ycsb::{Spec, YcsbRun};
use crate::core::workload::Durability;
use crate::stores::kv::KvSettings;

/// One workload with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct KvGroup {
    /// A short description for the progress display.
    pub name: String,
    /// The work to do.
    pub workload: KvWorkload,
    /// Lengths of keys and values.
    pub shape: Shape,
    /// Settings for opening the stores.
    pub settings: KvSettings,
    /// Whether latencies come from an additional turn.
    pub timed: bool,
    /// Whether the bare device takes part.
    pub device: bool,
}

/// Default thread count of DKV's `mt`.
const MT_THREADS: u32 = 8;
/// Default value lengths.
const DKV_VALUE_BYTES: usize = 8;
const DB_BENCH_VALUE_BYTES: usize = 100;
const LONG_VALUE_BYTES: usize = 1024;
/// Numbers of writers in `sync-writers`.
const WRITERS: [u32; 2] = [1, 16];
/// Value lengths of `value-sizes`.
const SWEEP: [usize; 7] = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// The data of `larger-than-cache` is this many times as large as the cache.
const CACHES: u64 = 8;
const LARGE_READS: u64 = 200_000;
const LARGE_SCANS: u64 = 10_000;

/// Half of the address space of a process on common processors.
const MAP_BYTES_MAX: u64 = 64 << 40;

impl KvGroup {
    /// See [`numbers`].
    pub(super) fn numbers(&self) -> u64 {
        numbers(&self.workload)
    }
}

/// Returns one more than the largest number that a key of a workload may have.
fn numbers(workload: &KvWorkload) -> u64 {
    match workload {
        KvWorkload::Crud(crud) => crud.operations,
        KvWorkload::Threads(threads) => u64::from(threads.threads) * threads.operations_each,
        KvWorkload::Writers(writers) => writers.operations + u64::from(writers.writers),
        KvWorkload::Ycsb(run) => {
            let inserts = run.specs.iter().map(|spec| spec.operations.unwrap_or(run.operations) * 2);
            run.records + inserts.sum::<u64>()
        }
        KvWorkload::DbBench(bench) => bench.operations,
        KvWorkload::Large(large) => large.records,
        KvWorkload::Overwrite(overwrite) => overwrite.records,
        // Its keys are those of the trace.
        KvWorkload::Replay(_) => 1,
    }
}

/// Returns all groups of a run, in order.
pub fn plan(options: &Options) -> Vec<KvGroup> {
    let mut groups: Vec<KvGroup> = options.modes.iter().flat_map(|mode| of_mode(options, *mode)).collect();
    groups.extend(ycsb(options));
    groups
}

fn group(options: &Options, name: String, value_bytes: usize, workload: KvWorkload) -> KvGroup {
    let shape =
        Shape { key_bytes: options.key_bytes, value_bytes: options.value_bytes.unwrap_or(value_bytes) };
    let settings = KvSettings { map_bytes: map_bytes(&workload, shape), ..options.settings.clone() };
    KvGroup { name, workload, shape, settings, timed: options.latencies, device: false }
}

/// Returns the address space for a mapped file. It is much larger than the data, because trees
/// split and old pages wait for readers. It is a multiple of every system's page size.
pub(crate) fn map_bytes(workload: &KvWorkload, shape: Shape) -> u64 {
    // Values longer than half a page occupy whole pages of 4 KiB.
    let record =
        (shape.record_bytes() + 64).next_multiple_of(if shape.value_bytes > 1500 { 4096 } else { 64 });
    (numbers(workload).saturating_mul(record * 8)).clamp(1 << 30, MAP_BYTES_MAX).next_multiple_of(1 << 20)
}

fn of_mode(options: &Options, mode: Mode) -> Vec<KvGroup> {
    let name = mode.name();
    match mode {
        Mode::Seq | Mode::Rand | Mode::Batch | Mode::SyncSeq | Mode::SyncRand => vec![crud(options, mode)],
        Mode::Mt => threads_or(options, MT_THREADS)
            .into_iter()
            .map(|threads| {
                let workload =
                    Threads { mode: name.clone(), threads, operations_each: options.ops_per_thread };
                group(
                    options,
                    format!("{name}, {threads} threads"),
                    DKV_VALUE_BYTES,
                    KvWorkload::Threads(workload),
                )
            })
            .collect(),
        Mode::SyncWriters => WRITERS.into_iter().map(|count| writers(options, &name, count)).collect(),
        // All YCSB modes share one load, see `ycsb`.
        Mode::Ycsb(_) => Vec::new(),
        Mode::DbBench => threads_or(options, 1)
            .into_iter()
            .map(|threads| {
                let benchmarks = options.benchmarks.clone();
                let workload = DbBench { benchmarks, operations: options.n, threads };
                group(
                    options,
                    format!("{name}, {threads} reading"),
                    DB_BENCH_VALUE_BYTES,
                    KvWorkload::DbBench(workload),
                )
            })
            .collect(),
        Mode::ValueSizes => SWEEP.into_iter().map(|bytes| sweep(options, &name, bytes)).collect(),
        Mode::LargerThanCache => vec![large(options, name)],
        Mode::OverwriteLong => vec![overwrite(options, name)],
    }
}

fn threads_or(options: &Options, otherwise: u32) -> Vec<u32> {
    if options.threads.is_empty() { vec![otherwise] } else { options.threads.clone() }
}

fn crud(options: &Options, mode: Mode) -> KvGroup {
    let sync = matches!(mode, Mode::SyncSeq | Mode::SyncRand);
    let crud = Crud {
        mode: mode.name(),
        operations: if sync { options.n.min(options.sync_n) } else { options.n },
        batch: (mode == Mode::Batch).then_some(options.batch),
        random: matches!(mode, Mode::Rand | Mode::SyncRand),
    };
    let mut group = group(options, mode.name(), DKV_VALUE_BYTES, KvWorkload::Crud(crud));
    if sync {
        group.settings.durability = Durability::Sync;
    }
    // The latency of a batch would be that of thousands of writes.
    group.timed &= mode != Mode::Batch;
    group
}

fn writers(options: &Options, mode: &str, writers: u32) -> KvGroup {
    let operations = options.n.min(options.sync_n);
    let workload = KvWorkload::Writers(Writers { mode: mode.to_owned(), writers, operations });
    let mut group = group(options, format!("{mode}, {writers}"), DB_BENCH_VALUE_BYTES, workload);
    group.settings.durability = Durability::Sync;
    group.device = true;
    group
}

fn sweep(options: &Options, mode: &str, value_bytes: usize) -> KvGroup {
    let shape = Shape { key_bytes: options.key_bytes, value_bytes };
    let operations = (options.sweep_bytes / shape.record_bytes()).clamp(1, options.n);
    let crud = Crud { mode: mode.to_owned(), operations, batch: None, random: true };
    let mut group = group(options, format!("{mode}, {value_bytes} B"), value_bytes, KvWorkload::Crud(crud));
    group.shape = shape;
    group.settings.map_bytes = map_bytes(&group.workload, shape);
    group.timed = false;
    group
}

fn large(options: &Options, name: String) -> KvGroup {
    let value_bytes = options.value_bytes.unwrap_or(LONG_VALUE_BYTES);
    let shape = Shape { key_bytes: options.key_bytes, value_bytes };
    let records = (options.settings.cache_bytes * CACHES / shape.record_bytes()).max(1);
    let (reads, scans) = (options.n.min(LARGE_READS), options.n.min(LARGE_SCANS));
    let workload = KvWorkload::Large(Large { records, reads, scans });
    KvGroup { timed: false, ..group(options, name, LONG_VALUE_BYTES, workload) }
}

fn overwrite(options: &Options, name: String) -> KvGroup {
    let value_bytes = options.value_bytes.unwrap_or(LONG_VALUE_BYTES);
    let record = Shape { key_bytes: options.key_bytes, value_bytes }.record_bytes();
    let workload = Overwrite {
        records: (options.data_bytes / record).max(1),
        operations: (options.overwrite_bytes / record).max(1),
    };
    let workload = KvWorkload::Overwrite(workload);
    KvGroup { timed: false, ..group(options, name, LONG_VALUE_BYTES, workload) }
}

/// YCSB's own order: workloads that insert come last, so that the others find exactly the loaded
/// records.
const YCSB_ORDER: [char; 6] = ['a', 'b', 'c', 'f', 'd', 'e'];

/// Returns the YCSB groups. The requested core workloads share one load. Each workload of the
/// user's own has its own load.
fn ycsb(options: &Options) -> Vec<KvGroup> {
    let core: Vec<Spec> = YCSB_ORDER
        .into_iter()
        .filter(|letter| options.modes.contains(&Mode::Ycsb(*letter)))
        .filter_map(Spec::core)
        .collect();
    let mut runs: Vec<(String, Vec<Spec>)> = Vec::new();
    if !core.is_empty() {
        let letters: Vec<&str> = core.iter().map(|spec| spec.name.trim_start_matches("ycsb-")).collect();
        runs.push((format!("ycsb {}", letters.join(" ")), core));
    }
    runs.extend(options.ycsb.iter().map(|spec| (spec.name.clone(), vec![spec.clone()])));
    let mut groups = Vec::new();
    for (name, specs) in runs {
        for threads in threads_or(options, 1) {
            let Some(first) = specs.first() else { continue };
            let (records, value_bytes) = (first.records.unwrap_or(options.n), first.value_bytes);
            let run =
                YcsbRun { records, operations: options.n, threads, specs: specs.clone(), settled: false };
            let mut group =
                group(options, format!("{name}, {threads} threads"), value_bytes, KvWorkload::Ycsb(run));
            // Each workload measures its latencies itself.
            group.timed = false;
            groups.push(group);
        }
    }
    groups
}
