//! Contention between flows. Each flow alternates between working and waiting for files,
//! independently of the others.
//!
//! The model is a closed queueing network under the arrival theorem: a flow that arrives finds the
//! others as if it were not in the network itself (Reiser and Lavenberg, JACM 1980, here with a
//! processor that all ready threads share).

use super::flow::{Flow, Interference};

/// Computes how flows slow each other down. Holds buffers that are reused.
#[derive(Default)]
pub(super) struct Contention {
    parts: Vec<Part>,
    /// The probability of each number of ready threads of other flows.
    others: Vec<f64>,
}

/// How a flow spends its time.
#[derive(Clone, Copy)]
struct Part {
    /// The share of time in which its threads are ready to run.
    works: f64,
    /// The number of its threads.
    threads: f64,
    /// The share of time in which its threads wait for files.
    waits: f64,
}

impl Contention {
    /// Recomputes the effect of the other flows on each flow at these speeds. Returns the largest
    /// change.
    pub(super) fn update(
        &mut self,
        flows: &[Flow],
        speeds: &[f64],
        core: f64,
        interference: &mut [Interference],
    ) -> f64 {
        self.parts.clear();
        let at_speeds = flows.iter().zip(speeds).zip(interference.iter());
        self.parts.extend(at_speeds.map(|((flow, speed), effect)| {
            let turns = speed / flow.alone_secs;
            let works = (flow.thread_secs / flow.core_at(core, *effect) * turns).min(1.0);
            Part { works, threads: flow.threads, waits: (flow.waits(*effect) * turns).min(1.0) }
        }));
        debug_assert!(
            self.parts
                .iter()
                .all(|part| (0.0..=1.0).contains(&part.works) && (0.0..=1.0).contains(&part.waits)),
            "found a flow that works or waits for more than all of the time"
        );
        let work: f64 = self.parts.iter().map(|part| part.works * part.threads).sum();
        let waits: f64 = self.parts.iter().map(|part| part.waits * part.threads).sum();
        let mut change = 0.0f64;
        for (at, ((flow, part), effect)) in flows.iter().zip(&self.parts).zip(interference).enumerate() {
            let core = core_shared(&self.parts, &mut self.others, at, flow);
            let load = (work - part.works * part.threads) / flow.cores;
            let files = (waits - part.waits * part.threads).max(0.0);
            for (effect, next) in
                [(&mut effect.core, core), (&mut effect.load, load), (&mut effect.files, files)]
            {
                change = change.max((next - *effect).abs());
                // Moves only half way. A faster flow slows the others down, so full steps would
                // oscillate.
                *effect = f64::midpoint(*effect, next);
            }
        }
        change
    }
}

/// Returns the mean part of a core that each thread of a flow gets next to the threads of the other
/// flows. Threads of one flow work at the same time.
fn core_shared(parts: &[Part], others: &mut Vec<f64>, place: usize, own: &Flow) -> f64 {
    others.clear();
    others.push(1.0);
    for (_, part) in parts.iter().enumerate().filter(|(at, part)| *at != place && part.works > 0.0) {
        let (more, before) = (part.threads.round() as usize, others.len());
        others.resize(before + more, 0.0);
        for count in (0..before).rev() {
            let likely = others[count];
            others[count] = likely * (1.0 - part.works);
            others[count + more] += likely * part.works;
        }
    }
    debug_assert!((others.iter().sum::<f64>() - 1.0).abs() < 1e-6, "probabilities add up to 1");
    let core = |(count, likely): (usize, &f64)| likely * (own.cores / (own.threads + count as f64)).min(1.0);
    others.iter().enumerate().map(core).sum()
}
