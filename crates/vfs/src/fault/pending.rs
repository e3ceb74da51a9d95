//! One file as the cache shows it, as the disk has it, and the changes between.
//!
//! ```text
//!   durable   what certainly survives
//!      + pending[0], pending[1], ...      in the order they were made
//!   = live    what reads show
//! ```
//!
//! The equation fails after a sync that lost its changes, or some, and left them in the cache
//! ([`SyncFailure::CacheOnly`], [`SyncFailure::Partial`]); then `diverged` is set, and later syncs
//! write only what is pending. A dropped cache makes it hold again.

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
        /// The write made the file longer. A crash draws that separately from the bytes.
        grows: bool,
    },
    SetLen(u64),
}

impl FileState {
    /// A file that has been on the disk for ever.
    pub(super) fn settled(content: Content) -> FileState {
        FileState { live: content.clone(), durable: content, pending: Vec::new(), diverged: false }
    }

    /// True when the disk has exactly what the cache shows.
    pub(super) fn is_settled(&self) -> bool {
        self.pending.is_empty() && !self.diverged
    }

    pub(super) fn write(&mut self, sequence: u64, offset: u64, bytes: Arc<[u8]>) {
        let grows = offset + bytes.len() as u64 > self.live.len();
        self.live.write(&bytes, offset);
        self.pending.push(PendingData { sequence, change: DataChange::Write { offset, bytes, grows } });
    }

    pub(super) fn set_len(&mut self, sequence: u64, len: u64) {
        self.live.set_len(len);
        self.pending.push(PendingData { sequence, change: DataChange::SetLen(len) });
    }

    pub(super) fn sync(&mut self) {
        self.durable = self.all_applied();
        self.pending.clear();
    }

    /// What the disk has when every pending change reaches it.
    pub(super) fn all_applied(&self) -> Content {
        if !self.diverged {
            return self.live.clone(); // the same, and shares its pages
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

    /// Fails to sync. `reached` is what the disk has all the same, where it has more than before
    /// ([`SyncFailure::Partial`]).
    pub(super) fn fail_sync(&mut self, failure: SyncFailure, reached: Option<Content>) {
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
    }

    /// The cache keeps what it has yet to write, and reads the rest from the disk again.
    pub(super) fn drop_cache(&mut self) {
        self.live = self.all_applied();
        self.diverged = false;
    }

    /// Changes stored bytes behind everybody's back: in the cache and on the disk.
    pub(super) fn corrupt(&mut self, change: impl Fn(&mut Content)) {
        change(&mut self.live);
        change(&mut self.durable);
        // What changed may lie past the durable end, where it would come to light when the file
        // grows.
        self.durable.trim();
    }
}
