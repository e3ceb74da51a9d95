//! A question that a trace asks: its mix, sizes, keys, skew, threads and arrival, and the trace
//! itself for the candidates that are run.
//!
//! Statistics are those of `cairn trace stats`; what was there before, and which writes are of new
//! keys, is as a replay takes it.

use std::path::{Path, PathBuf};

use cairn_trace::stats::{self, Stats};
use cairn_trace::{Kind, Trace};
use cairn_vfs::StdFs;

use super::question::{Constraints, Question, Workload};
use crate::error::{Error, Result};
use crate::suite_kv::Mix;
use crate::suite_kv::replay::{Loaded, Replay};
use crate::workload::Distribution;

/// Skew below this is none.
const THETA_MIN: f64 = 0.1;
/// Of keys that follow no law, the part that is called hot.
const HOT_SHARE: f64 = 0.1;
/// The least of a store that costs are measured on.
const RECORDS_MIN: u64 = 100;

/// A trace that candidates are run on.
#[derive(Debug)]
pub(super) struct Traced {
    pub replay: Replay,
    /// Address space for what it holds.
    pub map_bytes: u64,
    /// Entries that it works on.
    pub records: u64,
    pub operations: u64,
    /// What it has recorded, things that cannot be replayed among them.
    pub events: u64,
    pub writes: bool,
    /// What is replayed otherwise than it was, and how it came.
    pub notes: Vec<String>,
    /// Operations a second of its busiest moment.
    pub peak_per_sec: Option<f64>,
}

/// The question of a trace. Threads are the trace's own unless they are given.
///
/// Errors: [`Error::Trace`]; [`Error::Invalid`] for one that has no operation that can be replayed.
pub fn from_trace(path: &Path, threads: Option<u32>) -> Result<Question> {
    let (trace, stats) = read(path)?;
    let threads = threads.unwrap_or_else(|| u32::try_from(trace.lanes()).unwrap_or(u32::MAX).clamp(1, 256));
    let replay = replay(path, threads, None);
    let loaded = load(&replay)?;
    let workload = workload(&replay.name, &stats, &loaded, threads);
    Ok(Question { trace: Some(path.to_owned()), workload, constraints: Constraints::default() })
}

impl Traced {
    /// Errors: as [`from_trace`].
    pub fn new(path: &Path, threads: u32) -> Result<Traced> {
        let (trace, stats) = read(path)?;
        let replay = replay(path, threads, None);
        let loaded = load(&replay)?;
        let mut notes = loaded.all_notes();
        // Of a sample of the keys, all of them came that much as often.
        let all = f64::from(stats.sample.max(1));
        let peak_per_sec = stats.arrival.as_ref().map(|arrival| arrival.peak_per_sec * all);
        if let Some(arrival) = &stats.arrival {
            let sampled = if stats.sample > 1 { ", scaled up from its sample of keys" } else { "" };
            notes.push(format!(
                "the program issued {:.0} operations a second on average and {:.0} in its busiest {:.0} ms{sampled}; the trace is replayed at full speed",
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

    /// The replay of so many operations: the last ones, on the store that those before leave, where
    /// it has all the entries; else the first ones.
    pub fn part(&self, operations: u64, is_whole: bool) -> Replay {
        if operations >= self.operations {
            return self.replay.clone();
        }
        let passed_over = if is_whole { self.events.saturating_sub(operations) } else { 0 };
        Replay { passed_over, operations_max: Some(operations), ..self.replay.clone() }
    }

    /// Entries that the first so many operations work on. Errors: the trace's own.
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

/// Those that are there before, or that are left where it begins with none.
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
        // Of a sample of the keys it is the whole that is asked about.
        records: entries(loaded).saturating_mul(u64::from(stats.sample)).min(u64::from(u32::MAX)),
        key_bytes: mean(stats.key_bytes, default.key_bytes).clamp(16, 511),
        value_bytes: mean(stats.value_bytes, default.value_bytes).clamp(8, 1 << 24),
        mix,
        // Lengths are drawn evenly up to the longest.
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
            // Three digits are more than the fit has.
            theta => Distribution::Zipfian { theta: (theta * 1e3).round() / 1e3, scrambled: true },
        };
    }
    match skew.hottest_10_percent {
        share if share <= 2.0 * HOT_SHARE => Distribution::Uniform,
        share => Distribution::HotSet { fraction: HOT_SHARE, probability: (share * 1e3).round() / 1e3 },
    }
}
