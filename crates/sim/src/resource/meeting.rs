//! How flows meet: each works at times, and waits for files at times, without regard to the others.
//!
//! A closed network of queues, as its customers see it: whoever arrives finds the others as if it
//! were not there itself (Reiser and Lavenberg, JACM 1980, here with a processor that is shared by
//! all who are at it).

use super::Flow;

/// What others do to a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// The part of a core that each of its threads gets as long as it works: others work at times,
    /// and wait at times.
    pub(super) core: f64,
    /// Seconds that it waits for bandwidth.
    pub(super) secs: f64,
    /// Threads of others that work or want to, for each core.
    pub(super) load: f64,
    /// Others that wait for files.
    pub(super) files: f64,
}

/// Nothing.
pub(super) const FREE: Held = Held { core: 1.0, secs: 0.0, load: 0.0, files: 0.0 };

/// How flows meet.
#[derive(Default)]
pub(super) struct Meeting {
    parts: Vec<Part>,
    /// How likely so many threads of others work.
    others: Vec<f64>,
}

/// What a flow does with its time.
#[derive(Clone, Copy)]
struct Part {
    /// The part of it in which its threads work, or want to.
    works: f64,
    /// How many they are then.
    threads: f64,
    /// The part of it in which they wait for files.
    waits: f64,
}

impl Meeting {
    /// Looks again at what others do to each flow at these speeds. Says how much has changed.
    pub(super) fn look(&mut self, flows: &[Flow], speeds: &[f64], core: f64, by_others: &mut [Held]) -> f64 {
        self.parts.clear();
        let at_speeds = flows.iter().zip(speeds).zip(by_others.iter());
        self.parts.extend(at_speeds.map(|((flow, speed), held)| {
            let turns = speed / flow.alone_secs;
            let works = (flow.thread_secs / flow.core_at(core, *held) * turns).min(1.0);
            Part { works, threads: flow.threads, waits: (flow.waits(*held) * turns).min(1.0) }
        }));
        let work: f64 = self.parts.iter().map(|part| part.works * part.threads).sum();
        let waits: f64 = self.parts.iter().map(|part| part.waits * part.threads).sum();
        let mut change = 0.0f64;
        for (at, ((flow, part), held)) in flows.iter().zip(&self.parts).zip(by_others).enumerate() {
            let core = core_beside(&self.parts, &mut self.others, at, flow);
            let load = (work - part.works * part.threads) / flow.cores;
            let files = (waits - part.waits * part.threads).max(0.0);
            for (held, next) in [(&mut held.core, core), (&mut held.load, load), (&mut held.files, files)] {
                change = change.max((next - *held).abs());
                // Half way: who is faster makes others slower, which else goes back and forth.
                *held = f64::midpoint(*held, next);
            }
        }
        change
    }
}

/// The mean part of a core that each thread of a flow gets beside those of others. Threads of one
/// flow work at the same time.
fn core_beside(parts: &[Part], others: &mut Vec<f64>, place: usize, own: &Flow) -> f64 {
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
    let core = |(count, likely): (usize, &f64)| likely * (own.cores / (own.threads + count as f64)).min(1.0);
    others.iter().enumerate().map(core).sum()
}
