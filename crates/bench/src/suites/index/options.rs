//! The options of a run.

use std::path::PathBuf;

use super::sets::{CONTENDERS, Suite};
use crate::core::error::{Error, Result};
use crate::core::probe::ProbeEffort;
use crate::core::workload::DEFAULT_SEED;

/// The options that decide what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// The suites of data sets.
    pub suites: Vec<Suite>,
    /// Factor on the guide's number of rows.
    pub scale: f64,
    /// Contenders, by name.
    pub contenders: Vec<String>,
    /// Only data sets whose name contains this.
    pub filter: Option<String>,
    /// Only data sets with these names; empty for all of them.
    pub sets: Vec<String>,
    /// Number of turns of each contender with each query.
    pub rounds: u32,
    /// Minimum length of a turn in seconds. A turn always runs its query at least three times.
    pub seconds: f64,
    /// Whether the first query of each set is also measured on a server that has just been started,
    /// with none of its data in memory.
    pub cold: bool,
    /// Size of PostgreSQL's shared buffers in bytes.
    pub shared_buffers: u64,
    /// Seed of data and orders.
    pub seed: u64,
    /// Directory of the server's files. Its disk is the one that is measured.
    pub work_dir: PathBuf,
    /// Effort of probing the machine; `None` to skip the probes.
    pub probes: Option<ProbeEffort>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            suites: vec![Suite::Quick],
            scale: 1.0,
            contenders: CONTENDERS.iter().map(|name| (*name).to_owned()).collect(),
            filter: None,
            sets: Vec::new(),
            rounds: 5,
            seconds: 0.1,
            cold: true,
            // The guide's size.
            shared_buffers: 64 << 20,
            seed: DEFAULT_SEED,
            work_dir: crate::core::cache::cache_dir().join("work"),
            probes: Some(ProbeEffort::quick()),
        }
    }
}

impl Options {
    /// Checks the options. Errors: invalid numbers, unknown contenders.
    pub fn check(&self) -> Result<()> {
        if self.rounds == 0 || !(self.seconds >= 0.0 && self.seconds.is_finite()) {
            return Err(Error::invalid("expected at least one round and at least 0 seconds".to_owned()));
        }
        if !(self.scale > 0.0 && self.scale <= 100.0) {
            return Err(Error::invalid(format!(
                "a scale of {}: expected more than 0, at most 100",
                self.scale
            )));
        }
        if let Some(name) = self.contenders.iter().find(|name| !CONTENDERS.contains(&name.as_str())) {
            return Err(Error::invalid(format!("no contender {name:?}; known: {}", CONTENDERS.join(", "))));
        }
        Ok(())
    }
}
