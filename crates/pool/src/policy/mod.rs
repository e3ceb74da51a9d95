//! Replacement policies, which choose the pages to evict: one file per policy, behind one trait.
//!
//! A policy is a plain data structure without locks, clock or randomness of its own: equal calls
//! give equal answers. The pool calls it under one mutex, and [`replay`](crate::replay) calls it
//! with a trace.

mod adaptive;
mod arc;
mod clock;
mod directory;
mod ghosts;
mod lirs;
mod lists;
mod lru;
mod lru_k;
mod s3_fifo;
mod sieve;
mod sketch;
mod two_q;
mod w_tinylfu;

use std::fmt;
use std::str::FromStr;

use crate::page::{Frame, PageId};

/// How a policy learns of hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hits {
    /// A hit increments the mark of its frame, up to `max`. [`Policy::hit`] is not called.
    Marked {
        /// The maximum value of a mark.
        max: u8,
    },
    /// Each thread collects hits and passes them to [`Policy::hit`] in batches, in its own order.
    /// With many threads, a few may be lost.
    Logged,
}

/// The frames as a policy sees them while it looks for a victim.
pub trait Frames {
    /// Returns the mark of a frame: see [`Hits::Marked`].
    fn mark(&self, frame: Frame) -> u8;

    /// Sets the mark of a frame. A concurrent hit may be lost.
    fn set_mark(&self, frame: Frame, mark: u8);

    /// Returns true if the frame's page was read ahead and never requested. A later request for it
    /// is then its first use, not a second one.
    fn is_unused(&self, _frame: Frame) -> bool {
        false
    }

    /// Returns true if the frame is needed for reading ahead. Then no frame is better than one
    /// whose page will be used sooner.
    fn reads_ahead(&self) -> bool {
        false
    }

    /// Tries to claim the frame from its page. Returns false when it is pinned or being written.
    /// Never waits. [`Policy::evict`] must return a claimed frame.
    fn claim(&self, frame: Frame) -> bool;
}

/// A replacement policy over frames `0..capacity`.
///
/// `hit` and `insert` are O(1) unless a policy says otherwise. `evict` is O(1) on average while few
/// frames are pinned.
pub trait Policy: fmt::Debug + Send {
    /// Returns the kind of the policy.
    fn kind(&self) -> PolicyKind;

    /// Returns how the policy learns of hits. Constant for the life of the policy.
    fn hits(&self) -> Hits;

    /// Records a request for the page resident in `frame`. Only called for [`Hits::Logged`].
    fn hit(&mut self, frame: Frame);

    /// Records that `page`, which was in no frame, is now in `frame`, whose mark is 0. The policy
    /// does not track the frame before.
    fn insert(&mut self, frame: Frame, page: PageId, frames: &dyn Frames);

    /// Returns how many pages may be read ahead without evicting each other or any page that the
    /// policy means to keep.
    fn ahead_max(&self) -> usize {
        usize::MAX
    }

    /// Chooses a frame, claims it and stops tracking it (its page may stay known as an evicted
    /// one). `incoming` is the page that needs the frame and for which [`Policy::insert`] follows;
    /// `None` when the frame is freed in advance.
    ///
    /// A frame that cannot be claimed is in use and counts as just used. While few frames are
    /// pinned, each is tried once. S3-FIFO may try one up to five times, the others twice.
    ///
    /// Returns `None` when no frame can be claimed. Then every frame was tried, and nothing of
    /// importance has changed.
    fn evict(&mut self, incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame>;

    /// Stops tracking a frame that was emptied for another reason than an eviction: its page was
    /// dropped or could not be read. Does nothing when the policy does not track the frame.
    fn remove(&mut self, frame: Frame);

    /// Changes the number of frames to `capacity`. When shrinking, the excess frames have been
    /// removed before.
    fn resize(&mut self, capacity: usize);

    /// Returns the number of tracked frames.
    fn len(&self) -> usize;

    /// Returns true when the policy tracks no frames.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The replacement policies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PolicyKind {
    /// Least recently used.
    Lru,
    /// Clock, or second chance (Corbató 1968).
    Clock,
    /// SIEVE (Zhang et al., NSDI 2024).
    Sieve,
    /// 2Q, the full version (Johnson, Shasha, VLDB 1994).
    TwoQ,
    /// LRU-K with K = 2 (O'Neil, O'Neil, Weikum, SIGMOD 1993).
    LruK,
    /// S3-FIFO (Yang et al., SOSP 2023).
    S3Fifo,
    /// ARC (Megiddo, Modha, FAST 2003).
    Arc,
    /// LIRS (Jiang, Zhang, SIGMETRICS 2002).
    Lirs,
    /// W-TinyLFU (Einziger, Friedman, Manes, ACM ToS 2017).
    WTinyLfu,
    /// LIRS or LRU, whichever would have done better lately, decided by two shadow directories
    /// (after Smaragdakis, ISMM 2004).
    #[default]
    Adaptive,
}

impl PolicyKind {
    /// The default policy of a pool: near the best on every trace that we have, and never below LRU
    /// at 1 to 20 percent of any trace (`docs/src/design/policies.md`).
    pub const DEFAULT: PolicyKind = PolicyKind::Adaptive;

