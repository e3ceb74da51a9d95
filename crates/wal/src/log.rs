//! The shared side of a log: syncing, releasing, and opening for writing.

use std::collections::BTreeSet;
use std::path::Path;

use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::thread::JoinHandle;
use cairn_vfs::{FileId, Fs, Operation, Rng, thread};

use crate::format::{HEADER_BYTES, Previous};
use crate::helper;
use crate::recovery::Tail;
use crate::shared::{Files, SealedSegment, Shared};
use crate::{Appender, Error, Known, Lsn, Options, Result};

/// A log open for writing, as seen by everyone but the appender. Any number of threads use it
/// through `&self`.
///
/// A failed sync, write or segment creation poisons the log immediately. From then on everything
/// fails except open reservations, whose commits guarantee nothing. Dropping a log syncs nothing.
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    helper: Mutex<Option<JoinHandle<()>>>,
}

/// Counters since the log was opened, and its current activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Syncs of segments for waiting records, without the syncs that prepare a segment.
    pub flushes: u64,
    /// Segments prepared.
    pub segments: u64,
    /// The prepared segments that reused the file of a released one.
    pub recycled: u64,
    /// How often an appender needed a segment, or memory of one, that was not ready. The first
    /// segment counts.
    pub stalls: u64,
    /// Threads currently waiting for a sync, including the one that executes it.
    pub waiting: u64,
}

impl Log {
    /// Opens a recovered log for writing. Creates its directory if it is missing.
    ///
    /// Writing continues in a new segment, whose header records the end of the last one; a torn end
    /// is never appended to. Recovered records that may exist only in the page cache are written
    /// again first. Segments before the start position of the recovery, and those cut off by a
    /// crash, are released. `rng` supplies the salt that prevents bytes from earlier uses of a file
    /// from being taken for records.
    ///
    /// Costs a few syncs. After a killed process, it also costs a copy of the records that may not
    /// be synced, and reading the copy back. Errors: `Invalid` options; file system errors, which
    /// include a copy that lacks recovered records, for example after a faulty read; the failure to
    /// start the helper thread. After an error the log is unchanged and can be recovered again.
    pub fn open(
        fs: &Arc<dyn Fs>,
        options: &Options,
        tail: Tail,
        rng: &mut dyn Rng,
    ) -> Result<(Log, Appender)> {
        options.check()?;
        let dir = &tail.dir;
        if tail.highest == 0 {
            // Even if the directory exists: its creator may have been killed before the name was
            // durable.
            fs.create_dir_all_durably(dir)?;
        }
        let log_id = tail.log_id.unwrap_or_else(|| rng.next_u64());
        let shared = Arc::new(Shared::new(fs, options, &tail, log_id, rng.next_u64()));
        for path in &tail.stray {
            // A recovery that was asked to sync has completed the copy and renamed it already.
            if fs.exists(path)? {
                fs.remove(path)?;
            }
        }
        // ORDER: the header of the new segment states that everything before it is on stable
        // storage, so this comes first.
        for old in &tail.segments {
            old.make_durable(fs)?;
        }
        let previous = tail.segments.last().map(|_| Previous {
            salt: tail.salt,
            end: tail.end,
            synced: tail.end.offset(),
        });
        if previous.is_some() {
            shared.raise_synced(tail.end);
        }
        let mut known = adopt(&shared, &tail)?;
        let appender = Appender::begin(Arc::clone(&shared), previous)?;
        debug_assert!(appender.position().offset() == HEADER_BYTES, "the first segment has records already");
        shared.allows_small_segments.store(false, Ordering::Release);
        if !tail.cut.is_empty() {
            // ORDER: a newer header is on stable storage before these segments are removed.
            // Otherwise the position that the log had reached would be lost, and positions could be
            // handed out a second time to owners that remember them. Also, a crash during the
            // removals could leave the newest of these segments without the one before it. It would
            // then be taken for the log's newest segment, with all its predecessors released.
            shared.sync_to(appender.position())?;
            for path in &tail.cut {
                known.remove(&fs.metadata(path)?.id);
                retire(&shared, &mut lock(&shared.files), &mut known, path)?;
            }
        }
        let log = Log { shared, helper: Mutex::default() };
        if options.background {
            let shared = Arc::clone(&log.shared);
            match thread::spawn("cairn-wal", move || helper::run(&shared)) {
                Ok(thread) => *lock(&log.helper) = Some(thread),
                Err(source) => {
                    // Gives back the space of the new segment. If that fails, the next recovery
                    // does it.
                    let _ = log.close(appender);
                    return Err(cairn_vfs::Error::new(Operation::StartThread, &tail.dir, source).into());
                }
            }
            log.shared.want_segment();
        }
        Ok((log, appender))
    }

