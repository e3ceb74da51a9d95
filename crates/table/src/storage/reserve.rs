//! Room on the disk that is kept for the day when there is no other, so that a full database can
//! be emptied.
//!
//! ```text
//!   NAME-log/reserve    an empty file; blocks behind its end: what deleting and a checkpoint take
//!   NAME-log/undo       the same, for undoing those who run
//! ```
//!
//! Nobody reads or writes these blocks. Work that gives space back
//! ([`Giving`](super::giving::Giving)) and meets a full disk frees them and goes on. From then on
//! the database is *short*: rows are not put in until the blocks are there again, which each insert
//! tries. So what one deletion frees is not taken by others before the next one has room as well.
//!
//! A transaction has its undoing paid for in advance: one that cannot be undone for lack of space
//! leaves a database that can only be read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{File, Fs, OpenOptions};

use crate::Result;

/// In the directory of the log, where other names than its own are nobody's business.
const NAMES: [&str; 2] = ["reserve", "undo"];

/// Room for undoing is taken in steps of this, so that few changes ask the file system.
const STEP: u64 = 256 << 10;

/// The reserve of an open database.
#[derive(Debug)]
pub(crate) struct Reserve {
    files: Option<[Box<dyn File>; 2]>,
    /// What the first file has, when it has anything.
    bytes: u64,
    is_short: AtomicBool,
    /// Whether the first file has its blocks.
    is_whole: AtomicBool,
    /// What undoing takes of those who run.
    owed: AtomicU64,
    /// What the second file has for it. Changed under the lock.
    paid: AtomicU64,
    /// How much the file of the pages has taken since the first file was given up.
    grown: AtomicU64,
    changing: Mutex<()>,
}

fn path(directory: &Path, at: usize) -> PathBuf {
    directory.join(NAMES.get(at).copied().unwrap_or_default())
}

/// Frees the blocks behind the end of an empty file. By a length that changes: one that does not
/// is nothing to do for some file systems.
fn let_go(file: &dyn File) -> bool {
    file.set_len(1).and_then(|()| file.set_len(0)).is_ok()
}

/// Lets go of what an earlier process has kept: an opening gives room back, and it cannot know
/// beforehand how much of it that takes. True when there is less room on the disk than the reserve
/// and `more`. Found by a try, since a file system may count what is free otherwise than it gives
/// it out.
pub(crate) fn give_up_of(fs: &Arc<dyn Fs>, directory: &Path, bytes: u64, more: u64) -> bool {
    let mut is_full = false;
    for at in 0..NAMES.len() {
        let path = path(directory, at);
        if !fs.exists(&path).unwrap_or(false) {
            continue;
        }
        let Ok(file) = fs.open(&path, OpenOptions::write()) else { continue };
        let_go(&*file);
        if at == 0 && bytes > 0 {
            is_full = file.allocate(0, bytes + more).is_err_and(|error| error.is_full());
            let_go(&*file);
        }
    }
    is_full
}

impl Reserve {
    /// Without any: the database does without.
    pub(crate) fn none() -> Reserve {
        Reserve {
            files: None,
            bytes: 0,
            is_short: AtomicBool::new(false),
            is_whole: AtomicBool::new(false),
            owed: AtomicU64::new(0),
            paid: AtomicU64::new(0),
            grown: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    /// The one of a log whose directory is there. It has nothing until [`Reserve::restore`], and
    /// the opening may take all that there is. Errors: the file system's.
    pub(crate) fn open(fs: &Arc<dyn Fs>, directory: &Path, bytes: u64) -> Result<Reserve> {
        if bytes == 0 {
            return Ok(Reserve::none());
        }
        let open = |at| fs.open(&path(directory, at), OpenOptions::create());
        let files = match (open(0), open(1)) {
            (Ok(first), Ok(second)) => Some([first, second]),
            // Full to the last name: no more can be had than there is.
            (Err(error), _) | (_, Err(error)) if error.is_full() => None,
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        Ok(Reserve { files, bytes, ..Reserve::none() })
    }

    /// Whether it was given up: what is put in finds no room until it is restored.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(SeqCst)
    }

    /// How large a segment of the log is meanwhile: a checkpoint gives back whole segments, after
    /// it has begun another one, so several have to have room.
    pub(crate) fn segment(&self) -> u32 {
        u32::try_from(self.bytes / 16).unwrap_or(u32::MAX).max(8 << 10).next_multiple_of(4096)
    }

    /// How much log a checkpoint follows meanwhile.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        self.bytes / 16
    }

    /// How much log a transaction may write meanwhile. As much again is for undoing it, and as much
    /// for the file of the pages; the rest is for segments that a checkpoint begins before it lets
    /// go of others.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.bytes / 8
    }

