//! Flushes and compactions: which ones may start, the resources they need, and how they change the
//! tree.

use serde::Serialize;

use super::Simulation;
use crate::compact::{self, Job, JobKind, Reason};
use crate::merge::{Pieces, union};
use crate::options::{CompactionStyle, Engine};
use crate::output::Output;
use crate::resource::{Flow, Work};
use crate::tree::{Entry, File, Input};

/// A running job.
#[derive(Debug, Clone)]
pub struct Active {
    pub(super) id: u64,
    pub(super) task: Task,
    pub(super) outputs: Vec<File>,
    /// The share of work left: 1 at the start, 0 at the end.
    pub(super) left: f64,
    pub(super) flow: Flow,
    pub(super) read_bytes: f64,
    pub(super) write_bytes: f64,
    started_secs: f64,
    dropped: f64,
}

/// A flush that has written its files but is not installed yet.
#[derive(Debug, Clone)]
pub(super) struct Flushed {
    /// The number of its job; flushes of older memtables have smaller numbers.
    job: u64,
    files: Vec<File>,
    memtables: usize,
}

/// Returns the syncs of a job that writes `files` files one after another: one for each file, one
/// for the directory and one for the manifest.
fn syncs(files: usize) -> f64 {
    files as f64 + 2.0
}

/// The work of a running job.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// A flush of the `memtables` oldest memtables.
    Flush { user_bytes: f64, memtables: usize },
    /// A merge.
    Compaction(Job),
    /// The removal of the inputs of a merge. In both engines, the thread that has finished the
    /// merge removes them before it takes other work. The tree has already changed then.
    Removal,
}

/// A running job, for display on the web page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobView {
    /// Its number.
    pub id: u64,
    /// The input level, absent for a flush.
    pub from: Option<usize>,
    /// The output level.
    pub to: usize,
    /// The reason for a compaction, absent for a flush.
    pub reason: Option<Reason>,
    /// A description.
    pub text: String,
    /// The share of the work that is done.
    pub done: f64,
    /// Total bytes to read.
    pub read_bytes: f64,
    /// Total bytes to write.
    pub write_bytes: f64,
    /// Whether the job needs more processor time than disk time.
    pub is_cpu_bound: bool,
    /// Numbers of its input files.
    pub inputs: Vec<u64>,
}

impl Active {
    /// Returns the job for display, or `None` for a job that does not change the tree.
    pub(super) fn view(&self) -> Option<JobView> {
        let (from, to, reason, inputs) = match &self.task {
            Task::Flush { .. } => (None, 0, None, Vec::new()),
            Task::Compaction(job) => {
                let inputs = job.inputs.iter().flat_map(|input| input.files.iter().copied()).collect();
                (job.inputs.first().map(|input| input.level), job.output_level, Some(job.reason), inputs)
            }
            Task::Removal => return None,
        };
        let text = match (from, reason) {
            (Some(from), Some(reason)) => format!("level {from} to {to}: {reason}"),
            _ => "flush".to_owned(),
        };
        Some(JobView {
            id: self.id,
            from,
            to,
            reason,
            text,
            done: 1.0 - self.left,
            read_bytes: self.read_bytes,
            write_bytes: self.write_bytes,
            is_cpu_bound: self.flow.cpu_secs > self.flow.io_secs,
            inputs,
        })
    }

    pub(super) fn is_flush(&self) -> bool {
        matches!(self.task, Task::Flush { .. })
    }
}

impl Simulation {
    /// Returns how many flushes and compactions may run now.
    fn job_limits(&self) -> (usize, usize) {
        let jobs = self.config.options.max_background_jobs;
        match self.config.options.engine {
            Engine::Rocksdb => {
                let flushes = (jobs / 4).max(1);
                let compactions = jobs.saturating_sub(flushes).max(1);
                debug_assert!(flushes >= 1 && compactions >= 1, "each kind of job can run");
                (flushes, if self.controller.is_under_pressure { compactions } else { 1 })
            }
            // One flush for each keyspace at a time; one thread is reserved for it.
            Engine::CairnKv => (1, jobs.max(2) - 1),
        }
    }

    /// Starts all jobs that are due, within the limits.
    pub(super) fn start_jobs(&mut self) {
        let (flushes, compactions) = self.job_limits();
        while self.active.iter().filter(|job| job.is_flush()).count() < flushes && self.start_flush() {}
        // BOUND: each round starts a job, or changes the tree by a move or a drop, of which only
        // finitely many can follow each other.
        while self.active.len() - self.active.iter().filter(|job| job.is_flush()).count() < compactions {
            let Some(job) = compact::pick(&self.tree, &self.config.options, self.now) else { break };
            if job.kind == JobKind::Merge {
                self.start_compaction(job);
            } else {
                self.apply_manifest_change(job);
                self.update_write_controller();
            }
        }
    }

