//! Disk space kept in reserve, so that rows of a database on a full disk can be deleted.
//!
//! ```text
//!   NAME-log/reserve    an empty file with blocks after its end, for deleting and a checkpoint
//!   NAME-log/undo       the same, for undoing running transactions
//! ```
//!
//! These blocks are never read or written. Work that frees space
//! ([`Reclaiming`](super::Reclaiming)) and finds the disk full frees the blocks and continues. From
//! then on the database is *short*: inserts fail until the blocks are allocated again, which each
//! insert tries. This way, the space that one deletion frees is not used by others before there is
//! enough for the next deletion.
//!
//! A transaction pays for its undo in advance. One that cannot be undone for lack of space would
//! leave the database read-only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{File, Fs, OpenOptions};

use crate::Result;

/// Files in the directory of the log, which ignores names other than its own.
const NAMES: [&str; 2] = ["reserve", "undo"];

/// Space for undo is allocated in steps of this, so that few changes call the file system.
const STEP: u64 = 256 << 10;
/// The size of the least log segment.
const MIN_SEGMENT: u32 = 8 << 10;
/// Space is allocated in blocks of a file system.
const _: () = assert!(STEP.is_multiple_of(BLOCK as u64) && MIN_SEGMENT.is_multiple_of(BLOCK));
const BLOCK: u32 = 4096;

/// The reserve of an open database.
#[derive(Debug)]
pub(crate) struct Reserve {
    files: Option<[Box<dyn File>; 2]>,
    /// Size of the first file's blocks when they are allocated.
    bytes: u64,
    is_short: AtomicBool,
    /// Whether the first file's blocks are allocated.
    is_whole: AtomicBool,
    /// Bytes needed to undo the running transactions.
    undo_needed: AtomicU64,
    /// Bytes allocated to the second file for that. Changed under the lock.
    undo_allocated: AtomicU64,
    /// Growth of the main file since the first file's blocks were freed.
    grown: AtomicU64,
    changing: Mutex<()>,
}

fn path(directory: &Path, at: usize) -> PathBuf {
    directory.join(NAMES.get(at).copied().unwrap_or_default())
}

/// Frees the blocks after the end of an empty file. The length must change, because some file
/// systems ignore a call that keeps it.
fn free_blocks(file: &dyn File) -> bool {
    file.set_len(1).and_then(|()| file.set_len(0)).is_ok()
}

/// Frees the reserve of an earlier process. Opening a database frees space, but cannot know in
/// advance how much space that takes. Returns true if the disk has less space than the reserve plus
/// `more`. This is tested by an allocation, because the free space that a file system reports may
/// differ from what it can allocate.
pub(crate) fn free_former_reserve(fs: &Arc<dyn Fs>, directory: &Path, bytes: u64, more: u64) -> bool {
    let mut is_full = false;
    for at in 0..NAMES.len() {
        let path = path(directory, at);
        if !fs.exists(&path).unwrap_or(false) {
            continue;
        }
        let Ok(file) = fs.open(&path, OpenOptions::write()) else { continue };
        free_blocks(&*file);
        if at == 0 && bytes > 0 {
            is_full = file.allocate(0, bytes + more).is_err_and(|error| error.is_full());
            free_blocks(&*file);
        }
    }
    is_full
}

impl Reserve {
    /// Creates an empty reserve: the database works without one.
    pub(crate) fn none() -> Reserve {
        Reserve {
            files: None,
            bytes: 0,
            is_short: AtomicBool::new(false),
            is_whole: AtomicBool::new(false),
            undo_needed: AtomicU64::new(0),
            undo_allocated: AtomicU64::new(0),
            grown: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    /// Opens the reserve of a log whose directory exists. It is empty until [`Reserve::restore`],
    /// so that the opening can use all available space. Errors: the file system's.
    pub(crate) fn open(fs: &Arc<dyn Fs>, directory: &Path, bytes: u64) -> Result<Reserve> {
        if bytes == 0 {
            return Ok(Reserve::none());
        }
        let open = |at| fs.open(&path(directory, at), OpenOptions::create());
        let files = match (open(0), open(1)) {
            (Ok(first), Ok(second)) => Some([first, second]),
            // The disk is too full even for a file name, so the database works without a reserve.
            (Err(error), _) | (_, Err(error)) if error.is_full() => None,
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        Ok(Reserve { files, bytes, ..Reserve::none() })
    }

    /// Returns whether the reserve was given up. Inserts then find no space until it is restored.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(SeqCst)
    }

    /// Returns the size of a log segment while the database is short. A checkpoint frees whole
    /// segments after it has begun another, so several must fit.
    pub(crate) fn segment(&self) -> u32 {
        let bytes = u32::try_from(self.bytes / 16).unwrap_or(u32::MAX);
        // The upper bound is a multiple, so rounding up does not overflow.
        let segment = bytes.clamp(MIN_SEGMENT, 1 << 31).next_multiple_of(BLOCK);
        debug_assert!(segment >= MIN_SEGMENT, "a segment of {segment} bytes is too short");
        segment
    }

    /// Returns the amount of log after which a checkpoint follows while the database is short.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        self.bytes / 16
    }

    /// Returns how much log a transaction may write while the database is short. The same amount is
    /// for its undo, and again for the main file; the rest is for segments that a checkpoint begins
    /// before it releases others.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.bytes / 8
    }

