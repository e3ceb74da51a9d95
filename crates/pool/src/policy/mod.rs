//! Which page goes when there is no room: one file a policy, behind one trait.
//!
//! A policy is a plain data structure: it has no locks, no clock and no randomness of its own, and
//! the same calls give the same answers. The pool calls it under one mutex;
//! [`replay`](crate::replay) calls it with a trace.

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
    /// A hit raises the mark of its frame by one, up to `max`. [`Policy::hit`] is not called.
    Marked {
        /// Where a mark stops.
        max: u8,
    },
    /// Hits are collected for each thread and handed to [`Policy::hit`] some at a time, in the
    /// order of the thread. With many threads a few may be lost.
    Logged,
}

/// What a policy may ask of the frames while it looks for a victim.
pub trait Frames {
    /// The mark of a frame: see [`Hits::Marked`].
    fn mark(&self, frame: Frame) -> u8;

    /// Sets the mark of a frame. A hit at the same time may be lost.
    fn set_mark(&self, frame: Frame, mark: u8);

    /// Whether the frame's page was read ahead and nobody has asked for it: it was never used, so
    /// that asking for it again later is no second use.
    fn is_unused(&self, _frame: Frame) -> bool {
        false
    }

    /// Whether the frame is wanted to read ahead: then none is better than one whose page is going
    /// to be used sooner.
    fn reads_ahead(&self) -> bool {
        false
    }

    /// Tries to take the frame from its page: false when it is pinned or being written. Never
    /// waits. What was claimed must be returned by [`Policy::evict`].
    fn claim(&self, frame: Frame) -> bool;
}

/// A replacement policy over frames `0..capacity`.
///
/// Cost: `hit` and `insert` are O(1) except where a policy says otherwise; `evict` is O(1) on
/// average while few frames are pinned.
pub trait Policy: fmt::Debug + Send {
    /// Which one it is.
    fn kind(&self) -> PolicyKind;

    /// How it learns of hits. The same for the policy's whole life.
    fn hits(&self) -> Hits;

    /// A page that is resident in `frame` was asked for. Only for [`Hits::Logged`].
    fn hit(&mut self, frame: Frame);

    /// `page` was in no frame and is from now on in `frame`, whose mark is 0. The frame is not one
    /// that the policy has.
    fn insert(&mut self, frame: Frame, page: PageId, frames: &dyn Frames);

    /// So many pages may be read ahead of their use without putting out any that the policy means
    /// to keep, or each other.
    fn ahead_max(&self) -> usize {
        usize::MAX
    }

    /// Chooses a frame, claims it and forgets it (its page may stay known as one that was evicted).
    /// `incoming` is the page that room is made for, which [`Policy::insert`] follows for; `None`
    /// when room is made in advance.
    ///
    /// A frame that cannot be claimed is in use, and counts as one that was just used. While few
    /// are pinned each is tried once; S3-FIFO may try one up to five times, the others twice.
    ///
    /// `None` when no frame can be claimed: then nothing has changed that matters, and each frame
    /// was tried.
    fn evict(&mut self, incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame>;

    /// Forgets a frame whose page went for another reason than the policy's choice: it was dropped,
    /// or could not be read. Nothing when the policy does not have the frame.
    fn remove(&mut self, frame: Frame);

    /// The pool has `capacity` frames from now on. When there are fewer than before, the frames
    /// beyond were removed already.
    fn resize(&mut self, capacity: usize);

    /// How many frames it has.
    fn len(&self) -> usize;

    /// True when it has no frames.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The policies, by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PolicyKind {
    /// Least recently used.
    Lru,
    /// Second chance in a circle (Corbató 1968).
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
    /// LIRS or LRU, whichever would have done better lately, by two shadow directories (after
    /// Smaragdakis, ISMM 2004).
    #[default]
    Adaptive,
}

impl PolicyKind {
    /// What a pool uses unless told: near the best on every trace that we have, and not below LRU
    /// at 1 to 20 percent of any (`docs/src/design/policies.md`).
    pub const DEFAULT: PolicyKind = PolicyKind::Adaptive;

    /// A policy of this kind for `capacity` frames, none of which it has yet.
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

    /// All of them, in the order in which tables show them.
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

    /// The name on a command line.
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

    /// The name in a table.
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

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of no policy.
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