    /// Creates a policy of this kind for `capacity` frames, none of which it tracks yet.
    pub fn build(self, capacity: usize) -> Box<dyn Policy> {
        match self {
            PolicyKind::Lru => Box::new(lru::Lru::new(capacity)),
            PolicyKind::Clock => Box::new(clock::Clock::new(capacity)),
            PolicyKind::Sieve => Box::new(sieve::Sieve::new(capacity)),
            PolicyKind::TwoQ => Box::new(two_q::TwoQ::new(capacity)),
            PolicyKind::LruK => Box::new(lru_k::LruK::new(capacity)),
            PolicyKind::S3Fifo => Box::new(s3_fifo::S3Fifo::new(capacity)),
            PolicyKind::Arc => Box::new(arc::Arc::new(capacity)),
            PolicyKind::Lirs => Box::new(lirs::Lirs::new(capacity)),
            PolicyKind::WTinyLfu => Box::new(w_tinylfu::WTinyLfu::new(capacity)),
            PolicyKind::Adaptive => Box::new(adaptive::Adaptive::new(capacity)),
        }
    }

    /// All policies, in the order used in tables.
    pub const ALL: [PolicyKind; 10] = [
        PolicyKind::Lru,
        PolicyKind::Clock,
        PolicyKind::Sieve,
        PolicyKind::TwoQ,
        PolicyKind::LruK,
        PolicyKind::S3Fifo,
        PolicyKind::Arc,
        PolicyKind::Lirs,
        PolicyKind::WTinyLfu,
        PolicyKind::Adaptive,
    ];

    /// The index of a kind in [`PolicyKind::ALL`].
    const fn index(self) -> usize {
        self as usize
    }

    /// Returns the name used on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyKind::Lru => "lru",
            PolicyKind::Clock => "clock",
            PolicyKind::Sieve => "sieve",
            PolicyKind::TwoQ => "2q",
            PolicyKind::LruK => "lru-2",
            PolicyKind::S3Fifo => "s3-fifo",
            PolicyKind::Arc => "arc",
            PolicyKind::Lirs => "lirs",
            PolicyKind::WTinyLfu => "w-tinylfu",
            PolicyKind::Adaptive => "adaptive",
        }
    }

    /// Returns the name used in tables.
    pub const fn title(self) -> &'static str {
        match self {
            PolicyKind::Lru => "LRU",
            PolicyKind::Clock => "Clock",
            PolicyKind::Sieve => "SIEVE",
            PolicyKind::TwoQ => "2Q",
            PolicyKind::LruK => "LRU-2",
            PolicyKind::S3Fifo => "S3-FIFO",
            PolicyKind::Arc => "ARC",
            PolicyKind::Lirs => "LIRS",
            PolicyKind::WTinyLfu => "W-TinyLFU",
            PolicyKind::Adaptive => "Adaptive",
        }
    }
}

// Every kind is listed, in the order of the enumeration.
const _: () = {
    let mut at = 0;
    while at < PolicyKind::ALL.len() {
        assert!(PolicyKind::ALL[at].index() == at);
        at += 1;
    }
    assert!(PolicyKind::Adaptive.index() + 1 == PolicyKind::ALL.len());
};
const _: () = assert!(PolicyKind::DEFAULT.index() == PolicyKind::Adaptive.index());

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown policy name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no replacement policy {0:?}; the policies are lru, clock, sieve, 2q, lru-2, s3-fifo, arc, lirs, w-tinylfu and adaptive"
)]
pub struct UnknownPolicy(pub String);

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let plain = |name: &str| {
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
        };
        let wanted = plain(name);
        PolicyKind::ALL
            .into_iter()
            .find(|kind| plain(kind.name()) == wanted)
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

#[cfg(test)]
mod tests;
