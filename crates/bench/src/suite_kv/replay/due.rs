//! When operations are due at recorded speed, where many have the same time: a recorder looks at
//! the clock now and then, and other clocks have whole seconds.
//!
//! ```text
//!   recorded   0 0 0 0 . . . . . . . . . 80 80 . . . . . 120      all of a run would be due at once, each charged for those before it
//!   due        0     20     40     60    80     100      120      evenly, up to the next time of the same lane
//! ```
//!
//! A batch is due as one. Before a pause, and before the end, there is no such time: the operations
//! keep the pace of those before them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use cairn_trace::{Event, Trace};

use crate::error::Result;

/// After so long without an operation a recorder looks at the clock for each one. A longer way to
/// the next time is a pause, or one step of a coarse clock.
const PAUSE_NS: u64 = 1_000_000;

/// Operations of a lane that have the same time, one after the other.
#[derive(Debug)]
struct Run {
    time_ns: u64,
    /// From one to the next.
    each_ns: f64,
}

/// Where a lane is.
#[derive(Debug, Default)]
struct Lane {
    time_ns: u64,
    /// Operations that have had this time so far, a batch as one.
    operations: u64,
    /// From one to the next.
    each_ns: f64,
    /// When the last one is due.
    due_ns: u64,
}

/// Hands the first `most` operations of a trace to `add`, each with the time at which it is due, in
/// the order of these.
///
/// Errors: records that are damaged behind a sound checksum; those of `add`.
pub(super) fn each<'t>(
    trace: &'t Trace,
    most: usize,
    mut add: impl FnMut(&Event<'t>) -> Result<()>,
) -> Result<()> {
    let mut runs = runs(trace, most)?;
    let mut lanes: HashMap<u32, Lane> = HashMap::new();
    // Of several lanes: what is due later than the next time of another one. By number, too, so
    // that a batch stays together.
    let mut waiting: BTreeMap<(u64, usize), Event<'t>> = BTreeMap::new();
    let is_alone = trace.lanes() <= 1;
    for (number, event) in trace.events().take(most).enumerate() {
        let event = event?;
        let lane = lanes.entry(event.lane).or_default();
        if lane.is_new(&event) {
            lane.go_on(event.time_ns, runs.entry(event.lane).or_default());
            while let Some(first) = waiting.first_entry() {
                if first.key().0 > event.time_ns {
                    break;
                }
                add(&first.remove())?;
            }
        }
        let event = Event { time_ns: lane.due_ns, ..event };
        if is_alone {
            add(&event)?;
        } else {
            waiting.insert((event.time_ns, number), event);
        }
    }
    waiting.values().try_for_each(add)
}

/// By lane, its runs of more than one operation.
fn runs(trace: &Trace, most: usize) -> Result<HashMap<u32, VecDeque<Run>>> {
    let step_ns = trace.step_ns();
    let mut lanes: HashMap<u32, (Lane, VecDeque<Run>)> = HashMap::new();
    for event in trace.events().take(most) {
        let event = event?;
        let (lane, runs) = lanes.entry(event.lane).or_default();
        if !lane.is_new(&event) {
            continue;
        }
        if lane.operations > 0 && event.time_ns != lane.time_ns {
            runs.extend(lane.end(Some(event.time_ns.saturating_sub(lane.time_ns)), step_ns));
        }
        lane.time_ns = event.time_ns;
        lane.operations += 1;
    }
    let ended = lanes.into_iter().map(|(number, (mut lane, mut runs))| {
        runs.extend(lane.end(None, step_ns));
        (number, runs)
    });
    Ok(ended.collect())
}

impl Lane {
    /// True for an operation that is not of the batch of the one before.
    fn is_new(&self, event: &Event<'_>) -> bool {
        !event.joined || self.operations == 0
    }

    /// Ends the run, `gap_ns` before the lane's next time. `None` where it is of one operation.
    /// `each_ns` stays what it was last without a pause.
    fn end(&mut self, gap_ns: Option<u64>, step_ns: u64) -> Option<Run> {
        let operations = self.operations as f64;
        let each_ns = match gap_ns {
            Some(gap_ns) if gap_ns <= PAUSE_NS.max(step_ns) => {
                self.each_ns = gap_ns as f64 / operations;
                self.each_ns
            }
            // They came somewhere within the step.
            _ if step_ns >= PAUSE_NS => step_ns as f64 / operations,
            _ => self.each_ns.min(PAUSE_NS as f64 / operations),
        };
        let is_run = self.operations > 1;
        self.operations = 0;
        is_run.then_some(Run { time_ns: self.time_ns, each_ns })
    }

    /// Goes on to the next operation, at `time_ns`, and says when it is due.
    fn go_on(&mut self, time_ns: u64, runs: &mut VecDeque<Run>) {
        if self.operations == 0 || time_ns != self.time_ns {
            let run = runs.front().is_some_and(|run| run.time_ns == time_ns).then(|| runs.pop_front());
            let each_ns = run.flatten().map_or(0.0, |run| run.each_ns);
            (self.time_ns, self.operations, self.each_ns) = (time_ns, 0, each_ns);
        }
        self.due_ns = time_ns.saturating_add((self.operations as f64 * self.each_ns) as u64);
        self.operations += 1;
    }
}
