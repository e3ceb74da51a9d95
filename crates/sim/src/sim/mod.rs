//! The simulation of a store, its writers and its background jobs on a virtual clock.
//!
//! ```text
//! step:   start due jobs -> share resources -> find the next event -> run all flows until then
//!         -> handle it
//! event:  a memtable is full, a job ends, the traffic changes, a point of the series is due,
//!         the run ends
//! ```

mod flows;
mod jobs;
mod live;
mod memtable;
mod paced;
mod report;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use crate::compact;
use crate::config::{Config, Mode, Preload};
use crate::error::Result;
use crate::keys::WriteStream;
use crate::options::{CompactionStyle, Engine};
use crate::output::Builder;
use crate::read::{ReadCosts, ReadModel};
use crate::resource::{Capacity, RESOURCES, Resource};
use crate::results::{Bottleneck, Counters, LevelResult, Outcome, Point, Results};
use crate::stall::{Cause, Controller, Signals, Stall};
use crate::traffic::TrafficClock;
use crate::tree::Tree;

use cairn_workload::histogram::Seconds;
pub use jobs::JobView;
use jobs::{Active, Flushed};
use live::Live;
use memtable::Sealed;
pub use paced::{is_read_moment, preload_order};

/// Maximum number of events of a run.
const EVENTS_MAX: u64 = 50_000_000;

/// How often the costs of lookups are recomputed in a run with reads; the points in between reuse
/// them.
const READ_LOOKS: usize = 24;

/// A simulated run.
#[derive(Debug)]
pub struct Simulation {
    config: Config,
    sample: u64,
    tree: Tree,
    builder: Builder,
    writes: WriteStream,
    live: Live,
    controller: Controller,
    capacity: Capacity,
    traffic: TrafficClock,
    now: f64,
    /// User bytes in the active memtable, and its capacity.
    filled: f64,
    memtable_bytes: f64,
    /// The fraction of a sampled write that is carried over to the next memtable.
    drawn: f64,
    sealed: VecDeque<Sealed>,
    active: Vec<Active>,
    /// Flushes that have written their files and wait for flushes of older memtables.
    flushed: Vec<Flushed>,
    next_job: u64,
    /// The sequence number of the last write of a sampled key.
    last_seq: u64,
    /// For expiry: `last_seq` at each seal of a memtable, and the time of the seal.
    births: VecDeque<(u64, f64)>,
    /// Mean speed of recent flushes, bytes a second.
    flush_speed: f64,
    /// Whether the tree or the memtables have changed since jobs were last picked.
    is_dirty: bool,
    /// Bytes that the traffic has demanded and writers have not delivered yet.
    backlog: f64,
    outcome: Outcome,
    events: u64,
    counters: Counters,
    preload: Counters,
    written_to: Vec<u64>,
    mean_levels: Vec<f64>,
    mean_weight: f64,
    stall_secs: BTreeMap<Cause, f64>,
    stopped_secs: f64,
    delayed_secs: f64,
    bottlenecks: BTreeMap<Bottleneck, f64>,
    used: [f64; RESOURCES],
    put: Seconds,
    reads: Option<ReadModel>,
    /// Costs of lookups at several moments of the run.
    looks: Vec<ReadCosts>,
    get: Seconds,
    scan: Seconds,
    /// The time since when writers are stopped, if they are.
    stopped_since: Option<f64>,
    series: Vec<Point>,
    since: SincePoint,
    /// The sums that went into the last point.
    of_last_point: SincePoint,
    next_point: f64,
    shares: flows::ResourceShares,
}

/// Sums since the last point of the series.
#[derive(Debug, Clone, Default)]
struct SincePoint {
    secs: f64,
    user_bytes: f64,
    flush_bytes: f64,
    write_bytes: f64,
    read_bytes: f64,
    stalled: f64,
    used: [f64; RESOURCES],
    bottlenecks: BTreeMap<Bottleneck, f64>,
    put: Seconds,
}

impl SincePoint {
    /// Adds later sums.
    fn add(&mut self, later: &SincePoint) {
        self.secs += later.secs;
        self.user_bytes += later.user_bytes;
        self.flush_bytes += later.flush_bytes;
        self.write_bytes += later.write_bytes;
        self.read_bytes += later.read_bytes;
        self.stalled += later.stalled;
        self.used.iter_mut().zip(later.used).for_each(|(sum, used)| *sum += used);
        for (bottleneck, secs) in &later.bottlenecks {
            *self.bottlenecks.entry(*bottleneck).or_default() += secs;
        }
        self.put.merge(&later.put);
    }
}

