//! The default policy: LIRS or LRU, whichever would have done better lately.
//!
//! ```text
//!            requests for a sample of the pages
//!                 |                 |
//!            LRU, shadow       LIRS, shadow         page numbers only, of the pool or up to 2048
//!                 |                 |
//!                 +----> lead <-----+               requests that only one of the two hits
//!                          |
//!            LIRS over the frames, which evicts its own way or by recency
//! ```
//!
//! LIRS comes closest to the optimum on loops, scans and lasting popularity. It falls behind LRU
//! where only recency matters. Two shadow directories replay the requests as if each policy had the
//! pool to itself, and the frames follow the leader. This is the general scheme of Smaragdakis
//! ("General adaptive replacement policies", ISMM 2004), with pages sampled by their hash as
//! processor caches sample their sets (Qureshi et al., ISCA 2007).
//!
//! When frames are replaced by recency, all of them are in the low set of LIRS, whose stack then
//! *is* the LRU list. Switching back to LIRS demotes one percent of the frames. So one structure
//! serves both policies, and while LRU leads, the pool is exactly LRU.
//!
//! Three rules limit the cost of switching:
//! - From recency to LIRS only when the lead is significant: more than twice the square root of the
//!   requests that distinguished the two. Back as soon as the lead is gone. The lead is capped at
//!   slightly more than the number of pages in a shadow, so that old merits do not outweigh a new
//!   phase.
//! - A turn of LIRS that cost hits compared with the LRU shadow doubles the evidence that the next
//!   one needs, up to four times. A turn that paid off halves it.
//! - A pool with a hit ratio above seven twelfths while it filled starts by recency.
//!
//! It loses to both policies where the better one changes within a few pools' worth of requests,
//! since each switch costs misses until the frames follow. In small pools each request is simulated
//! twice. From 2048 frames on, only every second, fourth, ... page is simulated.

use super::directory::{Directory, hash};
use super::lirs::Lirs;
use super::lru::Lru;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

/// Shadows hold fewer pages than this; larger pools are sampled.
const SHADOW_MAX: usize = 2048;
/// A lead counts when it exceeds the square root of the distinguishing requests by this factor.
const CONFIDENCE: u64 = 2;
/// The maximum multiple of that evidence that can be required.
const DOUBT_MAX: u64 = 4;
/// After this many distinguishing requests, older ones count half.
const MEMORY: u64 = 4096;
/// How far the lead may exceed the number of pages in a shadow. This gives small pools a memory
/// too, and allows the lead to reach the maximum required evidence.
const LEAD_SPARE: u64 = 512;
const _: () = assert!(LEAD_SPARE * LEAD_SPARE >= CONFIDENCE * CONFIDENCE * DOUBT_MAX * DOUBT_MAX * MEMORY);
/// The ratio of hits to pages of a filling pool above which it starts by recency: seven to five.
const FILL_HITS: (usize, usize) = (7, 5);

/// The policy that the frames follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// No page has been evicted yet.
    Filling {
        hits: usize,
    },
    Recency,
    Lirs,
}

/// LIRS or LRU, by two shadow directories.
#[derive(Debug)]
pub(super) struct Adaptive {
    frames: Lirs,
    follow: Follow,
    lru: Shadow<Lru>,
    lirs: Shadow<Lirs>,
    /// A page belongs to the sample if its hash has none of these bits.
    sample: u64,
    duel: Duel,
    /// The frame of the last request if that was a hit, and whether the one before hit the same
    /// frame.
    last: Option<Frame>,
    repeated: bool,
}

impl Adaptive {
    pub(super) fn new(capacity: usize) -> Self {
        debug_assert!(capacity <= crate::translation::MAX_FRAMES);
        let halvings = (capacity / SHADOW_MAX + 1).next_power_of_two().trailing_zeros();
        let shadow = capacity >> halvings;
        debug_assert!(shadow < SHADOW_MAX, "{shadow} pages in a shadow of {capacity} frames");
        Adaptive {
            frames: Lirs::new(capacity),
            follow: Follow::Filling { hits: 0 },
            lru: Shadow::new(Lru::new(shadow), shadow),
            lirs: Shadow::new(Lirs::new(shadow), shadow),
            sample: (1 << halvings) - 1,
            duel: Duel { lead_max: shadow as u64 + LEAD_SPARE, ..Duel::default() },
            last: None,
            repeated: false,
        }
    }

    /// Passes a request to the shadows, and follows the better one.
    #[inline]
    fn request(&mut self, page: PageId, hit: bool) {
        if hash(page) & self.sample == 0 {
            self.simulate(page, hit);
        }
    }

    fn simulate(&mut self, page: PageId, hit: bool) {
        let (lru, lirs) = (self.lru.request(page), self.lirs.request(page));
        self.duel.count(hit, lru, lirs);
        match self.follow {
            Follow::Recency if self.duel.lirs_leads() => {
                self.duel.paid = 0;
                self.turn(Follow::Lirs);
            }
            Follow::Lirs if self.duel.lru_leads() => {
                self.duel.judge();
                self.turn(Follow::Recency);
            }
            _ => {}
        }
    }

    fn turn(&mut self, follow: Follow) {
        debug_assert!(!matches!(follow, Follow::Filling { .. }), "a pool that has evicted is not filling");
        self.follow = follow;
        self.frames.set_by_recency(follow == Follow::Recency);
    }
}

