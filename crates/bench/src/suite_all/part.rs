//! The unit of work, of estimates and of resuming: as much of a suite as is measured together.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::options::SuiteName;
use crate::error::Result;
use crate::process::Stop;
use crate::results::Run;
use crate::suite_hash::Progress;
use crate::suite_sim::Report;

/// What a part measures, once it is told to.
type Work = Box<dyn Fn(&dyn Progress, &Stop) -> Result<Content>>;

/// A part of a suite.
pub struct Part {
    /// Unique in its suite, the same for the same options.
    pub name: String,
    /// A guess of its seconds, made before anything was measured.
    pub guess_seconds: f64,
    work: Work,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("name", &self.name).field("guess_seconds", &self.guess_seconds).finish()
    }
}

impl Part {
    /// A part that does `work`.
    pub fn new(
        name: impl Into<String>,
        guess_seconds: f64,
        work: impl Fn(&dyn Progress, &Stop) -> Result<Content> + 'static,
    ) -> Part {
        Part { name: name.into(), guess_seconds, work: Box::new(work) }
    }

    /// Measures it.
    pub fn run(&self, progress: &dyn Progress, stop: &Stop) -> Result<Content> {
        (self.work)(progress, stop)
    }
}

/// A suite and its parts, or why it cannot run.
#[derive(Debug)]
pub struct SuitePlan {
    /// Which.
    pub suite: SuiteName,
    /// In the order in which they are measured.
    pub parts: Vec<Part>,
    /// What to install or to build with, in one line, where it cannot run.
    pub missing: Option<String>,
    /// What else is left out of it, and what to install for it.
    pub notes: Vec<String>,
}

/// What a part measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A run of its suite.
    Run(Run),
    /// Predictions beside measurements.
    Sim(Report),
}

impl Content {
    /// How much it is: measurements and the samples behind them, or cases that were predicted and
    /// measured.
    fn figures(&self) -> (usize, usize) {
        match self {
            Content::Run(run) => {
                let samples = run.measurements.iter().map(|measurement| measurement.samples.len()).sum();
                (run.measurements.len(), samples)
            }
            Content::Sim(report) => (report.comparisons.len(), 0),
        }
    }
}

/// How a part ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// It went to its end. Tried again when the run is resumed if something failed of a contender.
    Done,
    /// Its time was up; what it has counts.
    Cut,
    /// The user ended it; it is measured again when the run is resumed.
    Stopped,
    /// It could not be measured, for this reason; it is tried again when the run is resumed.
    Failed(String),
}

/// What a part left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// Its suite.
    pub suite: SuiteName,
    /// Its name.
    pub name: String,
    /// How it ended.
    pub state: PartState,
    /// What it took.
    pub seconds: f64,
    /// What it has.
    pub content: Option<Content>,
}

impl PartResult {
    /// How many figures it has, and how many samples they rest on.
    pub fn figures(&self) -> (usize, usize) {
        self.content.as_ref().map_or((0, 0), Content::figures)
    }

    /// True when a resumed run leaves it as it is: it has ended, and everybody who was asked has
    /// figures. What failed of one contender may have been a full disk.
    pub fn is_final(&self) -> bool {
        let has_failed = matches!(&self.content, Some(Content::Run(run)) if !run.failures().is_empty());
        matches!(self.state, PartState::Done | PartState::Cut) && !has_failed
    }
}