impl Simulation {
    /// Creates a run that has not started; the preload is done.
    ///
    /// Errors: a setting that is out of range. Cost: that of the preload, which is a paced run of
    /// its own when it goes through the tree.
    pub fn new(config: &Config) -> Result<Simulation> {
        config.check()?;
        let sample = config.sampling();
        let workload = &config.workload;
        let writes =
            WriteStream::new(&workload.distribution, workload.keys, sample, workload.deletes, config.seed);
        let ids = writes.keys().ids();
        assert!((1..=crate::keys::IDS_MAX).contains(&ids), "found {ids} ids of a checked configuration");
        let mut simulation = Simulation {
            sample,
            tree: Tree::new(config.options.num_levels),
            builder: Builder::new(sample),
            writes,
            live: Live::new(ids, memtable::expires(config)),
            controller: Controller::new(&config.options),
            capacity: Capacity::new(&config.hardware, config.options.rate_limiter_bytes_per_sec),
            traffic: TrafficClock::new(&config.workload.traffic, config.seed),
            now: 0.0,
            filled: 0.0,
            memtable_bytes: crate::config::memtable_user_bytes(config),
            drawn: 0.0,
            sealed: VecDeque::new(),
            active: Vec::new(),
            flushed: Vec::new(),
            next_job: 1,
            last_seq: 0,
            births: VecDeque::new(),
            flush_speed: f64::INFINITY,
            is_dirty: true,
            backlog: 0.0,
            outcome: Outcome::Running,
            events: 0,
            counters: Counters::default(),
            preload: Counters::default(),
            written_to: vec![0; config.options.num_levels],
            mean_levels: vec![0.0; config.options.num_levels],
            mean_weight: 0.0,
            stall_secs: BTreeMap::new(),
            stopped_secs: 0.0,
            delayed_secs: 0.0,
            bottlenecks: BTreeMap::new(),
            used: [0.0; RESOURCES],
            put: Seconds::default(),
            reads: None,
            looks: Vec::new(),
            get: Seconds::default(),
            scan: Seconds::default(),
            stopped_since: None,
            series: Vec::new(),
            since: SincePoint::default(),
            of_last_point: SincePoint::default(),
            next_point: 0.0,
            shares: flows::ResourceShares::default(),
            config: config.clone(),
        };
        simulation.fill();
        Ok(simulation)
    }