    /// Starts a flush. Both engines flush all waiting memtables into one file.
    fn start_flush(&mut self) -> bool {
        let waiting = self.sealed.iter().filter(|sealed| !sealed.is_flushing).count();
        let least = match self.config.options.engine {
            Engine::Rocksdb => self.config.options.min_write_buffer_number_to_merge,
            Engine::CairnKv => 1,
        };
        if waiting < least {
            return false;
        }
        let mut lists: Vec<Vec<Entry>> = Vec::new();
        let mut writes = 0.0;
        for sealed in self.sealed.iter_mut().filter(|sealed| !sealed.is_flushing) {
            sealed.is_flushing = true;
            writes += sealed.writes;
            // Newest first.
            lists.insert(0, std::mem::take(&mut sealed.entries));
        }
        debug_assert_eq!(lists.len(), waiting, "a flush takes all memtables that wait");
        let entries = match lists.as_mut_slice() {
            [only] => std::mem::take(only),
            several => {
                let runs: Vec<Pieces<'_>> = several.iter().map(|list| vec![list.as_slice()]).collect();
                union(&runs)
            }
        };
        let cpu = &self.config.hardware.cpu;
        let user_bytes = writes * self.config.write_bytes();
        let mut cpu_secs = writes * cpu.flush_entry_us * 1e-6 + user_bytes * cpu.flush_byte_ns * 1e-9;
        let (outputs, compressed) = self.flush_files(entries);
        let write_bytes: f64 = outputs.iter().map(|file| file.bytes as f64).sum();
        if let Some(speed) = compressed {
            cpu_secs += user_bytes / (speed * 1e6);
        }
        // Cairn does not limit flushes, because writers wait for them.
        let limited_bytes = match self.config.options.engine {
            Engine::Rocksdb => self.limited(write_bytes),
            Engine::CairnKv => 0.0,
        };
        let syncs = syncs(outputs.len());
        let work = Work { write_bytes, limited_bytes, cpu_secs, threads: 1.0, syncs, ..Work::default() };
        let task = Task::Flush { user_bytes, memtables: waiting };
        self.activate(task, outputs, &work, 0.0);
        true
    }

    /// Returns the file of a flush, and the speed of the codec if there is one.
    pub(super) fn flush_files(&mut self, entries: Vec<Entry>) -> (Vec<File>, Option<f64>) {
        let age = (self.now, self.now);
        let (files, codec) = self.builder.files(&self.config, &self.tree, 0, entries, u64::MAX, false, age);
        let speed = self.config.hardware.codec(codec).compress_mb_per_sec;
        (files, speed.is_finite().then_some(speed))
    }

    fn start_compaction(&mut self, job: Job) {
        debug_assert!(
            job.inputs.iter().flat_map(|input| self.tree.files_of(input)).all(|file| !file.compacting),
            "found an input that another job reads"
        );
        self.expire();
        let output = self.builder.merge(&self.config, &self.tree, &job);
        let work = self.compaction_work(&job, &output);
        self.tree.mark(&job.inputs, true);
        self.tree.begin(job.running(self.next_job));
        output.expired.iter().for_each(|entry| self.live.expired(*entry));
        let dropped = output.dropped as f64 * self.sample as f64;
        self.activate(Task::Compaction(job), output.files, &work, dropped);
    }

    fn compaction_work(&self, job: &Job, output: &Output) -> Work {
        let (hardware, options) = (&self.config.hardware, &self.config.options);
        let cpu = &hardware.cpu;
        let codec = hardware.codec(output.compression);
        let dropped = output.dropped as f64 * self.sample as f64 / output.entries_in.max(1.0);
        let weight = 1.0 - dropped * (1.0 - cpu.compact_dropped);
        let mut cpu_secs = weight
            * (output.entries_in * cpu.compact_entry_us * 1e-6
                + output.raw_bytes * cpu.compact_byte_ns * 1e-9);
        cpu_secs += output.compressed_bytes / (codec.compress_mb_per_sec * 1e6);
        // All compressed inputs are assumed to use the codec of the outputs.
        cpu_secs += output.decompressed_bytes / (codec.decompress_mb_per_sec.min(1e6) * 1e6);
        let from_zero = job.inputs.first().is_some_and(|input| input.level == 0);
        let most = match options.engine {
            Engine::CairnKv => job.parts,
            Engine::Rocksdb
                if (from_zero && job.output_level > 0)
                    || options.compaction_style == CompactionStyle::Universal =>
            {
                output.files.len().max(1)
            }
            Engine::Rocksdb => 1,
        };
        let parts = options.max_subcompactions.min(most);
        debug_assert!(parts >= 1, "a job has at least one thread");
        debug_assert!((0.0..=1.0).contains(&dropped), "found the share {dropped} of dropped entries");
        let read_bytes = output.read_bytes as f64 * (1.0 - hardware.page_cache_hit);
        let write_bytes = output.write_bytes as f64;
        let limited_bytes = self.limited(write_bytes);
        let threads = parts as f64;
        let syncs = syncs(output.files.len().div_ceil(parts));
        Work { read_bytes, write_bytes, limited_bytes, cpu_secs, threads, syncs, ..Work::default() }
    }

