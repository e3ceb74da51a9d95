//! The suite of buffer pools: the guide's five phases for each of Cairn's replacement policies, a
//! textbook pool, caches that can serve as a pool, and reads without one.
//!
//! ```text
//!   options ─► plan: cases, named as in the guide
//!                 └─► for each case, round by round, each contender in shuffled order: one turn
//!                        │   open ─ warm-up ─ samples, with the sum of the stamps checked ─ close
//!                        └─► recorder: medians of rounds ─► Run ─► text, tables, report, JSON
//! ```
//!
//! A hit takes several nanoseconds. So a sample consists of thousands of requests that are drawn in
//! advance, and the cost of the loop itself is measured as well.

pub(crate) mod buffer;
mod cairn;
pub mod catalog;
mod measure;
mod nothing;
mod options;
pub mod pages;
pub mod plan;
pub(crate) mod raw;
mod shape;
mod starvation;
pub(crate) mod store;
pub mod tables;
pub(crate) mod team;
#[cfg(test)]
mod tests;
pub mod text;
mod textbook;
pub mod trace;

use cairn_vfs::{Fs, SeededRng, StdFs};

pub use catalog::PoolCatalog;
pub use options::Options;
pub use plan::{PoolCase, Work, name_of, plan};
pub use shape::Shape;
pub use store::{Access, PageStore, Pages, Session, Setup};

use self::measure::{Place, Turn};
use self::nothing::Nothing;
use self::pages::PageFile;
use crate::error::Result;
use crate::probe::probe;
use crate::process::Stop;
use crate::results::{Contender, Probe, Run};
use crate::runner::begun::{Begun, Ended, was_stopped};
use crate::scratch::Scratch;
use crate::stats;
use crate::suite_hash::Progress;
use crate::suite_hash::recorder::{LATENCY, MEAN_LATENCY, Metric, Recorder, THROUGHPUT};
use crate::workload::shuffle;

/// The suite's name in stored runs.
pub const NAME: &str = "pool";

/// The probe of the cost of the loop over the requests.
pub const LOAD_GENERATION: &str = "load generation of a request";

pub(crate) const DEVIATION: Metric =
    Metric { name: "standard deviation", unit: "ns", higher_is_better: false };
pub(crate) const HIT_RATE: Metric = Metric { name: "hit rate", unit: "%", higher_is_better: true };
pub(crate) const RECOVERY: Metric = Metric { name: "recovery time", unit: "ns", higher_is_better: false };

/// Runs the suite with all requested contenders that are available.
///
/// Failures on the way are recorded in the result and do not end the run. When `stop` is reached,
/// the run ends with the results so far.
///
/// Errors: invalid options, a work directory that cannot be written.
pub fn run(options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    run_with(options, catalog::select(options)?, progress, stop)
}

/// Like [`run`], with contenders of the caller's choice.
pub fn run_with(
    options: &Options,
    catalog: PoolCatalog,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    options.check()?;
    let mut begun = Begun::new(NAME, &options.work_dir, options.probes)?;
    let scratch = Scratch::in_dir(&options.work_dir, NAME)?;
    let cases = plan(options);
    let mut suite = Suite::new(options, catalog, progress, stop, scratch, &cases)?;
    begun.probes.extend(suite.load_generation()?);
    let stopped = was_stopped(suite.all(&cases), &suite.recorder, progress)?;
    let ended = Ended {
        mode: format!("{} iterations, {} buffers", options.iterations, options.buffers),
        seed: options.seed,
        data: options.data_sentence(),
        settings: options.settings(),
        contenders: suite.contenders(),
        stopped,
    };
    Ok(begun.into_run(ended, suite.recorder))
}

struct Suite<'a> {
    options: &'a Options,
    catalog: PoolCatalog,
    progress: &'a dyn Progress,
    stop: &'a Stop,
    scratch: Scratch,
    /// The pages that no case changes.
    file: PageFile,
    recorder: Recorder,
    rng: SeededRng,
    load_nanos: f64,
}

impl<'a> Suite<'a> {
    fn new(
        options: &'a Options,
        catalog: PoolCatalog,
        progress: &'a dyn Progress,
        stop: &'a Stop,
        scratch: Scratch,
        cases: &[PoolCase],
    ) -> Result<Self> {
        catalog.skipped.iter().filter_map(Contender::why_left_out).for_each(|line| progress.note(&line));
        let pages = cases.iter().map(PoolCase::pages).max().unwrap_or(1);
        let file = PageFile::create(&scratch.path().join("pages"), pages, options.page_size, options.direct)?;
        let (recorder, rng) = (Recorder::new(options.seed), SeededRng::new(options.seed));
        Ok(Suite { options, catalog, progress, stop, scratch, file, recorder, rng, load_nanos: 0.0 })
    }

    /// Measures the cost of the loop itself, in the case of hits by one thread.
    fn load_generation(&mut self) -> Result<Option<Probe>> {
        let options = Options {
            filter: Some("Pin/Unpin (hit)".to_owned()),
            for_dashboard: false,
            phases: vec![1],
            ..self.options.clone()
        };
        let Some(case) = plan(&options).into_iter().next() else { return Ok(None) };
        let turn = measure::take(&options, &Nothing::new(), &case, &self.file, Place { share: 0.0 })?;
        let Some(turn) = turn else { return Ok(None) };
        self.load_nanos = stats::median(&turn.nanos);
        Ok(Some(probe(LOAD_GENERATION, self.load_nanos, "ns")))
    }

