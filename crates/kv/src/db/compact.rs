//! Compactions: asks the strategy for jobs and runs them.

use std::collections::HashSet;

use cairn_lsm_policy::Strategy;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, Mutex, lock, read};
use cairn_vfs::thread;
use cairn_vfs::{Bug, ensure};

use crate::Result;
use crate::compaction::strategy::{
    JobKind, LevelInfo, Manual, ManualStep, RunInfo, RunningJob, State, TableInfo,
};
use crate::compaction::stream::{Rules, Stream};
use crate::cursor::Cursor;
use crate::db::background::{PauseGuard, catch_panic};
use crate::db::controller::Pressure;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::level_cursor::LevelCursor;
use crate::db::output::{Cut, Output, Written, is_garbage, keyspace_table_options};
use crate::db::running_jobs::{Claimed, RunningJobs};
use crate::db::view::View;
use crate::events::{Event, StallCause};
use crate::file::{FileNumber, TableMeta};
use crate::iter::merge::MergeCursor;
use crate::iter::visible::Bounds;
use crate::range_del::RangeTombstones;
use crate::version::{NewTable, OldTable, Run, TableFile, Version, VersionEdit};

#[cfg(test)]
mod tests;

impl Inner {
    /// Returns the state of a keyspace as the strategy sees it.
    pub(crate) fn strategy_state<'a>(
        &self,
        keyspace: &KeyspaceState,
        version: &'a Version,
        running: &'a RunningJobs,
    ) -> State<'a> {
        let garbage = version.blobs().iter().filter(|blob| is_garbage(blob, &keyspace.options));
        let collected: HashSet<FileNumber> = garbage.map(|blob| blob.file.meta.number).collect();
        let is_compacting = |number| running.jobs.iter().any(|job| job.tables.contains(&number));
        let table = |file: &'a Arc<TableFile>| {
            let meta = &file.meta;
            TableInfo {
                number: meta.number,
                bytes: meta.bytes,
                smallest: &meta.smallest,
                largest: &meta.largest,
                entries: meta.entries,
                tombstones: meta.tombstones,
                seqnos: meta.seqnos,
                oldest_secs: meta.oldest_secs,
                newest_secs: meta.newest_secs,
                expires_secs: meta.expires_secs,
                compacting: is_compacting(meta.number),
                marked: meta.blobs.iter().any(|(number, _)| collected.contains(number)),
            }
        };
        let run =
            |run: &'a Arc<Run>| RunInfo { id: run.id(), tables: run.tables().iter().map(table).collect() };
        let levels = version.levels().iter();
        let state = State {
            levels: levels.map(|level| LevelInfo { runs: level.runs().iter().map(run).collect() }).collect(),
            running: running
                .jobs
                .iter()
                .map(|job| RunningJob {
                    output_level: job.output_level,
                    smallest: &job.smallest,
                    largest: &job.largest,
                })
                .collect(),
            now_secs: self.clock.wall().as_secs(),
            oldest_snapshot: self.snapshots.list().first().copied(),
            idle: self.is_idle(),
        };
        debug_assert_eq!(state.broken_invariant(), None, "of the tables of keyspace {:?}", keyspace.name);
        state
    }

    /// Asks the strategy for a job and marks its tables as being compacted.
    pub(crate) fn claim_compaction(&self, keyspace: &KeyspaceState) -> Option<Claimed> {
        if keyspace.abandoned.is_waiting() {
            return None;
        }
        let mut running = lock(&keyspace.running);
        let version = Arc::clone(&keyspace.view.load().version);
        let job = keyspace.strategy.pick(&self.strategy_state(keyspace, &version, &running))?;
        Some(running.claim(job, version))
    }

    /// Returns true if the strategy has a job that could start now.
    pub(crate) fn is_compaction_due(&self, keyspace: &KeyspaceState) -> bool {
        if keyspace.abandoned.is_waiting() {
            return false;
        }
        let running = lock(&keyspace.running);
        let view = keyspace.view.load();
        keyspace.strategy.pick(&self.strategy_state(keyspace, &view.version, &running)).is_some()
    }

    /// Returns the number of bytes that compactions still have to write, as the strategy estimates.
    pub(crate) fn pending_compaction_bytes(&self, keyspace: &KeyspaceState, view: &View) -> u64 {
        let running = lock(&keyspace.running);
        keyspace.strategy.scores(&self.strategy_state(keyspace, &view.version, &running)).debt_bytes
    }

    /// Returns the write pressure from pending compactions.
    pub(crate) fn compaction_pressure(&self, keyspace: &KeyspaceState, view: &View) -> [Pressure; 2] {
        let options = &keyspace.options;
        let is_merged = keyspace.strategy.merges();
        let runs = view.version.levels().first().filter(|_| is_merged).map_or(0, |level| level.runs().len());
        let debt = self.pending_compaction_bytes(keyspace, view);
        let (slow, stop) = options.level_zero_limits;
        let (soft, hard) = options.pending_compaction_limits;
        let pressures = [
            Pressure::between(StallCause::LevelZero, runs as f64, slow as f64, stop as f64),
            Pressure::between(StallCause::PendingCompaction, debt as f64, soft as f64, hard as f64),
        ];
        let is_coming = || !lock(&keyspace.running).jobs.is_empty() || self.is_compaction_due(keyspace);
        if pressures.iter().any(Pressure::stops) && !is_coming() {
            // The limits are below the point at which the strategy starts to compact, so nothing
            // would ever lift the stop.
            return pressures.map(Pressure::without_stop);
        }
        pressures
    }

    /// Runs a claimed job, then unmarks its tables.
    pub(crate) fn compact(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>, claimed: Claimed) -> Result<()> {
        let start = self.clock.now();
        let running = RunningGuard { running: &keyspace.running, id: claimed.id };
        let result = self.run_job(keyspace, &claimed);
        drop(running);
        let outputs = result?;
        let job = &claimed.job;
        let tables_bytes: u64 = outputs.tables.iter().map(|meta| meta.bytes).sum();
        let written = tables_bytes + outputs.blobs.iter().map(|meta| meta.bytes).sum::<u64>();
        if job.kind == JobKind::Merge {
            keyspace.abandoned.succeeded();
            self.counters.compactions.fetch_add(1, Relaxed);
            self.counters.compaction_read_bytes.fetch_add(job.input_bytes, Relaxed);
            self.counters.compaction_write_bytes.fetch_add(written, Relaxed);
        } else {
            self.counters.trivial_moves.fetch_add(1, Relaxed);
        }
        let took = self.clock.now().saturating_sub(start);
        self.notify(|| Event::Compacted {
            keyspace: keyspace.name.clone(),
            reason: job.reason.to_string(),
            level: job.output_level,
            input: (job.inputs.iter().map(|input| input.tables.len()).sum(), job.input_bytes),
            output: (outputs.tables.len(), written),
            took,
        });
        Ok(())
    }

    /// Runs a job and installs its output, which it returns.
    fn run_job(&self, keyspace: &KeyspaceState, claimed: &Claimed) -> Result<Written> {
        let job = &claimed.job;
        let inputs = claimed.inputs()?;
        let input_bytes: u64 =
            inputs.iter().flat_map(|input| &input.tables).map(|file| file.meta.bytes).sum();
        ensure!(
            input_bytes == job.input_bytes,
            "a job reads {input_bytes} bytes, but was chosen for {}",
            job.input_bytes
        );
        let mut outputs = match job.kind {
            JobKind::Merge => self.merge_tables(keyspace, claimed, &inputs)?,
            JobKind::Move | JobKind::Drop => Written::default(),
        };
        check_outputs(&outputs, &inputs)?;
        if job.kind == JobKind::Drop {
            for file in inputs.iter().flat_map(|input| &input.tables) {
                outputs.add_garbage(file.meta.blobs.iter().copied().collect());
            }
        }
        // In a store written by an earlier version, an empty value may have outlived its blob file.
        outputs.garbage.retain(|&number, bytes| *bytes > 0 || claimed.version.blob(number).is_some());
        let mut edit = VersionEdit::default();
        let change = edit.keyspace(keyspace.id);
        for input in &job.inputs {
            change.removed.extend(input.tables.iter().map(|&number| OldTable { level: input.level, number }));
        }
        let place = |meta: TableMeta| NewTable { level: job.output_level, run: job.output_run, meta };
        if job.kind == JobKind::Move {
            let tables = inputs.iter().flat_map(|input| &input.tables);
            change.added.extend(tables.map(|file| place(file.meta.clone())));
        }
        change.added.extend(outputs.tables.iter().cloned().map(place));
        let (removed, added) = (change.removed.len(), change.added.len());
        ensure!(removed > 0, "a job that removes nothing would be chosen again and again");
        ensure!(job.kind != JobKind::Move || added == removed, "a move of {removed} tables adds {added}");
        ensure!(job.kind != JobKind::Drop || added == 0, "a job that drops {removed} tables adds {added}");
        outputs.note_blobs(change);
        if outputs.garbage.is_empty() {
            self.install(keyspace, edit, &[])?;
        } else {
            self.install_garbage(keyspace, edit)?;
        }
        Ok(outputs)
    }

    /// Merges the inputs, in parallel parts if the strategy splits the job.
    fn merge_tables(
        &self,
        keyspace: &KeyspaceState,
        claimed: &Claimed,
        inputs: &[JobInput],
    ) -> Result<Written> {
        let job = &claimed.job;
        debug_assert_eq!(job.kind, JobKind::Merge, "only a merge reads its inputs");
        let mut sets = Vec::new();
        for file in inputs.iter().flat_map(|input| &input.tables) {
            if file.meta.tombstones > 0 {
                let table = self.tables.open(file)?;
                if !table.range_tombstones().is_empty() {
                    sets.push(Arc::clone(table.range_tombstones()));
                }
            }
        }
        let tombstones = Arc::new(RangeTombstones::merge(sets.iter().map(|set| &**set)));
        self.wait_for_inputs(inputs)?;
        let merge =
            Merge { inner: self, keyspace, claimed, inputs, tombstones, snapshots: self.snapshots.list() };
        let parts = parts(&job.boundaries);
        ensure!(parts.len() == job.boundaries.len() + 1, "{} parts", parts.len());
        if parts.len() == 1 || self.background.is_inline() {
            let mut outputs = Written::default();
            for part in &parts {
                match catch_panic("a compaction", || merge.part(part)) {
                    Ok(written) => outputs.extend(written),
                    Err(error) => {
                        // The failed part has already removed its own files.
                        outputs.remove(self);
                        return Err(error);
                    }
                }
            }
            return Ok(outputs);
        }
        let results = thread::scope(|scope| {
            let handles: Vec<_> = parts
                .iter()
                .map(|part| {
                    let work = || catch_panic("a compaction", || merge.part(part));
                    thread::spawn_scoped(scope, "cairn-kv-part", work)
                })
                .collect();
            handles
                .into_iter()
                .zip(&parts)
                .map(|(handle, part)| match handle {
                    Ok(handle) => handle
                        .join()
                        .unwrap_or_else(|_| Err(Bug::new("a thread of a compaction panicked").into())),
                    // The system refused another thread, so this one merges the part.
                    Err(_) => catch_panic("a compaction", || merge.part(part)),
                })
                .collect::<Vec<_>>()
        });
        ensure!(results.len() == parts.len(), "{} results of {} parts", results.len(), parts.len());
        let mut outputs = Written::default();
        let mut failure = None;
        for result in results {
            match result {
                Ok(written) => outputs.extend(written),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            None => Ok(outputs),
            Some(error) => {
                outputs.remove(self);
                Err(error)
            }
        }
    }

    /// Waits until all entries of the inputs are visible.
    ///
    /// ORDER: before the snapshots are listed. Ingested tables enter the version a moment before
    /// their sequence number becomes visible. A snapshot taken in that moment and after the list
    /// does not see them, and must find the entries below them.
    fn wait_for_inputs(&self, inputs: &[JobInput]) -> Result<()> {
        let tables = inputs.iter().flat_map(|input| &input.tables);
        let newest = tables.map(|file| file.meta.seqnos.1).max().unwrap_or(0);
        if self.order.visible() < newest {
            // BOUND: does not wait for a number that was never assigned. The thread that publishes
            // an assigned number needs nothing that a job holds.
            let due = newest.min(self.last_seqno());
            self.order.wait_for(due);
            self.check_alive()?;
            debug_assert!(self.order.visible() >= due, "write {due} of an input is not visible");
        }
        Ok(())
    }

    /// Like [`Inner::install`], for a job that leaves garbage in blob files. Also removes the blob
    /// files without live values, including those left by earlier jobs. Uses a single edit, because
    /// nothing would collect the files if a crash came between two.
    fn install_garbage(&self, keyspace: &KeyspaceState, mut edit: VersionEdit) -> Result<()> {
        // ORDER: `structure` before `running`. An ingestion holds `structure` and then looks at the
        // running jobs. With the opposite order here, a keyspace creation waiting in between would
        // deadlock both.
        let structure = read(&self.structure);
        // One installation at a time, so that the next one sees the blob files that this one added
        // and removed.
        let _running = lock(&keyspace.running);
        let change = edit.keyspace(keyspace.id);
        debug_assert!(change.blobs_removed.is_empty(), "blob files are removed for their garbage only");
        change.blobs_removed = keyspace.view.load().version.dead_blobs(change);
        self.install_within(&structure, keyspace, edit, &[])
    }

    /// Compacts everything within `bounds` down to the last level.
    pub(crate) fn compact_range(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        bounds: Bounds,
    ) -> Result<()> {
        self.with_reserve(|| self.compact_range_once(keyspace, &bounds))
    }

    fn compact_range_once(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>, bounds: &Bounds) -> Result<()> {
        self.flush(keyspace)?;
        // One call at a time: the jobs of another call would block this one and may have been
        // chosen before the flush.
        let alone = lock(&keyspace.manual);
        let pause: PauseGuard<'_> = self.background.pause(keyspace.id);
        let manual = Manual {
            from: bounds.lower.as_deref(),
            // `to` is inclusive, so one key past the range may be compacted too.
            to: bounds.upper.as_deref(),
            below: self.versions.new_file_number(),
            rewrite_last: true,
        };
        loop {
            let step = {
                let mut running = lock(&keyspace.running);
                let version = Arc::clone(&keyspace.view.load().version);
                match keyspace
                    .strategy
                    .compact_range(&self.strategy_state(keyspace, &version, &running), &manual)
                {
                    ManualStep::Run(job) => Some(running.claim(job, version)),
                    step => {
                        let is_done = step == ManualStep::Done;
                        debug_assert!(is_done, "background jobs have ended, and other calls wait");
                        None
                    }
                }
            };
            let Some(claimed) = step else { break };
            let result = catch_panic("a compaction", || self.compact(keyspace, claimed));
            result.map_err(|error| self.job_failed(error))?;
            // Writers may be stopped waiting for this job.
            self.update_pressure(keyspace);
        }
        if *bounds == Bounds::default() {
            keyspace.abandoned.clear();
        }
        drop(pause);
        drop(alone);
        self.remove_obsolete();
        self.work_is_due(keyspace)
    }
}

