//! What a trace is like: mix, sizes, skew of the keys, reuse distances, working set, arrival. One
//! pass; memory is bounded.
//!
//! ```text
//!   events ─┬─► kinds, sizes          histogram: counts by size
//!           ├─► tracked keys          reuse: SHARDS over a tree of times; skew: counts by rank, a zipf through them
//!           └─► windows, slices       operations and different keys over time
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

/// How finely arrival is looked at.
const SLICES: u64 = 10_000;
/// A slice is no shorter: the recorder looks at the clock every 64 to 256 µs while operations are
/// frequent.
const SLICE_NS_MIN: u64 = 1_000_000;
/// Points of the curve over cache sizes.
const CACHE_POINTS: usize = 40;

/// How statistics are taken.
#[derive(Debug, Clone)]
pub struct Options {
    /// Parts that the time is cut into. Default: 60.
    pub windows: usize,
    /// Keys that are followed exactly; of more, a sample of that size is. Default: 1 Mi, some 60
    /// MiB.
    pub keys_max: usize,
    /// The skew is that of lookups (gets, blocks) instead of all operations. Default: no.
    pub skew_of_lookups: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { windows: 60, keys_max: 1 << 20, skew_of_lookups: false }
    }
}

/// One kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindStats {
    /// Which.
    pub kind: Kind,
    /// How many.
    pub operations: u64,
    /// Of all, 0 to 1.
    pub share: f64,
    /// Mean bytes of values, operands or blocks; absent where none was seen.
    pub value_bytes_mean: Option<f64>,
}

/// A part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Window {
    /// Where it begins: seconds, or operations where the trace has no times.
    pub start: f64,
    /// Operations in it.
    pub operations: u64,
    /// Of these, writes.
    pub writes: u64,
    /// Different keys in it, about.
    pub keys: f64,
    /// Of these, keys that were not seen before, about.
    pub new_keys: f64,
}

/// How operations come over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arrival {
    /// Operations a second over the whole time.
    pub mean_per_sec: f64,
    /// In the busiest slice.
    pub peak_per_sec: f64,
    /// Length of a slice, in seconds: whole steps of the trace's times.
    pub slice_secs: f64,
    /// The share of slices without any operation.
    pub idle_share: f64,
    /// Variance over mean of the operations in a slice: 1 is chance (Poisson), 0 a steady beat,
    /// more is bursts.
    pub dispersion: f64,
}

/// What a trace is like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// What was traced, by its own words.
    pub source: String,
    /// Records in it.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// False where it has no times but an order.
    pub timed: bool,
    /// Wall clock at its start, ns since 1970.
    pub started_ns: u64,
    /// From its start to its last operation.
    pub secs: f64,
    /// Threads, up to 64.
    pub lanes: usize,
    /// The operations of one key in so many were recorded. Counts below are of the recorded ones.
    pub sample: u32,
    /// Why the recorder lowered the share of keys to that, where it did.
    pub lowered: Option<Lowered>,
    /// `complete`, `cut` or `damaged`.
    pub ending: &'static str,
    /// Operations that were not recorded, where that is known.
    pub dropped: Option<u64>,
    /// By kind, those that occur.
    pub kinds: Vec<KindStats>,
    /// The share of operations that read; absent where it is not known, of statements whose texts
    /// were not kept.
    pub read_share: Option<f64>,
    /// The share of operations that write; absent as `read_share` is.
    pub write_share: Option<f64>,
    /// Of lookups and block accesses whose outcome is known, the share that found something.
    pub found_share: Option<f64>,
    /// Batches and multi-gets.
    pub batches: u64,
    /// Operations in one, on average.
    pub batch_mean: f64,
    /// Entries that scans read.
    pub scan_entries: Option<Sizes>,
    /// Keyspaces.
    pub keyspaces: usize,
    /// Different keys, about where more than [`Options::keys_max`].
    pub keys: f64,
    /// Lengths of keys, by operation.
    pub key_bytes: Option<Sizes>,
    /// Lengths of values, operands and blocks, by operation.
    pub value_bytes: Option<Sizes>,
    /// How unevenly keys are used.
    pub skew: Option<Skew>,
    /// How soon keys are used again, and what a cache would make of that.
    pub reuse: Option<Reuse>,
    /// Over time.
    pub windows: Vec<Window>,
    /// Absent where the trace has no times.
    pub arrival: Option<Arrival>,
}

/// Takes the statistics of a trace. Cost: some 200 ns an operation.
///
/// Errors: records that are damaged behind a sound checksum.
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
    /// Keys, and with them the texts of statements, are kept.
    raw: bool,
    /// Statements whose texts are not there.
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
    /// Nanoseconds or operations of the whole trace, at least 1.
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
        // Times of a coarse clock would leave some slices empty and others full: each has whole
        // steps of it.
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
            self.scan_entries.add(entries);
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
        self.key_bytes.add(u64::from(event.key_bytes));
        if let Some(bytes) = value_bytes {
            self.value_bytes.add(bytes);
        }
        let does = self.does(event);
        self.reads += u64::from(does == Some(Does::Read));
        self.writes += u64::from(does == Some(Does::Write));
        self.unknown += u64::from(does.is_none());
        self.place(event, does == Some(Does::Write));
        self.records += 1;
    }

    /// `None` for a statement whose text was not kept.
    fn does(&self, event: &Event<'_>) -> Option<Does> {
        match event.kind() {
            Kind::Statement if !self.raw => None,
            Kind::Statement => Some(statement::of(event.key)),
            kind if kind.is_write() => Some(Does::Write),
            kind if kind.is_read() => Some(Does::Read),
            _ => Some(Does::Neither),
        }
    }

    /// Puts the event where it belongs in time.
    fn place(&mut self, event: &Event<'_>, writes: bool) {
        let at = if self.timed { event.time_ns } else { self.records };
        let count = self.windows.len() as u128;
        let index = (u128::from(at) * count / (u128::from(self.length) + 1)).min(count - 1) as usize;
        // A range is no use of a key, and a statement's text is.
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
            scan_entries: self.scan_entries.sizes(),
            keyspaces: self.keyspaces.len(),
            keys: self.tracker.keys(),
            key_bytes: self.key_bytes.sizes(),
            value_bytes: self.value_bytes.sizes(),
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
        // A slice that the trace does not fill says too little.
        peak_per_sec: busiest.max(mean_per_sec),
        slice_secs,
        idle_share: slices.iter().filter(|count| **count == 0).count() as f64 / slices.len() as f64,
        dispersion: variance / mean,
    })
}

#[cfg(test)]
mod tests;
