//! Builds the points of the series and the results.

use super::*;

impl Simulation {
    /// Adds a point to the series, and resets the sums.
    pub(super) fn add_point(&mut self) {
        let since = std::mem::take(&mut self.since);
        let points = self.config.points.div_ceil(READ_LOOKS).max(1);
        if self.config.mode == Mode::Timed && self.series.len().is_multiple_of(points) {
            self.update_read_costs();
        }
        self.push_point(since);
        if self.config.mode == Mode::Timed {
            // Computed from the start of the run, not from the last point: rounding errors would
            // add up and leave a point of zero duration at the end.
            let at = self.series.len();
            let is_last = at >= self.config.points;
            let due = self.config.duration_secs * at as f64 / self.config.points as f64;
            self.next_point = if is_last { f64::INFINITY } else { due };
        }
    }

    /// Adds the point at the end of the run. Rates over a short remainder mean little, so it is
    /// merged into the point before.
    pub(super) fn add_last_point(&mut self) {
        let step = self.config.duration_secs / self.config.points as f64;
        // The first point has zero duration.
        if self.since.secs >= step / 2.0 || self.series.len() < 2 {
            return self.add_point();
        }
        let mut whole = std::mem::take(&mut self.of_last_point);
        whole.add(&std::mem::take(&mut self.since));
        self.series.pop();
        self.push_point(whole);
    }

    fn push_point(&mut self, since: SincePoint) {
        let secs = since.secs.max(1e-9);
        let is_timed = self.config.mode == Mode::Timed;
        let mb = |bytes: f64| if is_timed { bytes / secs / 1e6 } else { bytes / 1e6 };
        let mean = |at: Resource| since.used[at as usize] / secs;
        let longest = since.bottlenecks.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let put = since.put.percentiles();
        let get = self.reads.as_ref().map(|reads| reads.get_percentiles()).unwrap_or_default();
        self.series.push(Point {
            secs: self.now,
            writes: self.counters.writes,
            user_mb: mb(since.user_bytes),
            flush_mb: mb(since.flush_bytes),
            compact_mb: mb(since.write_bytes),
            compact_read_mb: mb(since.read_bytes),
            write_amp: self.counters.write_amplification(),
            space_amp: self.space_amplification(),
            read_runs: self.tree.run_count(),
            levels: self.tree.levels.iter().map(|level| level.bytes()).collect(),
            files: self.tree.levels.iter().map(|level| level.file_count()).collect(),
            debt_bytes: compact::debt_bytes(&self.tree, &self.config.options),
            sealed: self.sealed_count(),
            stall: self.controller.stall,
            stalled: since.stalled / secs,
            cpu: mean(Resource::Cpu),
            disk_read: mean(Resource::DiskRead),
            disk_write: mean(Resource::DiskWrite),
            jobs: self.active.len(),
            bottleneck: longest.map_or(Bottleneck::Nothing, |(bottleneck, _)| *bottleneck),
            put_us: (put.p50_us, put.p99_us),
            get_us: (get.p50_us, get.p99_us),
        });
        self.of_last_point = since;
    }

    /// Returns the bytes of files divided by the bytes of live keys and values.
    pub fn space_amplification(&self) -> f64 {
        let live = self.live_keys() as f64 * self.config.entry_bytes() as f64;
        if live > 0.0 { self.tree.bytes() as f64 / live } else { 0.0 }
    }

    /// Recomputes the costs of lookups.
    pub(super) fn update_read_costs(&mut self) {
        let reads = &self.config.workload.reads;
        let is_over = self.outcome != Outcome::Running;
        if reads.gets_per_sec <= 0.0 && reads.scans_per_sec <= 0.0 && !is_over {
            return;
        }
        let utilization = self.shares.used[Resource::DiskRead as usize]
            .max(self.shares.used[Resource::DiskMixed as usize])
            .max(self.shares.used[Resource::DiskRequests as usize]);
        let model = ReadModel::new(&self.config, &self.tree, self.writes.keys(), self.sample, utilization);
        if !is_over {
            self.looks.push(model.costs.clone());
            self.get.merge(&model.get);
            self.scan.merge(&model.scan);
        }
        self.reads = Some(model);
    }