    /// Returns when everything up to position `lsn` is on stable storage.
    ///
    /// Waits until reservations below `lsn` are committed, but never for later ones. Concurrent
    /// callers share one device flush; callers that arrive during a flush share the next. Costs one
    /// device flush, or nothing if `lsn` is synced already. Errors: `Invalid` when `lsn` was never
    /// reserved. A failed sync poisons the log and is not retried, because a kernel may drop pages
    /// that it could not write and then report success.
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.shared.sync_to(lsn)
    }

    /// Calls [`Log::sync_to`] for everything reserved before the call.
    pub fn sync(&self) -> Result<()> {
        self.sync_to(self.shared.reserved())
    }

    /// Releases the process's memory of committed records if it exceeds one megabyte; the kernel
    /// keeps the bytes. Useful after a large record, which would otherwise stay mapped until the
    /// next sync.
    pub fn release_memory(&self) {
        self.shared.release_memory();
    }

    /// Fails with `Poisoned` once the log has failed. If an [`Appender`] returned an error and this
    /// returns `Ok`, the failed call changed nothing.
    pub fn check(&self) -> Result<()> {
        self.shared.check()
    }

    /// Returns the position up to which everything is on stable storage or released.
    pub fn synced(&self) -> Lsn {
        self.shared.synced()
    }

    /// Returns the position up to which records have been reserved.
    pub fn reserved(&self) -> Lsn {
        self.shared.reserved()
    }

    /// Declares that the records up to `lsn` are no longer needed. Segments without later records
    /// are recycled or removed, except for the current one.
    ///
    /// A start position for recoveries at or after `lsn` must have been made durable before. Costs
    /// one rename per segment and a sync of the directory. After a failed rename the call can be
    /// repeated. A failed sync poisons the log.
    pub fn release_before(&self, lsn: Lsn) -> Result<()> {
        self.shared.release_before(lsn)
    }

    /// Shrinks a log that is not going to be written much soon. Removes the segments kept for
    /// recycling and the prepared one, and restarts with small segments. With all records released
    /// and after [`Appender::rotate`], almost no disk space remains in use. Errors: file system
    /// errors; the next call retries the rest.
    pub fn trim(&self) -> Result<()> {
        self.shared.trim()
    }

    /// Closes the log. Makes everything durable, writes the closing mark ([`Appender::close`]), and
    /// gives back unused space: it truncates the last segment after the mark, and removes the
    /// prepared segment and those kept for recycling. All reservations must be committed before.
    ///
    /// The released space is not made durable, and a crash may bring it back. Errors: file system
    /// errors, and those of a poisoned log. Records stay intact whatever fails. Costs up to two
    /// syncs.
    pub fn close(&self, mut appender: Appender) -> Result<()> {
        self.end_helper();
        // If there is no space for the mark, there is some to give back.
        let marked = appender.mark_end();
        let (segment, end) = appender.into_last_segment();
        debug_assert!(
            end >= u64::from(HEADER_BYTES) && end <= u64::from(segment.bytes),
            "the log ends at {end}"
        );
        // A segment shorter than its recorded length either ends with a mark or was truncated by
        // another program.
        let shrunk = self.shared.shrink(&segment, marked.is_ok().then_some(end));
        marked.and(shrunk)
    }

    fn end_helper(&self) {
        self.shared.stop_helper();
        let helper = lock(&self.helper).take();
        if let Some(helper) = helper {
            // The helper does not panic; if it did, nobody could be told any more.
            let _ = helper.join();
        }
    }

    /// Returns the state that a later recovery must find at least
    /// ([`RecoveryOptions::known`](crate::RecoveryOptions::known)): everything currently on stable
    /// storage. The owner stores it outside the log.
    pub fn known(&self) -> Known {
        self.shared.known()
    }

    /// Sets the note of two numbers that all later segments and the closing mark carry for the
    /// owner ([`Tail::note`]). The last note counts. [`Appender::note`] writes it at once.
    pub fn set_note(&self, note: [u64; 2]) {
        *lock(&self.shared.note) = note;
    }

    /// Returns the random number that all segments of this log carry.
    pub fn id(&self) -> u64 {
        self.shared.log_id
    }

    /// Allows segments smaller than usual, down to 8 KiB, when the disk has no space for more. For
    /// owners that have to append in order to free space. Otherwise, the disk counts as full while
    /// some space is left. Default false, except for the first segment after opening.
    pub fn allow_small_segments(&self, on: bool) {
        self.shared.allows_small_segments.store(on, Ordering::Release);
    }

    /// Limits the size of new segments. When the disk is nearly full, segments smaller than
    /// configured let several fit, so that they can be released one by one. Rounded up to multiples
    /// of 4 KiB, at least 8 KiB; `None` restores the configured size. A record that does not fit
    /// gets a segment of its own size, and recycled segments keep theirs.
    pub fn limit_segments(&self, bytes: Option<u32>) {
        const LEAST_BYTES: u32 = 2 * HEADER_BYTES;
        const _: () = assert!(LEAST_BYTES == 8 << 10);
        let most = bytes.map_or(u32::MAX, |bytes| bytes.max(LEAST_BYTES).next_multiple_of(4096));
        self.shared.segment_bytes_limit.store(most, Ordering::Release);
    }

    /// Returns the salt of the segment that contains a position. The segment must have been begun
    /// by this process. An owner can store the salt with the position: a log that continued from a
    /// copy of this one has a different salt there ([`Tail::salt`]).
    pub fn salt(&self, lsn: Lsn) -> u64 {
        self.shared.salt_of(lsn.segment())
    }

    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        let counts = &self.shared.counts;
        Stats {
            flushes: counts.flushes.load(Ordering::Relaxed),
            segments: counts.segments.load(Ordering::Relaxed),
            recycled: counts.recycled.load(Ordering::Relaxed),
            stalls: counts.stalls.load(Ordering::Relaxed),
            waiting: self.shared.waiting(),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.end_helper();
    }
}

