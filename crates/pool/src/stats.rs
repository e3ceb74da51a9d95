//! Statistics of a pool.

use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts since the pool was created. The difference of two snapshots describes the time in
/// between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Requests for resident pages. With more than 256 threads, some may be missing.
    pub hits: u64,
    /// Requests for pages that had to be read or created.
    pub misses: u64,
    /// Pages read before they were requested.
    pub prefetched: u64,
    /// Pages evicted for another page.
    pub evictions: u64,
    /// Evicted pages that had to be written first.
    pub dirty_evictions: u64,
    /// Pages written, for any reason.
    pub pages_written: u64,
    /// Write calls for these pages; adjacent pages share a call.
    pub writes: u64,
    /// Number of waits for a latch held by others.
    pub latch_waits: u64,
    /// Total time of `latch_waits`.
    pub latch_wait_time: Duration,
    /// Number of waits for a frame while all were pinned.
    pub frame_waits: u64,
    /// Total time of `frame_waits`.
    pub frame_wait_time: Duration,
    /// Current number of frames.
    pub frames: usize,
    /// Frames that currently hold a page.
    pub resident: usize,
    /// Frames whose page has unwritten changes.
    pub dirty: usize,
}

impl Stats {
    /// Returns the share of hits among all requests; 0 when there were none.
    pub fn hit_ratio(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

/// Counters of slow operations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) dirty_evictions: AtomicU64,
    pub(crate) prefetched: AtomicU64,
    pub(crate) pages_written: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) latch_waits: AtomicU64,
    pub(crate) latch_wait_nanos: AtomicU64,
    pub(crate) frame_waits: AtomicU64,
    pub(crate) frame_wait_nanos: AtomicU64,
}

/// Adds to a counter.
pub(crate) fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Relaxed);
}

impl Counters {
    pub(crate) fn waited_for_latch(&self, time: Duration) {
        add(&self.latch_waits, 1);
        add(&self.latch_wait_nanos, nanos(time));
    }

    pub(crate) fn waited_for_frame(&self, time: Duration) {
        add(&self.frame_waits, 1);
        add(&self.frame_wait_nanos, nanos(time));
    }

    /// Returns the statistics, without the fields that only the pool itself knows.
    pub(crate) fn stats(&self) -> Stats {
        let get = |count: &AtomicU64| count.load(Relaxed);
        Stats {
            prefetched: get(&self.prefetched),
            dirty_evictions: get(&self.dirty_evictions),
            pages_written: get(&self.pages_written),
            writes: get(&self.writes),
            latch_waits: get(&self.latch_waits),
            latch_wait_time: Duration::from_nanos(get(&self.latch_wait_nanos)),
            frame_waits: get(&self.frame_waits),
            frame_wait_time: Duration::from_nanos(get(&self.frame_wait_nanos)),
            ..Stats::default()
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