/// The score of the two shadows.
#[derive(Debug)]
struct Duel {
    /// Requests that only the LRU shadow hit.
    lru: u64,
    /// Requests that only the LIRS shadow hit.
    lirs: u64,
    lead_max: u64,
    /// The required multiple of the usual evidence.
    doubt: u64,
    /// Hits of the pool minus hits of the LRU shadow, since the pool follows LIRS.
    paid: i64,
}

impl Default for Duel {
    fn default() -> Self {
        Duel { lru: 0, lirs: 0, lead_max: LEAD_SPARE, doubt: 1, paid: 0 }
    }
}

impl Duel {
    #[inline]
    fn count(&mut self, pool: bool, lru: bool, lirs: bool) {
        self.paid += i64::from(pool) - i64::from(lru);
        if lru == lirs {
            return;
        }
        self.lru += u64::from(lru);
        self.lirs += u64::from(lirs);
        self.lirs = self.lirs.min(self.lru + self.lead_max);
        self.lru = self.lru.min(self.lirs + self.lead_max);
        if self.lru + self.lirs > MEMORY {
            self.lru /= 2;
            self.lirs /= 2;
        }
        debug_assert!(self.lru.abs_diff(self.lirs) <= self.lead_max && self.lru + self.lirs <= MEMORY);
    }

    fn lirs_leads(&self) -> bool {
        let lead = self.lirs.saturating_sub(self.lru);
        let wanted = CONFIDENCE * self.doubt;
        lead * lead > wanted * wanted * (self.lru + self.lirs)
    }

    fn lru_leads(&self) -> bool {
        self.lru > self.lirs
    }

    /// Adjusts the doubt after a turn of LIRS.
    fn judge(&mut self) {
        debug_assert!((1..=DOUBT_MAX).contains(&self.doubt), "a doubt of {}", self.doubt);
        self.doubt = if self.paid < 0 { (self.doubt * 2).min(DOUBT_MAX) } else { (self.doubt / 2).max(1) };
    }
}

/// A policy and the page numbers that it would hold.
#[derive(Debug)]
struct Shadow<P> {
    policy: P,
    resident: Directory,
    capacity: usize,
}

impl<P: Policy> Shadow<P> {
    fn new(policy: P, capacity: usize) -> Self {
        Shadow { policy, resident: Directory::new(capacity), capacity }
    }

    /// Simulates a request. Returns whether it would have been a hit.
    fn request(&mut self, page: PageId) -> bool {
        if let Some(slot) = self.resident.find(page) {
            self.policy.hit(slot);
            return true;
        }
        if self.resident.len() >= self.capacity {
            match self.policy.evict(Some(page), &Unpinned) {
                Some(slot) => self.resident.remove(slot),
                None => return false, // A shadow without pages.
            }
        }
        let slot = self.resident.insert(page);
        self.policy.insert(slot, page, &Unpinned);
        debug_assert!(self.resident.len() == self.policy.len(), "the shadow's page and policy differ");
        debug_assert!(self.resident.len() <= self.capacity && (slot as usize) < self.capacity);
        false
    }
}

/// The frames of a shadow: all are available, and hits are not marked.
struct Unpinned;

impl Frames for Unpinned {
    fn mark(&self, _frame: Frame) -> u8 {
        0
    }

    fn set_mark(&self, _frame: Frame, _mark: u8) {}

    fn claim(&self, _frame: Frame) -> bool {
        true
    }
}

impl Policy for Adaptive {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Adaptive
    }

    fn hits(&self) -> Hits {
        Hits::Logged
    }

    fn hit(&mut self, frame: Frame) {
        if let Follow::Filling { hits } = &mut self.follow {
            *hits += usize::from(self.frames.has(frame));
        }
        // A third consecutive request for a page finds it at the top of every list already.
        let same = self.last == Some(frame);
        if same && self.repeated {
            return;
        }
        (self.last, self.repeated) = (Some(frame), same);
        if !self.frames.has(frame) {
            return;
        }
        self.frames.hit(frame);
        debug_assert!(self.frames.page(frame) != PageId::NONE, "frame {frame} has no page");
        self.request(self.frames.page(frame), true);
    }

    fn insert(&mut self, frame: Frame, page: PageId, frames: &dyn Frames) {
        self.last = None;
        debug_assert!(!self.frames.has(frame), "frame {frame} is tracked already");
        self.frames.insert(frame, page, frames);
        self.request(page, false);
    }

    fn evict(&mut self, incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        if let Follow::Filling { hits } = self.follow {
            let recent = hits * FILL_HITS.1 > self.frames.len() * FILL_HITS.0;
            self.turn(if recent { Follow::Recency } else { Follow::Lirs });
        }
        self.last = None;
        let victim = self.frames.evict(incoming, frames);
        debug_assert!(victim.is_none_or(|frame| !self.frames.has(frame)), "{victim:?} is tracked still");
        victim
    }

    fn ahead_max(&self) -> usize {
        self.frames.ahead_max()
    }

    fn remove(&mut self, frame: Frame) {
        self.last = None;
        self.frames.remove(frame);
    }

    /// Linear in the frames. The shadows and the score start over; the followed policy stays.
    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
        let new = Adaptive::new(capacity);
        (self.lru, self.lirs, self.sample, self.duel) = (new.lru, new.lirs, new.sample, new.duel);
    }

    fn len(&self) -> usize {
        self.frames.len()
    }
}
