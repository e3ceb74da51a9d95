//! Allocates frames: free ones first, then victims of the policy; waiting threads are served first
//! come, first served.

use std::collections::VecDeque;

use cairn_vfs::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*, fence};
use cairn_vfs::sync::{Arc, CacheAligned, Condvar, Mutex, lock};

use crate::arena::{Arena, DIRTY, Header, READ_AHEAD, WRITING};
use crate::hits::Stripe;
use crate::latch::Released;
use crate::page::{Frame, PageId};
use crate::parking::Parking;
use crate::policy::{Frames, Policy};

/// Free frames, the policy, and the queue under one mutex. Slow work, above all reads and writes,
/// happens without it.
#[derive(Debug)]
pub(crate) struct Replacer {
    pub(crate) state: CacheAligned<Mutex<Replacement>>,
    /// Number of threads in the queue. Every thread that releases a frame checks it.
    waiter_count: AtomicUsize,
    counts: Arc<Counts>,
}

/// Incremented by a load and a store under the mutex, and read without it.
#[derive(Debug, Default)]
struct Counts {
    admitted: AtomicU64,
    evicted: AtomicU64,
}

fn count(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

#[derive(Debug)]
pub(crate) struct Replacement {
    /// Frames without a page. Their exclusive latches belong to this list.
    pub(crate) free: Vec<Frame>,
    pub(crate) policy: Box<dyn Policy>,
    queue: VecDeque<Arc<FrameWaiter>>,
    counts: Arc<Counts>,
}

/// A thread that waits for a frame.
#[derive(Debug, Default)]
pub(crate) struct FrameWaiter {
    is_notified: Mutex<bool>,
    notified: Condvar,
}

/// A frame for a page that is about to be read, with its exclusive latch held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) frame: Frame,
    /// The page still in the frame, with its table entry in place. It has to be written if dirty,
    /// and then removed.
    pub(crate) victim: Option<PageId>,
}

/// The policy's view of the frames.
pub(crate) struct PoolFrames<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) parking: &'a Parking,
    /// Skip pages that would have to be written first.
    pub(crate) only_clean: bool,
    /// Reading ahead: see [`Frames::reads_ahead`].
    pub(crate) reads_ahead: bool,
}

impl Frames for PoolFrames<'_> {
    fn mark(&self, frame: Frame) -> u8 {
        match self.arena.header(frame).mark.load(Relaxed) {
            READ_AHEAD => 0,
            mark => mark,
        }
    }

    fn set_mark(&self, frame: Frame, mark: u8) {
        self.arena.header(frame).mark.store(mark, Relaxed);
    }

    fn reads_ahead(&self) -> bool {
        self.reads_ahead
    }

    fn is_unused(&self, frame: Frame) -> bool {
        self.arena.header(frame).mark.load(Relaxed) == READ_AHEAD
    }

    fn claim(&self, frame: Frame) -> bool {
        let header = self.arena.header(frame);
        let unwanted = if self.only_clean { WRITING | DIRTY } else { WRITING };
        if header.state() & unwanted != 0 || !header.latch.try_exclusive() {
            return false;
        }
        // No write can begin while the latch is held, only before.
        if header.state() & unwanted == 0 {
            // Frames without a page stay latched.
            debug_assert!(header.page() != PageId::NONE, "frame {frame} was free to claim, without a page");
            return true;
        }
        release_exclusive(header, frame, self.parking);
        false
    }
}

/// Releases a frame's exclusive latch and wakes its waiters.
pub(crate) fn release_exclusive(header: &Header, frame: Frame, parking: &Parking) {
    if header.latch.release_exclusive() == Released::HasWaiters {
        parking.wake(latch_key(frame), || header.latch.forget_waiters());
    }
}

/// Returns the parking key of a frame's latch.
pub(crate) fn latch_key(frame: Frame) -> u64 {
    debug_assert!((frame as usize) < crate::translation::MAX_FRAMES, "no frame {frame}");
    // Distinct from page keys, which have a file number in the upper half.
    u64::MAX - u64::from(frame)
}

impl Replacer {
    pub(crate) fn new(policy: Box<dyn Policy>) -> Self {
        let counts = Arc::<Counts>::default();
        let own = Arc::clone(&counts);
        let state = Replacement { free: Vec::new(), policy, queue: VecDeque::new(), counts: own };
        Replacer { state: CacheAligned(Mutex::new(state)), waiter_count: AtomicUsize::new(0), counts }
    }

    /// Returns the number of pages admitted to the pool.
    pub(crate) fn admitted(&self) -> u64 {
        self.counts.admitted.load(Relaxed)
    }

    /// Returns the number of pages evicted for another page.
    pub(crate) fn evicted(&self) -> u64 {
        self.counts.evicted.load(Relaxed)
    }

    /// Returns true when a thread waits for a frame. A thread that releases one then calls
    /// [`Replacer::notify_next`].
    #[inline]
    pub(crate) fn has_frame_waiters(&self) -> bool {
        // ORDER: SeqCst, after the release of the latch, also SeqCst: see `Latch::try_exclusive`.
        self.waiter_count.load(SeqCst) != 0
    }

    /// Calls the head of the queue, so that it looks for a frame again.
    #[cold]
    pub(crate) fn notify_next(&self) {
        lock(&self.state).notify_head();
    }

    /// Returns a frame without a page to the free list, with its latch held.
    pub(crate) fn return_frame(&self, frame: Frame) {
        let mut state = lock(&self.state);
        debug_assert!(!state.free.contains(&frame), "frame {frame} is returned twice");
        state.free.push(frame);
        state.notify_head();
    }

