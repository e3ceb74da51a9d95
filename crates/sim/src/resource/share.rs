//! Divides cores and bandwidth among flows when they are short.

use super::contention::Contention;
use super::flow::{Flow, Interference, NO_INTERFERENCE};
use super::{ALL, RESOURCES, Resource};

/// Minimum part of a core that a thread gets.
const CORE_MIN: f64 = 1e-6;

/// Bisection steps to find the part of a core that each thread gets.
const BISECTIONS: usize = 36;

/// Maximum number of rounds to reconcile cores and disk when both are short.
const ROUNDS_MAX: usize = 200;

/// Maximum number of rounds to reconcile waits with load: waits grow on busy cores, and the load
/// depends on the waits.
const CONTENTION_ROUNDS_MAX: usize = 40;

/// Computes the speed of each flow, 1 for one that runs as if alone, and the resource that holds
/// back each slower one. Returns the utilization of each resource.
///
/// A scheduler gives every ready thread the same part of a core. A flow that mostly waits for the
/// disk is slowed down by others only while it works, and a flow of many threads gets the time of
/// many. Bandwidth is divided by progressive filling.
pub fn share(
    flows: &[Flow],
    speeds: &mut Vec<f64>,
    limited_by: &mut Vec<Option<Resource>>,
) -> [f64; RESOURCES] {
    debug_assert!(flows.iter().all(|flow| flow.alone_secs > 0.0), "found a flow that takes no time");
    speeds.clear();
    speeds.resize(flows.len(), 1.0);
    limited_by.clear();
    limited_by.resize(flows.len(), None);
    let used = utilization(flows, speeds);
    let is_short = used.iter().any(|used| *used > 1.0);
    let mut interference = vec![NO_INTERFERENCE; flows.len()];
    // Without measured figures for a machine, the effect of flows on each other's waits is unknown.
    // Cores are then divided evenly, which takes a third of the time.
    if !flows.iter().any(Flow::waits_depend_on_others) {
        if is_short {
            divide_scarce(flows, speeds, limited_by, &interference);
            return checked_utilization(flows, speeds);
        }
        return used;
    }
    let mut contention = Contention::default();
    for _ in 0..CONTENTION_ROUNDS_MAX {
        let core = divide_scarce(flows, speeds, limited_by, &interference);
        if contention.update(flows, speeds, core, &mut interference) < 1e-3 {
            break;
        }
    }
    checked_utilization(flows, speeds)
}

/// Returns the utilization of each resource. Flows together never use more than there is.
fn checked_utilization(flows: &[Flow], speeds: &[f64]) -> [f64; RESOURCES] {
    let used = utilization(flows, speeds);
    debug_assert!(
        used.iter().all(|used| *used <= 1.0 + 1e-3),
        "found resources used beyond capacity: {used:?}"
    );
    debug_assert!(
        speeds.iter().all(|speed| *speed >= 0.0 && *speed <= 1.0 + 1e-9),
        "found speeds of {speeds:?}"
    );
    used
}

/// Computes speeds for fixed effects of the other flows. Returns the part of a core that each
/// thread gets.
fn divide_scarce(
    flows: &[Flow],
    speeds: &mut [f64],
    limited_by: &mut [Option<Resource>],
    interference: &[Interference],
) -> f64 {
    // `secs` becomes the time that each flow waits for bandwidth. The longer those waits, the more
    // of the cores is left to other flows, which then need more bandwidth: the part of a core rises
    // from round to round.
    let mut delays = interference.to_vec();
    let mut core = 0.0;
    for _ in 0..ROUNDS_MAX {
        let before = std::mem::replace(&mut core, core_of_each(flows, &delays));
        for ((speed, flow), wait) in speeds.iter_mut().zip(flows).zip(&delays) {
            *speed = flow.speed_at(core, Interference { secs: 0.0, ..*wait });
        }
        let is_short = fill(flows, speeds, limited_by);
        if !is_short || core - before < 1e-9 {
            break;
        }
        for ((wait, flow), speed) in delays.iter_mut().zip(flows).zip(speeds.iter()) {
            let without = flow.speed_at(core, Interference { secs: 0.0, ..*wait });
            wait.secs = (flow.alone_secs / speed - flow.alone_secs / without).max(0.0);
        }
    }
    for (limit, speed) in limited_by.iter_mut().zip(speeds.iter()) {
        if *speed < 1.0 - 1e-9 {
            limit.get_or_insert(Resource::Cpu);
        }
    }
    core
}

fn utilization(flows: &[Flow], speeds: &[f64]) -> [f64; RESOURCES] {
    let mut used = [0.0f64; RESOURCES];
    for (flow, speed) in flows.iter().zip(speeds) {
        used.iter_mut().zip(flow.share).for_each(|(used, share)| *used += share * speed);
    }
    used
}

/// Returns the part of a core that each ready thread gets: a whole one, or as much as fills the
/// cores.
fn core_of_each(flows: &[Flow], delays: &[Interference]) -> f64 {
    let used = |core: f64| -> f64 {
        let parts = flows.iter().zip(delays);
        parts.map(|(flow, wait)| flow.share[Resource::Cpu as usize] * flow.speed_at(core, *wait)).sum()
    };
    if used(1.0) <= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (CORE_MIN, 1.0);
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        *(if used(middle) <= 1.0 { &mut low } else { &mut high }) = middle;
    }
    debug_assert!((CORE_MIN..=1.0).contains(&low), "found {low} of a core for each thread");
    low
}

/// Lowers speeds until no bandwidth is exceeded, and notes which resource holds back each flow. All
/// speeds rise together, each by its weight. When a resource is full, the flows that use it stop
/// rising. Returns whether anything was short.
fn fill(flows: &[Flow], speeds: &mut [f64], limited_by: &mut [Option<Resource>]) -> bool {
    limited_by.fill(None);
    let is_short = |used: &[f64; RESOURCES]| {
        used.iter().enumerate().any(|(at, used)| at != Resource::Cpu as usize && *used > 1.0)
    };
    if !is_short(&utilization(flows, speeds)) {
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
        debug_assert!(rise >= -1e-9, "found a flow above its maximum by {rise}");
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
                limited_by[at] = full.and_then(|full| ALL.get(full).copied());
            }
            !stays
        });
    }
    debug_assert!(
        speeds.iter().zip(&most).all(|(speed, most)| *speed <= most * (1.0 + 1e-9)),
        "found a flow above its maximum: {speeds:?} of {most:?}"
    );
    true
}
