//! Parts: the units of work, of time estimates and of resuming. A part is the portion of a suite
//! that is measured together.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::options::SuiteName;
use crate::core::error::Result;
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::results::Run;
use crate::suites::sim::Report;

/// The measurement of a part, run on demand.
type Work = Box<dyn Fn(&dyn Progress, &Stop) -> Result<Content>>;

/// A part of a suite.
pub struct Part {
    /// Unique in its suite, and the same for the same options.
    pub name: String,
    /// Estimate of the duration in seconds, made before anything was measured.
    pub estimated_seconds: f64,
    work: Work,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("name", &self.name)
            .field("estimated_seconds", &self.estimated_seconds)
            .finish()
    }
}

impl Part {
    /// Creates a part that does `work`.
    pub fn new(
        name: impl Into<String>,
        estimated_seconds: f64,
        work: impl Fn(&dyn Progress, &Stop) -> Result<Content> + 'static,
    ) -> Part {
        Part { name: name.into(), estimated_seconds, work: Box::new(work) }
    }

    /// Measures the part.
    pub fn run(&self, progress: &dyn Progress, stop: &Stop) -> Result<Content> {
        (self.work)(progress, stop)
    }
}

/// A suite and its parts, or the reason that it cannot run.
#[derive(Debug)]
pub struct SuitePlan {
    /// The suite.
    pub suite: SuiteName,
    /// The parts, in the order in which they are measured.
    pub parts: Vec<Part>,
    /// If the suite cannot run: the software to install or the feature to build with, in one line.
    pub missing: Option<String>,
    /// Other omissions, each with the software to install.
    pub notes: Vec<String>,
}

/// The measurements of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A run of its suite.
    Run(Run),
    /// Predictions beside measurements, from the simulator's suite.
    Sim(Report),
}

impl Content {
    /// Returns the amount of content: numbers of measurements and of their samples, or the number
    /// of cases that were predicted and measured.
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
    /// It completed. Resuming the run measures it again if a contender failed.
    Done,
    /// Its time was up. The measurements so far count.
    Cut,
    /// The user ended it. Resuming the run measures it again.
    Stopped,
    /// It could not be measured, for this reason. Resuming the run tries it again.
    Failed(String),
}

/// The result of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartResult {
    /// The suite of the part.
    pub suite: SuiteName,
    /// The name of the part.
    pub name: String,
    /// How the part ended.
    pub state: PartState,
    /// Duration of the part.
    pub seconds: f64,
    /// The measurements, if there are any.
    pub content: Option<Content>,
}

impl PartResult {
    /// Returns the number of measurements, and the number of samples behind them.
    pub fn figures(&self) -> (usize, usize) {
        self.content.as_ref().map_or((0, 0), Content::figures)
    }

    /// Returns true if resuming the run leaves the part as it is: it has ended, and every contender
    /// that took part has measurements. The failure of a contender may have had a temporary cause,
    /// such as a full disk.
    pub fn is_final(&self) -> bool {
        let has_failed = matches!(&self.content, Some(Content::Run(run)) if !run.failures().is_empty());
        matches!(self.state, PartState::Done | PartState::Cut) && !has_failed
    }
}
