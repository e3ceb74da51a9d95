//! What the user may choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::catalog;
use super::plan::Group;
use crate::error::{Error, Result};
use crate::probe::ProbeEffort;
use crate::results;
use crate::workload::{DEFAULT_SEED, Durability};

/// Everything that decides what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// Samples of each of the guide's cases, all rounds together.
    pub iterations: u32,
    /// Only cases with this in their name.
    pub filter: Option<String>,
    /// Whether a dashboard takes the figures: then the filter counts for nothing.
    pub for_dashboard: bool,
    /// Only cases of these groups.
    pub groups: Vec<Group>,
    /// Cairn's own ways to be asked, by name.
    pub ours: Vec<String>,
    /// Peers, by name.
    pub peers: Vec<String>,
    /// What a commit promises, outside of the cases that say otherwise.
    pub durability: Durability,
    /// Rows of the table that most cases work on.
    pub rows: u32,
    /// Rows of the bulk load.
    pub load_rows: u32,
    /// Client threads of reads and writes.
    pub threads: Vec<u32>,
    /// Client threads of durable commits.
    pub writers: Vec<u32>,
    /// Client threads of the mixed load.
    pub clients: u32,
    /// Bytes of pages that may be kept in memory.
    pub cache_bytes: u64,
    /// Times that everybody has a turn in every case.
    pub rounds: u32,
    /// How long a turn measures, in seconds, outside of the guide's cases.
    pub seconds: f64,
    /// Only TPC-H, at this scale factor.
    pub tpch: Option<f64>,
    /// Only pgbench, at this scale factor.
    pub pgbench: Option<u32>,
    /// Seed of all data, draws and shuffles.
    pub seed: u64,
    /// Where databases are made: the disk that is measured.
    pub work_dir: PathBuf,
    /// What the machine is probed with; `None` for not at all.
    pub probes: Option<ProbeEffort>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            iterations: 50,
            filter: None,
            for_dashboard: false,
            groups: Group::ALL.to_vec(),
            ours: names(catalog::our_names()),
            peers: names(catalog::peer_names()),
            durability: Durability::Sync,
            rows: 100_000,
            load_rows: 200_000,
            threads: vec![1, 8],
            writers: vec![1, 16],
            clients: 16,
            cache_bytes: 256 << 20,
            rounds: 5,
            seconds: 0.3,
            tpch: None,
            pgbench: None,
            seed: DEFAULT_SEED,
            work_dir: crate::cache_dir().join("work"),
            probes: Some(ProbeEffort::quick()),
        }
    }
}

fn names(names: Vec<&'static str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

impl Options {
    /// Samples of each of the guide's cases in a round.
    pub fn samples_each(&self) -> usize {
        self.iterations.div_ceil(self.rounds.max(1)) as usize
    }

    /// The most sessions that any case has at a time.
    pub fn sessions(&self) -> u32 {
        let most = self.threads.iter().chain(&self.writers).copied().max().unwrap_or(1);
        most.max(self.clients).max(super::guide::WORKERS)
    }

    /// Checks that the parts make sense. Errors: [`Error::Invalid`] naming the option.
    pub fn check(&self) -> Result<()> {
        let range = |name: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} {value}: expected {least} to {most}")))
        };
        range("iterations", f64::from(self.iterations), 1.0, 1e6)?;
        range("rounds", f64::from(self.rounds), 1.0, 1000.0)?;
        // Inserts go behind the last row, in numbers of 32 bits.
        range("rows", f64::from(self.rows), 200.0, 1e9)?;
        range("load rows", f64::from(self.load_rows), 1.0, 1e9)?;
        range("clients", f64::from(self.clients), 1.0, 500.0)?;
        range("cache size", self.cache_bytes as f64, (1 << 20) as f64, (1_u64 << 40) as f64)?;
        range("seconds", self.seconds, 0.001, 600.0)?;
        for &threads in self.threads.iter().chain(&self.writers) {
            range("threads", f64::from(threads), 1.0, 500.0)?;
        }
        if let Some(scale) = self.tpch {
            range("TPC-H scale factor", scale, 0.001, 100.0)?;
        }
        if let Some(scale) = self.pgbench {
            range("pgbench scale factor", f64::from(scale), 1.0, 10_000.0)?;
        }
        self.ours.iter().chain(&self.peers).try_for_each(|name| catalog::check(name))?;
        if self.ours.is_empty() && self.peers.is_empty() {
            return Err(Error::invalid("no engines: expected at least one"));
        }
        Ok(())
    }

    /// What decides figures and does not always stand in [`Options::data_sentence`] or in the
    /// cases.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        results::named([
            ("cache bytes", self.cache_bytes.to_string()),
            ("commits", self.durability.to_string()),
            ("clients", self.clients.to_string()),
            ("rows of the bulk load", self.load_rows.to_string()),
            ("seconds of a turn", self.seconds.to_string()),
        ])
    }

    /// The settings in a sentence, for the report.
    pub fn data_sentence(&self) -> String {
        if let Some(scale) = self.tpch {
            return format!(
                "TPC-H at scale factor {scale}, made by the crate tpchgen (not an audited result)."
            );
        }
        if let Some(scale) = self.pgbench {
            return format!("pgbench at scale factor {scale}; commits {}.", self.durability);
        }
        format!(
            "{} made records of about 120 bytes with a group for every hundred; commits {} unless a case says otherwise; {} MiB of pages in \
             memory.",
            self.rows,
            self.durability,
            self.cache_bytes >> 20
        )
    }
}
