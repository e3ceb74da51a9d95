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

mod measure;
mod options;
pub mod plan;
mod shape;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod text;
pub mod trace;

use cairn_vfs::{Fs, StdFs};

pub use options::Options;
pub use plan::{PoolCase, Work, name_of, plan};
pub use shape::Shape;

use self::measure::{Place, Turn};
use super::driver::{self, Description, Lab, Order, Setup, Suite};
use crate::core::error::Result;
use crate::core::probe::probe;
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::recorder::{LATENCY, MEAN_LATENCY, Metric, Recorder, THROUGHPUT};
use crate::core::results::{Contender, Run};
use crate::core::stats;
use crate::stores::cairn_pool::CairnPool;
use crate::stores::catalog::{Catalog, Selection};
use crate::stores::null_pages::NullPages;
use crate::stores::page_file::PageFile;
use crate::stores::pages::{self, Access, PageStore};
use crate::stores::raw_reads::RawReads;

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
pub fn run(options: &Options, catalog: &Catalog, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    run_with(options, select(options, catalog)?, progress, stop)
}

/// Returns all requested contenders: Cairn's policies, the first of them also without page checks,
/// the peers, and raw reads.
pub fn select(options: &Options, catalog: &Catalog) -> Result<Selection<dyn PageStore>> {
    let mut stores: Vec<Box<dyn PageStore>> = Vec::new();
    for &policy in &options.policies {
        stores.push(Box::new(CairnPool::new(policy)));
    }
    if let Some(&policy) = options.policies.first() {
        stores.push(Box::new(CairnPool::unchecked(policy)));
    }
    let peers = catalog.pages.select(&options.peers)?;
    stores.extend(peers.stores);
    stores.push(Box::new(RawReads::pages()));
    // One window is as large as the read-ahead of Cairn's pool. The other is so large that its cost
    // per read vanishes beside the copy.
    let window = (256 << 10).min(options.buffers / 4 * options.page_size);
    if window > options.page_size {
        stores.push(Box::new(RawReads::scanning(window)));
    }
    stores.push(Box::new(RawReads::scanning(1 << 20)));
    Ok(Selection { stores, skipped: peers.skipped })
}

/// Like [`run`], with contenders of the caller's choice.
pub fn run_with(
    options: &Options,
    stores: Selection<dyn PageStore>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    options.check()?;
    let mut suite = PoolSuite { options, cases: plan(options), stores, file: None, load_nanos: 0.0 };
    driver::drive(&mut suite, progress, stop)
}

struct PoolSuite<'a> {
    options: &'a Options,
    cases: Vec<PoolCase>,
    stores: Selection<dyn PageStore>,
    /// The pages that no case changes, once they exist.
    file: Option<PageFile>,
    /// Cost of the loop over the requests, in ns a request.
    load_nanos: f64,
}