    /// Makes it whole, with what is owed. Errors: a full disk's, and then the database is short.
    pub(crate) fn restore(&self) -> Result<()> {
        let Some([first, second]) = &self.files else { return Ok(()) };
        let _changing = lock(&self.changing);
        // The second one first: it is owed by now.
        let owed = self.owed.load(SeqCst).next_multiple_of(STEP).max(self.paid.load(SeqCst));
        let taken = second.allocate(0, owed).inspect(|()| self.paid.store(owed, SeqCst));
        match taken.and_then(|()| first.allocate(0, self.bytes)) {
            Err(error) if error.is_full() => {
                if !self.is_whole.load(SeqCst) {
                    // A part of it may have been taken, which nobody would know of.
                    let_go(&**first);
                }
                self.is_short.store(true, SeqCst);
                Err(error.into())
            }
            // What cannot be had for another reason the database does without.
            _ => {
                self.is_whole.store(true, SeqCst);
                self.is_short.store(false, SeqCst);
                self.grown.store(0, SeqCst);
                Ok(())
            }
        }
    }

    /// Frees the reserve, and for a thread that undoes changes (`undoes`) also the space set aside
    /// for undoing. False when nothing is left to free.
    pub(crate) fn give_up(&self, undoes: bool) -> bool {
        let Some([first, second]) = &self.files else { return false };
        let _changing = lock(&self.changing);
        self.is_short.store(true, SeqCst);
        if self.is_whole.swap(false, SeqCst) {
            return let_go(&**first);
        }
        undoes && self.paid.swap(0, SeqCst) > 0 && let_go(&**second)
    }

    /// Whether the file of the pages may take so much more: an eighth at most once this was given
    /// up, since a log without room could not even undo it.
    pub(crate) fn lets_grow(&self, bytes: u64) -> bool {
        !self.is_short() || self.grown.fetch_add(bytes, SeqCst) + bytes <= self.bytes / 8
    }

    /// Adds to what is owed. Work that gives space back (`gives`) may owe an eighth of the reserve
    /// beyond what is paid, and gives the reserve up for it. Errors: a full disk's, and then
    /// nothing was added.
    pub(crate) fn owe(&self, bytes: u64, gives: bool) -> Result<()> {
        let Some([_, second]) = &self.files else { return Ok(()) };
        let owed = self.owed.fetch_add(bytes, SeqCst) + bytes;
        if owed <= self.paid.load(SeqCst) {
            return Ok(());
        }
        let changing = lock(&self.changing);
        let target = owed.next_multiple_of(STEP);
        let error = match second.allocate(0, target) {
            Err(error) if error.is_full() => error,
            // What cannot be had for another reason the database does without.
            _ => {
                self.paid.fetch_max(target, SeqCst);
                return Ok(());
            }
        };
        let paid = self.paid.load(SeqCst);
        // The failed allocation may have taken a part. Free that, so that others can use it.
        let _ = second.set_len(paid + 1).and_then(|()| second.set_len(paid)).and_then(|()| second.set_len(0));
        if paid > 0 {
            // There was room for it a moment ago.
            let _ = second.allocate(0, paid);
        }
        drop(changing);
        if gives && owed.saturating_sub(paid) <= self.bytes / 8 {
            self.give_up(false);
            return Ok(());
        }
        self.owed.fetch_sub(bytes, SeqCst);
        Err(error.into())
    }

    /// Subtracts what a finished transaction no longer owes.
    pub(crate) fn settle(&self, bytes: u64) {
        let owed = self.owed.fetch_sub(bytes, SeqCst).saturating_sub(bytes);
        let Some([_, second]) = &self.files else { return };
        let paid = self.paid.load(SeqCst);
        if paid == 0 || (owed > 0 && paid <= 4 * (owed + STEP)) {
            return;
        }
        let _changing = lock(&self.changing);
        // This allocates less than was just freed.
        let rest = self.owed.load(SeqCst).next_multiple_of(STEP);
        let is_kept = let_go(&**second) && rest > 0 && second.allocate(0, rest).is_ok();
        self.paid.store(if is_kept { rest } else { 0 }, SeqCst);
    }

    /// The last that is done: leaves as much of it as there is room for to whoever opens the
    /// database next.
    pub(crate) fn leave(&self) {
        let Some([first, second]) = &self.files else { return };
        let _changing = lock(&self.changing);
        let_go(&**second);
        let mut bytes = self.bytes;
        while bytes >= self.bytes / 8 && first.allocate(0, bytes).is_err_and(|error| error.is_full()) {
            let_go(&**first);
            bytes /= 2;
        }
    }
}
