//! Runs the parts that have no result yet, one after another.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use super::journal::Journal;
use super::options::SuiteName;
use super::part::{Content, Part, PartResult, PartState, SuitePlan};
use super::schedule::{Schedule, TimeLeft};
use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::progress::Progress;

/// Observes the progress of a run. The methods are called from the thread that runs it.
pub trait Watch {
    /// The part at `place`, an index and the number of parts, begins.
    fn part(&self, place: (usize, usize), suite: SuiteName, name: &str, left: TimeLeft);

    /// The part has completed a `share` of its work and begins another step.
    fn step(&self, share: f64, what: &str, left: TimeLeft);

    /// Reports a problem that the run survives and that the user should know. Each is reported
    /// once.
    fn note(&self, line: &str);
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// Suite, part and error of each part that failed.
    pub failed: Vec<(SuiteName, String, String)>,
    /// True if the run ended before all parts had their turn.
    pub stopped: bool,
    /// Number of ended parts, including those of earlier sittings, and number of all parts.
    pub over: (usize, usize),
}

/// Measures every part without a final result in the journal. A part that fails does not end the
/// others.
///
/// Errors: the result of a part cannot be stored.
pub fn measure(plans: &[SuitePlan], journal: &mut Journal, watch: &dyn Watch, stop: &Stop) -> Result<Ending> {
    let parts: Vec<(SuiteName, &Part)> =
        plans.iter().flat_map(|plan| plan.parts.iter().map(|part| (plan.suite, part))).collect();
    let mut schedule = Schedule::new(journal.head().options.budget_seconds);
    for (suite, part) in &parts {
        schedule.add(*suite, part.estimated_seconds);
    }
    for (index, (suite, part)) in parts.iter().enumerate() {
        if let Some(known) = journal.result(*suite, &part.name).filter(|known| known.is_final()) {
            schedule.ended(index, known.seconds, known.state == PartState::Done);
        }
    }
    let told = RefCell::new(BTreeSet::new());
    let note = |line: &str| {
        if told.borrow_mut().insert(line.to_owned()) {
            watch.note(line);
        }
    };
    journal.notes().iter().for_each(|line| note(line));
    for plan in plans {
        if let Some(missing) = &plan.missing {
            note(&format!("{} is left out: {missing}", plan.suite.word()));
        }
        plan.notes.iter().for_each(|line| note(line));
    }
    let mut ending = Ending { over: (0, parts.len()), ..Ending::default() };
    let clock = SystemClock::new();
    for (index, (suite, part)) in parts.iter().enumerate() {
        if journal.result(*suite, &part.name).is_some_and(PartResult::is_final) {
            ending.over.0 += 1;
            continue;
        }
        if stop.is_reached() {
            ending.stopped = true;
            break;
        }
        watch.part((index, parts.len()), *suite, &part.name, schedule.left(index, 0.0, 0.0));
        let own = schedule.limit(index).map_or_else(|| stop.clone(), |limit| stop.within(limit));
        let begun = clock.now();
        let steps = Steps {
            watch,
            note: &note,
            schedule: &schedule,
            index,
            clock: &clock,
            begun,
            groups: Cell::new((0, 1)),
        };
        let (state, content) = ended(part.run(&steps, &own), stop);
        let seconds = (clock.now() - begun).as_secs_f64();
        schedule.ended(index, seconds, state == PartState::Done);
        let name = format!("{}, {}", suite.word(), part.name);
        let result =
            PartResult { suite: *suite, name: part.name.clone(), state: state.clone(), seconds, content };
        let is_kept = keep(journal, result)?;
        if !is_kept {
            note(&format!("{name}: it was not finished; an earlier sitting has more of it, which stays"));
        }
        match state {
            PartState::Done => {}
            PartState::Cut if is_kept => {
                note(&format!("{name}: its time was up after {seconds:.0} s; the figures so far count"));
            }
            PartState::Cut => {}
            PartState::Stopped => ending.stopped = true,
            PartState::Failed(why) => {
                note(&format!("{name} failed: {why}"));
                ending.failed.push((*suite, part.name.clone(), why));
            }
        }
        if ending.stopped {
            break;
        }
        ending.over.0 += 1;
    }
    Ok(ending)
}

/// Stores the result of a part, unless the journal has more measurements of that part already. If a
/// part is measured again but ends early, the result of the earlier sitting stays, and the part is
/// measured again another time. Returns true if the result was stored.
fn keep(journal: &mut Journal, result: PartResult) -> Result<bool> {
    let (figures, samples) = result.figures();
    let known = journal.result(result.suite, &result.name).map_or((0, 0), PartResult::figures);
    // All measurements exist after the first round of five, so their number alone does not show
    // which result has more.
    let is_kept = result.state == PartState::Done || (known.0 <= figures && known.1 <= samples);
    if is_kept {
        journal.keep(result)?;
    }
    Ok(is_kept)
}

/// Returns how a part ended: because its time was up, by the user, or on its own.
fn ended(outcome: Result<Content>, stop: &Stop) -> (PartState, Option<Content>) {
    let early = if stop.is_reached() { PartState::Stopped } else { PartState::Cut };
    match outcome {
        Ok(Content::Run(run)) if run.stopped => (early, Some(Content::Run(run))),
        Ok(content) => (PartState::Done, Some(content)),
        Err(Error::Interrupted) => (early, None),
        Err(error) => (PartState::Failed(error.to_string()), None),
    }
}

/// Forwards the progress that a suite reports about its part, with an estimate of the rest of the
/// run.
struct Steps<'a> {
    watch: &'a dyn Watch,
    note: &'a dyn Fn(&str),
    schedule: &'a Schedule,
    index: usize,
    clock: &'a SystemClock,
    begun: Duration,
    /// The current group, and the number of groups.
    groups: Cell<(usize, usize)>,
}

impl Steps<'_> {
    fn tell(&self, within_group: f64, what: &str) {
        let (group, count) = self.groups.get();
        let share = ((group as f64 + within_group) / count.max(1) as f64).clamp(0.0, 1.0);
        let seconds = (self.clock.now() - self.begun).as_secs_f64();
        self.watch.step(share, what, self.schedule.left(self.index, share, seconds));
    }
}

impl Progress for Steps<'_> {
    fn group(&self, index: usize, count: usize, name: &str) {
        self.groups.set((index, count));
        self.tell(0.0, name);
    }

    fn step(&self, done: usize, total: usize, what: &str) {
        self.tell(if total == 0 { 0.0 } else { done as f64 / total as f64 }, what);
    }

    fn note(&self, line: &str) {
        (self.note)(line);
    }
}
