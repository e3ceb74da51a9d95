//! A lane: what one thread records, on its way into the file.

use std::sync::atomic::{AtomicBool, Ordering};

use cairn_vfs::sync::Mutex;

use super::ring::Ring;
use crate::writer::Pending;

/// Of one thread at a time; or, without a ring, of all threads that found none left.
#[derive(Debug)]
pub(super) struct Lane {
    pub ring: Option<&'static Ring>,
    /// Where what is taken out of the ring goes. Whoever holds it may take out.
    pub end: Mutex<LaneEnd>,
    /// A thread has it.
    is_taken: AtomicBool,
}

/// The end of a lane that is nearer to the file.
#[derive(Debug)]
pub(super) struct LaneEnd {
    pub pending: Pending,
    /// When the operations are that are taken out next.
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

    /// Takes it for the calling thread. False where another one has it.
    pub fn take(&self) -> bool {
        // ORDER: the thread that has it next sees the words and the tail of the one before.
        !self.is_taken.swap(true, Ordering::AcqRel)
    }

    /// Leaves it to others. What is in it stays until it is taken out.
    pub fn leave(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // No recorder is left whose operations could go in.
        if let Some(ring) = self.ring {
            ring.give_back();
        }
    }
}
