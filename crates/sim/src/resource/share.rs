//! Divides cores and bandwidth among flows when they are short.

use super::flow::Flow;
use super::meeting::{FREE, Held, Meeting};
use super::{ALL, RESOURCES, Resource};

/// The least part of a core that a thread gets.
const CORE_MIN: f64 = 1e-6;

/// Bisection steps to find the part of a core that each thread gets.
const HALVINGS: usize = 36;

/// The most rounds to reconcile cores and disk when both are short.
const ROUNDS: usize = 200;

/// The most rounds to reconcile waits with load: waits grow on busy cores, and the load depends on
/// the waits.
const LOADS: usize = 40;

/// Computes the speed of each flow, 1 for one that runs as if alone, and the resource that holds
/// back each slower one. Returns the utilization of each resource.
///
/// A scheduler gives every ready thread the same part of a core. A flow that mostly waits for the
/// disk is slowed down by others only while it works, and a flow of many threads gets the time of
/// many. Bandwidth is divided by progressive filling.
pub fn share(flows: &[Flow], speeds: &mut Vec<f64>, held: &mut Vec<Option<Resource>>) -> [f64; RESOURCES] {
    speeds.clear();
    speeds.resize(flows.len(), 1.0);
    held.clear();
    held.resize(flows.len(), None);
    let used = used_by(flows, speeds);
    let is_short = used.iter().any(|used| *used > 1.0);
    let mut by_others = vec![FREE; flows.len()];
    // Without measured figures for a machine, the effect of flows on each other's waits is unknown.
    // Cores are then divided evenly, which takes a third of the time.
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

/// Computes speeds for fixed effects of the other flows. Returns the part of a core that each
/// thread gets.
fn share_what_is_short(
    flows: &[Flow],
    speeds: &mut [f64],
    held: &mut [Option<Resource>],
    by_others: &[Held],
) -> f64 {
    // `secs` becomes the time that each flow waits for bandwidth. The longer those waits, the more
    // of the cores is left to other flows, which then need more bandwidth: the part of a core rises
    // from round to round.
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

/// Returns the part of a core that each ready thread gets: a whole one, or as much as fills the
/// cores.
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

/// Lowers speeds until no bandwidth is exceeded, and notes which resource holds back each flow. All
/// speeds rise together, each by its weight. When a resource is full, the flows that use it stop
/// rising. Returns whether anything was short.
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
    // Flows that may still rise: index and weight.
    let mut rising: Vec<(usize, f64)> = flows.iter().map(Flow::weight).enumerate().collect();
    // BOUND: each round fixes at least one flow.
    while !rising.is_empty() {
        let mut need = [0.0f64; RESOURCES];
        // How far all can rise until one reaches its maximum or a resource is full.
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