    /// Replays this many block fetches through a real cache over the current tree, and returns the
    /// share of hits. The model's share is checked against it.
    pub fn replayed_hit(&self, fetches: usize) -> f64 {
        let model = ReadModel::new(&self.config, &self.tree, self.writes.keys(), self.sample, 0.0);
        model.replayed_hit(&self.config, fetches)
    }

    /// Returns the results so far; final once the run is over.
    pub fn results(&self) -> Results {
        let secs = self.now;
        let over = |value: f64| if secs > 0.0 { value / secs } else { 0.0 };
        let mut bottlenecks: Vec<_> =
            self.bottlenecks.iter().map(|(bottleneck, secs)| (*bottleneck, over(*secs))).collect();
        bottlenecks.sort_by(|a, b| b.1.total_cmp(&a.1));
        let counters = self.counters.clone();
        let background = (counters.flush_bytes + counters.compact_write_bytes) as f64;
        let user = counters.user_bytes.max(1.0);
        let get = if self.get.total() > 0.0 { self.get.percentiles() } else { self.get_at_end() };
        let reads_at_end = self.reads.as_ref().map(|reads| reads.costs.clone());
        Results {
            name: self.config.name.clone(),
            outcome: self.outcome,
            secs,
            sample: self.sample,
            events: self.events,
            write_amplification: counters.write_amplification(),
            write_amplification_user: (background + counters.wal_bytes) / user,
            space_amplification: self.space_amplification(),
            reads: ReadCosts::mean(&self.looks).or(reads_at_end),
            user_mb_per_sec: over(counters.user_bytes) / 1e6,
            backlog_mb: self.backlog / 1e6,
            stopped: over(self.stopped_secs),
            delayed: over(self.delayed_secs),
            stall_secs: self.stall_secs.clone(),
            stall_at_end: self.controller.stall,
            debt_bytes: compact::debt_bytes(&self.tree, &self.config.options),
            bottlenecks,
            is_cpu_bound: counters.cpu_bound_jobs > counters.io_bound_jobs,
            cpu: over(self.used[Resource::Cpu as usize]),
            disk_read: over(self.used[Resource::DiskRead as usize]),
            disk_write: over(self.used[Resource::DiskWrite as usize]),
            put: self.put.percentiles(),
            get,
            scan: if self.scan.total() > 0.0 {
                self.scan.percentiles()
            } else {
                self.reads.as_ref().map(|reads| reads.scan.percentiles()).unwrap_or_default()
            },
            memory_bytes: self.memory_bytes(),
            tree_bytes: self.tree.bytes(),
            live_keys: self.live_keys(),
            levels: self.level_results(),
            counters,
            preload: self.preload.clone(),
            series: self.series.clone(),
        }
    }

    fn get_at_end(&self) -> cairn_workload::Percentiles {
        self.reads.as_ref().map(|reads| reads.get_percentiles()).unwrap_or_default()
    }

    fn memory_bytes(&self) -> u64 {
        let options = &self.config.options;
        let most = options.write_buffer_size as f64 * options.max_write_buffer_number as f64;
        // Otherwise filters and indexes are part of the block cache.
        let is_beside = options.engine == Engine::Rocksdb && !options.cache_index_and_filter_blocks;
        let meta = if is_beside { self.meta_memory() } else { 0.0 };
        (most.max(self.memtable_memory()) + meta) as u64 + options.block_cache_size
    }

    fn level_results(&self) -> Vec<LevelResult> {
        let targets = compact::level_targets(&self.tree, &self.config.options);
        let weight = self.mean_weight.max(1e-12);
        let levels = self.tree.levels.iter().enumerate();
        levels
            .map(|(at, level)| LevelResult {
                level: at,
                runs: level.runs.len(),
                files: level.file_count(),
                bytes: level.bytes(),
                mean_bytes: self.mean_levels.get(at).copied().unwrap_or(0.0) / weight,
                target_bytes: targets.get(at).copied().filter(|&bytes| bytes != u64::MAX),
                written_bytes: self.written_to.get(at).copied().unwrap_or(0),
            })
            .collect()
    }
}