/// Unmarks the tables of a job when it is dropped, also by a panic.
struct RunningGuard<'a> {
    running: &'a Mutex<RunningJobs>,
    id: u64,
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        let mut running = lock(self.running);
        debug_assert!(running.jobs.iter().any(|job| job.id == self.id), "job {} is not running", self.id);
        let before = running.jobs.len();
        running.jobs.retain(|job| job.id != self.id);
        debug_assert_eq!(running.jobs.len() + 1, before, "two running jobs have the id {}", self.id);
    }
}

/// The tables that a job takes from one run.
#[derive(Debug)]
struct JobInput {
    level: usize,
    run: u64,
    tables: Vec<Arc<TableFile>>,
}

impl Claimed {
    /// Returns the job's tables, newest run first.
    fn inputs(&self) -> Result<Vec<JobInput>> {
        let find = |number: FileNumber| {
            let file = self.version.tables().find(|(_, file)| file.number() == number);
            file.map(|(_, file)| Arc::clone(file))
        };
        self.job
            .inputs
            .iter()
            .map(|input| {
                let tables: Option<Vec<_>> = input.tables.iter().map(|&number| find(number)).collect();
                let tables = tables.ok_or_else(|| {
                    let numbers = &input.tables;
                    Bug::new(format!(
                        "a compaction of tables {numbers:?}, not all of which are in its version"
                    ))
                })?;
                ensure!(
                    tables.is_sorted_by(|a, b| a.meta.smallest <= b.meta.smallest),
                    "the tables {:?} of run {} are not in key order",
                    input.tables,
                    input.run
                );
                debug_assert!(
                    self.version
                        .tables()
                        .all(|(level, file)| level == input.level || !input.tables.contains(&file.number())),
                    "the tables {:?} are not all in level {}",
                    input.tables,
                    input.level
                );
                Ok(JobInput { level: input.level, run: input.run, tables })
            })
            .collect()
    }