    fn all(&mut self, cases: &[PoolCase]) -> Result<()> {
        for phase in 1..=5 {
            let of_phase: Vec<&PoolCase> = cases.iter().filter(|case| case.phase == phase).collect();
            if of_phase.is_empty() {
                continue;
            }
            self.progress.group(usize::from(phase) - 1, 5, title(phase));
            for (index, case) in of_phase.iter().enumerate() {
                self.progress.step(index, of_phase.len(), &case.name);
                self.case(case)?;
            }
        }
        Ok(())
    }

    /// Runs all rounds of one case.
    fn case(&mut self, case: &PoolCase) -> Result<()> {
        let mut taking_part: Vec<usize> = (0..self.catalog.stores.len()).collect();
        // Counts do not depend on time and are the same in every round.
        let rounds = if matches!(case.work, Work::Hits { .. }) { 1 } else { self.options.rounds };
        for round in 0..rounds {
            shuffle(&mut taking_part, &mut self.rng);
            let mut failed = Vec::new();
            for index in taking_part.clone() {
                self.stop.check()?;
                let share =
                    (index as f64 + f64::from(round) / f64::from(rounds)) / self.catalog.stores.len() as f64;
                let turn = self.turn(case, index, Place { share });
                let name = self.catalog.stores.get(index).map_or("", |store| store.name()).to_owned();
                match turn {
                    Ok(Some(turn)) => self.keep(case, &name, &turn),
                    Ok(None) => failed.push(index),
                    Err(error) => {
                        self.progress.note(&format!("{name} in {}: {error}", case.name));
                        self.recorder.discard(&name, &case.case, error.to_string());
                        failed.push(index);
                    }
                }
            }
            taking_part.retain(|index| !failed.contains(index));
        }
        Ok(())
    }

    fn turn(&self, case: &PoolCase, index: usize, place: Place) -> Result<Option<Turn>> {
        let Some(store) = self.catalog.stores.get(index) else { return Ok(None) };
        if !case.writes() {
            return measure::take(self.options, &**store, case, &self.file, place);
        }
        if !store.can(Access::Dirty, case.threads) {
            return Ok(None);
        }
        // Each turn has a file of its own, because some contenders maintain the pages' checksums
        // and others do not.
        let path = self.scratch.path().join("changed");
        let file = PageFile::create(&path, case.pages(), self.options.page_size, self.options.direct)?;
        let turn = measure::take(self.options, &**store, case, &file, place);
        StdFs::new().remove(&path)?;
        turn
    }

    fn keep(&mut self, case: &PoolCase, name: &str, turn: &Turn) {
        let mut add = |metric: Metric, value: f64| self.recorder.add(name, &case.case, metric, value);
        if !turn.nanos.is_empty() {
            let median = stats::median(&turn.nanos);
            match case.work {
                Work::Timed { latency: true, access, .. } => {
                    let less = match access {
                        Access::Shared | Access::Exclusive | Access::Optimistic => self.load_nanos,
                        // A chained request waits for its page, and next to a miss the cost of the
                        // loop is negligible.
                        _ => 0.0,
                    };
                    let mean = turn.nanos.iter().sum::<f64>() / turn.nanos.len() as f64;
                    add(LATENCY, (median - less).max(0.0));
                    add(MEAN_LATENCY, (mean - less).max(0.0));
                    add(DEVIATION, deviation(&turn.nanos, mean));
                }
                Work::Starvation => add(RECOVERY, median),
                _ => add(THROUGHPUT, 1e9 / median.max(1e-3)),
            }
        }
        if let Some((hits, all)) = turn.hits
            && all > 0
            && case.phase != 1
        {
            add(HIT_RATE, 100.0 * hits as f64 / all as f64);
        }
    }

    /// Returns all requested contenders, with all settings.
    fn contenders(&self) -> Vec<Contender> {
        let setup =
            Setup { file: &self.file, frames: self.options.buffers, reach: self.file.pages, writes: false };
        let mut contenders: Vec<Contender> = Vec::new();
        for store in &self.catalog.stores {
            let mut settings = store.settings(&setup);
            settings.insert(
                "pages in memory".to_owned(),
                format!("{} unless the case says otherwise", setup.frames),
            );
            let reason = self.recorder.explain(store.name(), &mut settings);
            let is_idle = !self.recorder.has_figures(store.name());
            let idle = is_idle.then(|| "it supports none of the requested cases".to_owned());
            contenders.push(Contender {
                name: store.name().to_owned(),
                family: store.family().to_owned(),
                version: store.version(),
                ours: store.ours(),
                settings,
                skipped: reason.or(idle),
            });
        }
        contenders.extend(self.catalog.skipped.iter().cloned());
        contenders
    }
}

/// Returns the title of a phase.
pub fn title(phase: u8) -> &'static str {
    match phase {
        1 => "Phase 1: core latency",
        2 => "Phase 2: access patterns",
        3 => "Phase 3: pool size and memory pressure",
        4 => "Phase 4: hit rates",
        _ => "Phase 5: concurrent access",
    }
}

/// Returns the standard deviation of samples around their mean.
fn deviation(samples: &[f64], mean: f64) -> f64 {
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    (squares / samples.len().saturating_sub(1).max(1) as f64).sqrt()
}
