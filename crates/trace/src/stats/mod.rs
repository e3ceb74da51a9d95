//! Statistics of a trace: mix of operations, sizes, skew of the keys, reuse distances, working set,
//! arrival. Takes one pass with bounded memory.
//!
//! ```text
//!   events ─┬─► kinds, sizes          histogram: counts by size
//!           ├─► tracked keys          reuse: SHARDS, tree of times; skew: counts by rank, zipf law
//!           └─► windows, slices       operations and distinct keys over time
//! ```

mod histogram;
mod reuse;
mod skew;
mod statement;

use serde::Serialize;

use crate::error::Result;
use crate::event::{Detail, Event, Kind};
use crate::format::KeyForm;
use crate::reader::{Ending, Trace};
use crate::sample::Lowered;
use histogram::Histogram;
use reuse::Tracker;
use statement::Does;

pub use histogram::Sizes;
pub use reuse::{CachePoint, Reuse};
pub use skew::{RankPoint, Skew, Zipf};

/// The number of slices in which arrivals are counted.
const SLICES: u64 = 10_000;
/// The minimum length of a slice: the recorder reads the clock every 64 to 256 µs while operations
/// are frequent.
const SLICE_NS_MIN: u64 = 1_000_000;
/// Points of the curve over cache sizes.
const CACHE_POINTS: usize = 40;

/// Options for the statistics.
#[derive(Debug, Clone)]
pub struct Options {
    /// The number of windows that the time is divided into. Default: 60.
    pub windows: usize,
    /// The number of keys that are tracked exactly. If there are more, a sample of this size is
    /// tracked. Default: 1 Mi, some 60 MiB.
    pub keys_max: usize,
    /// Computes the skew from lookups only (gets, blocks) instead of all operations. Default:
    /// false.
    pub skew_of_lookups: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { windows: 60, keys_max: 1 << 20, skew_of_lookups: false }
    }
}

/// Statistics of one kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindStats {
    /// The kind.
    pub kind: Kind,
    /// The number of operations.
    pub operations: u64,
    /// The share of all operations, 0 to 1.
    pub share: f64,
    /// Mean size of values, operands or blocks in bytes. Absent if no size is known.
    pub value_bytes_mean: Option<f64>,
}

/// A part of the trace's time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Window {
    /// The start: in seconds, or in operations if the trace has no times.
    pub start: f64,
    /// The number of operations.
    pub operations: u64,
    /// The number of writes among them.
    pub writes: u64,
    /// Estimated number of distinct keys.
    pub keys: f64,
    /// Estimated number of keys that no earlier window has.
    pub new_keys: f64,
}

/// The distribution of operations over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arrival {
    /// Operations per second over the whole time.
    pub mean_per_sec: f64,
    /// Operations per second in the busiest slice.
    pub peak_per_sec: f64,
    /// Length of a slice in seconds, a multiple of the trace's clock step.
    pub slice_secs: f64,
    /// The share of slices without any operation.
    pub idle_share: f64,
    /// Variance divided by mean of the number of operations in a slice: 1 for random arrival
    /// (Poisson), 0 for a steady rate, more for bursts.
    pub dispersion: f64,
}

/// Statistics of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// Description of the traced program, from the header.
    pub source: String,
    /// The number of records.
    pub records: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// False if the trace has an order but no times.
    pub timed: bool,
    /// Wall clock at the start, in nanoseconds since 1970.
    pub started_ns: u64,
    /// Seconds from the start to the last operation.
    pub secs: f64,
    /// The number of threads, up to 64.
    pub lanes: usize,
    /// The operations of one key in this many were recorded. The counts below cover recorded
    /// operations only.
    pub sample: u32,
    /// The reason why the recorder lowered the share of keys, if it did.
    pub lowered: Option<Lowered>,
    /// `complete`, `cut` or `damaged`.
    pub ending: &'static str,
    /// Operations that were not recorded, if known.
    pub dropped: Option<u64>,
    /// Statistics by kind, for kinds that occur.
    pub kinds: Vec<KindStats>,
    /// The share of operations that read. Absent if unknown: for statements whose texts were not
    /// kept.
    pub read_share: Option<f64>,
    /// The share of operations that write. Absent in the same cases as `read_share`.
    pub write_share: Option<f64>,
    /// The share of hits among lookups and block accesses with a known outcome.
    pub found_share: Option<f64>,
    /// The number of batches and multi-gets.
    pub batches: u64,
    /// Mean number of operations in a batch.
    pub batch_mean: f64,
    /// Numbers of entries that scans read.
    pub scan_entries: Option<Sizes>,
    /// The number of keyspaces.
    pub keyspaces: usize,
    /// The number of distinct keys, estimated if there are more than [`Options::keys_max`].
    pub keys: f64,
    /// Lengths of keys, weighted by operations.
    pub key_bytes: Option<Sizes>,
    /// Sizes of values, operands and blocks, weighted by operations.
    pub value_bytes: Option<Sizes>,
    /// The skew of key use.
    pub skew: Option<Skew>,
    /// Reuse distances, and the hit rates of caches that follow from them.
    pub reuse: Option<Reuse>,
    /// Windows over the time.
    pub windows: Vec<Window>,
    /// Arrival statistics. Absent if the trace has no times.
    pub arrival: Option<Arrival>,
}

