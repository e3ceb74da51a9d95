//! The options of a run. The defaults are the guide's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cairn_pool::{MAX_PAGE_SIZE, MIN_PAGE_SIZE, PolicyKind};

use super::plan::THREADS;
use crate::core::error::{Error, Result};
use crate::core::probe::ProbeEffort;
use crate::core::results;
use crate::core::workload::DEFAULT_SEED;
use crate::stores::catalog::Registry;
use crate::stores::pages::PageStore;

/// The options that decide what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of samples of each case, over all rounds.
    pub iterations: u32,
    /// Number of pages that may be in memory, except in cases with their own number.
    pub buffers: usize,
    /// Only cases whose name contains this.
    pub filter: Option<String>,
    /// Whether the run is for a dashboard. The filter is ignored then.
    pub for_dashboard: bool,
    /// The phases to run, of the five.
    pub phases: Vec<u8>,
    /// Policies of Cairn's pool. Each is a contender.
    pub policies: Vec<PolicyKind>,
    /// Peers, by their names in the catalogue. None by default.
    pub peers: Vec<String>,
    /// Size of a page in bytes.
    pub page_size: usize,
    /// Number of turns of each contender in every case.
    pub rounds: u32,
    /// Seed of all random draws and shuffles.
    pub seed: u64,
    /// Whether files are opened with direct I/O, which bypasses the kernel's page cache.
    pub direct: bool,
    /// Thread counts of the concurrent cases.
    pub threads: Vec<u32>,
    /// Minimum duration of a sample, in seconds. Samples of many threads are longer, see
    /// [`Options::sample_seconds_of`].
    pub sample_seconds: f64,
    /// Directory in which files are created. Its disk is the one that is measured.
    pub work_dir: PathBuf,
    /// Effort of probing the machine; `None` to skip the probes.
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
            peers: Vec::new(),
            page_size: MIN_PAGE_SIZE,
            rounds: 5,
            seed: DEFAULT_SEED,
            direct: false,
            threads: THREADS.to_vec(),
            sample_seconds: 0.002,
            work_dir: crate::core::cache::cache_dir().join("work"),
            probes: Some(ProbeEffort::quick()),
        }
    }
}

/// Returns the pool's own default first, so that it gets the guide's case names, and then the three
/// policies of the guide.
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
    /// Returns the defaults, with all peers of the catalogue.
    pub fn with_all(peers: &Registry<dyn PageStore>) -> Options {
        let peers = peers.peer_names().into_iter().map(str::to_owned).collect();
        Options { peers, ..Options::default() }
    }

    /// Returns the minimum duration of a sample with this many threads. It covers several time
    /// slices of the scheduler, because a thread that wakes up may have to wait for one before it
    /// is moved to a processor of its own. It is also so long that waking all threads takes only a
    /// few percent of it.
    pub fn sample_seconds_of(&self, threads: u32) -> f64 {
        let several = if threads > 1 { 4.0 } else { 1.0 };
        self.sample_seconds * f64::max(several, f64::from(threads) / 20.0)
    }

    /// Returns the number of samples in each round.
    pub fn samples_each(&self) -> usize {
        self.iterations.div_ceil(self.rounds) as usize
    }

    /// Checks that the options are valid. Errors: [`Error::Invalid`] naming the option.
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
        if self.policies.is_empty() && self.peers.is_empty() {
            return Err(Error::invalid("no policies and no peers: expected at least one"));
        }
        Ok(())
    }

    /// Returns the settings that influence results and are part of neither
    /// [`Options::data_sentence`] nor the cases.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        results::named([
            ("rounds", self.rounds.to_string()),
            ("seconds of a sample", self.sample_seconds.to_string()),
        ])
    }

    /// Describes the settings in a sentence, for the report.
    pub fn data_sentence(&self) -> String {
        format!(
            "Pages of {} bytes whose number can be told from their bytes; {} of them in memory unless a case says otherwise; files {}.",
            self.page_size,
            self.buffers,
            if self.direct { "opened past the kernel's page cache" } else { "in the kernel's page cache" }
        )
    }
}
