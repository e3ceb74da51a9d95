//! What the user may choose. The defaults are the guide's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cairn_pool::{MAX_PAGE_SIZE, MIN_PAGE_SIZE, PolicyKind};

use super::catalog;
use super::plan::THREADS;
use crate::error::{Error, Result};
use crate::probe::ProbeEffort;
use crate::results;
use crate::workload::DEFAULT_SEED;

/// Everything that decides what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// Samples of each case, all rounds together.
    pub iterations: u32,
    /// Pages that may be in memory, outside of the cases that say otherwise.
    pub buffers: usize,
    /// Only cases with this in their name.
    pub filter: Option<String>,
    /// Whether a dashboard takes the figures: then the filter counts for nothing.
    pub for_dashboard: bool,
    /// Only these of the five phases.
    pub phases: Vec<u8>,
    /// Policies of Cairn's pool, each a contender.
    pub policies: Vec<PolicyKind>,
    /// Peers, by name.
    pub peers: Vec<String>,
    /// Bytes of a page.
    pub page_size: usize,
    /// Times that everybody has a turn in every case.
    pub rounds: u32,
    /// Seed of all draws and shuffles.
    pub seed: u64,
    /// Whether files are opened past the kernel's page cache.
    pub direct: bool,
    /// Threads of the cases with many.
    pub threads: Vec<u32>,
    /// The shortest sample, in seconds. Samples of many threads are longer: see
    /// [`Options::sample_seconds_of`].
    pub sample_seconds: f64,
    /// Where files are made: the disk that is measured.
    pub work_dir: PathBuf,
    /// What the machine is probed with; `None` for not at all.
    pub probes: Option<ProbeEffort>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            iterations: 50,
            buffers: 12,
            filter: None,
            for_dashboard: false,
            phases: (1..=5).collect(),
            policies: usual_policies(),
            peers: catalog::peer_names().into_iter().map(str::to_owned).collect(),
            page_size: MIN_PAGE_SIZE,
            rounds: 5,
            seed: DEFAULT_SEED,
            direct: false,
            threads: THREADS.to_vec(),
            sample_seconds: 0.002,
            work_dir: crate::cache_dir().join("work"),
            probes: Some(ProbeEffort::quick()),
        }
    }
}

/// The pool's own default first, so that the guide's names are its figures, then the three that the
/// guide has.
fn usual_policies() -> Vec<PolicyKind> {
    let mut policies = vec![PolicyKind::default()];
    for kind in [PolicyKind::Lru, PolicyKind::Clock, PolicyKind::Sieve] {
        if !policies.contains(&kind) {
            policies.push(kind);
        }
    }
    policies
}

impl Options {
    /// How long a sample of so many threads takes at least: several of the scheduler's slices, as a
    /// thread that wakes may have to wait for one before it is moved to a processor of its own; and
    /// long enough that waking all of them is a few percent of it.
    pub fn sample_seconds_of(&self, threads: u32) -> f64 {
        let several = if threads > 1 { 4.0 } else { 1.0 };
        self.sample_seconds * f64::max(several, f64::from(threads) / 20.0)
    }

    /// Samples of each round.
    pub fn samples_each(&self) -> usize {
        self.iterations.div_ceil(self.rounds) as usize
    }

    /// Checks that the parts make sense. Errors: [`Error::Invalid`] naming the option.
    pub fn check(&self) -> Result<()> {
        let range = |name: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} {value}: expected {least} to {most}")))
        };
        range("iterations", u64::from(self.iterations), 1, 1_000_000)?;
        range("buffers", self.buffers as u64, 4, 1 << 24)?;
        range("rounds", u64::from(self.rounds), 1, 1000)?;
        if self.rounds > self.iterations {
            let Options { rounds, iterations, .. } = self;
            return Err(Error::invalid(format!(
                "rounds {rounds}: there are only {iterations} iterations to divide among them"
            )));
        }
        if !self.page_size.is_power_of_two() || !(MIN_PAGE_SIZE..=MAX_PAGE_SIZE).contains(&self.page_size) {
            let size = self.page_size;
            return Err(Error::invalid(format!(
                "page size {size}: expected a power of two from {MIN_PAGE_SIZE} to {MAX_PAGE_SIZE}"
            )));
        }
        for &threads in &self.threads {
            range("threads", u64::from(threads), 2, 1024)?;
        }
        self.peers.iter().try_for_each(|name| catalog::check(name))?;
        if self.policies.is_empty() && self.peers.is_empty() {
            return Err(Error::invalid("no policies and no peers: expected at least one"));
        }
        Ok(())
    }

    /// What decides figures and stands neither in [`Options::data_sentence`] nor in the cases.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        results::named([
            ("rounds", self.rounds.to_string()),
            ("seconds of a sample", self.sample_seconds.to_string()),
        ])
    }

    /// The settings in a sentence, for the report.
    pub fn data_sentence(&self) -> String {
        format!(
            "Pages of {} bytes whose number can be told from their bytes; {} of them in memory unless a case says otherwise; files {}.",
            self.page_size,
            self.buffers,
            if self.direct { "opened past the kernel's page cache" } else { "in the kernel's page cache" }
        )
    }
}