    /// Both change under the lock of the state only. A thread that releases a frame trusts the
    /// count.
    fn check_queue(&self, state: &Replacement) {
        debug_assert!(
            self.waiter_count.load(SeqCst) == state.queue.len(),
            "{} threads are in the queue, counted {}",
            state.queue.len(),
            self.waiter_count.load(SeqCst)
        );
    }

    /// Joins the queue. The caller must then try [`Replacement::take_in_turn`].
    pub(crate) fn join_queue(&self, state: &mut Replacement) -> Arc<FrameWaiter> {
        let waiter = Arc::new(FrameWaiter::default());
        state.queue.push_back(Arc::clone(&waiter));
        self.waiter_count.fetch_add(1, SeqCst);
        self.check_queue(state);
        // ORDER: the check of a held latch is a plain load, which must not be moved before the
        // count.
        fence(SeqCst);
        waiter
    }

    /// Leaves the queue, served or not, and lets the next thread look.
    pub(crate) fn leave_queue(&self, state: &mut Replacement, waiter: &Arc<FrameWaiter>) {
        let at = state.queue.iter().position(|other| Arc::ptr_eq(other, waiter));
        debug_assert!(at.is_some(), "a thread leaves the queue that is not in it");
        if let Some(at) = at {
            state.queue.remove(at);
            self.waiter_count.fetch_sub(1, SeqCst);
        }
        self.check_queue(state);
        state.notify_head();
    }
}

impl Replacement {
    fn notify_head(&self) {
        if let Some(waiter) = self.queue.front() {
            *lock(&waiter.is_notified) = true;
            waiter.notified.notify_one();
        }
    }

    /// Passes a thread's hits to the policy, for frames that still hold the page.
    pub(crate) fn apply_hits(&mut self, stripe: &Stripe, arena: &Arena) {
        let policy = &mut self.policy;
        stripe.take(|frame, page| {
            let header = arena.header(frame);
            if header.page().page() != page {
                return;
            }
            if header.mark.load(Relaxed) == READ_AHEAD {
                header.mark.store(0, Relaxed);
            } else {
                policy.hit(frame);
            }
        });
    }

    /// Takes a frame for `incoming`, which the policy tracks from now on. Returns `None` when none
    /// is available or other threads wait.
    pub(crate) fn take(&mut self, incoming: PageId, pool_frames: &PoolFrames<'_>) -> Option<Taken> {
        if self.queue.is_empty() { self.take_free_or_victim(incoming, pool_frames) } else { None }
    }

    /// Like [`Replacement::take`], for the head of the queue.
    pub(crate) fn take_in_turn(
        &mut self,
        waiter: &Arc<FrameWaiter>,
        incoming: PageId,
        pool_frames: &PoolFrames<'_>,
    ) -> Option<Taken> {
        debug_assert!(
            self.queue.iter().any(|other| Arc::ptr_eq(other, waiter)),
            "the thread has left the queue"
        );
        let is_head = self.queue.front().is_some_and(|head| Arc::ptr_eq(head, waiter));
        if is_head { self.take_free_or_victim(incoming, pool_frames) } else { None }
    }

    fn take_free_or_victim(&mut self, incoming: PageId, pool_frames: &PoolFrames<'_>) -> Option<Taken> {
        debug_assert!(incoming != PageId::NONE);
        let tracked = self.policy.len();
        let taken = match self.free.pop() {
            Some(frame) => Taken { frame, victim: None },
            None => {
                let frame = self.policy.evict(Some(incoming), pool_frames)?;
                count(&self.counts.evicted);
                Taken { frame, victim: Some(pool_frames.arena.header(frame).page()) }
            }
        };
        count(&self.counts.admitted);
        let header = pool_frames.arena.header(taken.frame);
        debug_assert!(header.latch.is_exclusive(), "frame {} was taken without its latch", taken.frame);
        debug_assert!(header.state() & WRITING == 0, "frame {} was taken while it is written", taken.frame);
        debug_assert!(taken.victim != Some(PageId::NONE), "an empty frame was evicted");
        debug_assert!(taken.victim.is_some() || header.page() == PageId::NONE, "a free frame holds a page");
        pool_frames.set_mark(taken.frame, 0);
        self.policy.insert(taken.frame, incoming, pool_frames);
        debug_assert!(
            self.policy.len() == tracked + usize::from(taken.victim.is_none()),
            "the policy tracked {tracked} frames, now {}, after {taken:?}",
            self.policy.len()
        );
        Some(taken)
    }

    /// Undoes a replacement whose incoming page is not read after all: the frame holds `page`
    /// again.
    pub(crate) fn reinstate(&mut self, frame: Frame, page: PageId, pool_frames: &PoolFrames<'_>) {
        let header = pool_frames.arena.header(frame);
        debug_assert!(header.page() == page, "{page} is not in frame {frame} any more");
        debug_assert!(header.latch.is_exclusive(), "{page} is reinstated without its latch");
        let tracked = self.policy.len();
        self.policy.remove(frame);
        self.policy.insert(frame, page, pool_frames);
        debug_assert!(self.policy.len() == tracked, "frame {frame} was not tracked for its incoming page");
    }
}

impl FrameWaiter {
    /// Sleeps until called, or for `limit`.
    pub(crate) fn wait(&self, limit: std::time::Duration) {
        let mut is_notified = lock(&self.is_notified);
        if !*is_notified {
            is_notified = match self.notified.wait_timeout(is_notified, limit) {
                Ok((is_notified, _)) => is_notified,
                Err(panicked) => panicked.into_inner().0,
            };
        }
        *is_notified = false;
    }
}
