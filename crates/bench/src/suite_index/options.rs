//! What the user may choose.

use std::path::PathBuf;

use super::sets::{CONTENDERS, Suite};
use crate::error::{Error, Result};
use crate::probe::ProbeEffort;
use crate::workload::DEFAULT_SEED;

/// Everything that decides what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which data.
    pub suites: Vec<Suite>,
    /// Times the guide's rows.
    pub scale: f64,
    /// Contenders, by name.
    pub contenders: Vec<String>,
    /// Only data sets with this in their name.
    pub filter: Option<String>,
    /// Only data sets of these names; none for all of them.
    pub sets: Vec<String>,
    /// Times that everybody has a turn with every query.
    pub rounds: u32,
    /// How long a turn asks at least, in seconds; never fewer than three times.
    pub seconds: f64,
    /// Whether the first query of each set is asked on a server that has just been started, with
    /// none of its data in memory, too.
    pub cold: bool,
    /// Bytes of PostgreSQL's buffers.
    pub shared_buffers: u64,
    /// Seed of data and orders.
    pub seed: u64,
    /// Where the server has its files: the disk that is measured.
    pub work_dir: PathBuf,
    /// What the machine is probed with; `None` for not at all.
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
            // The guide's.
            shared_buffers: 64 << 20,
            seed: DEFAULT_SEED,
            work_dir: crate::cache_dir().join("work"),
            probes: Some(ProbeEffort::quick()),
        }
    }
}

impl Options {
    /// Errors: numbers that make no sense, contenders that nobody knows.
    pub fn check(&self) -> Result<()> {
        if self.rounds == 0 || !(self.seconds >= 0.0 && self.seconds.is_finite()) {
            return Err(Error::invalid("at least one round, and no fewer than 0 seconds".to_owned()));
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
