//! Sharing: flows that need disk and cores at the same time. Cores are shared by thread, as a scheduler does, bandwidth by progressive filling.

use serde::{Deserialize, Serialize};

use crate::hardware::Hardware;

/// What can be full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Bandwidth of reads.
    DiskRead,
    /// Bandwidth of writes.
    DiskWrite,
    /// Reads and writes together.
    DiskMixed,
    /// Requests a second.
    DiskRequests,
    /// Cores.
    Cpu,
    /// The rate limiter.
    RateLimiter,
}

/// How many there are.
pub const RESOURCES: usize = 6;

/// All of them, in the order of arrays.
pub const ALL: [Resource; RESOURCES] = [
    Resource::DiskRead,
    Resource::DiskWrite,
    Resource::DiskMixed,
    Resource::DiskRequests,
    Resource::Cpu,
    Resource::RateLimiter,
];

/// What a piece of work needs in all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Bytes read from the disk.
    pub read_bytes: f64,
    /// Bytes written to the disk.
    pub write_bytes: f64,
    /// Bytes that the rate limiter counts.
    pub limited_bytes: f64,
    /// Small requests.
    pub requests: f64,
    /// Processor seconds.
    pub cpu_secs: f64,
    /// Cores that it can use at a time.
    pub threads: f64,
    /// Files that are made stable when they are whole. Nothing of the work goes on beside that: until then their bytes lie in the page
    /// cache.
    pub syncs: f64,
    /// Files that are removed when it is over, by one of its threads.
    pub removals: f64,
}

/// Work as a flow: how long it takes alone, and what share of each resource it then uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Seconds alone: the larger of what disk and cores need; and what it waits for the disk with nothing beside it.
    pub alone_secs: f64,
    /// Seconds that the disk alone needs.
    pub io_secs: f64,
    /// Seconds that its threads alone need.
    pub cpu_secs: f64,
    /// Share of each resource at full speed.
    pub share: [f64; RESOURCES],
    /// Processor seconds of each of its threads.
    thread_secs: f64,
    /// The most of a core that each of them can have: those of one job all work at the same time.
    core_most: f64,
    /// What is read meanwhile takes.
    read_secs: f64,
    /// What each thread waits for when it does not work, in seconds.
    wait_secs: f64,
    /// What more each thread waits when each core has a thread of others at work.
    busy_secs: f64,
    /// What more each thread waits while somebody else makes files stable or removes them all the time.
    among_files_secs: f64,
    /// What goes on beside the work of the threads: they take at least so long.
    beside_secs: f64,
}

impl Flow {
    /// How fast it is when each of its threads gets this part of a core, and is held up for some seconds more.
    fn speed_at(&self, core: f64, held: Held) -> f64 {
        let work = (self.thread_secs / core.min(self.core_most)).max(self.read_secs);
        let secs = (work + self.waits(held)).max(self.beside_secs) + held.secs;
        (self.alone_secs / secs.max(1e-12)).min(1.0)
    }

    /// Seconds in which its threads wait for files.
    fn waits(&self, held: Held) -> f64 {
        self.wait_secs + self.busy_secs * held.load + self.among_files_secs * held.files
    }

    /// Whether its waits depend on what others do.
    fn has_waits_by_others(&self) -> bool {
        self.busy_secs > 0.0 || self.among_files_secs > 0.0
    }

    /// How fast its speed rises beside that of others when bandwidth is short. A disk gives all streams the same: so who asks for little
    /// of what is short runs as if alone.
    fn weight(&self) -> f64 {
        let shares = self.share.iter().enumerate().filter(|(at, _)| *at != Resource::Cpu as usize);
        // A flow that needs nothing is at its full speed at once.
        1.0 / shares.map(|(_, share)| *share).fold(0.0, f64::max).max(1e-9)
    }
}

/// What others do to a flow.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Seconds that it waits for bandwidth.
    secs: f64,
    /// Threads of others that work or want to, for each core.
    load: f64,
    /// Others that wait for files.
    files: f64,
}