    /// Returns how many of these bytes the rate limiter counts.
    fn limited(&self, bytes: f64) -> f64 {
        if self.config.options.rate_limiter_bytes_per_sec > 0 { bytes } else { 0.0 }
    }

    /// Starts the removal of a merge's inputs.
    fn start_removal(&mut self, files: usize) {
        let removals = files as f64;
        let work = Work { threads: 1.0, removals, ..Work::default() };
        if self.config.hardware.disk.remove_latency_us > 0.0 {
            self.activate(Task::Removal, Vec::new(), &work, 0.0);
        }
    }

    fn activate(&mut self, task: Task, outputs: Vec<File>, work: &Work, dropped: f64) {
        let flow = self.capacity.flow(work);
        let read_bytes = match &task {
            Task::Flush { .. } | Task::Removal => 0.0,
            Task::Compaction(job) => self.input_bytes(&job.inputs) as f64,
        };
        debug_assert!(
            flow.alone_secs > 0.0 && flow.alone_secs.is_finite(),
            "found a job of {} s",
            flow.alone_secs
        );
        debug_assert!(self.active.iter().all(|job| job.id < self.next_job), "found a job number in use");
        self.active.push(Active {
            id: self.next_job,
            task,
            outputs,
            left: 1.0,
            flow,
            read_bytes,
            write_bytes: work.write_bytes,
            started_secs: self.now,
            dropped,
        });
        self.next_job += 1;
    }

    fn input_bytes(&self, inputs: &[Input]) -> u64 {
        inputs.iter().flat_map(|input| self.tree.files_of(input)).map(|file| file.bytes).sum()
    }

    /// Advances all jobs by some seconds at their speeds.
    pub(super) fn run_jobs(&mut self, secs: f64) {
        for (at, job) in self.active.iter_mut().enumerate() {
            let done = (self.shares.speed(at) * secs / job.flow.alone_secs).min(job.left);
            debug_assert!(done > -1e-9, "found a job that runs back by {done}");
            job.left -= done;
            debug_assert!((0.0..=1.0).contains(&job.left), "found {} of a job left", job.left);
            if job.left < 1e-9 {
                job.left = 0.0;
            }
            match job.task {
                Task::Flush { .. } => self.since.flush_bytes += done * job.write_bytes,
                Task::Compaction(_) => {
                    self.since.write_bytes += done * job.write_bytes;
                    self.since.read_bytes += done * job.read_bytes;
                }
                Task::Removal => {}
            }
        }
    }

    /// Ends finished jobs and installs their outputs in the tree.
    pub(super) fn end_jobs(&mut self) {
        let mut has_changed = false;
        while let Some(at) = self.active.iter().position(|job| job.left <= 0.0) {
            let job = self.active.remove(at);
            has_changed |= !matches!(job.task, Task::Removal);
            match job.task {
                Task::Flush { user_bytes, memtables } => {
                    let secs = (self.now - job.started_secs).max(1e-9);
                    let speed = user_bytes / secs;
                    let before = self.flush_speed;
                    self.flush_speed = if before.is_finite() { (3.0 * before + speed) / 4.0 } else { speed };
                    self.flushed.push(Flushed { job: job.id, files: job.outputs, memtables });
                    self.install_flushed();
                }
                Task::Compaction(compaction) => {
                    let is_cpu_bound = job.flow.cpu_secs > job.flow.io_secs;
                    self.counters.cpu_bound_jobs += u64::from(is_cpu_bound);
                    self.counters.io_bound_jobs += u64::from(!is_cpu_bound);
                    self.counters.dropped_entries += job.dropped;
                    self.tree.end(job.id);
                    let files = compaction.inputs.iter().map(|input| input.files.len()).sum();
                    self.install_compaction(&compaction, job.outputs);
                    self.start_removal(files);
                }
                Task::Removal => {}
            }
        }
        // RocksDB adjusts the delayed rate at each new version of the tree, and takes an unchanged
        // debt as one that does not shrink. A finished removal frees a thread but makes no new
        // version.
        if has_changed {
            self.update_write_controller();
        }
        self.is_dirty = true;
    }

