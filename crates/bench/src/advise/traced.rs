//! A question derived from a trace: its mix, sizes, keys, skew, threads and rate, and the trace
//! itself for the finalists to replay.
//!
//! Statistics are those of `cairn trace stats`. The initial entries, and which writes insert a new
//! key, are those of a replay.

use std::path::{Path, PathBuf};

use cairn_trace::stats::{self, Stats};
use cairn_trace::{Kind, Trace};
use cairn_vfs::StdFs;

use super::question::{Constraints, Question, Workload};
use crate::core::error::{Error, Result};
use crate::core::workload::Distribution;
use crate::suites::kv::Mix;
use crate::suites::kv::replay::{Loaded, Replay};

/// A skew below this counts as uniform.
const THETA_MIN: f64 = 0.1;
/// Fraction of the keys that is called hot, if the keys do not follow a Zipfian distribution.
const HOT_SHARE: f64 = 0.1;
/// Smallest number of entries on which costs are measured.
const RECORDS_MIN: u64 = 100;

/// A trace that finalists replay.
#[derive(Debug)]
pub(super) struct Traced {
    pub replay: Replay,
    /// Size of the map for the entries of the trace.
    pub map_bytes: u64,
    /// Number of entries that the trace works on.
    pub records: u64,
    pub operations: u64,
    /// Number of recorded events, including those that cannot be replayed.
    pub events: u64,
    pub writes: bool,
    /// Notes on differences between the replay and the recording, and on the recorded rate.
    pub notes: Vec<String>,
    /// Operations per second in its busiest interval.
    pub peak_per_sec: Option<f64>,
}

/// Returns the question of a trace. `threads` overrides the number of threads of the trace.
///
/// Errors: [`Error::Trace`]; [`Error::Invalid`] for a trace without operations that can be
/// replayed.
pub fn from_trace(path: &Path, threads: Option<u32>) -> Result<Question> {
    let (trace, stats) = read(path)?;
    let threads = threads.unwrap_or_else(|| u32::try_from(trace.lanes()).unwrap_or(u32::MAX).clamp(1, 256));
    let replay = replay(path, threads, None);
    let loaded = load(&replay)?;
    let workload = workload(&replay.name, &stats, &loaded, threads);
    Ok(Question { trace: Some(path.to_owned()), workload, constraints: Constraints::default() })
}

impl Traced {
    /// Reads a trace and its statistics. Errors: as [`from_trace`].
    pub fn new(path: &Path, threads: u32) -> Result<Traced> {
        let (trace, stats) = read(path)?;
        let replay = replay(path, threads, None);
        let loaded = load(&replay)?;
        let mut notes = loaded.all_notes();
        // A trace of a sample of the keys shows that fraction of the rate.
        let all = f64::from(stats.sample.max(1));
        let peak_per_sec = stats.arrival.as_ref().map(|arrival| arrival.peak_per_sec * all);
        if let Some(arrival) = &stats.arrival {
            let sampled = if stats.sample > 1 { ", scaled up from its sample of keys" } else { "" };
            notes.push(format!(
                "the program issued {:.0} operations a second on average, at most {:.0} a second \
                 over {:.0} ms{sampled}; the trace is replayed at full speed",
                arrival.mean_per_sec * all,
                arrival.peak_per_sec * all,
                arrival.slice_secs * 1e3
            ));
        }
        Ok(Traced {
            map_bytes: loaded.map_bytes(),
            records: entries(&loaded),
            operations: loaded.operations(),
            events: trace.records(),
            writes: loaded.written_bytes > 0,
            replay,
            notes,
            peak_per_sec,
        })
    }

    /// Returns the replay of a part of the trace. With `is_whole` it is the last `operations`
    /// operations, on the store that the earlier ones leave. Otherwise it is the first ones.
    pub fn part(&self, operations: u64, is_whole: bool) -> Replay {
        if operations >= self.operations {
            return self.replay.clone();
        }
        let passed_over = if is_whole { self.events.saturating_sub(operations) } else { 0 };
        Replay { passed_over, operations_max: Some(operations), ..self.replay.clone() }
    }

    /// Returns the number of entries that the first `operations` operations work on. Errors: those
    /// of the trace.
    pub fn entries_of_first(&self, operations: u64) -> Result<u64> {
        Ok(entries(&load(&self.part(operations, false))?))
    }
}

fn read(path: &Path) -> Result<(Trace, Stats)> {
    let trace = Trace::open(&StdFs::new(), path)?;
    let stats = stats::of(&trace, &stats::Options::default())?;
    Ok((trace, stats))
}

fn replay(path: &Path, threads: u32, operations_max: Option<u64>) -> Replay {
    Replay { threads, operations_max, settled: true, ..Replay::new(path) }
}

fn load(replay: &Replay) -> Result<Loaded> {
    let loaded = replay.load()?;
    if loaded.operations() == 0 {
        let path: &PathBuf = &replay.trace;
        return Err(Error::invalid(format!("{}: no operation in it can be replayed", path.display())));
    }
    Ok(loaded)
}

/// Returns the number of initial entries, or of final ones if the trace starts from an empty store.
fn entries(loaded: &Loaded) -> u64 {
    loaded.initial().max(loaded.left()).max(RECORDS_MIN)
}

fn workload(name: &str, stats: &Stats, loaded: &Loaded, threads: u32) -> Workload {
    let default = Workload::default();
    let of = |kinds: &[Kind]| {
        let counted = stats.kinds.iter().filter(|counted| kinds.contains(&counted.kind));
        counted.map(|counted| counted.operations as f64).sum::<f64>()
    };
    let inserts = loaded.inserts() as f64;
    let writes = of(&[Kind::Put, Kind::Merge, Kind::Delete]);
    let mix = Mix {
        read: of(&[Kind::Get, Kind::Block]),
        update: (writes - inserts).max(0.0),
        insert: inserts,
        scan: of(&[Kind::Scan]),
        read_modify_write: 0.0,
    };
    let mean = |sizes: Option<stats::Sizes>, otherwise: usize| {
        sizes.map_or(otherwise, |sizes| sizes.mean.round() as usize)
    };
    Workload {
        name: name.to_owned(),
        // If the trace sampled the keys, the question is about all of them.
        records: entries(loaded).saturating_mul(u64::from(stats.sample)).min(u64::from(u32::MAX)),
        key_bytes: mean(stats.key_bytes, default.key_bytes).clamp(16, 511),
        value_bytes: mean(stats.value_bytes, default.value_bytes).clamp(8, 1 << 24),
        mix,
        // Lengths of scans are drawn uniformly up to the longest, so the mean determines the
        // longest.
        scan_records: stats.scan_entries.map_or(default.scan_records, |sizes| {
            ((2.0 * sizes.mean - 1.0).round() as u64).clamp(1, 1_000_000)
        }),
        distribution: distribution(stats),
        threads,
        durability: default.durability,
    }
}

fn distribution(stats: &Stats) -> Distribution {
    let Some(skew) = &stats.skew else { return Distribution::Uniform };
    if skew.zipf.fits {
        return match skew.zipf.theta {
            theta if theta < THETA_MIN => Distribution::Uniform,
            // The fit is less accurate than three digits.
            theta => Distribution::Zipfian { theta: (theta * 1e3).round() / 1e3, scrambled: true },
        };
    }
    match skew.hottest_10_percent {
        share if share <= 2.0 * HOT_SHARE => Distribution::Uniform,
        share => Distribution::HotSet { fraction: HOT_SHARE, probability: (share * 1e3).round() / 1e3 },
    }
}
