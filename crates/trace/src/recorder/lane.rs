//! A lane: the path of one thread's operations into the file.

use std::sync::atomic::{AtomicBool, Ordering};

use cairn_vfs::sync::Mutex;

use super::ring::Ring;
use crate::writer::Pending;

/// Used by one thread at a time. A lane without a ring is shared by threads that found no free
/// ring.
#[derive(Debug)]
pub(super) struct Lane {
    pub ring: Option<&'static Ring>,
    /// The destination of operations taken out of the ring. Only the holder of this lock may drain
    /// the ring.
    pub end: Mutex<LaneEnd>,
    /// True while a thread owns the lane.
    is_taken: AtomicBool,
}

/// The consumer side of a lane.
#[derive(Debug)]
pub(super) struct LaneEnd {
    pub pending: Pending,
    /// The time of the operations that are taken out next.
    pub now_ns: u64,
}

impl Lane {
    pub fn new(number: u32, has_ring: bool) -> Lane {
        Lane {
            ring: has_ring.then(Ring::take),
            end: Mutex::new(LaneEnd { pending: Pending::new(number), now_ns: 0 }),
            is_taken: AtomicBool::new(false),
        }
    }

    /// Takes the lane for the calling thread. Returns false if another thread owns it.
    pub fn take(&self) -> bool {
        // ORDER: the next owner sees the words and the tail that the former owner wrote.
        !self.is_taken.swap(true, Ordering::AcqRel)
    }

    /// Releases the lane to other threads. Its contents stay until they are drained.
    pub fn leave(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // The last recorder is gone, so nothing can be put into the ring any more.
        if let Some(ring) = self.ring {
            ring.give_back();
        }
    }
}
