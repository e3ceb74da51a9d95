//! One file in the cache and on disk, and the pending changes in between.
//!
//! ```text
//!   durable   the content that certainly survives
//!      + pending[0], pending[1], ...      in the order they were made
//!   = live    the content that reads return
//! ```
//!
//! The equation fails after a sync that lost all or some of its changes and left them in the cache
//! ([`SyncFailure::CacheOnly`], [`SyncFailure::Partial`]). Then `diverged` is set, and later syncs
//! write only the pending changes. Dropping the cache restores the equation.

use std::sync::Arc;

use super::options::SyncFailure;
use crate::mem::content::Content;

#[derive(Debug, Clone, Default)]
pub(super) struct FileState {
    pub(super) live: Content,
    pub(super) durable: Content,
    pub(super) pending: Vec<PendingData>,
    pub(super) diverged: bool,
}

/// A change of a file's bytes or length that no sync has covered yet.
#[derive(Debug, Clone)]
pub(super) struct PendingData {
    /// Position among all pending changes of the disk, names included.
    pub(super) sequence: u64,
    pub(super) change: DataChange,
}

#[derive(Debug, Clone)]
pub(super) enum DataChange {
    Write {
        offset: u64,
        bytes: Arc<[u8]>,
        /// True when the write extends the file. A crash draws the new length separately from the
        /// bytes.
        grows: bool,
    },
    SetLen(u64),
}

impl FileState {
    /// Creates a file whose content is durable.
    pub(super) fn settled(content: Content) -> FileState {
        FileState { live: content.clone(), durable: content, pending: Vec::new(), diverged: false }
    }

    /// Checks that the changes are in the order in which they were made, and that together with
    /// the durable content they make up the content that reads return.
    fn check(&self) {
        let last = self.pending.last_chunk::<2>();
        debug_assert!(last.is_none_or(|[a, b]| a.sequence < b.sequence), "changes are out of order");
        debug_assert!(self.diverged || !self.pending.is_empty() || self.live.len() == self.durable.len());
        debug_assert!(
            self.pending.last().is_none_or(|last| match &last.change {
                DataChange::Write { offset, bytes, .. } => offset + bytes.len() as u64 <= self.live.len(),
                DataChange::SetLen(len) => *len == self.live.len(),
            }),
            "reads do not see the last change"
        );
    }

    /// Returns true when disk and cache hold the same content.
    pub(super) fn is_settled(&self) -> bool {
        let settled = self.pending.is_empty() && !self.diverged;
        debug_assert!(
            !settled || self.live.len() == self.durable.len(),
            "{} bytes are durable of {}",
            self.durable.len(),
            self.live.len()
        );
        settled
    }

    pub(super) fn write(&mut self, sequence: u64, offset: u64, bytes: Arc<[u8]>) {
        debug_assert!(offset.checked_add(bytes.len() as u64).is_some());
        let grows = offset + bytes.len() as u64 > self.live.len();
        self.live.write(&bytes, offset);
        self.pending.push(PendingData { sequence, change: DataChange::Write { offset, bytes, grows } });
        self.check();
    }

    pub(super) fn set_len(&mut self, sequence: u64, len: u64) {
        self.live.set_len(len);
        self.pending.push(PendingData { sequence, change: DataChange::SetLen(len) });
        debug_assert!(self.live.len() == len);
        self.check();
    }

    pub(super) fn sync(&mut self) {
        debug_assert!(self.pending.is_sorted_by(|a, b| a.sequence < b.sequence), "changes are out of order");
        self.durable = self.all_applied();
        self.pending.clear();
        self.check();
    }

    /// Returns the content of the disk after every pending change has reached it.
    pub(super) fn all_applied(&self) -> Content {
        if !self.diverged {
            debug_assert!(
                self.live.len()
                    == self.pending.iter().fold(self.durable.len(), |len, item| match &item.change {
                        DataChange::Write { offset, bytes, .. } => len.max(offset + bytes.len() as u64),
                        DataChange::SetLen(len) => *len,
                    }),
                "the changes do not lead from {} bytes to {}",
                self.durable.len(),
                self.live.len()
            );
            return self.live.clone(); // equal, and shares its pages
        }
        let mut content = self.durable.clone();
        for item in &self.pending {
            match &item.change {
                DataChange::Write { offset, bytes, .. } => content.write(bytes, *offset),
                DataChange::SetLen(len) => content.set_len(*len),
            }
        }
        content
    }

    /// Simulates a failed sync. `reached` is the new content of the disk if some changes reached it
    /// anyway ([`SyncFailure::Partial`]).
    pub(super) fn fail_sync(&mut self, failure: SyncFailure, reached: Option<Content>) {
        debug_assert!(reached.is_some() == (failure == SyncFailure::Partial), "{failure:?} is no part");
        match failure {
            SyncFailure::Kept => {}
            SyncFailure::CacheOnly | SyncFailure::Partial => {
                self.diverged |= !self.pending.is_empty();
                self.pending.clear();
                if let Some(content) = reached {
                    self.durable = content;
                }
            }
            SyncFailure::Lost => *self = FileState::settled(self.durable.clone()),
        }
        debug_assert!(failure == SyncFailure::Kept || self.pending.is_empty());
        self.check();
    }

    /// Drops the cache: pending changes stay, and the rest is read from the disk again.
    pub(super) fn drop_cache(&mut self) {
        self.live = self.all_applied();
        self.diverged = false;
        self.check();
    }

    /// Silently corrupts stored bytes, in the cache and on the disk.
    pub(super) fn corrupt(&mut self, change: impl Fn(&mut Content)) {
        let before = (self.live.len(), self.durable.len());
        change(&mut self.live);
        change(&mut self.durable);
        debug_assert!((self.live.len(), self.durable.len()) == before, "corruption moves the end");
        debug_assert!(self.live.len() >= self.durable.len() || !self.pending.is_empty() || self.diverged);
        // The change may lie past the durable end, where it would reappear if the file grows.
        self.durable.trim();
    }
}
