//! Who gets what when something is short.

use super::flow::Flow;
use super::meeting::{FREE, Held, Meeting};
use super::{ALL, RESOURCES, Resource};

/// The least part of a core that a thread gets.
const CORE_MIN: f64 = 1e-6;

/// Halvings in which the part of a core is found that all threads get.
const HALVINGS: usize = 36;

/// Rounds in which cores and disk are brought together when both are short.
const ROUNDS: usize = 200;

/// Rounds in which waits that are longer on busy cores, and how busy they are, are brought
/// together.
const LOADS: usize = 40;

/// Speeds of flows, 1 for a flow that runs as if alone, and which resource holds back each that
/// does not.
///
/// A scheduler gives all threads that want to run the same part of a core. Whoever waits for the
/// disk most of the time is held back by others only while it works, and a flow of many threads
/// gets the time of many. Bandwidth is divided by progressive filling.
pub fn share(flows: &[Flow], speeds: &mut Vec<f64>, held: &mut Vec<Option<Resource>>) -> [f64; RESOURCES] {
    speeds.clear();
    speeds.resize(flows.len(), 1.0);
    held.clear();
    held.resize(flows.len(), None);
    let used = used_by(flows, speeds);
    let is_short = used.iter().any(|used| *used > 1.0);
    let mut by_others = vec![FREE; flows.len()];
    // Of a machine that was not measured nobody knows how flows meet: it is divided evenly, in a
    // third of the time.
    if !flows.iter().any(Flow::has_waits_by_others) {
        if is_short {
            share_what_is_short(flows, speeds, held, &by_others);
            return used_by(flows, speeds);
        }
        return used;
    }
    let mut meeting = Meeting::default();
    for _ in 0..LOADS {
        let core = share_what_is_short(flows, speeds, held, &by_others);
        if meeting.look(flows, speeds, core, &mut by_others) < 1e-3 {
            break;
        }
    }
    used_by(flows, speeds)
}

/// Speeds of flows under what others do to their waits. Returns the part of a core that each thread
/// gets.
fn share_what_is_short(
    flows: &[Flow],
    speeds: &mut [f64],
    held: &mut [Option<Resource>],
    by_others: &[Held],
) -> f64 {
    // Seconds that each flow waits for bandwidth. The more that is, the more of the cores is left
    // to others, who then need more bandwidth: parts of a core rise from round to round.
    let mut held_up = by_others.to_vec();
    let mut core = 0.0;
    for _ in 0..ROUNDS {
        let before = std::mem::replace(&mut core, core_of_each(flows, &held_up));
        for ((speed, flow), wait) in speeds.iter_mut().zip(flows).zip(&held_up) {
            *speed = flow.speed_at(core, Held { secs: 0.0, ..*wait });
        }
        let is_short = fill(flows, speeds, held);
        if !is_short || core - before < 1e-9 {
            break;
        }
        for ((wait, flow), speed) in held_up.iter_mut().zip(flows).zip(speeds.iter()) {
            let without = flow.speed_at(core, Held { secs: 0.0, ..*wait });
            wait.secs = (flow.alone_secs / speed - flow.alone_secs / without).max(0.0);
        }
    }
    for (held, speed) in held.iter_mut().zip(speeds.iter()) {
        if *speed < 1.0 - 1e-9 {
            held.get_or_insert(Resource::Cpu);
        }
    }
    core
}

fn used_by(flows: &[Flow], speeds: &[f64]) -> [f64; RESOURCES] {
    let mut used = [0.0f64; RESOURCES];
    for (flow, speed) in flows.iter().zip(speeds) {
        used.iter_mut().zip(flow.share).for_each(|(used, share)| *used += share * speed);
    }
    used
}

/// The part of a core that each thread gets when it wants to run: a whole one, or as much as fills
/// the cores.
fn core_of_each(flows: &[Flow], held_up: &[Held]) -> f64 {
    let used = |core: f64| -> f64 {
        let parts = flows.iter().zip(held_up);
        parts.map(|(flow, wait)| flow.share[Resource::Cpu as usize] * flow.speed_at(core, *wait)).sum()
    };
    if used(1.0) <= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (CORE_MIN, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        *(if used(middle) <= 1.0 { &mut low } else { &mut high }) = middle;
    }
    low
}

/// Brings speeds down until no bandwidth is above full, and notes what holds whom. All rise
/// together, each by its weight; when a resource is full, the flows that use it stay where they
/// are. Says whether anything was short.
fn fill(flows: &[Flow], speeds: &mut [f64], held: &mut [Option<Resource>]) -> bool {
    held.fill(None);
    let is_short = |used: &[f64; RESOURCES]| {
        used.iter().enumerate().any(|(at, used)| at != Resource::Cpu as usize && *used > 1.0)
    };
    if !is_short(&used_by(flows, speeds)) {
        return false;
    }
    let most: Vec<f64> = speeds.to_vec();
    speeds.fill(0.0);
    let mut used = [0.0f64; RESOURCES];
    // Of flows that may rise: place and weight.
    let mut rising: Vec<(usize, f64)> = flows.iter().map(Flow::weight).enumerate().collect();
    // BOUND: each round fixes at least one flow.
    while !rising.is_empty() {
        let mut need = [0.0f64; RESOURCES];
        // How far all can rise until one is as fast as it can be, or a resource is full.
        let mut rise = f64::INFINITY;
        for &(at, weight) in &rising {
            for (sum, share) in need.iter_mut().zip(flows[at].share) {
                *sum += share * weight;
            }
            rise = rise.min((most[at] - speeds[at]) / weight);
        }
        need[Resource::Cpu as usize] = 0.0;
        let mut full = None;
        for at in 0..RESOURCES {
            if need[at] > 1e-12 {
                let room = ((1.0 - used[at]) / need[at]).max(0.0);
                if room < rise {
                    (rise, full) = (room, Some(at));
                }
            }
        }
        for at in 0..RESOURCES {
            used[at] += need[at] * rise;
        }
        rising.retain(|&(at, weight)| {
            speeds[at] += weight * rise;
            if speeds[at] >= most[at] * (1.0 - 1e-9) {
                speeds[at] = most[at];
                return false;
            }
            let stays = full.is_some_and(|full| flows[at].share[full] > 1e-12);
            if stays {
                held[at] = full.and_then(|full| ALL.get(full).copied());
            }
            !stays
        });
    }
    true
}
