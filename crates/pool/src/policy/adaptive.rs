//! LIRS or LRU, whichever would have done better lately: the default.
//!
//! ```text
//!            requests for a sample of the pages
//!                 |                 |
//!            LRU, shadow       LIRS, shadow         page numbers only, as long as the pool or up to 2048 pages
//!                 |                 |
//!                 +----> lead <-----+               requests that one of them hits and the other does not
//!                          |
//!            LIRS over the frames, which evicts its own way or by recency
//! ```
//!
//! LIRS comes closest to the optimum where pages are asked for in loops, by scans or with lasting
//! popularity, and falls behind LRU where what was just asked for is all that matters. Two shadow
//! directories replay the requests as if each policy alone had the pool, and the frames follow the
//! one that leads: the general scheme of Smaragdakis ("General adaptive replacement policies", ISMM
//! 2004), with pages sampled by their hash as processor caches sample their sets (Qureshi et al.,
//! ISCA 2007). Where frames go by recency all of them are in the low set of LIRS, whose stack then
//! *is* the list of LRU; going back costs one percent of the frames their place there. So there is
//! one structure for both ways, and while LRU leads the pool is LRU exactly.
//!
//! Three rules keep it from losing by its changes:
//! - From recency to LIRS only when the lead is no chance: more than twice the square root of the
//!   requests that told them apart. Back as soon as the lead is gone. The lead is at most the pages
//!   that the shadow holds and some, so that old merits do not outweigh a new phase.
//! - A turn of LIRS that cost hits against the LRU shadow doubles the evidence that the next one
//!   needs, up to four times; one that paid halves it.
//! - A pool that hit more than seven times in twelve requests while it filled starts by recency.
//!
//! It loses to both where the better one changes every few pools' worth of requests, since each
//! change costs misses until the frames follow. While there are few frames each request is
//! simulated twice; from 2048 on it is every second, fourth, ... page only.

use super::directory::{Directory, hash};
use super::lirs::Lirs;
use super::lru::Lru;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

/// Shadows hold fewer pages than this: larger pools are sampled.
const SHADOW_MAX: usize = 2048;
/// A lead counts when it is more than this many times the square root of the requests that it was
/// won by.
const CONFIDENCE: u64 = 2;
/// How much more evidence than that may be asked for.
const DOUBT_MAX: u64 = 4;
/// Requests that tell the shadows apart, after which the older ones count half.
const MEMORY: u64 = 4096;
/// What the lead may be beyond the pages of a shadow, so that small pools have a memory too, and
/// most evidence is enough.
const LEAD_SPARE: u64 = 512;
const _: () = assert!(LEAD_SPARE * LEAD_SPARE >= CONFIDENCE * CONFIDENCE * DOUBT_MAX * DOUBT_MAX * MEMORY);
/// Hits for each page of a pool that fills, from which on it starts by recency: seven to five.
const FILL_HITS: (usize, usize) = (7, 5);

/// Which policy the frames follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// Nobody was evicted yet.
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
    /// A page is of the sample when its hash has none of these bits.
    sample: u64,
    duel: Duel,
    /// The frame of the last request if that was a hit, and whether the one before was the same.
    last: Option<Frame>,
    repeated: bool,
}

impl Adaptive {
    pub(super) fn new(capacity: usize) -> Self {
        let halvings = (capacity / SHADOW_MAX + 1).next_power_of_two().trailing_zeros();
        let shadow = capacity >> halvings;
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

    /// Lets the shadows see a request, and follows the better one.
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
        self.follow = follow;
        self.frames.set_by_recency(follow == Follow::Recency);
    }
}

/// The score of the two shadows.
#[derive(Debug)]
struct Duel {
    /// Requests that the LRU shadow alone hit.
    lru: u64,
    /// Requests that the LIRS shadow alone hit.
    lirs: u64,
    lead_max: u64,
    /// How many times the usual evidence is asked for.
    doubt: u64,
    /// Hits of the pool beyond those of the LRU shadow, since it follows LIRS.
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
    }

    fn lirs_leads(&self) -> bool {
        let lead = self.lirs.saturating_sub(self.lru);
        let wanted = CONFIDENCE * self.doubt;
        lead * lead > wanted * wanted * (self.lru + self.lirs)
    }

    fn lru_leads(&self) -> bool {
        self.lru > self.lirs
    }

    /// Learns from a turn of LIRS that is over.
    fn judge(&mut self) {
        self.doubt = if self.paid < 0 { (self.doubt * 2).min(DOUBT_MAX) } else { (self.doubt / 2).max(1) };
    }
}

/// A policy and the numbers of the pages that it would hold.
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

    /// A request, and whether it would have been a hit.
    fn request(&mut self, page: PageId) -> bool {
        if let Some(slot) = self.resident.find(page) {
            self.policy.hit(slot);
            return true;
        }
        if self.resident.len() >= self.capacity {
            match self.policy.evict(Some(page), &Unpinned) {
                Some(slot) => self.resident.remove(slot),
                None => return false, // No pages at all.
            }
        }
        let slot = self.resident.insert(page);
        self.policy.insert(slot, page, &Unpinned);
        false
    }
}

/// Frames of a shadow: all can be had, and hits are not marked.
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
        // The third request in a row for a page finds it at the top of everything.
        let same = self.last == Some(frame);
        if same && self.repeated {
            return;
        }
        (self.last, self.repeated) = (Some(frame), same);
        if !self.frames.has(frame) {
            return;
        }
        self.frames.hit(frame);
        self.request(self.frames.page(frame), true);
    }

    fn insert(&mut self, frame: Frame, page: PageId, frames: &dyn Frames) {
        self.last = None;
        self.frames.insert(frame, page, frames);
        self.request(page, false);
    }

    fn evict(&mut self, incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        if let Follow::Filling { hits } = self.follow {
            let recent = hits * FILL_HITS.1 > self.frames.len() * FILL_HITS.0;
            self.turn(if recent { Follow::Recency } else { Follow::Lirs });
        }
        self.last = None;
        self.frames.evict(incoming, frames)
    }

    fn ahead_max(&self) -> usize {
        self.frames.ahead_max()
    }

    fn remove(&mut self, frame: Frame) {
        self.last = None;
        self.frames.remove(frame);
    }

    /// Linear in the frames. The shadows start over, and the score with them; whom the frames
    /// follow stays.
    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
        let new = Adaptive::new(capacity);
        (self.lru, self.lirs, self.sample, self.duel) = (new.lru, new.lirs, new.sample, new.duel);
    }

    fn len(&self) -> usize {
        self.frames.len()
    }
}
