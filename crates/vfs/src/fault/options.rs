//! What the simulated disk does wrong, and when.

use crate::Operation;

/// How a [`FaultFs`](super::FaultFs) behaves. The default is the worst disk that Cairn promises to
/// survive: nothing is atomic, nothing is ordered; it makes no errors of its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FaultOptions {
    /// Everything random follows from it.
    pub seed: u64,
    /// The largest aligned unit that power loss cannot tear. Default: none.
    pub atomic_write: AtomicWrite,
    /// Changes reach the disk in the order they were made, so that a crash keeps a prefix of them,
    /// the last one possibly torn. Default: each change survives or not by itself.
    pub ordered: bool,
    /// An append's bytes reach the disk before the length that covers them. Default: the length may
    /// come first, with zeros, fragments or garbage under it.
    pub append_safe: bool,
    /// Power loss may also destroy bytes that share a 512-byte sector with the write and were
    /// durable before. Default off: the powersafe overwrite that SQLite, too, assumes of disks;
    /// logs that append in the middle of a sector cannot survive without it.
    pub wide_garbage: bool,
    /// What becomes of pending changes when a sync fails.
    pub sync_failure: SyncFailure,
    /// Chance that a read returns fewer bytes than it could. Default 0.
    pub short_reads: f64,
    /// Chance that a write takes fewer bytes than it was given. Default 0.
    pub short_writes: f64,
    /// Size of the disk in bytes, used up in pages of 4096; `None` is endless. See
    /// [`FaultFs::set_quota`](super::FaultFs::set_quota) to change it later.
    pub quota_bytes: Option<u64>,
    /// Keeps a log of all operations, for [`replay`](super::replay) and [`shrink`](super::shrink).
    /// Costs a copy of all bytes written. Default off.
    pub record: bool,
}

impl FaultOptions {
    /// The defaults, with a seed.
    pub fn seeded(seed: u64) -> Self {
        FaultOptions { seed, ..FaultOptions::default() }
    }
}

/// The largest aligned unit of a write that is on the disk wholly or not at all after power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtomicWrite {
    /// Every byte for itself.
    #[default]
    None,
    /// Sectors of 512 bytes.
    Sector512,
    /// Blocks of 4096 bytes.
    Block4096,
}

impl AtomicWrite {
    /// The unit in bytes, if there is one.
    pub(crate) fn unit_bytes(self) -> Option<u64> {
        match self {
            AtomicWrite::None => None,
            AtomicWrite::Sector512 => Some(512),
            AtomicWrite::Block4096 => Some(4096),
        }
    }
}

/// What a failed sync leaves behind. In all but the last the *next* sync says Ok although the
/// changes never reached the disk, which Linux really does: a failed write-back marks the page
/// clean ("fsyncgate", 2018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncFailure {
    /// Reads go on to show the changes, from the cache; no later sync writes them, and a crash
    /// loses them.
    #[default]
    CacheOnly,
    /// The same, but for what had reached the disk when the sync failed: of bytes and lengths as
    /// much as a power loss could leave ([`CrashImage::Random`](super::CrashImage::Random)), drawn
    /// by the seed; of names those up to some change.
    Partial,
    /// The changes are gone at once: reads show what was durable.
    Lost,
    /// The changes stay pending, and the next sync that works makes them durable.
    Kept,
}

/// Something that goes wrong with one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// `EIO`; nothing was done. Of a sync, see [`SyncFailure`].
    Io,
    /// `ENOSPC`; nothing was done. For operations that can need space.
    Full,
    /// `EINTR` from a read or write; nothing was done, and repeating it is right. A persistent rule
    /// interrupts every other operation, since callers repeat for as long as it takes.
    Interrupted,
    /// A read or write transfers half of the bytes, at least one.
    Short,
    /// A write or sync says Ok and does nothing: a stale block, or a disk that lies about its
    /// cache.
    Lost,
    /// A write lands this many bytes away (never before the start of the file), and says Ok.
    Misdirected {
        /// Distance in bytes.
        by: i64,
    },
    /// A write stores zeros for the second half of its bytes, and says Ok.
    ZeroTail,
    /// One bit, chosen by the seed, is flipped: of the stored bytes for a write, of the returned
    /// bytes for a read or a map.
    BitFlip,
    /// A read returns what stands where the previous read was.
    DuplicatedRead,
}

impl Fault {
    /// Whether it can befall such an operation. Elsewhere a rule for it does nothing.
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

/// Which operation a [`Rule`] means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The operation with this index, counted from 0 over all kinds, from the creation of the file
    /// system on.
    Index(u64),
    /// The n-th operation of a kind, counted from 0.
    Nth(Operation, u64),
}

/// An order to let something go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Which operation.
    pub when: When,
    /// What goes wrong.
    pub fault: Fault,
    /// Whether all later operations (for [`When::Nth`], of that kind) go wrong as well.
    pub persistent: bool,
}

impl Rule {
    /// Once, at the operation with this index.
    pub fn at(index: u64, fault: Fault) -> Rule {
        Rule { when: When::Index(index), fault, persistent: false }
    }

    /// Once, at the n-th operation of a kind.
    pub fn nth(operation: Operation, n: u64, fault: Fault) -> Rule {
        Rule { when: When::Nth(operation, n), fault, persistent: false }
    }

    /// From then on, always.
    #[must_use]
    pub fn persistent(mut self) -> Rule {
        self.persistent = true;
        self
    }
}