    /// Returns the runs that are older than the job's output and may contain its keys. They may
    /// include tables that are themselves inputs.
    fn older_runs(&self, inputs: &[JobInput]) -> Vec<Arc<Run>> {
        let oldest = inputs.iter().map(|input| (input.level, std::cmp::Reverse(input.run))).max();
        let Some((oldest_level, std::cmp::Reverse(oldest_run))) = oldest else { return Vec::new() };
        if self.job.bottommost {
            return Vec::new();
        }
        let levels = self.version.levels().iter().enumerate().skip(oldest_level);
        levels
            .flat_map(|(at, level)| level.runs().iter().map(move |run| (at, run)))
            .filter(|(at, run)| *at > oldest_level || run.id() <= oldest_run)
            .map(|(_, run)| Arc::clone(run))
            .collect()
    }
}

/// State shared by the parts of a merge.
struct Merge<'a> {
    inner: &'a Inner,
    keyspace: &'a KeyspaceState,
    claimed: &'a Claimed,
    inputs: &'a [JobInput],
    tombstones: Arc<RangeTombstones>,
    snapshots: Vec<u64>,
}

/// Checks the tables that a job has written: they are in key order and disjoint, and have nothing
/// that its inputs do not have.
///
/// Errors: [`Error::Bug`](crate::Error::Bug), before the tables are installed.
fn check_outputs(outputs: &Written, inputs: &[JobInput]) -> Result<()> {
    let metas = || inputs.iter().flat_map(|input| &input.tables).map(|file| &file.meta);
    let smallest = metas().map(|meta| &meta.smallest).min();
    let largest = metas().map(|meta| &meta.largest).max();
    let newest = metas().map(|meta| meta.seqnos.1).max();
    let last = metas().map(|meta| meta.number).max();
    ensure!(
        outputs.tables.is_sorted_by(|a, b| a.largest <= b.smallest),
        "a compaction wrote tables that overlap: {:?}",
        outputs.tables.iter().map(|meta| meta.number).collect::<Vec<_>>()
    );
    for meta in &outputs.tables {
        let number = meta.number;
        ensure!(meta.entries > 0, "table {number} of a compaction has no entries");
        ensure!(Some(&meta.smallest) >= smallest, "table {number} begins before the inputs");
        ensure!(Some(&meta.largest) <= largest, "table {number} ends after the inputs");
        ensure!(Some(meta.seqnos.1) <= newest, "table {number} has a number above those of the inputs");
        ensure!(Some(number) > last, "table {number} was numbered before an input, {last:?}");
    }
    for number in outputs.blobs.iter().map(|meta| meta.number) {
        ensure!(Some(number) > last, "blob file {number} was numbered before an input, {last:?}");
    }
    Ok(())
}

