//! Room on the disk that is kept for the day when there is no other: so that a full store can be
//! opened and emptied.
//!
//! A store that has filled its disk needs room to become smaller: for a manifest and a segment of
//! the log when it is opened, for a record of each deletion, for the tables that are left. So
//! blocks are allocated behind the end of the file `LOCK`, which every store has and which is open
//! as long as the store is. Opening, deleting, flushing and compacting give them up when they meet
//! a full disk, and go on. From then on nothing is put into the store until they are there again.

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering::*};
use cairn_vfs::{File, Fs, OpenOptions};

use crate::db::inner::Inner;
use crate::db::open::LOCK_NAME;
use crate::{Error, Result};

/// A segment of the log as small as the first ones are, a manifest, and tables of what is left of a
/// memtable whose keys were deleted.
const BYTES: u64 = 512 << 10;

/// A reserve that cannot be whole is at least this, when a store is closed.
const BYTES_MIN: u64 = BYTES / 8;

/// The reserve of an open store, and its lock.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// Held exclusively while the store is open for writing: its drop gives the lock back.
    lock_file: Box<dyn File>,
    /// There is no room for it: nothing may be put.
    is_short: AtomicBool,
    /// It was given up since it was there last.
    is_given_up: AtomicBool,
}

impl Reserve {
    /// Makes the reserve of a store whose lock this is, if there is room.
    pub(crate) fn new(lock_file: Box<dyn File>) -> Self {
        let (is_short, is_given_up) = (AtomicBool::new(false), AtomicBool::new(false));
        Reserve { lock_file, is_short, is_given_up }
    }

    /// Makes it whole. Errors: a full disk's.
    pub(crate) fn restore(&self) -> Result<()> {
        match self.lock_file.allocate(0, BYTES) {
            Err(error) if error.is_full() => {
                self.is_short.store(true, SeqCst);
                Err(error.into())
            }
            // Where it cannot be had for another reason, the store does without.
            _ => {
                self.is_given_up.store(false, SeqCst);
                self.is_short.store(false, SeqCst);
                Ok(())
            }
        }
    }

    /// Makes as much of it as there is room for, for whoever opens the store next.
    fn restore_in_part(&self) {
        let mut bytes = BYTES;
        while bytes >= BYTES_MIN && self.lock_file.allocate(0, bytes).is_err_and(|error| error.is_full()) {
            bytes /= 2;
        }
    }

    /// Gives its blocks to others. False when that was done already.
    fn give_up(&self) -> bool {
        self.is_short.store(true, SeqCst);
        !self.is_given_up.swap(true, SeqCst) && let_go(&*self.lock_file)
    }

    /// Gives up the reserve of a store that is not open. False when there is none, or the store is
    /// open.
    pub(crate) fn give_up_of(fs: &Arc<dyn Fs>, path: &std::path::Path) -> bool {
        let file = fs.open(&path.join(LOCK_NAME), OpenOptions::write());
        file.is_ok_and(|file| file.try_lock().is_ok() && let_go(&*file))
    }
}

/// Frees the blocks behind the end of an empty file. By a length that changes: one that does not is
/// nothing to do for some file systems.
fn let_go(file: &dyn File) -> bool {
    file.set_len(1).and_then(|()| file.set_len(0)).is_ok()
}

impl Inner {
    /// Whether a write may take room: always as long as the reserve is there, or can be made.
    /// `frees` says whether the write is one that makes room, and may do so in any case.
    ///
    /// Errors: a full disk's.
    #[inline]
    pub(crate) fn check_reserve(&self, frees: impl FnOnce() -> bool) -> Result<()> {
        match &self.reserve {
            Some(reserve) if reserve.is_short.load(Relaxed) && !frees() => reserve.restore(),
            _ => Ok(()),
        }
    }

    /// Runs `work`, which makes room in the end; once more with the reserve given up when the disk
    /// is full.
    pub(crate) fn with_reserve<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if self.gives_up_reserve(&error) => work(),
            result => result,
        }
    }

    fn gives_up_reserve(&self, error: &Error) -> bool {
        error.is_full() && self.reserve.as_ref().is_some_and(Reserve::give_up)
    }

    /// The last that is done: leaves a reserve to whoever opens the store next.
    pub(crate) fn leave_reserve(&self) {
        if let Some(reserve) = &self.reserve {
            reserve.restore_in_part();
        }
    }
}
