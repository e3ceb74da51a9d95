//! The options of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::plan::Group;
use crate::core::error::{Error, Result};
use crate::core::probe::ProbeEffort;
use crate::core::results;
use crate::core::workload::{DEFAULT_SEED, Durability};
use crate::stores::catalog::Registry;
use crate::stores::sql::SqlStore;

/// Cairn's embedded engine.
const CAIRN: &str = "cairn";

/// The options that decide what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of samples of each of the guide's cases, over all rounds.
    pub iterations: u32,
    /// Only cases whose name contains this.
    pub filter: Option<String>,
    /// Whether the run is for a dashboard. The filter is ignored then.
    pub for_dashboard: bool,
    /// Only cases of these groups.
    pub groups: Vec<Group>,
    /// Cairn's own contenders, by their names in the catalogue. The default is the embedded engine.
    pub ours: Vec<String>,
    /// Peers, by their names in the catalogue. None by default.
    pub peers: Vec<String>,
    /// Durability of commits, except in cases with their own.
    pub durability: Durability,
    /// Number of rows in the table of most cases.
    pub rows: u32,
    /// Number of rows in the bulk load.
    pub load_rows: u32,
    /// Client thread counts for reads and writes.
    pub threads: Vec<u32>,
    /// Client thread counts for durable commits.
    pub writers: Vec<u32>,
    /// Number of client threads in the mixed load.
    pub clients: u32,
    /// Bytes of pages that may be kept in memory.
    pub cache_bytes: u64,
    /// Number of turns of each contender in every case.
    pub rounds: u32,
    /// Duration of a turn's measurement in seconds, except in the guide's cases.
    pub seconds: f64,
    /// Run only TPC-H, at this scale factor.
    pub tpch: Option<f64>,
    /// Run only pgbench, at this scale factor.
    pub pgbench: Option<u32>,
    /// Seed of all data, random draws and shuffles.
    pub seed: u64,
    /// Directory in which databases are created. Its disk is the one that is measured.
    pub work_dir: PathBuf,
    /// Effort of probing the machine; `None` to skip the probes.
    pub probes: Option<ProbeEffort>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            iterations: 50,
            filter: None,
            for_dashboard: false,
            groups: Group::ALL.to_vec(),
            ours: vec![CAIRN.to_owned()],
            peers: Vec::new(),
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
            work_dir: crate::core::cache::cache_dir().join("work"),
            probes: Some(ProbeEffort::quick()),
        }
    }
}

impl Options {
    /// Returns the defaults, with all engines of the catalogue.
    pub fn with_all(engines: &Registry<dyn SqlStore>) -> Options {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let (ours, peers) = (owned(engines.own_names()), owned(engines.peer_names()));
        Options { ours, peers, ..Options::default() }
    }

    /// Returns the number of samples of each of the guide's cases in a round.
    pub fn samples_each(&self) -> usize {
        self.iterations.div_ceil(self.rounds.max(1)) as usize
    }

    /// Returns the maximum number of concurrent sessions in any case.
    pub fn sessions(&self) -> u32 {
        let most = self.threads.iter().chain(&self.writers).copied().max().unwrap_or(1);
        most.max(self.clients).max(super::guide::WORKERS)
    }

    /// Checks that the options are valid. Errors: [`Error::Invalid`] naming the option.
    pub fn check(&self) -> Result<()> {
        let range = |name: &str, value: f64, least: f64, most: f64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::invalid(format!("{name} {value}: expected {least} to {most}")))
        };
        range("iterations", f64::from(self.iterations), 1.0, 1e6)?;
        range("rounds", f64::from(self.rounds), 1.0, 1000.0)?;
        // Inserts use ids behind the last row, which must fit into 32 bits.
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
        if self.ours.is_empty() && self.peers.is_empty() {
            return Err(Error::invalid("no engines: expected at least one"));
        }
        Ok(())
    }

    /// Returns the settings that influence results and may be missing from
    /// [`Options::data_sentence`] and from the cases.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        results::named([
            ("cache bytes", self.cache_bytes.to_string()),
            ("commits", self.durability.to_string()),
            ("clients", self.clients.to_string()),
            ("rows of the bulk load", self.load_rows.to_string()),
            ("seconds of a turn", self.seconds.to_string()),
        ])
    }

    /// Describes the settings in a sentence, for the report.
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