    /// Installs finished flushes in the order of their memtables, up to the first one that still
    /// runs. RocksDB does so whatever the order in which they end.
    fn install_flushed(&mut self) {
        self.flushed.sort_by_key(|flushed| flushed.job);
        let under_way = self.active.iter().filter(|job| job.is_flush()).map(|job| job.id).min();
        let ready = self.flushed.partition_point(|flushed| under_way.is_none_or(|job| flushed.job < job));
        for flushed in self.flushed.drain(..ready).collect::<Vec<_>>() {
            self.install_flush(flushed.files, flushed.memtables);
        }
    }

    /// Installs a flush: removes the oldest memtables and adds their file to level 0.
    pub(super) fn install_flush(&mut self, outputs: Vec<File>, memtables: usize) {
        debug_assert!(
            memtables <= self.sealed.len(),
            "found a flush of {memtables} memtables, more than wait"
        );
        self.sealed.drain(..memtables.min(self.sealed.len()));
        self.counters.flushes += 1;
        for file in outputs {
            self.counters.flush_bytes += file.bytes;
            // The sequence number of the newest write grows from flush to flush, so it can identify
            // the run.
            let run = file.seqs.1;
            debug_assert!(
                self.tree.level(0).runs.first().is_none_or(|newest| newest.id < run),
                "found a flush of writes up to {run}, which is older than level 0"
            );
            self.tree.add(0, run, vec![file]);
        }
        self.shares.forget_levels();
    }

    /// Installs a compaction: replaces its inputs by its outputs.
    pub(super) fn install_compaction(&mut self, job: &Job, outputs: Vec<File>) {
        let bytes: u64 = outputs.iter().map(|file| file.bytes).sum();
        self.advance_cursor(job);
        debug_assert!(job.kind == JobKind::Merge, "only merges have outputs");
        let removed = self.tree.replace(&job.inputs, job.output_level, job.output_run, outputs);
        self.counters.compact_read_bytes += removed.iter().map(|file| file.bytes).sum::<u64>();
        debug_assert_eq!(
            removed.len(),
            job.inputs.iter().map(|input| input.files.len()).sum::<usize>(),
            "a compaction removes all of its inputs"
        );
        self.counters.compact_write_bytes += bytes;
        self.counters.compactions += 1;
        *self.counters.reasons.entry(job.reason).or_default() += 1;
        if let Some(slot) = self.written_to.get_mut(job.output_level) {
            *slot += bytes;
        }
        self.shares.forget_levels();
    }

    /// Advances the round-robin cursor past files that went down because their level was too large.
    fn advance_cursor(&mut self, job: &Job) {
        if let (Reason::LevelSize, Some(input)) = (job.reason, job.inputs.first().filter(|it| it.level > 0)) {
            self.tree.pass(input);
        }
    }

    /// Applies a move or a drop, which changes only the manifest.
    pub(super) fn apply_manifest_change(&mut self, job: Job) {
        debug_assert!(job.kind != JobKind::Merge, "a merge takes time");
        self.advance_cursor(&job);
        let mut files = self.tree.remove(&job.inputs);
        *self.counters.reasons.entry(job.reason).or_default() += 1;
        if job.kind == JobKind::Move {
            self.counters.moves += 1;
            files.sort_by_key(|file| file.smallest);
            files.iter_mut().for_each(|file| file.compacting = false);
            self.tree.add(job.output_level, job.output_run, files);
        } else {
            self.counters.drops += 1;
            // Keys of dropped entries are dead unless they were written again.
            for entry in files.iter().flat_map(|file| file.entries.iter()) {
                if !self.has_entry_of(entry.id()) {
                    self.live.set(entry.id(), false);
                }
            }
        }
        self.shares.forget_levels();
    }

    /// Whether a file of the tree, a memtable that waits for its flush, or a flush that is not
    /// installed yet has an entry of this key.
    fn has_entry_of(&self, id: u32) -> bool {
        let has = |entries: &[Entry]| entries.binary_search_by_key(&id, |entry| entry.id()).is_ok();
        let of_flushes = self.active.iter().filter(|job| job.is_flush()).flat_map(|job| &job.outputs);
        let waiting = self.flushed.iter().flat_map(|flushed| &flushed.files);
        self.sealed.iter().any(|sealed| has(&sealed.entries))
            || self.tree.levels.iter().flat_map(|level| level.files()).any(|file| has(&file.entries))
            || of_flushes.chain(waiting).any(|file| has(&file.entries))
    }
}