/// Takes over the files of earlier processes: the log's segments and the recyclable ones. Returns
/// the identities of the files it has seen.
fn adopt(shared: &Shared, tail: &Tail) -> Result<BTreeSet<FileId>> {
    let mut files = lock(&shared.files);
    files.next = tail.highest.checked_add(1).ok_or_else(|| Error::invalid("no segment numbers are left"))?;
    // A crash during a rename can leave a file with both names, and it must not be written as two
    // files.
    let mut known = BTreeSet::new();
    for old in &tail.segments {
        let metadata = shared.fs.metadata(&old.path)?;
        known.insert(metadata.id);
        debug_assert!(old.number < files.next && old.number <= tail.end.segment(), "segment {}", old.number);
        let (number, path, end) = (old.number, old.path.clone(), old.end);
        lock(&shared.sealed).push_back(SealedSegment {
            number,
            path,
            end,
            bytes: metadata.len,
            progress: None,
        });
    }
    for path in &tail.cut {
        // These must not be written under a second name either.
        known.insert(shared.fs.metadata(path)?.id);
    }
    for path in &tail.dead {
        retire(shared, &mut files, &mut known, path)?;
    }
    Ok(known)
}

/// Keeps a file that is no longer part of the log for recycling, or removes it.
fn retire(shared: &Shared, files: &mut Files, known: &mut BTreeSet<FileId>, path: &Path) -> Result<()> {
    let metadata = shared.fs.metadata(path)?;
    let fits = metadata.len == u64::from(shared.options.segment_bytes);
    let free = path.with_extension("free");
    let wanted = files.free.len() < shared.options.recycled_max && !files.free.contains(&free);
    if known.insert(metadata.id) && fits && wanted {
        if free != *path {
            shared.fs.rename(path, &free)?;
        }
        files.free.push(free);
        return Ok(());
    }
    Ok(shared.fs.remove(path)?)
}