/// Computes the statistics of a trace. Cost: some 200 ns an operation.
///
/// Errors: damaged records in a block with a valid checksum.
pub fn of(trace: &Trace, options: &Options) -> Result<Stats> {
    let mut pass = Pass::new(trace, options);
    for event in trace.events() {
        pass.add(&event?);
    }
    Ok(pass.finish(trace))
}

#[derive(Debug)]
struct Pass {
    reads: u64,
    writes: u64,
    /// True if the trace keeps raw keys, and with them the texts of statements.
    raw: bool,
    /// Statements whose texts are not in the trace.
    unknown: u64,
    kinds: [(u64, u64, u64); Kind::ALL.len()],
    records: u64,
    found: (u64, u64),
    batches: u64,
    joined: u64,
    in_batch: bool,
    keyspaces: Vec<u32>,
    key_bytes: Histogram,
    value_bytes: Histogram,
    scan_entries: Histogram,
    tracker: Tracker,
    windows: Vec<Window>,
    timed: bool,
    /// Length of the trace in nanoseconds or operations, at least 1.
    length: u64,
    slice_ns: u64,
    slices: Vec<u32>,
    skew_of_lookups: bool,
}

impl Pass {
    fn new(trace: &Trace, options: &Options) -> Pass {
        let timed = trace.header().timed;
        let length = if timed { trace.last_ns() } else { trace.records() }.max(1);
        let count = options.windows.clamp(1, 10_000);
        let unit = if timed { 1e9 } else { 1.0 };
        let start = |at: usize| length as f64 / count as f64 * at as f64 / unit;
        let windows = (0..count).map(|at| Window { start: start(at), ..Window::default() }).collect();
        // A slice is a multiple of the clock step. Otherwise, a coarse clock would leave some
        // slices empty and others too full.
        let step_ns = if timed { trace.step_ns().max(1) } else { 1 };
        let slice_ns = (length / SLICES).max(SLICE_NS_MIN).div_ceil(step_ns).saturating_mul(step_ns);
        let slices = if timed { (length / slice_ns + 1).min(SLICES * 2) } else { 0 };
        Pass {
            reads: 0,
            writes: 0,
            raw: trace.header().keys == KeyForm::Raw,
            unknown: 0,
            kinds: [(0, 0, 0); Kind::ALL.len()],
            records: 0,
            found: (0, 0),
            batches: 0,
            joined: 0,
            in_batch: false,
            keyspaces: Vec::new(),
            key_bytes: Histogram::default(),
            value_bytes: Histogram::default(),
            scan_entries: Histogram::default(),
            tracker: Tracker::new(options.keys_max.max(16), f64::from(trace.sample())),
            windows,
            timed,
            length,
            slice_ns,
            slices: vec![0; slices as usize],
            skew_of_lookups: options.skew_of_lookups,
        }
    }

    fn add(&mut self, event: &Event<'_>) {
        let kind = event.kind();
        let value_bytes = event.value_bytes();
        if let Some((operations, values, bytes)) = self.kinds.get_mut(kind as usize) {
            *operations += 1;
            *values += u64::from(value_bytes.is_some());
            *bytes = bytes.saturating_add(value_bytes.unwrap_or(0));
        }
        let outcome = match event.detail {
            Detail::Get(found) => found.map(|found| found.is_some()),
            Detail::Block { hit, .. } => hit,
            _ => None,
        };
        if let Some(found) = outcome {
            self.found.0 += u64::from(found);
            self.found.1 += 1;
        }
        if let Detail::Scan { entries, .. } = event.detail {
            self.scan_entries.add(entries, 1.0);
        }
        if event.joined {
            self.joined += 1 + u64::from(!self.in_batch);
            self.batches += u64::from(!self.in_batch);
        }
        self.in_batch = event.joined;
        if let Err(at) = self.keyspaces.binary_search(&event.keyspace)
            && self.keyspaces.len() < 10_000
        {
            self.keyspaces.insert(at, event.keyspace);
        }
        self.key_bytes.add(u64::from(event.key_bytes), 1.0);
        if let Some(bytes) = value_bytes {
            self.value_bytes.add(bytes, 1.0);
        }
        let does = self.does(event);
        self.reads += u64::from(does == Some(Does::Read));
        self.writes += u64::from(does == Some(Does::Write));
        self.unknown += u64::from(does.is_none());
        self.place(event, does == Some(Does::Write));
        self.records += 1;
    }

