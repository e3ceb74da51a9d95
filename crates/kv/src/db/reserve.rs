//! Disk space held in reserve, so that a store that has filled its disk can be opened and emptied.
//!
//! Such a store needs space in order to shrink: for a manifest and a log segment when it is opened,
//! for the record of each deletion, and for the tables that remain. The reserve consists of blocks
//! allocated past the end of the file `LOCK`, which every store has and keeps open as long as it is
//! open itself. Opening, deleting, flushing and compacting release the reserve when they meet a
//! full disk, and continue. From then on puts are refused until the reserve is restored.

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering::*};
use cairn_vfs::{File, Fs, OpenOptions};

use crate::Result;

/// The file whose lock marks the store as open.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// Enough for a log segment of the initial small size, a manifest, and the tables left by a
/// memtable whose keys were deleted.
const BYTES: u64 = 512 << 10;

/// The smallest partial reserve that a closing store leaves if there is no room for a whole one.
const BYTES_MIN: u64 = BYTES / 8;

const _: () =
    assert!(BYTES_MIN > 0 && BYTES.is_multiple_of(BYTES_MIN) && (BYTES / BYTES_MIN).is_power_of_two());

/// The reserve of an open store, and its lock.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// Locked exclusively while the store is open for writing. Dropping it releases the lock.
    lock_file: Box<dyn File>,
    /// Set while there is no room for the reserve, so that puts are refused.
    pub(super) is_short: AtomicBool,
    /// Set if the reserve was released and has not been restored since.
    is_released: AtomicBool,
}

impl Reserve {
    /// Creates the reserve of the store that owns `lock_file`, without allocating it yet.
    pub(crate) fn new(lock_file: Box<dyn File>) -> Self {
        let (is_short, is_released) = (AtomicBool::new(false), AtomicBool::new(false));
        Reserve { lock_file, is_short, is_released }
    }

    /// Allocates the whole reserve. Errors: a full disk.
    pub(crate) fn restore(&self) -> Result<()> {
        match self.lock_file.allocate(0, BYTES) {
            Err(error) if error.is_full() => {
                self.is_short.store(true, SeqCst);
                Err(error.into())
            }
            // If the allocation fails for another reason, the store does without a reserve.
            _ => {
                self.is_released.store(false, SeqCst);
                self.is_short.store(false, SeqCst);
                Ok(())
            }
        }
    }

    /// Allocates as much of the reserve as there is room for, for the next open of the store.
    pub(super) fn restore_in_part(&self) {
        let mut bytes = BYTES;
        while bytes >= BYTES_MIN && self.lock_file.allocate(0, bytes).is_err_and(|error| error.is_full()) {
            bytes /= 2;
        }
        debug_assert!(bytes >= BYTES_MIN / 2 && BYTES.is_multiple_of(bytes), "a reserve of {bytes} bytes");
    }

    /// Frees the blocks of the reserve. Returns false if that was done before.
    pub(super) fn release(&self) -> bool {
        self.is_short.store(true, SeqCst);
        !self.is_released.swap(true, SeqCst) && release_blocks(&*self.lock_file)
    }

    /// Releases the reserve of a store that is not open. Returns false if it has none, or if it is
    /// open.
    pub(crate) fn release_closed(fs: &Arc<dyn Fs>, path: &std::path::Path) -> bool {
        let file = fs.open(&path.join(LOCK_NAME), OpenOptions::write());
        file.is_ok_and(|file| file.try_lock().is_ok() && release_blocks(&*file))
    }
}

/// Frees the blocks past the end of an empty file. Changes the length and restores it, because some
/// file systems ignore a truncation to the current length.
fn release_blocks(file: &dyn File) -> bool {
    file.set_len(1).and_then(|()| file.set_len(0)).is_ok()
}
