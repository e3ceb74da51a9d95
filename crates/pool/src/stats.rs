//! What a pool has done so far.

use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts since the pool was made. Differences of two tell about the time between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Pages asked for that were resident. With more than 256 threads some may be missing.
    pub hits: u64,
    /// Pages asked for that had to be read, or made.
    pub misses: u64,
    /// Pages read ahead of being asked for.
    pub prefetched: u64,
    /// Pages that gave their frame up.
    pub evictions: u64,
    /// Those among them that had to be written first.
    pub dirty_evictions: u64,
    /// Pages written, by whoever.
    pub pages_written: u64,
    /// Calls that wrote them: neighbours go together.
    pub writes: u64,
    /// Waits for a latch that others held, and how long they took together.
    pub latch_waits: u64,
    /// See `latch_waits`.
    pub latch_wait_time: Duration,
    /// Waits for a frame while all were pinned, and how long they took together.
    pub frame_waits: u64,
    /// See `frame_waits`.
    pub frame_wait_time: Duration,
    /// Frames of the pool now.
    pub frames: usize,
    /// Frames with a page in them now.
    pub resident: usize,
    /// Frames whose page has to be written yet.
    pub dirty: usize,
}

impl Stats {
    /// Hits among all pages asked for; 0 when none was.
    pub fn hit_ratio(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

/// Counts of what is slow anyway.
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

/// Adds to a count.
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

    /// All but what the pool itself knows.
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