    /// Classifies an event. Returns `None` for a statement whose text was not kept.
    fn does(&self, event: &Event<'_>) -> Option<Does> {
        match event.kind() {
            Kind::Statement if !self.raw => None,
            Kind::Statement => Some(statement::of(event.key)),
            kind if kind.is_write() => Some(Does::Write),
            kind if kind.is_read() => Some(Does::Read),
            _ => Some(Does::Neither),
        }
    }

    /// Counts the event in its window and slice.
    fn place(&mut self, event: &Event<'_>, writes: bool) {
        let at = if self.timed { event.time_ns } else { self.records };
        let count = self.windows.len() as u128;
        let index = (u128::from(at) * count / (u128::from(self.length) + 1)).min(count - 1) as usize;
        // A range is not a use of a key; a statement's text is one.
        let seen = match event.detail {
            Detail::DeleteRange { .. } => None,
            detail => {
                let is_lookup = matches!(detail, Detail::Get(_) | Detail::Block { .. });
                self.tracker.add(event.id(), index as u32, is_lookup || !self.skew_of_lookups)
            }
        };
        if let Some(window) = self.windows.get_mut(index) {
            window.operations += 1;
            window.writes += u64::from(writes);
            if let Some(seen) = seen {
                window.keys += if seen.first_in_window { seen.weight } else { 0.0 };
                window.new_keys += if seen.first { seen.weight } else { 0.0 };
            }
        }
        if self.timed
            && let Some(slice) = self.slices.get_mut((at / self.slice_ns) as usize)
        {
            *slice += 1;
        }
    }

    fn finish(self, trace: &Trace) -> Stats {
        let all = self.records.max(1) as f64;
        let share = |operations: u64| (self.unknown == 0).then_some(operations as f64 / all);
        let kinds = Kind::ALL.into_iter().zip(&self.kinds).filter(|(_, (operations, ..))| *operations > 0);
        let kinds = kinds.map(|(kind, &(operations, values, bytes))| KindStats {
            kind,
            operations,
            share: operations as f64 / all,
            value_bytes_mean: (values > 0).then(|| bytes as f64 / values as f64),
        });
        let (ending, dropped) = match trace.ending() {
            Ending::Complete { dropped } => ("complete", Some(dropped)),
            Ending::Cut { .. } => ("cut", None),
            Ending::Damaged { .. } => ("damaged", None),
        };
        let entry_bytes = self.key_bytes.mean() + self.value_bytes.mean();
        let header = trace.header();
        let seconds = if self.timed { trace.last_ns() as f64 / 1e9 } else { 0.0 };
        Stats {
            source: header.source.clone(),
            records: self.records,
            bytes: trace.bytes(),
            timed: self.timed,
            started_ns: header.started_ns,
            secs: seconds,
            lanes: trace.lanes(),
            sample: trace.sample(),
            lowered: trace.lowered(),
            ending,
            dropped,
            kinds: kinds.collect(),
            read_share: share(self.reads),
            write_share: share(self.writes),
            found_share: (self.found.1 > 0).then(|| self.found.0 as f64 / self.found.1 as f64),
            batches: self.batches,
            batch_mean: self.joined as f64 / self.batches.max(1) as f64,
            scan_entries: Sizes::of(&self.scan_entries),
            keyspaces: self.keyspaces.len(),
            keys: self.tracker.keys(),
            key_bytes: Sizes::of(&self.key_bytes),
            value_bytes: Sizes::of(&self.value_bytes),
            skew: skew::of(self.tracker.counts(), self.tracker.counted(), self.tracker.share()),
            reuse: self.tracker.reuse(CACHE_POINTS, entry_bytes),
            arrival: arrival(&self.slices, self.slice_ns, seconds),
            windows: self.windows,
        }
    }
}

fn arrival(slices: &[u32], slice_ns: u64, seconds: f64) -> Option<Arrival> {
    let operations: u64 = slices.iter().map(|count| u64::from(*count)).sum();
    if operations == 0 || seconds <= 0.0 {
        return None;
    }
    let slice_secs = slice_ns as f64 / 1e9;
    let mean = operations as f64 / slices.len() as f64;
    let square = |count: &u32| (f64::from(*count) - mean).powi(2);
    let variance = slices.iter().map(square).sum::<f64>() / slices.len() as f64;
    let mean_per_sec = operations as f64 / seconds;
    let busiest = f64::from(slices.iter().copied().max().unwrap_or(0)) / slice_secs;
    Some(Arrival {
        mean_per_sec,
        // A slice that is longer than the trace would make the peak rate too low.
        peak_per_sec: busiest.max(mean_per_sec),
        slice_secs,
        idle_share: slices.iter().filter(|count| **count == 0).count() as f64 / slices.len() as f64,
        dispersion: variance / mean,
    })
}

#[cfg(test)]
mod tests;
