//! Extrapolates costs on small stores to the workload's own size.
//!
//! ```text
//!   seconds per operation =
//!       measured cost of the mix, extrapolated by its growth from the small store to the
//!       larger one
//!     + share of lookups that miss memory x random read of the disk
//!     + writes x bytes x (write amplification at the size - that of the calibration)
//!       / throughput of background work
//! ```
//!
//! Trees grow with the logarithm of their size, so the cost of the mix is a line over the logarithm
//! of the size. Write amplification comes from the simulator, which has been validated against real
//! runs of the stores that it models. Other stores have the amplification of their calibration run.
//! A prediction is a range that widens with the distance from the measured size.

use cairn_sim::options::{CompactionStyle, Compression, Engine};
use cairn_sim::{Config, Mode, Preload, Simulation};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::costs::{Costs, Kind};
use super::question::Workload;
use crate::core::workload::Distribution;
use crate::suites::kv::Mix;

/// Upper bound of the throughput of flushes and compactions on one core, in bytes per second,
/// including merging, checksums and copying.
const BACKGROUND_BYTES_PER_SEC: f64 = 250e6;

/// Uncertainty factor of a prediction at the measured size, and its increase with each doubling of
/// the size. `--check` reports the error of predictions: in its first rows, four of five
/// predictions were within this factor.
const DOUBT: f64 = 1.8;
const DOUBT_A_DOUBLING: f64 = 0.03;

/// Properties of the machine that a small store does not show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Bytes of the page cache that files can occupy.
    pub cache_bytes: Option<f64>,
    /// Seconds of a random read of 4 KiB.
    pub read_secs: f64,
    /// Write throughput of the disk, in bytes per second.
    pub write_bytes_per_sec: f64,
    /// Number of processors.
    pub cores: usize,
}

/// The predicted performance of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Name of the candidate.
    pub name: String,
    /// Operations per second.
    pub per_sec: f64,
    /// Lower and upper bound of `per_sec`.
    pub range: (f64, f64),
    /// Size of its files, in bytes.
    pub disk_bytes: f64,
    /// Write amplification; `None` if the simulator does not model the store, or without writes.
    #[serde(alias = "write_amplification")]
    pub write_amp: Option<f64>,
    /// Seconds per operation from measured costs, from cache misses and from background work.
    #[serde(alias = "seconds")]
    pub secs: [f64; 3],
}

/// Returns the uncertainty factor of growth from a store of `from` entries to one of `to`.
pub(super) fn doubt_of_growth(from: u64, to: u64) -> f64 {
    1.0 + DOUBT_A_DOUBLING * (to.max(1) as f64 / from.max(1) as f64).log2().max(0.0)
}

/// Predicts the throughput of a candidate. `costs` is ordered by size and not empty.
pub(super) fn predict(
    candidate: &Candidate,
    costs: &[Costs],
    workload: &Workload,
    machine: &Machine,
) -> Prediction {
    let amplification = amplification(candidate, workload, workload.records);
    let at = costs.last().map_or(1, |costs| costs.records);
    let disk_bytes = disk_bytes(costs, workload.records);
    let bytes = disk_bytes / workload.records.max(1) as f64;
    let own = extrapolated(costs, workload.records, |costs| costs.mixed);
    let misses = miss_share(&workload.distribution, machine.cache_bytes, disk_bytes);
    let shares = workload.shares();
    let lookups = shares.read
        + shares.read_modify_write
        + shares.scan * (1.0 + workload.scan_records as f64 * bytes / 8192.0);
    let missed = lookups * misses * machine.read_secs / f64::from(workload.threads);
    let small = amplification.and_then(|_| self::amplification(candidate, workload, at));
    let more = amplification.zip(small).map_or(0.0, |(large, small)| (large - small).max(0.0));
    let record = (workload.key_bytes + workload.value_bytes) as f64;
    let moves = machine.write_bytes_per_sec.min(BACKGROUND_BYTES_PER_SEC);
    let background = workload.writes() * record * more / moves;
    // Background work has its own processors only if the program leaves some free.
    let beside = machine.cores > workload.threads as usize;
    let seconds = if beside { (own + missed).max(background) } else { own + missed + background };
    let doubt = DOUBT + doubt_of_growth(at, workload.records) - 1.0;
    let per_sec = 1.0 / seconds.max(f64::MIN_POSITIVE);
    Prediction {
        name: candidate.name.clone(),
        per_sec,
        range: (per_sec / doubt, per_sec * doubt),
        disk_bytes,
        write_amp: amplification,
        secs: [own, missed, background],
    }
}

