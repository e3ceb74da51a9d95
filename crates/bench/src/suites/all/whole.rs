//! The results of a run, complete or not: every suite with its parts merged.

use super::journal::{Head, Journal};
use super::merge;
use super::options::SuiteName;
use super::part::{Content, PartResult, PartState, SuitePlan};
use crate::core::error::Result;
use crate::core::results::{Contender, Run};
use crate::suites::sim::Report;

/// A run over all suites.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Options and sittings.
    pub head: Head,
    /// The suites, in the order in which they run.
    pub suites: Vec<SuiteResult>,
}

/// The result of one suite.
#[derive(Debug, Clone)]
pub struct SuiteResult {
    /// The suite.
    pub suite: SuiteName,
    /// The reason that it could not run, if it could not.
    pub missing: Option<String>,
    /// Other omissions.
    pub notes: Vec<String>,
    /// The parts.
    pub parts: Vec<PartSummary>,
    /// The merged measurements.
    pub run: Option<Run>,
    /// The simulator's predictions beside measurements.
    pub sim: Option<Report>,
}

/// The summary of one part of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSummary {
    /// The part's name.
    pub name: String,
    /// How the part ended; `None` if it has not begun.
    pub state: Option<PartState>,
    /// Duration of the part.
    pub seconds: f64,
}

impl Whole {
    /// Collects the results of these suites from a journal: the parts of the plans, then stored
    /// parts that the current plans lack.
    pub fn of(plans: &[SuitePlan], journal: &Journal) -> Whole {
        let head = journal.head().clone();
        let suites = plans.iter().map(|plan| suite(plan, journal)).collect();
        Whole { head, suites }
    }

    /// Returns true if anything was measured.
    pub fn has_figures(&self) -> bool {
        self.suites.iter().any(|suite| suite.has_figures())
    }

    /// Returns true if a contender failed in any suite.
    pub fn has_failures(&self) -> bool {
        self.suites.iter().any(|suite| !suite.failures().is_empty())
    }

    /// Writes each suite's results into the run's directory: ordinary stored runs, and the
    /// simulator's report.
    pub fn keep(&self, journal: &Journal) -> Result<()> {
        for suite in &self.suites {
            if let Some(run) = &suite.run {
                journal.write_result(suite.suite.word(), run)?;
            }
            if let Some(report) = &suite.sim {
                journal.write_report(suite.suite.word(), report)?;
            }
        }
        Ok(())
    }

    /// Returns the total seconds of all parts.
    pub fn seconds(&self) -> f64 {
        self.suites.iter().flat_map(|suite| &suite.parts).map(|part| part.seconds).sum()
    }
}

impl SuiteResult {
    /// Returns true if anything was measured.
    pub fn has_figures(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.measurements.is_empty())
            || self.sim.as_ref().is_some_and(|report| !report.comparisons.is_empty())
    }

    /// Returns the contenders that failed in the suite, Cairn's own first.
    pub fn failures(&self) -> Vec<&Contender> {
        self.run.as_ref().map(Run::failures).unwrap_or_default()
    }

    /// Describes the cases in which Cairn's own contenders failed. In such a case, the absence of a
    /// peer that is ahead means nothing.
    pub fn own_failures(&self) -> Vec<String> {
        self.failures().into_iter().filter(|failed| failed.ours).filter_map(Contender::failure).collect()
    }

    /// Returns the total seconds of its parts.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|part| part.seconds).sum()
    }

    /// Summarizes how the suite went: `done`, `2 of 3 parts, 1 cut`, `done, cairn failed in 2`.
    pub fn standing(&self) -> String {
        if self.missing.is_some() && self.parts.is_empty() {
            return "left out".to_owned();
        }
        let count = |wanted: &dyn Fn(&PartState) -> bool| {
            self.parts.iter().filter(|part| part.state.as_ref().is_some_and(wanted)).count()
        };
        let over = count(&|state| matches!(state, PartState::Done | PartState::Cut));
        let told = [
            (count(&|state| *state == PartState::Cut), "cut"),
            (count(&|state| *state == PartState::Stopped), "stopped"),
            (count(&|state| matches!(state, PartState::Failed(_))), "failed"),
        ];
        let mut told: Vec<String> = told
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let failures = self.failures();
        if let Some(first) = failures.first() {
            told.push(format!("{} failed in {}", first.name, first.failures()));
        }
        if failures.len() > 1 {
            told.push(format!("{} more failed", failures.len() - 1));
        }
        match (over == self.parts.len(), told.is_empty()) {
            (true, true) => "done".to_owned(),
            (true, false) => format!("done, {}", told.join(", ")),
            (false, true) => format!("{over} of {} parts", self.parts.len()),
            (false, false) => format!("{over} of {} parts, {}", self.parts.len(), told.join(", ")),
        }
    }
}

fn suite(plan: &SuitePlan, journal: &Journal) -> SuiteResult {
    let (mut parts, mut runs, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    let planned = plan.parts.iter().map(|part| (&part.name, journal.result(plan.suite, &part.name)));
    let lacks = planned.clone().any(|(_, result)| result.is_none_or(|result| result.content.is_none()));
    // Stored measurements stay in the result, even if software that they need is missing today.
    let is_other = |result: &&PartResult| !plan.parts.iter().any(|part| part.name == result.name);
    let others = journal.results(plan.suite).filter(is_other).map(|result| (&result.name, Some(result)));
    for (name, result) in planned.chain(others) {
        parts.push(PartSummary {
            name: name.clone(),
            state: result.map(|result| result.state.clone()),
            seconds: result.map_or(0.0, |result| result.seconds),
        });
        match result.and_then(|result| result.content.as_ref()) {
            Some(Content::Run(run)) => runs.push(run),
            Some(Content::Sim(report)) => reports.push(report.clone()),
            None => {}
        }
    }
    let run = merge::runs(journal.head(), plan.suite, &runs);
    SuiteResult {
        suite: plan.suite,
        missing: plan.missing.clone().filter(|_| parts.is_empty()),
        notes: plan.notes.clone(),
        // A suite that lacks a part is marked as stopped, so that it does not become a baseline for
        // other runs.
        run: run.map(|run| Run { stopped: run.stopped || lacks, ..run }),
        sim: Report::merged(reports),
        parts,
    }
}