/// Capacities.
#[derive(Debug, Clone)]
pub struct Capacity {
    read: f64,
    write: f64,
    mixed: f64,
    requests: f64,
    cores: f64,
    limiter: f64,
    sync_secs: f64,
    remove_secs: f64,
    busy_sync_secs: f64,
    busy_remove_secs: f64,
    among_files_sync_secs: f64,
    among_files_remove_secs: f64,
}

impl Capacity {
    /// Of a machine with a rate limiter of `limit` bytes a second, 0 for none.
    pub fn new(hardware: &Hardware, limit: u64) -> Capacity {
        let disk = &hardware.disk;
        let by_latency = if disk.read_latency_us > 0.0 {
            disk.queue_depth / (disk.read_latency_us * 1e-6)
        } else {
            f64::INFINITY
        };
        let most = if disk.iops > 0.0 { disk.iops } else { f64::INFINITY };
        Capacity {
            read: disk.read_mb_per_sec * 1e6,
            write: disk.write_mb_per_sec * 1e6,
            mixed: disk.mixed,
            requests: most.min(by_latency),
            cores: hardware.cores,
            limiter: if limit == 0 { f64::INFINITY } else { limit as f64 },
            sync_secs: disk.sync_latency_us * 1e-6,
            remove_secs: disk.remove_latency_us * 1e-6,
            busy_sync_secs: disk.busy_sync_us * 1e-6,
            busy_remove_secs: disk.busy_remove_us * 1e-6,
            among_files_sync_secs: disk.among_files_sync_us * 1e-6,
            among_files_remove_secs: disk.among_files_remove_us * 1e-6,
        }
    }

    /// The flow of some work.
    pub fn flow(&self, work: &Work) -> Flow {
        let (read, write) = (work.read_bytes / self.read, work.write_bytes / self.write);
        let secs = [
            read,
            write,
            (read + write) / self.mixed,
            work.requests / self.requests,
            work.cpu_secs / self.cores,
            work.limited_bytes / self.limiter,
        ];
        let threads = work.threads.max(1e-9);
        let cpu_secs = work.cpu_secs / threads.min(self.cores);
        let io_secs = secs[0].max(secs[1]).max(secs[2]).max(secs[3]).max(secs[5]);
        let thread_secs = work.cpu_secs / threads;
        let (wait_secs, beside_secs) = if work.syncs > 0.0 {
            // Each thread makes its own files stable, one after another. Those of one job work in step, on parts of the same size: they all ask
            // the disk at the same time, and each waits for what all have written.
            let files_secs = work.syncs * self.sync_secs + work.removals * self.remove_secs;
            (write + files_secs, io_secs)
        } else {
            (0.0, io_secs)
        };
        let read_secs = if work.syncs > 0.0 { read.max(secs[3]) } else { 0.0 };
        let core_most = (self.cores / threads).min(1.0);
        let by_thread = (thread_secs / core_most).max(read_secs) + wait_secs;
        let busy_secs = work.syncs * self.busy_sync_secs + work.removals * self.busy_remove_secs;
        let among_files_secs =
            work.syncs * self.among_files_sync_secs + work.removals * self.among_files_remove_secs;
        let alone_secs = by_thread.max(io_secs).max(1e-9);
        let share = secs.map(|secs| secs / alone_secs);
        Flow {
            alone_secs,
            io_secs,
            cpu_secs,
            share,
            thread_secs,
            core_most,
            read_secs,
            wait_secs,
            busy_secs,
            among_files_secs,
            beside_secs,
        }
    }

    /// The flow of what is asked for in a second, whatever could be done in it.
    pub fn flow_per_second(&self, work: &Work) -> Flow {
        let flow = self.flow(work);
        Flow { alone_secs: 1.0, share: flow.share.map(|share| share * flow.alone_secs), ..flow }
    }
}

/// The least part of a core that a thread gets.
const CORE_MIN: f64 = 1e-6;

/// Halvings in which the part of a core is found that all threads get.
const HALVINGS: usize = 36;

/// Rounds in which cores and disk are brought together when both are short.
const ROUNDS: usize = 200;

/// Rounds in which waits that are longer on busy cores, and how busy they are, are brought together.
const LOADS: usize = 40;