/// Returns the half-open key ranges into which `boundaries` divide the key space.
fn parts(boundaries: &[Vec<u8>]) -> Vec<Bounds> {
    let lowers = std::iter::once(None).chain(boundaries.iter().cloned().map(Some));
    let uppers = boundaries.iter().cloned().map(Some).chain(std::iter::once(None));
    let parts: Vec<Bounds> = lowers.zip(uppers).map(|(lower, upper)| Bounds { lower, upper }).collect();
    debug_assert!(parts.is_sorted_by(|a, b| a.upper == b.lower), "keys between two parts: {parts:?}");
    debug_assert!(
        parts.first().is_some_and(|first| first.lower.is_none())
            && parts.last().is_some_and(|last| last.upper.is_none()),
        "keys before or after all parts: {parts:?}"
    );
    parts
}

impl Merge<'_> {
    /// Merges the entries within `part`.
    fn part(&self, part: &Bounds) -> Result<Written> {
        let (inner, job) = (self.inner, &self.claimed.job);
        debug_assert!(
            part.lower.as_ref().zip(part.upper.as_ref()).is_none_or(|(lower, upper)| lower < upper),
            "a part without keys: {part:?}"
        );
        let read = crate::options::ReadOptions { fill_cache: false, readahead_bytes: 1 << 20 };
        let cursors = self.inputs.iter().map(|input| {
            let tables = input.tables.clone();
            LevelCursor::new(Arc::clone(&inner.tables), tables, part, &read)
        });
        let mut cursor = MergeCursor::new(cursors.collect());
        match &part.lower {
            Some(lower) => cursor.seek(lower, crate::kind::SEQNO_MAX)?,
            None => cursor.seek_first()?,
        }
        let options = &self.keyspace.options;
        let interrupt = || inner.background.check_running(&inner.path);
        let rules = Rules {
            snapshots: self.snapshots.clone(),
            tombstones: Arc::clone(&self.tombstones),
            operator: options.merge_operator.clone(),
            ttl: inner.ttl(self.keyspace),
            blobs: Some(inner.blob_source(&self.claimed.version)),
            filter: options.compaction_filter.clone(),
            level: job.output_level,
            interrupt: Some(&interrupt),
            store: Arc::clone(&inner.path),
            keyspace: &self.keyspace.name,
            keeps_unmerged: false,
        };
        let older = self.claimed.older_runs(self.inputs);
        let is_input =
            |number| self.inputs.iter().any(|input| input.tables.iter().any(|t| t.number() == number));
        let has_older = |key: &[u8]| {
            Ok(older.iter().any(|run| run.find(key).is_some_and(|file| !is_input(file.number()))))
        };
        let mut stream = Stream::new(cursor, rules, has_older);
        let metas = self.inputs.iter().flat_map(|input| &input.tables).map(|file| &file.meta);
        let secs = TableMeta::secs_of(metas).unwrap_or_default();
        let last_level = self.claimed.version.levels().len().saturating_sub(1).max(job.output_level);
        let mut table_options = keyspace_table_options(self.keyspace, job.output_level, last_level, secs);
        for file in self.inputs.iter().flat_map(|input| &input.tables) {
            let flushed = inner.tables.open(file)?.properties().flushed_seqno;
            table_options.flushed_seqno = table_options.flushed_seqno.max(flushed);
        }
        let cut = Cut { table_bytes: job.table_bytes, at: job.cuts.clone() };
        let mut output = Output::new(inner, table_options, cut, self.kept_tombstones(), part.clone())
            .with_blobs(inner.blob_policy(self.keyspace, &self.claimed.version))
            .with_ttl(inner.ttl(self.keyspace))
            .limited();
        while stream.advance()? {
            if part.upper.as_deref().is_some_and(|upper| stream.key() >= upper) {
                break;
            }
            debug_assert!(
                part.lower.as_deref().is_none_or(|lower| lower <= stream.key()),
                "a key before the part"
            );
            output.add(stream.key(), stream.seqno(), stream.kind(), stream.value())?;
        }
        lock(&inner.counters.dropped).add(stream.dropped());
        let garbage = stream.take_garbage();
        let mut written = output.finish()?;
        written.add_garbage(garbage);
        Ok(written)
    }

    /// Returns the range tombstones that can still hide an entry from some reader after the merge.
    fn kept_tombstones(&self) -> Arc<RangeTombstones> {
        if self.tombstones.is_empty() {
            return Arc::clone(&self.tombstones);
        }
        if !self.claimed.job.bottommost {
            return Arc::new(self.tombstones.for_snapshots(&self.snapshots));
        }
        let first = self.snapshots.first().copied();
        // A tombstone that every snapshot sees has been applied to all entries that it covers.
        Arc::new(self.tombstones.newer_than(first.unwrap_or(u64::MAX)))
    }
}
