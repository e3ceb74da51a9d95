//! The faults of the simulated disk, and when they occur.

use crate::Operation;

/// The behaviour of a [`FaultFs`](super::FaultFs). The default is the worst disk that Cairn
/// promises to survive: nothing is atomic and nothing is ordered. It injects no errors on its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FaultOptions {
    /// The seed of everything random.
    pub seed: u64,
    /// The largest aligned unit that a power loss cannot tear. Default: none.
    pub atomic_write: AtomicWrite,
    /// Changes reach the disk in the order in which they were made, so that a crash keeps a prefix
    /// of them, the last one possibly torn. Default: each change survives or is lost on its own.
    pub ordered: bool,
    /// The bytes of an append reach the disk before the length that covers them. Default: the
    /// length may come first, with zeros, fragments or garbage under it.
    pub append_safe: bool,
    /// A power loss may also destroy bytes that were durable before but share a 512-byte sector
    /// with the write. Default off: this is the powersafe overwrite property, which SQLite assumes
    /// of disks as well. Logs that append in the middle of a sector cannot survive without it.
    pub wide_garbage: bool,
    /// The fate of pending changes when a sync fails.
    pub sync_failure: SyncFailure,
    /// Probability that a read returns fewer bytes than it could. Default 0.
    pub short_reads: f64,
    /// Probability that a write takes fewer bytes than it was given. Default 0.
    pub short_writes: f64,
    /// Size of the disk in bytes, allocated in pages of 4096; `None` is unlimited.
    /// [`FaultFs::set_quota`](super::FaultFs::set_quota) changes it later.
    pub quota_bytes: Option<u64>,
    /// Keeps a log of all operations, for [`replay`](super::replay) and [`shrink`](super::shrink).
    /// Costs a copy of all bytes written. Default off.
    pub record: bool,
}

impl FaultOptions {
    /// Returns the default options with a seed.
    pub fn seeded(seed: u64) -> Self {
        FaultOptions { seed, ..FaultOptions::default() }
    }
}

/// The largest aligned unit of a write that is on disk either completely or not at all after a
/// power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtomicWrite {
    /// Single bytes.
    #[default]
    None,
    /// Sectors of 512 bytes.
    Sector512,
    /// Blocks of 4096 bytes.
    Block4096,
}

impl AtomicWrite {
    /// Returns the unit in bytes, if there is one.
    pub(crate) fn unit_bytes(self) -> Option<u64> {
        match self {
            AtomicWrite::None => None,
            AtomicWrite::Sector512 => Some(512),
            AtomicWrite::Block4096 => Some(4096),
        }
    }
}

/// The effect of a failed sync. In every mode but `Kept`, the *next* sync succeeds although the
/// changes never reached the disk. Linux really behaves like this: a failed write-back marks the
/// page clean ("fsyncgate", 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncFailure {
    /// Reads continue to return the changes from the cache. No later sync writes them, and a crash
    /// loses them.
    #[default]
    CacheOnly,
    /// Like `CacheOnly`, except that a part of the changes had reached the disk when the sync
    /// failed. For bytes and lengths, the seed draws as much as a power loss could leave
    /// ([`CrashImage::Random`](super::CrashImage::Random)). For names, it is a prefix of the
    /// changes.
    Partial,
    /// The changes are gone at once: reads return the durable state.
    Lost,
    /// The changes stay pending, and the next successful sync makes them durable.
    Kept,
}

/// A fault of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// `EIO`; nothing was done. For syncs, see [`SyncFailure`].
    Io,
    /// `ENOSPC`; nothing was done. For operations that may need space.
    Full,
    /// `EINTR` from a read or write; nothing was done, and the caller should repeat it. A
    /// persistent rule interrupts every other operation, since callers repeat until they succeed.
    Interrupted,
    /// A read or write transfers half of the bytes, but at least one.
    Short,
    /// A write or sync succeeds without doing anything: a stale block, or a disk that lies about
    /// its cache.
    Lost,
    /// A write lands this many bytes away (never before the start of the file) and succeeds.
    Misdirected {
        /// Distance in bytes.
        by: i64,
    },
    /// A write stores zeros for the second half of its bytes and succeeds.
    ZeroTail,
    /// One bit, chosen by the seed, is flipped: in the stored bytes for a write, in the returned
    /// bytes for a read or a map.
    BitFlip,
    /// A read returns the bytes at the position of the previous read.
    DuplicatedRead,
}

impl Fault {
    /// Returns true if this fault can hit such an operation. On any other operation, a rule for the
    /// fault does nothing.
    pub fn applies_to(self, operation: Operation) -> bool {
        use Operation::{
            Allocate, CreateDir, Link, Map, Open, Read, Rename, SetLen, SyncData, SyncDir, Write,
        };
        match self {
            Fault::Io => true,
            Fault::Full => matches!(
                operation,
                Open | Write | SetLen | Allocate | SyncData | SyncDir | Rename | Link | CreateDir
            ),
            Fault::Interrupted | Fault::Short => matches!(operation, Read | Write),
            Fault::Lost => matches!(operation, Write | SyncData | SyncDir),
            Fault::Misdirected { .. } | Fault::ZeroTail => operation == Write,
            Fault::BitFlip => matches!(operation, Read | Write | Map),
            Fault::DuplicatedRead => operation == Read,
        }
    }
}

/// The operation that a [`Rule`] applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The operation with this index, counted from 0 over all kinds since the file system was
    /// created.
    Index(u64),
    /// The n-th operation of a kind, counted from 0.
    Nth(Operation, u64),
}

/// A request to inject a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The operation to hit.
    pub when: When,
    /// The fault to inject.
    pub fault: Fault,
    /// Whether all later operations (for [`When::Nth`], of that kind) are hit as well.
    pub persistent: bool,
}

impl Rule {
    /// Creates a rule that hits the operation with this index once.
    pub fn at(index: u64, fault: Fault) -> Rule {
        Rule { when: When::Index(index), fault, persistent: false }
    }

    /// Creates a rule that hits the n-th operation of a kind once.
    pub fn nth(operation: Operation, n: u64, fault: Fault) -> Rule {
        Rule { when: When::Nth(operation, n), fault, persistent: false }
    }

    /// Makes the rule hit all later operations as well.
    #[must_use]
    pub fn persistent(mut self) -> Rule {
        self.persistent = true;
        self
    }
}