/// Speeds of flows, 1 for a flow that runs as if alone, and which resource holds back each that does not.
///
/// A scheduler gives all threads that want to run the same part of a core. Whoever waits for the disk most of the time is held back
/// by others only while it works, and a flow of many threads gets the time of many. Bandwidth is divided by progressive filling.
pub fn share(flows: &[Flow], speeds: &mut Vec<f64>, held: &mut Vec<Option<Resource>>) -> [f64; RESOURCES] {
    speeds.clear();
    speeds.resize(flows.len(), 1.0);
    held.clear();
    held.resize(flows.len(), None);
    let used = used_by(flows, speeds);
    let is_short = used.iter().any(|used| *used > 1.0);
    let mut by_others = vec![Held::default(); flows.len()];
    if !flows.iter().any(Flow::has_waits_by_others) {
        if is_short {
            share_what_is_short(flows, speeds, held, &by_others);
            return used_by(flows, speeds);
        }
        return used;
    }
    for _ in 0..LOADS {
        let core = share_what_is_short(flows, speeds, held, &by_others);
        let cpu = |flow: &Flow, speed: f64| flow.share[Resource::Cpu as usize] * speed;
        let files = |flow: &Flow, speed: f64, held: Held| flow.waits(held) * speed / flow.alone_secs;
        let (mut all_cpu, mut all_files) = (0.0, 0.0);
        for ((flow, speed), held) in flows.iter().zip(speeds.iter()).zip(&by_others) {
            all_cpu += cpu(flow, *speed);
            all_files += files(flow, *speed, *held);
        }
        let mut change = 0.0f64;
        for ((held, flow), speed) in by_others.iter_mut().zip(flows).zip(speeds.iter()) {
            // The part of the cores that others have, and as often more as there are threads that want it; and how many of them wait for files.
            let load = (all_cpu - cpu(flow, *speed)) / core;
            let files = (all_files - files(flow, *speed, *held)).max(0.0);
            change = change.max((load - held.load).abs()).max((files - held.files).abs());
            // Half way: who is faster makes others slower, which else goes back and forth.
            (held.load, held.files) = (f64::midpoint(held.load, load), f64::midpoint(held.files, files));
        }
        if change < 1e-3 {
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
    // Seconds that each flow waits for bandwidth. The more that is, the more of the cores is left to others, who then need more bandwidth:
    // parts of a core rise from round to round.
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

/// The part of a core that each thread gets when it wants to run: a whole one, or as much as fills the cores.
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

/// Brings speeds down until no bandwidth is above full, and notes what holds whom. All rise together, each by its weight; when a resource
/// is full, the flows that use it stay where they are. Says whether anything was short.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capacity() -> Capacity {
        Capacity::new(&Hardware { cores: 2.0, ..Hardware::default() }, 0)
    }

    /// Goal: overlap of disk and processor. Method: a job alone takes the larger of both; two of them that are bound by the
    /// disk take twice as long, two that are bound by their one thread do not.
    #[test]
    fn work_takes_the_larger_of_both() {
        let capacity = capacity();
        let io = Work { write_bytes: 1e9, cpu_secs: 0.2, threads: 1.0, ..Work::default() };
        let cpu = Work { write_bytes: 1e6, cpu_secs: 2.0, threads: 1.0, ..Work::default() };
        let (mut speeds, mut held) = (Vec::new(), Vec::new());
        let flow = capacity.flow(&io);
        assert!((flow.alone_secs - 1.0).abs() < 1e-9);
        share(&[flow, flow], &mut speeds, &mut held);
        assert!((speeds[0] - 0.5).abs() < 1e-9 && held[0] == Some(Resource::DiskWrite));
        let flow = capacity.flow(&cpu);
        assert!((flow.alone_secs - 2.0).abs() < 1e-9);
        share(&[flow, flow], &mut speeds, &mut held);
        assert!((speeds[1] - 1.0).abs() < 1e-9 && held[1].is_none());
    }

    /// Goal: who waits until a file is stable has nothing to do meanwhile. Method: a second of processor work and a second of writes, and
    /// four syncs of a millisecond; the disk is then half used.
    #[test]
    fn a_wait_for_the_disk_comes_on_top() {
        let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
        hardware.disk.sync_latency_us = 1000.0;
        let capacity = Capacity::new(&hardware, 0);
        let write_bytes = hardware.disk.write_mb_per_sec * 1e6;
        let work = Work { write_bytes, cpu_secs: 1.0, threads: 1.0, syncs: 4.0, ..Work::default() };
        let flow = capacity.flow(&work);
        assert!((flow.alone_secs - 2.004).abs() < 1e-9, "{flow:?}");
        assert!((flow.share[Resource::DiskWrite as usize] - 1.0 / 2.004).abs() < 1e-9);
    }

    /// Goal: cores are shared by thread, and who needs little gets it. Method: on two cores a job of four threads beside two of one, then a
    /// light flow beside two that would fill the cores; by hand.
    #[test]
    fn threads_share_cores_evenly() {
        let capacity = capacity();
        let (mut speeds, mut held) = (Vec::new(), Vec::new());
        let work = |cpu_secs, threads| capacity.flow(&Work { cpu_secs, threads, ..Work::default() });
        share(&[work(2.0, 4.0), work(1.0, 1.0), work(1.0, 1.0)], &mut speeds, &mut held);
        let cores = [2.0 * speeds[0], speeds[1], speeds[2]];
        for (found, expected) in cores.iter().zip([4.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]) {
            assert!((found - expected).abs() < 1e-9, "{cores:?}");
        }
        let light = capacity.flow_per_second(&Work { cpu_secs: 0.2, threads: 1.0, ..Work::default() });
        share(&[light, work(1.0, 1.0), work(1.0, 1.0)], &mut speeds, &mut held);
        assert!((speeds[0] - 1.0).abs() < 1e-9 && (speeds[1] - 0.9).abs() < 1e-9, "{speeds:?}");
        assert_eq!(held, [None, Some(Resource::Cpu), Some(Resource::Cpu)]);
    }

    /// Goal: who is held up between two waits is not held up while it waits, and syncs take longer when cores are busy. Method: on two
    /// cores four threads that always work, and a flush of 5 ms of work and three syncs; by hand.
    #[test]
    fn waits_are_not_stretched_and_busy_cores_lengthen_syncs() {
        let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
        hardware.disk.sync_latency_us = 1000.0;
        let merge = Work { cpu_secs: 4.0, threads: 4.0, ..Work::default() };
        let flush = Work { cpu_secs: 0.005, threads: 1.0, syncs: 3.0, ..Work::default() };
        for busy_us in [0.0, 500.0] {
            hardware.disk.busy_sync_us = busy_us;
            let capacity = Capacity::new(&hardware, 0);
            let flows = [capacity.flow(&merge), capacity.flow(&flush)];
            let (mut speeds, mut held) = (Vec::new(), Vec::new());
            share(&flows, &mut speeds, &mut held);
            // Each of the four gets as much as the flush does when it works, and together they fill the cores.
            let core = speeds[0] * 2.0 / 4.0;
            // Its waits are beside two threads a core.
            let secs = 0.005 / core + 0.003 + 3.0 * busy_us * 1e-6 * 2.0;
            assert!((0.008 / speeds[1] - secs).abs() < 1e-5, "{speeds:?} {secs}");
            assert!((4.0 * core + 0.005 / secs - 2.0).abs() < 1e-3, "{speeds:?}");
        }
        // One thread on two cores makes half of it, and itself waits for nobody.
        let one = Work { cpu_secs: 1.0, threads: 1.0, ..Work::default() };
        let capacity = Capacity::new(&hardware, 0);
        let flows = [capacity.flow(&one), capacity.flow(&flush)];
        let (mut speeds, mut held) = (Vec::new(), Vec::new());
        share(&flows, &mut speeds, &mut held);
        assert!(
            (0.008 / speeds[1] - (0.008 + 3.0 * 500e-6 * 0.5)).abs() < 1e-5 && speeds[0] == 1.0,
            "{speeds:?}"
        );
    }

    /// Goal: files that are removed are waited for by one thread of the job, and syncs of its threads meet. Method: a merge of two threads with
    /// ten inputs; by hand.
    #[test]
    fn removals_and_syncs_of_parts_are_waited_for() {
        let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
        (hardware.disk.sync_latency_us, hardware.disk.remove_latency_us) = (500.0, 2000.0);
        let work = Work { cpu_secs: 1.0, threads: 2.0, syncs: 4.0, removals: 10.0, ..Work::default() };
        let flow = Capacity::new(&hardware, 0).flow(&work);
        assert!((flow.alone_secs - (0.5 + 4.0 * 0.0005 + 10.0 * 0.002)).abs() < 1e-9, "{flow:?}");
        // Both threads write for a tenth of a second, at the same time.
        let write_bytes = hardware.disk.write_mb_per_sec * 1e6 * 0.2;
        let flow = Capacity::new(&hardware, 0).flow(&Work { write_bytes, ..work });
        assert!((flow.alone_secs - (0.5 + 0.2 + 4.0 * 0.0005 + 10.0 * 0.002)).abs() < 1e-9, "{flow:?}");
    }

    /// Goal: parts of a job have no more than the cores, and do not wait beside their own work. Method: four seconds of work in four parts on two
    /// cores, then a second of writes.
    #[test]
    fn parts_work_in_step() {
        let hardware = Hardware { cores: 2.0, ..Hardware::default() };
        let mut work = Work { cpu_secs: 4.0, threads: 4.0, syncs: 1.0, ..Work::default() };
        work.write_bytes = hardware.disk.write_mb_per_sec * 1e6;
        let flow = Capacity::new(&hardware, 0).flow(&work);
        let sync_secs = hardware.disk.sync_latency_us * 1e-6;
        assert!((flow.alone_secs - (2.0 + 1.0 + sync_secs)).abs() < 1e-9, "{flow:?}");
    }

    /// Goal: who waits for files among others who do waits longer, by as much of their time as they do. Method: two merges that do nothing else,
    /// then one beside work that never waits.
    #[test]
    fn files_of_others_are_waited_for() {
        let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
        let disk = &mut hardware.disk;
        (disk.sync_latency_us, disk.remove_latency_us) = (1000.0, 500.0);
        (disk.among_files_sync_us, disk.among_files_remove_us) = (2000.0, 1000.0);
        let capacity = Capacity::new(&hardware, 0);
        let files = capacity.flow(&Work { syncs: 10.0, removals: 4.0, threads: 1.0, ..Work::default() });
        let (mut speeds, mut held) = (Vec::new(), Vec::new());
        share(&[files, files], &mut speeds, &mut held);
        assert!((0.012 / speeds[0] - (0.012 + 0.024)).abs() < 1e-4 && speeds[0] == speeds[1], "{speeds:?}");
        let busy = capacity.flow(&Work { cpu_secs: 1.0, threads: 1.0, ..Work::default() });
        share(&[files, busy], &mut speeds, &mut held);
        assert!((speeds[0] - 1.0).abs() < 1e-3, "{speeds:?}");
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(64))]

        /// Goal: no resource is above full, and a flow below full speed is held by a full resource. Method: random work.
        #[test]
        fn sharing_is_feasible_and_wastes_nothing(
            works in prop::collection::vec((0.0f64..1e9, 0.0f64..1e9, 0.0f64..5.0, 1u32..4), 1..12)
        ) {
            let capacity = capacity();
            let flows: Vec<Flow> = works.iter().map(|&(read_bytes, write_bytes, cpu_secs, threads)| {
                let threads = f64::from(threads);
                capacity.flow(&Work { read_bytes, write_bytes, cpu_secs, threads, ..Work::default() })
            }).collect();
            let (mut speeds, mut held) = (Vec::new(), Vec::new());
            let used = share(&flows, &mut speeds, &mut held);
            for (at, used) in used.iter().enumerate() {
                prop_assert!(*used <= 1.0 + 1e-6);
                let sum: f64 = flows.iter().zip(&speeds).map(|(flow, speed)| flow.share[at] * speed).sum();
                prop_assert!((sum - used).abs() < 1e-6);
            }
            for (speed, held) in speeds.iter().zip(&held) {
                prop_assert!(*speed > 0.0 && *speed <= 1.0 + 1e-9);
                prop_assert!(held.is_none() == (*speed > 1.0 - 1e-9));
                if let Some(resource) = held {
                    // Cores and disk are brought together in rounds.
                    prop_assert!(used[*resource as usize] > 1.0 - 1e-3);
                }
            }
        }
    }
}