    /// Allocates the whole reserve, and the space owed. Errors: a full disk's; the database is
    /// short then.
    pub(crate) fn restore(&self) -> Result<()> {
        let Some([first, second]) = &self.files else { return Ok(()) };
        debug_assert!(self.bytes > 0, "a reserve without space has files");
        let _changing = lock(&self.changing);
        // The second file first, because its space is already owed.
        let undo_needed =
            self.undo_needed.load(SeqCst).next_multiple_of(STEP).max(self.undo_allocated.load(SeqCst));
        let taken =
            second.allocate(0, undo_needed).inspect(|()| self.undo_allocated.store(undo_needed, SeqCst));
        match taken.and_then(|()| first.allocate(0, self.bytes)) {
            Err(error) if error.is_full() => {
                if !self.is_whole.load(SeqCst) {
                    // A failed allocation may have taken a part, which would not be accounted for.
                    free_blocks(&**first);
                }
                self.is_short.store(true, SeqCst);
                Err(error.into())
            }
            // If the allocation fails for any other reason, the database works without a reserve.
            _ => {
                self.is_whole.store(true, SeqCst);
                self.is_short.store(false, SeqCst);
                self.grown.store(0, SeqCst);
                Ok(())
            }
        }
    }

    /// Frees the reserve, and for a thread that undoes changes (`undoes`) also the space set aside
    /// for undo. Returns false if nothing is left to free.
    pub(crate) fn give_up(&self, undoes: bool) -> bool {
        let Some([first, second]) = &self.files else { return false };
        let _changing = lock(&self.changing);
        self.is_short.store(true, SeqCst);
        if self.is_whole.swap(false, SeqCst) {
            return free_blocks(&**first);
        }
        undoes && self.undo_allocated.swap(0, SeqCst) > 0 && free_blocks(&**second)
    }

    /// Returns whether the main file may grow by `bytes`. Once the reserve was given up, the file
    /// may take an eighth of it at most: without space for the log, even an undo would fail.
    pub(crate) fn may_grow(&self, bytes: u64) -> bool {
        debug_assert!(bytes > 0, "the file grows by nothing");
        !self.is_short() || self.grown.fetch_add(bytes, SeqCst) + bytes <= self.bytes / 8
    }

    /// Adds to the space owed. Work that frees space (`reclaims`) may owe an eighth of the reserve
    /// beyond the allocated space, and gives up the reserve for it. Errors: a full disk's, with
    /// nothing added.
    pub(crate) fn reserve_undo(&self, bytes: u64, reclaims: bool) -> Result<()> {
        let Some([_, second]) = &self.files else { return Ok(()) };
        debug_assert!(bytes > 0, "an undo is announced that takes no space");
        let undo_needed = self.undo_needed.fetch_add(bytes, SeqCst) + bytes;
        if undo_needed <= self.undo_allocated.load(SeqCst) {
            return Ok(());
        }
        let changing = lock(&self.changing);
        let target = undo_needed.next_multiple_of(STEP);
        let error = match second.allocate(0, target) {
            Err(error) if error.is_full() => error,
            // If the allocation fails for any other reason, the database works without it.
            _ => {
                self.undo_allocated.fetch_max(target, SeqCst);
                return Ok(());
            }
        };
        let undo_allocated = self.undo_allocated.load(SeqCst);
        // The failed allocation may have taken a part. Free that, so that others can use it.
        let _ = second
            .set_len(undo_allocated + 1)
            .and_then(|()| second.set_len(undo_allocated))
            .and_then(|()| second.set_len(0));
        if undo_allocated > 0 {
            // This space was allocated until just now.
            let _ = second.allocate(0, undo_allocated);
        }
        drop(changing);
        if reclaims && undo_needed.saturating_sub(undo_allocated) <= self.bytes / 8 {
            self.give_up(false);
            return Ok(());
        }
        let before = self.undo_needed.fetch_sub(bytes, SeqCst);
        debug_assert!(before >= bytes, "{bytes} bytes of {before} are no longer needed for undo");
        Err(error.into())
    }

    /// Subtracts what a finished transaction no longer owes.
    pub(crate) fn release_undo(&self, bytes: u64) {
        // Without files, nothing was added.
        let Some([_, second]) = &self.files else { return };
        let before = self.undo_needed.fetch_sub(bytes, SeqCst);
        debug_assert!(before >= bytes, "{bytes} bytes of {before} are no longer needed for undo");
        let undo_needed = before.saturating_sub(bytes);
        let undo_allocated = self.undo_allocated.load(SeqCst);
        if undo_allocated == 0 || (undo_needed > 0 && undo_allocated <= 4 * (undo_needed + STEP)) {
            return;
        }
        let _changing = lock(&self.changing);
        // This allocates less than was just freed.
        let rest = self.undo_needed.load(SeqCst).next_multiple_of(STEP);
        let is_kept = free_blocks(&**second) && rest > 0 && second.allocate(0, rest).is_ok();
        self.undo_allocated.store(if is_kept { rest } else { 0 }, SeqCst);
    }

    /// The final step: leaves as much of the reserve as there is space for to the next process that
    /// opens the database.
    pub(crate) fn leave_to_next_process(&self) {
        let Some([first, second]) = &self.files else { return };
        let _changing = lock(&self.changing);
        free_blocks(&**second);
        let mut bytes = self.bytes;
        debug_assert!(bytes > 0, "a reserve without space has files");
        while bytes >= self.bytes / 8 && first.allocate(0, bytes).is_err_and(|error| error.is_full()) {
            free_blocks(&**first);
            bytes /= 2;
        }
    }
}