    /// Brings the store into its state before the run.
    fn fill(&mut self) {
        match self.config.preload {
            Preload::None => {}
            Preload::Settled => self.fill_settled(),
            Preload::Random => self.fill_through_tree(false),
            Preload::Sequential => self.fill_through_tree(true),
        }
        self.preload = std::mem::take(&mut self.counters);
        self.written_to.iter_mut().for_each(|bytes| *bytes = 0);
        self.mean_levels.iter_mut().for_each(|bytes| *bytes = 0.0);
        self.mean_weight = 0.0;
        self.is_dirty = true;
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the current tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the virtual time in seconds.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Returns whether the run is over, and how it ended.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns whether writers are stalled now.
    pub fn stall(&self) -> Stall {
        self.controller.stall
    }

    /// Returns the points so far.
    pub fn series(&self) -> &[Point] {
        &self.series
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the totals so far, without the preload.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the running jobs.
    pub fn jobs(&self) -> Vec<JobView> {
        self.active.iter().filter_map(Active::view).collect()
    }

    /// Returns the filled share of the active memtable, and the number of memtables that wait.
    pub fn memtables(&self) -> (f64, usize) {
        (self.filled / self.memtable_bytes, self.sealed_count())
    }

    /// Runs to the end and returns the results.
    pub fn run(config: &Config) -> Result<Results> {
        let mut simulation = Simulation::new(config)?;
        while simulation.step() {}
        Ok(simulation.results())
    }

    /// Advances to the next event. Returns false when the run is over.
    pub fn step(&mut self) -> bool {
        if self.outcome != Outcome::Running {
            return false;
        }
        self.events += 1;
        if self.events > EVENTS_MAX {
            self.end(Outcome::TooManyEvents);
            return false;
        }
        match self.config.mode {
            Mode::Paced => self.step_paced(),
            Mode::Timed => self.step_timed(),
        }
        self.outcome == Outcome::Running
    }

    fn step_timed(&mut self) {
        if self.is_dirty {
            self.is_dirty = false;
            self.start_jobs();
        }
        let user_rate = self.share_resources();
        let (secs, event) = self.next_event(user_rate);
        self.advance(secs, user_rate);
        match event {
            Event::Job => self.end_jobs(),
            Event::MemtableFull => {
                self.seal();
                self.update_write_controller();
            }
            Event::Traffic => self.traffic.advance(),
            Event::BacklogGone => self.backlog = 0.0,
            Event::Point => self.add_point(),
            Event::End => self.end_timed(Outcome::Done),
            Event::OutOfMemory => self.end_timed(Outcome::OutOfMemory),
            Event::Never => self.end_timed(Outcome::Stuck),
        }
    }

    fn end_timed(&mut self, outcome: Outcome) {
        self.end_stop(self.now);
        self.add_last_point();
        self.end(outcome);
    }

    /// Returns the seconds until the next event, and the event.
    fn next_event(&self, user_rate: f64) -> (f64, Event) {
        let mut best = (self.config.duration_secs - self.now, Event::End);
        let mut look = |secs: f64, event: Event| {
            if secs < best.0 {
                best = (secs.max(0.0), event);
            }
        };
        if let Some(secs) = self.shares.first_job_end(&self.active) {
            look(secs, Event::Job);
        }
        if user_rate > 0.0 {
            look((self.memtable_bytes - self.filled) / user_rate, Event::MemtableFull);
            if self.config.writes > 0 {
                let left = self.config.writes as f64 - self.counters.writes;
                look(left * self.config.write_bytes() / user_rate, Event::End);
            }
        }
        look(self.traffic.until - self.now, Event::Traffic);
        look(self.next_point - self.now, Event::Point);
        let behind = self.traffic.bytes_per_sec - user_rate;
        if behind.is_finite() && behind > 1e-6 {
            let room = self.config.backlog_bytes_max as f64 - self.backlog;
            look(room / behind, Event::OutOfMemory);
        } else if behind < -1e-6 && self.backlog > 0.0 {
            look(self.backlog / -behind, Event::BacklogGone);
        }
        // Writers are stopped forever when nothing runs and nothing can start.
        let is_stuck = self.controller.stall.is_stopped() && self.active.is_empty();
        if is_stuck && self.traffic.bytes_per_sec > 0.0 && self.sealed.is_empty() {
            return (0.0, Event::Never);
        }
        best
    }

    /// Lets all flows run for some seconds.
    fn advance(&mut self, secs: f64, user_rate: f64) {
        // The end may be an ulp behind the clock.
        assert!(secs > -1e-6 && secs.is_finite(), "found an event {secs} s ahead: time never runs back");
        debug_assert!(
            user_rate >= 0.0 && user_rate.is_finite(),
            "found writers at {user_rate} bytes a second"
        );
        self.now += secs;
        let bytes = user_rate * secs;
        self.filled += bytes;
        self.counters.user_bytes += bytes;
        let writes = bytes / self.config.write_bytes();
        self.counters.writes += writes;
        self.counters.wal_bytes += writes * flows::wal_bytes(&self.config);
        let behind = self.traffic.bytes_per_sec - user_rate;
        if behind.is_finite() {
            self.backlog = (self.backlog + behind * secs).max(0.0);
        }
        self.note_puts(secs, writes);
        self.note_time(secs, bytes);
        self.run_jobs(secs);
        debug_assert!(
            self.filled <= self.memtable_bytes * (1.0 + 1e-6) + 1.0,
            "found {} bytes in a memtable of {}",
            self.filled,
            self.memtable_bytes
        );
    }

    /// Adds an interval to the sums over time.
    fn note_time(&mut self, secs: f64, bytes: f64) {
        let bottleneck = self.shares.bottleneck;
        *self.bottlenecks.entry(bottleneck).or_default() += secs;
        *self.since.bottlenecks.entry(bottleneck).or_default() += secs;
        if let Some(cause) = self.controller.stall.cause() {
            // A limit that no writer reaches is not a stall.
            let is_stopped = self.controller.stall.is_stopped();
            let waited = if is_stopped { secs } else { secs * self.shares.asleep };
            if waited > 0.0 && (self.traffic.bytes_per_sec > 0.0 || self.backlog > 0.0) {
                *self.stall_secs.entry(cause).or_default() += waited;
                self.since.stalled += waited;
                *(if is_stopped { &mut self.stopped_secs } else { &mut self.delayed_secs }) += waited;
            }
        }
        for (at, used) in self.shares.used.iter().enumerate() {
            self.used[at] += used * secs;
            self.since.used[at] += used * secs;
        }
        self.since.secs += secs;
        self.since.user_bytes += bytes;
        self.note_levels(secs);
    }

    fn note_levels(&mut self, weight: f64) {
        for (sum, level) in self.mean_levels.iter_mut().zip(self.shares.level_bytes(&self.tree)) {
            *sum += *level as f64 * weight;
        }
        self.mean_weight += weight;
    }

    /// Records the latencies of an interval's writes.
    fn note_puts(&mut self, secs: f64, writes: f64) {
        if self.controller.stall.is_stopped() {
            self.stopped_since.get_or_insert(self.now - secs);
            return;
        }
        self.end_stop(self.now - secs);
        let plain = self.shares.put_secs;
        // `slept` is the total sleep of delayed writers. One sleep covers all that may be written
        // in the shortest sleep, or a single write that takes longer.
        let slept = secs * self.shares.asleep * self.config.hardware.cpu.writers;
        let sleepers = (slept / self.shortest_sleep_secs()).min(writes);
        self.note_put(plain, writes - sleepers);
        if sleepers > 0.0 {
            self.note_put(plain + slept / sleepers, sleepers);
        }
    }

    /// Ends a stop, because writers go on or the run is over. A write that was in progress when the
    /// stop began has waited until now.
    fn end_stop(&mut self, now: f64) {
        if let Some(since) = self.stopped_since.take() {
            debug_assert!(now >= since - 1e-6, "found a stop from {since} to {now}");
            self.note_put(now - since, self.config.hardware.cpu.writers);
        }
    }

    /// Records writes of this latency.
    fn note_put(&mut self, secs: f64, writes: f64) {
        if writes <= 0.0 || !secs.is_finite() {
            return;
        }
        self.put.add(secs, writes);
        self.since.put.add(secs, writes);
    }

    /// Returns the runs of level 0 as the write controller counts them. In a universal tree,
    /// RocksDB's counts each deeper level as one more.
    fn level_zero_runs(&self) -> usize {
        match (self.config.options.engine, self.config.options.compaction_style) {
            (Engine::Rocksdb, CompactionStyle::Universal) => self.tree.run_count(),
            _ => self.tree.level(0).runs.len(),
        }
    }

    /// Updates the write controller.
    fn update_write_controller(&mut self) {
        let last = self.tree.last_used();
        let signals = Signals {
            sealed: self.sealed_count(),
            level_zero: self.level_zero_runs(),
            debt_bytes: compact::debt_bytes(&self.tree, &self.config.options),
            last_level_bytes: if last > 0 { self.tree.level(last).bytes() } else { 0 },
            flush_speed: self.flush_speed,
            is_settled: false,
        };
        // FIFO keeps all files in level 0, where they do not stall writers.
        let is_fifo = self.config.options.compaction_style == CompactionStyle::Fifo;
        let signals = if is_fifo { Signals { level_zero: 0, ..signals } } else { signals };
        let options = &self.config.options;
        self.controller.update(options, signals);
        // Picking a job takes as long as everything else together. So it is done only for Cairn,
        // and only when writers are stopped; RocksDB's controller does not depend on it.
        let asks = options.engine == Engine::CairnKv && self.controller.stall.is_stopped();
        if asks && self.tree.running.is_empty() && compact::pick(&self.tree, options, self.now).is_none() {
            self.controller.update(options, Signals { is_settled: true, ..signals });
        }
        self.is_dirty = true;
    }

    fn end(&mut self, outcome: Outcome) {
        debug_assert!(outcome != Outcome::Running, "a run ends with an outcome");
        debug_assert!(self.outcome == Outcome::Running, "found a run that ends twice, now as {outcome:?}");
        self.outcome = outcome;
        self.update_read_costs();
    }
}

/// The next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Job,
    MemtableFull,
    Traffic,
    BacklogGone,
    Point,
    End,
    OutOfMemory,
    /// No event is possible any more.
    Never,
}
