//! What a run has, whether it came to its end or not: every suite with its parts put together.

use super::journal::{Head, Journal};
use super::merge;
use super::options::SuiteName;
use super::part::{Content, PartResult, PartState, SuitePlan};
use crate::error::Result;
use crate::results::{Contender, Run};
use crate::suite_sim::Report;

/// A run over all suites.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Options and sittings.
    pub head: Head,
    /// In the order in which they run.
    pub suites: Vec<SuiteResult>,
}

/// One suite of it.
#[derive(Debug, Clone)]
pub struct SuiteResult {
    /// Which.
    pub suite: SuiteName,
    /// Why it did not run, where it could not.
    pub missing: Option<String>,
    /// What else was left out of it.
    pub notes: Vec<String>,
    /// Its parts.
    pub parts: Vec<PartSummary>,
    /// Its measurements.
    pub run: Option<Run>,
    /// Of the simulator: predictions beside measurements.
    pub sim: Option<Report>,
}

/// One part of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSummary {
    /// Its name.
    pub name: String,
    /// How it ended; `None` when it did not begin.
    pub state: Option<PartState>,
    /// What it took.
    pub seconds: f64,
}

impl Whole {
    /// What a journal holds of these suites: the parts of the plans, then those that the plans of
    /// today lack.
    pub fn of(plans: &[SuitePlan], journal: &Journal) -> Whole {
        let head = journal.head().clone();
        let suites = plans.iter().map(|plan| suite(plan, journal)).collect();
        Whole { head, suites }
    }

    /// True when anything was measured.
    pub fn has_figures(&self) -> bool {
        self.suites.iter().any(|suite| suite.has_figures())
    }

    /// True when a contender failed somewhere.
    pub fn has_failures(&self) -> bool {
        self.suites.iter().any(|suite| !suite.failures().is_empty())
    }

    /// Keeps each suite's results in the run's directory: stored runs like any other, and the
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

    /// Seconds of all parts.
    pub fn seconds(&self) -> f64 {
        self.suites.iter().flat_map(|suite| &suite.parts).map(|part| part.seconds).sum()
    }
}

impl SuiteResult {
    /// True when anything was measured.
    pub fn has_figures(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.measurements.is_empty())
            || self.sim.as_ref().is_some_and(|report| !report.comparisons.is_empty())
    }

    /// Contenders that failed in it, Cairn's own first.
    pub fn failures(&self) -> Vec<&Contender> {
        self.run.as_ref().map(Run::failures).unwrap_or_default()
    }

    /// What is said of Cairn's own where they failed: there, being behind nobody means nothing.
    pub fn own_failures(&self) -> Vec<String> {
        self.failures().into_iter().filter(|failed| failed.ours).filter_map(Contender::failure).collect()
    }

    /// Seconds of its parts.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|part| part.seconds).sum()
    }

    /// How it went, in a few words: `done`, `2 of 3 parts, 1 cut`, `done, cairn failed in 2`.
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
    // What was measured stays, also where something that it needs is not here today.
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
        // Without a part it is no whole one, whose figures others are held against.
        run: run.map(|run| Run { stopped: run.stopped || lacks, ..run }),
        sim: Report::merged(reports),
        parts,
    }
}
