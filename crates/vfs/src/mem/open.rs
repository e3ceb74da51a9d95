//! Tracks the open inodes of a simulated file system and their locks.

use std::collections::BTreeMap;

/// Open files by inode.
#[derive(Debug, Default)]
pub(crate) struct OpenTable {
    entries: BTreeMap<u64, Entry>,
    next_handle: u64,
}

#[derive(Debug, Default)]
struct Entry {
    handles: u64,
    /// The handle that holds the exclusive lock.
    owner: Option<u64>,
}

impl OpenTable {
    /// Registers a new handle and returns its number.
    pub(crate) fn open(&mut self, inode: u64) -> u64 {
        let entry = self.entries.entry(inode).or_default();
        entry.handles += 1;
        let handle = self.next_handle;
        self.next_handle += 1;
        debug_assert!(entry.handles <= self.next_handle, "inode {inode} has more handles than there are");
        handle
    }

    /// Returns the number of the next handle.
    pub(crate) fn next_handle(&self) -> u64 {
        self.next_handle
    }

    /// Closes a handle and releases its lock. Returns true when it was the last handle of its
    /// inode.
    pub(crate) fn close(&mut self, inode: u64, handle: u64) -> bool {
        debug_assert!(handle < self.next_handle, "handle {handle} was never opened");
        debug_assert!(self.entries.contains_key(&inode), "inode {inode} is closed, which is not open");
        let Some(entry) = self.entries.get_mut(&inode) else { return true };
        debug_assert!(entry.handles > 0);
        if entry.owner == Some(handle) {
            entry.owner = None;
        }
        entry.handles -= 1;
        let last = entry.handles == 0;
        debug_assert!(!last || entry.owner.is_none(), "the lock of inode {inode} outlives its owner");
        if last {
            self.entries.remove(&inode);
        }
        last
    }

    /// Takes the lock for `handle`, which may hold it already. Returns false when another handle
    /// holds it.
    pub(crate) fn try_lock(&mut self, inode: u64, handle: u64) -> bool {
        debug_assert!(self.is_open(inode) && handle < self.next_handle, "a lock of a file that is not open");
        let entry = self.entries.entry(inode).or_default();
        *entry.owner.get_or_insert(handle) == handle
    }

    pub(crate) fn is_open(&self, inode: u64) -> bool {
        debug_assert!(
            self.entries.get(&inode).is_none_or(|entry| entry.handles > 0),
            "inode {inode} is open without a handle"
        );
        self.entries.contains_key(&inode)
    }
}
