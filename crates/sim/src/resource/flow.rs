//! Flows: how long work takes alone, and which resources it uses.

use super::{RESOURCES, Resource, Work};
use crate::hardware::Hardware;

/// The effect of other flows on a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interference {
    /// The mean part of a core that each of its threads gets while it works: the others work only
    /// at times.
    pub(super) core: f64,
    /// Seconds that it waits for bandwidth.
    pub(super) secs: f64,
    /// Threads of other flows that are ready to run, for each core.
    pub(super) load: f64,
    /// Threads of other flows that wait for files.
    pub(super) files: f64,
}

/// No other flows.
pub(super) const NO_INTERFERENCE: Interference = Interference { core: 1.0, secs: 0.0, load: 0.0, files: 0.0 };

/// Work as a flow: how long it takes alone, and the share of each resource that it then uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Seconds that the work takes alone: the larger of disk time and processor time, plus the
    /// waits for the disk that nothing overlaps.
    pub alone_secs: f64,
    /// Seconds that the disk needs.
    pub io_secs: f64,
    /// Seconds that its threads need.
    pub cpu_secs: f64,
    /// Share of each resource that it uses at full speed.
    pub share: [f64; RESOURCES],
    /// Cores of the machine.
    pub(super) cores: f64,
    /// Threads that work in parallel.
    pub(super) threads: f64,
    /// Processor seconds of each thread.
    pub(super) thread_secs: f64,
    /// Maximum part of a core that each thread can have: all threads of a job work at the same
    /// time.
    core_most: f64,
    /// Seconds that the reads take, which overlap the processor time.
    read_secs: f64,
    /// Seconds that each thread waits for files when it does not work.
    wait_secs: f64,
    /// Extra seconds that each thread waits when every core runs a thread of another flow.
    busy_secs: f64,
    /// Extra seconds that each thread waits while one other thread syncs or removes files all the
    /// time.
    file_contention_secs: f64,
    /// Seconds of disk time that overlaps the threads' work: the flow takes at least that long.
    overlapped_io_secs: f64,
}

impl Flow {
    /// Returns the speed when each thread gets `core` of a core and other flows affect it as
    /// `effect` says.
    pub(super) fn speed_at(&self, core: f64, effect: Interference) -> f64 {
        let work = (self.thread_secs / self.core_at(core, effect)).max(self.read_secs);
        let secs = (work + self.waits(effect)).max(self.overlapped_io_secs) + effect.secs;
        (self.alone_secs / secs.max(1e-12)).min(1.0)
    }

    /// Returns the part of a core that each thread gets when no thread may have more than `core`.
    pub(super) fn core_at(&self, core: f64, effect: Interference) -> f64 {
        core.min(self.core_most).min(effect.core)
    }

    /// Returns the seconds for which its threads wait for files.
    pub(super) fn waits(&self, effect: Interference) -> f64 {
        self.wait_secs + self.busy_secs * effect.load + self.file_contention_secs * effect.files
    }

    /// Whether its waits depend on other flows.
    pub(super) fn waits_depend_on_others(&self) -> bool {
        self.busy_secs > 0.0 || self.file_contention_secs > 0.0
    }

    /// Returns how fast the speed rises, relative to other flows, when bandwidth is short. A disk
    /// gives all streams the same bandwidth, so a flow that needs little of it runs as if alone.
    pub(super) fn weight(&self) -> f64 {
        let shares = self.share.iter().enumerate().filter(|(at, _)| *at != Resource::Cpu as usize);
        // A flow that needs no bandwidth is at full speed at once.
        1.0 / shares.map(|(_, share)| *share).fold(0.0, f64::max).max(1e-9)
    }
}

/// Capacities of the resources.
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
    /// Returns the capacities of a machine with a rate limiter of `limit` bytes a second, 0 for
    /// none.
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

    /// Returns the flow of some work.
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
        let (wait_secs, overlapped_io_secs) = if work.syncs > 0.0 || work.removals > 0.0 {
            // Each thread syncs its own files, one after another. The threads of a job work in
            // step, on parts of the same size: they reach the disk at the same time, and each waits
            // for the bytes that all have written.
            let files_secs = work.syncs * self.sync_secs + work.removals * self.remove_secs;
            (write + files_secs, io_secs)
        } else {
            (0.0, io_secs)
        };
        let read_secs = if work.syncs > 0.0 { read.max(secs[3]) } else { 0.0 };
        let core_most = (self.cores / threads).min(1.0);
        let by_thread = (thread_secs / core_most).max(read_secs) + wait_secs;
        let busy_secs = work.syncs * self.busy_sync_secs + work.removals * self.busy_remove_secs;
        let file_contention_secs =
            work.syncs * self.among_files_sync_secs + work.removals * self.among_files_remove_secs;
        let alone_secs = by_thread.max(io_secs).max(1e-9);
        let share = secs.map(|secs| secs / alone_secs);
        debug_assert!(
            share.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share)),
            "found shares of {share:?} for {work:?}"
        );
        Flow {
            alone_secs,
            io_secs,
            cpu_secs,
            share,
            cores: self.cores,
            threads,
            thread_secs,
            core_most,
            read_secs,
            wait_secs,
            busy_secs,
            file_contention_secs,
            overlapped_io_secs,
        }
    }

    /// Returns the flow of a second's demand, even if it takes more than a second to serve.
    pub fn flow_per_second(&self, work: &Work) -> Flow {
        let flow = self.flow(work);
        Flow { alone_secs: 1.0, share: flow.share.map(|share| share * flow.alone_secs), ..flow }
    }
}