/// Returns seconds per operation of another mix, from the costs of its kinds weighted by their
/// shares. The result is scaled so that it is exact for the measured mix.
pub(super) fn seconds_of_mix(costs: &[Costs], workload: &Workload, mix: Mix, records: u64) -> Option<f64> {
    let of = |mix: Mix| {
        let cost = |kind: Kind| {
            costs.last()?.secs.get(&kind)?;
            Some(extrapolated(costs, records, |costs| {
                costs.secs.get(&kind).copied().unwrap_or(f64::INFINITY)
            }))
        };
        let Mix { read, update, scan, insert, read_modify_write } =
            Workload { mix, ..workload.clone() }.shares();
        let parts = [
            (read + read_modify_write, Kind::Read),
            (update + read_modify_write, Kind::Update),
            (insert, Kind::Insert),
            (scan, Kind::Scan),
        ];
        parts
            .into_iter()
            .filter(|(share, _)| *share > 0.0)
            .map(|(share, kind)| Some(share * cost(kind)?))
            .sum::<Option<f64>>()
    };
    let scale = extrapolated(costs, records, |costs| costs.mixed) / of(workload.mix)?;
    Some(of(mix)? * scale)
}

/// Extrapolates a cost to a size, on the line through the last two sizes over the logarithm of the
/// size. The result does not fall as the store grows, and rises at most with the square root of its
/// size.
fn extrapolated(costs: &[Costs], records: u64, cost: impl Fn(&Costs) -> f64) -> f64 {
    let Some(last) = costs.last() else { return f64::INFINITY };
    let at = cost(last);
    let doublings = (records as f64 / last.records as f64).log2();
    if doublings <= 0.0 {
        return at;
    }
    let slope = match costs {
        [.., before, last] if last.records > before.records => {
            (at - cost(before)) / (last.records as f64 / before.records as f64).log2()
        }
        _ => 0.0,
    };
    (at + slope.max(0.0) * doublings).min(at * 2_f64.powf(doublings / 2.0))
}

/// Predicts the size of the files, on the line through the last two sizes, because files have a
/// part that does not grow.
fn disk_bytes(costs: &[Costs], records: u64) -> f64 {
    let point = |costs: &Costs| (costs.records as f64, costs.bytes_per_entry * costs.records as f64);
    match costs {
        [.., before, last] if last.records > before.records => {
            line(point(before), point(last), records as f64)
        }
        [.., last] => last.bytes_per_entry * records as f64,
        [] => 0.0,
    }
}

/// Returns the value at `at` of the line through two points. A falling line is taken as flat.
pub(super) fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64), at: f64) -> f64 {
    y2 + ((y2 - y1) / (x2 - x1)).max(0.0) * (at - x2)
}

/// Returns the share of operations whose entry is not in memory, assuming that the most popular
/// entries are.
fn miss_share(distribution: &Distribution, cache_bytes: Option<f64>, data_bytes: f64) -> f64 {
    let Some(cache) = cache_bytes.filter(|cache| *cache < data_bytes) else { return 0.0 };
    let part = cache / data_bytes;
    match *distribution {
        Distribution::Uniform | Distribution::Sequential => 1.0 - part,
        // With a popularity of rank^-theta, the most popular fraction f of the keys receives about
        // f^(1 - theta) of the accesses.
        Distribution::Zipfian { theta, .. } | Distribution::Latest { theta } => {
            1.0 - part.powf((1.0 - theta).clamp(0.05, 1.0))
        }
        Distribution::HotSet { fraction, probability } => match part < fraction {
            true => 1.0 - probability * part / fraction,
            false => (1.0 - probability) * (1.0 - part) / (1.0 - fraction).max(f64::EPSILON),
        },
    }
}

/// Returns the simulated write amplification of as many writes as there are entries, on a store
/// that is already loaded. `None` for stores that the simulator does not model, and without writes.
fn amplification(candidate: &Candidate, workload: &Workload, records: u64) -> Option<f64> {
    if workload.writes() <= 0.0 {
        return None;
    }
    let mut config =
        Config { mode: Mode::Paced, preload: Preload::Settled, writes: records, ..Config::default() };
    config.workload.keys = records;
    config.workload.key_bytes = workload.key_bytes as u64;
    config.workload.value_bytes = workload.value_bytes as u64;
    config.options.write_buffer_size = candidate.settings.write_buffer_bytes;
    config.options.compression = Compression::None;
    match candidate.store.as_str() {
        "rocksdb" => {}
        // LevelDB has smaller files and a smaller first level, fixed in its code.
        "leveldb" => {
            config.options.max_bytes_for_level_base = 10 << 20;
            config.options.target_file_size_base = 2 << 20;
        }
        "cairn" => {
            config.options.engine = Engine::CairnKv;
            config.options.compaction_style = CompactionStyle::Leveled;
        }
        _ => return None,
    }
    Some(Simulation::run(&config).ok()?.write_amplification)
}