impl Suite for PoolSuite<'_> {
    fn setup(&self) -> Setup<'_> {
        let Options { ref work_dir, probes, seed, .. } = *self.options;
        Setup { suite: NAME, work_dir, probes, seed }
    }

    fn skipped(&self) -> &[Contender] {
        &self.stores.skipped
    }

    fn measure(&mut self, lab: &mut Lab<'_>) -> Result<()> {
        let Options { page_size, direct, .. } = *self.options;
        let path = lab.scratch.path().join("pages");
        let file =
            self.file.insert(PageFile::create(&path, page_count(&self.cases), page_size, direct)?).clone();
        if let Some(nanos) = self.load_generation(&file)? {
            self.load_nanos = nanos;
            lab.probes.push(probe(LOAD_GENERATION, nanos, "ns"));
        }
        for phase in 1..=5 {
            let of_phase: Vec<&PoolCase> = self.cases.iter().filter(|case| case.phase == phase).collect();
            if of_phase.is_empty() {
                continue;
            }
            lab.progress.group(usize::from(phase) - 1, 5, title(phase));
            for (index, case) in of_phase.iter().enumerate() {
                lab.progress.step(index, of_phase.len(), &case.name);
                self.case(lab, case, &file)?;
            }
        }
        Ok(())
    }

    fn description(&self) -> Description {
        let options = self.options;
        Description {
            mode: format!("{} iterations, {} buffers", options.iterations, options.buffers),
            data: options.data_sentence(),
            settings: options.settings(),
        }
    }

    fn contenders(&self, recorder: &Recorder) -> Vec<Contender> {
        let Some(file) = &self.file else { return self.stores.skipped.clone() };
        let frames = self.options.buffers;
        let setup = pages::Setup { file, frames, reach: file.pages, writes: false };
        let in_memory = format!("{frames} unless the case says otherwise");
        let measured = self.stores.stores.iter().map(|store| {
            let mut settings = store.settings(&setup);
            settings.insert("pages in memory".to_owned(), in_memory.clone());
            let named = (store.name(), store.family());
            let mut contender = driver::contender(recorder, named, (store.version(), store.ours()), settings);
            if contender.skipped.is_none() && !recorder.has_figures(store.name()) {
                contender.skipped = Some("it supports none of the requested cases".to_owned());
            }
            contender
        });
        measured.chain(self.stores.skipped.iter().cloned()).collect()
    }
}

impl PoolSuite<'_> {
    /// Measures the cost of the loop itself, in the case of hits by one thread.
    fn load_generation(&self, file: &PageFile) -> Result<Option<f64>> {
        let options = Options {
            filter: Some("Pin/Unpin (hit)".to_owned()),
            for_dashboard: false,
            phases: vec![1],
            ..self.options.clone()
        };
        let Some(case) = plan(&options).into_iter().next() else { return Ok(None) };
        let turn = measure::take(&options, &NullPages::default(), &case, file, Place { share: 0.0 })?;
        Ok(turn.map(|turn| stats::median(&turn.nanos)))
    }

    /// Runs all rounds of one case.
    fn case(&self, lab: &mut Lab<'_>, case: &PoolCase, file: &PageFile) -> Result<()> {
        let stores = &self.stores.stores;
        // Counts do not depend on time and are the same in every round.
        let rounds = if matches!(case.work, Work::Hits { .. }) { 1 } else { self.options.rounds };
        lab.rounds((0..stores.len()).collect(), (rounds, Order::Carried), |lab, round, &index| {
            let Some(store) = stores.get(index) else { return Ok(false) };
            let share = (index as f64 + f64::from(round) / f64::from(rounds)) / stores.len() as f64;
            match self.turn(lab, case, &**store, file, Place { share }) {
                Ok(Some(turn)) => self.keep(lab, case, store.name(), &turn),
                Ok(None) => return Ok(false),
                Err(error) => {
                    let reason = error.to_string();
                    lab.refuse(store.name(), (&case.name, &case.case), error, reason)?;
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn turn(
        &self,
        lab: &Lab<'_>,
        case: &PoolCase,
        store: &dyn PageStore,
        file: &PageFile,
        place: Place,
    ) -> Result<Option<Turn>> {
        if !case.writes() {
            return measure::take(self.options, store, case, file, place);
        }
        if !store.can(Access::Dirty, case.threads) {
            return Ok(None);
        }
        // Each turn has a file of its own, because some contenders maintain the pages' checksums
        // and others do not.
        let path = lab.scratch.path().join("changed");
        let file = PageFile::create(&path, case.pages(), self.options.page_size, self.options.direct)?;
        let turn = measure::take(self.options, store, case, &file, place);
        StdFs::new().remove(&path)?;
        turn
    }

    fn keep(&self, lab: &mut Lab<'_>, case: &PoolCase, name: &str, turn: &Turn) {
        let mut add = |metric: Metric, value: f64| lab.recorder.add(name, &case.case, metric, value);
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
}

/// Returns the number of pages that all cases need.
fn page_count(cases: &[PoolCase]) -> u32 {
    cases.iter().map(PoolCase::pages).max().unwrap_or(1)
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
