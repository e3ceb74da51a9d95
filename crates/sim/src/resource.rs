//! Sharing: flows that need disk and cores at the same time, by the fairness of dominant resources (Ghodsi and others, NSDI 2011).

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
    /// Threads among which the processor time of it is divided.
    pub threads: f64,
}

impl Flow {
    /// How fast its speed rises beside that of others. A scheduler gives all threads the same time, and a disk all streams the same
    /// bandwidth: so who asks for little of what is short runs as if alone, and who has many threads gets the time of many.
    fn weight(&self) -> f64 {
        let largest = self.share.iter().enumerate().map(|(at, share)| match at {
            at if at == Resource::Cpu as usize => share / self.threads.max(1.0),
            _ => *share,
        });
        // A flow that needs nothing is at its full speed at once.
        1.0 / largest.fold(0.0, f64::max).max(1e-9)
    }
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
        let cpu_secs = work.cpu_secs / work.threads.max(1e-9).min(self.cores);
        let io_secs = secs[0].max(secs[1]).max(secs[2]).max(secs[3]).max(secs[5]);
        let alone_secs = if work.syncs > 0.0 {
            let (before, wait) = (read.max(secs[3]).max(cpu_secs), write + work.syncs * self.sync_secs);
            (before + wait).max(secs[5])
        } else {
            io_secs.max(cpu_secs)
        };
        let alone_secs = alone_secs.max(1e-9);
        let share = secs.map(|secs| secs / alone_secs);
        Flow { alone_secs, io_secs, cpu_secs, share, threads: work.threads }
    }
}

/// Speeds of flows, 1 for a flow that runs as if alone, and which resource holds back each that does not.
///
/// All speeds rise together, each by its weight; when a resource is full, the flows that use it stay where they are.
pub fn share(flows: &[Flow], speeds: &mut Vec<f64>, held: &mut Vec<Option<Resource>>) -> [f64; RESOURCES] {
    speeds.clear();
    speeds.resize(flows.len(), 0.0);
    held.clear();
    held.resize(flows.len(), None);
    let mut used = [0.0f64; RESOURCES];
    for flow in flows {
        used.iter_mut().zip(flow.share).for_each(|(used, share)| *used += share);
    }
    if used.iter().all(|used| *used <= 1.0) {
        // Nothing is short.
        speeds.fill(1.0);
        return used;
    }
    used.fill(0.0);
    // Of flows that may rise: place and weight.
    let mut rising: Vec<(usize, f64)> = flows.iter().map(Flow::weight).enumerate().collect();
    // BOUND: each round fixes at least one flow.
    while !rising.is_empty() {
        let mut need = [0.0f64; RESOURCES];
        // How far all can rise until one runs as if alone, or a resource is full.
        let mut rise = f64::INFINITY;
        for &(at, weight) in &rising {
            for (sum, share) in need.iter_mut().zip(flows[at].share) {
                *sum += share * weight;
            }
            rise = rise.min((1.0 - speeds[at]) / weight);
        }
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
            if speeds[at] >= 1.0 - 1e-9 {
                speeds[at] = 1.0;
                return false;
            }
            let stays = full.is_some_and(|full| flows[at].share[full] > 1e-12);
            if stays {
                held[at] = full.and_then(|full| ALL.get(full).copied());
            }
            !stays
        });
    }
    used
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
        let light = Flow { share: [0.0, 0.0, 0.0, 0.0, 0.1, 0.0], ..work(1.0, 1.0) };
        share(&[light, work(1.0, 1.0), work(1.0, 1.0)], &mut speeds, &mut held);
        assert!((speeds[0] - 1.0).abs() < 1e-9 && (speeds[1] - 0.9).abs() < 1e-9, "{speeds:?}");
        assert_eq!(held, [None, Some(Resource::Cpu), Some(Resource::Cpu)]);
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
                    prop_assert!(used[*resource as usize] > 1.0 - 1e-6);
                }
            }
        }
    }
}
