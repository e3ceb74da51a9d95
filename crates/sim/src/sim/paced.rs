//! Paced runs and preloads: flush, then compact until nothing is due, one job at a time and in zero
//! virtual time.

use cairn_workload::{SplitMixPermutation, split_mix};

use super::Simulation;
use crate::compact::{self, JobKind, Targets};
use crate::config::writes_per_flush;
use crate::options::{CompactionStyle, Engine};
use crate::results::Outcome;
use crate::tree::Entry;

/// Maximum number of compactions after one flush of a paced run: far more than any tree needs.
const JOBS_PER_FLUSH_MAX: usize = 1_000_000;

/// Returns the key order of a random preload. The lab fills real stores in the same order.
pub fn preload_order(keys: u64) -> SplitMixPermutation {
    SplitMixPermutation::new(keys, split_mix(0xf111))
}

/// The number of moments of a paced run at which the costs of lookups are computed.
const READ_MOMENTS: u64 = 16;

/// Whether the costs of lookups are computed between the writes `before` and `after` of `all`:
/// sixteen times a run, evenly spaced. The lab measures at the same moments.
pub fn is_read_moment(before: u64, after: u64, all: u64) -> bool {
    let moment = |writes: u64| writes.saturating_mul(READ_MOMENTS) / all.max(1);
    moment(after) > moment(before)
}

impl Simulation {
    /// Writes one memtable, flushes it and settles the tree.
    pub(super) fn step_paced(&mut self) {
        let before = self.moved_bytes();
        debug_assert!(self.counters.writes as u64 <= self.config.writes, "found more writes than asked for");
        let left = self.config.writes - self.counters.writes as u64;
        let writes = writes_per_flush(&self.config).min(left);
        self.drawn += writes as f64 / self.sample as f64;
        let count = self.drawn.floor();
        self.drawn -= count;
        let entries = self.draw(count as usize);
        self.counters.writes += writes as f64;
        let bytes = writes as f64 * self.config.write_bytes();
        self.counters.user_bytes += bytes;
        self.counters.wal_bytes += writes as f64 * super::flows::wal_bytes(&self.config);
        self.flush_and_settle(entries);
        self.note_levels(1.0);
        let after = self.counters.writes as u64;
        if is_read_moment(after - writes, after, self.config.writes) {
            self.update_read_costs();
        }
        let is_over = self.counters.writes as u64 >= self.config.writes;
        let every = (self.config.writes / self.config.points as u64).max(1) as f64;
        self.since.user_bytes += bytes;
        let moved = self.moved_bytes();
        self.since.flush_bytes += (moved.0 - before.0) as f64;
        self.since.write_bytes += (moved.1 - before.1) as f64;
        self.since.read_bytes += (moved.2 - before.2) as f64;
        if is_over || self.counters.writes >= self.next_point {
            self.next_point = self.counters.writes + every;
            self.add_point();
        }
        if is_over {
            self.end(Outcome::Done);
        }
    }

    /// Returns the bytes flushed so far, and those that merges have written and read.
    fn moved_bytes(&self) -> (u64, u64, u64) {
        let counters = &self.counters;
        (counters.flush_bytes, counters.compact_write_bytes, counters.compact_read_bytes)
    }

    fn flush_and_settle(&mut self, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        let (files, _) = self.flush_files(entries);
        self.install_flush(files, 0);
        self.settle();
    }

    /// Compacts until nothing is due.
    fn settle(&mut self) {
        for _ in 0..JOBS_PER_FLUSH_MAX {
            let Some(job) = compact::pick(&self.tree, &self.config.options, self.now) else { return };
            if job.kind != JobKind::Merge {
                self.apply_manifest_change(job);
                continue;
            }
            let output = self.builder.merge(&self.config, &self.tree, &job);
            self.counters.dropped_entries += output.dropped as f64 * self.sample as f64;
            self.install_compaction(&job, output.files);
        }
    }

    /// Writes all keys once through the tree.
    pub(super) fn fill_through_tree(&mut self, in_order: bool) {
        let ids = self.writes.keys().ids();
        let order = preload_order(ids);
        let batch = (writes_per_flush(&self.config) as f64 / self.sample as f64).max(1.0);
        let (mut from, mut due) = (0u64, 0.0);
        while from < ids {
            due += batch;
            let to = (due as u64).clamp(from + 1, ids);
            let id = |at: u64| if in_order { at as u32 } else { order.apply(at) as u32 };
            let mut entries: Vec<Entry> = (from..to).map(|at| Entry::new(id(at), at + 1, false)).collect();
            entries.sort_unstable();
            debug_assert_eq!(entries.len() as u64, to - from, "a preload writes each key once");
            entries.iter().for_each(|entry| self.live.wrote(*entry));
            self.last_seq = to;
            self.flush_and_settle(entries);
            from = to;
        }
        self.counters.writes = self.config.workload.keys as f64;
        self.counters.user_bytes = self.counters.writes * self.config.entry_bytes() as f64;
    }

    /// Puts all keys into the level where a full compaction would leave them.
    pub(super) fn fill_settled(&mut self) {
        let ids = self.writes.keys().ids();
        let entries: Vec<Entry> = (0..ids).map(|id| Entry::new(id as u32, 0, false)).collect();
        entries.iter().for_each(|entry| self.live.wrote(*entry));
        let options = &self.config.options;
        let last = options.num_levels - 1;
        let age = (self.now, self.now);
        if options.compaction_style == CompactionStyle::Fifo {
            return self.fill_fifo(entries);
        }
        let is_static = options.compaction_style == CompactionStyle::Leveled
            && options.engine == Engine::Rocksdb
            && !options.level_compaction_dynamic_level_bytes;
        let bytes = self.config.workload.keys.saturating_mul(self.config.entry_bytes());
        let targets = Targets::new(&self.tree, options);
        let fits = |level: &usize| targets.of(*level) as f64 >= bytes as f64 * 0.9;
        let level = if is_static { (1..last).find(fits).unwrap_or(last) } else { last };
        let mut sizes = vec![0; options.num_levels];
        if let Some(slot) = sizes.get_mut(last) {
            *slot = bytes;
        }
        let base = Targets::dynamic(&sizes, options).base;
        let target = options.target_file_size(level, base);
        let (files, _) = self.builder.files(&self.config, &self.tree, level, entries, target, true, age);
        self.tree.add(level, 0, files);
        self.shares.forget_levels();
    }

    /// FIFO has no last level, so the keys arrive as flushed files, in order.
    fn fill_fifo(&mut self, entries: Vec<Entry>) {
        let batch = (writes_per_flush(&self.config) / self.sample).max(1) as usize;
        for part in entries.chunks(batch) {
            let first = self.last_seq + 1;
            let written = part.iter().zip(first..).map(|(entry, seq)| Entry::new(entry.id(), seq, false));
            let written: Vec<Entry> = written.collect();
            written.iter().for_each(|entry| self.live.wrote(*entry));
            self.last_seq += part.len() as u64;
            self.flush_and_settle(written);
        }
    }
}
