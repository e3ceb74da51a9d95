//! The shared end of a log: syncing, releasing, and opening it for writing.

use std::collections::BTreeSet;
use std::path::Path;

use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::thread::JoinHandle;
use cairn_vfs::{FileId, Fs, Operation, Rng, thread};

use crate::format::Previous;
use crate::helper;
use crate::recovery::Tail;
use crate::shared::{Files, Sealed, Shared};
use crate::{Appender, Error, Known, Lsn, Options, Result};

/// A log that is open for writing, to those who do not append: any number of threads, through
/// `&self`.
///
/// After a failed sync, write or creation of a segment the log is poisoned, in the moment in which
/// it fails: everything fails but reservations that are out, whose commits prove nothing. Dropping
/// it syncs nothing.
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    helper: Mutex<Option<JoinHandle<()>>>,
}

/// What a log has done since it was opened, and is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Syncs of a segment that records were waiting for; not those of preparing one.
    pub flushes: u64,
    /// Segments prepared.
    pub segments: u64,
    /// Of these, how many were files of released segments.
    pub recycled: u64,
    /// How often an appender needed a segment, or memory of one, that was not ready; the first
    /// segment counts.
    pub stalls: u64,
    /// How many threads are waiting for a sync right now, the one that carries it out included.
    pub waiting: u64,
}

impl Log {
    /// Opens the log that was recovered up to `tail` for writing; makes its directory if there is
    /// none.
    ///
    /// Writing goes on in a new segment, which says where the last one ended: a torn end is never
    /// appended to. What was recovered and may be in the page cache only is written anew first.
    /// Segments before the position that the recovery began at, and what a crash cut off, are
    /// released. `rng` is for the salt that keeps bytes of earlier lives from being taken for
    /// records.
    ///
    /// Costs a few syncs; after a process that was killed, also a copy of what nothing says was
    /// synced, which is read back. Errors: `Invalid` options; those of the file system, among them
    /// that the copy has not what was recovered, as after a read that went wrong; that of a helper
    /// thread that cannot be started. The log is as it was then, and can be recovered again.
    pub fn open(
        fs: &Arc<dyn Fs>,
        options: &Options,
        tail: Tail,
        rng: &mut dyn Rng,
    ) -> Result<(Log, Appender)> {
        options.check()?;
        let dir = &tail.dir;
        if tail.highest == 0 {
            // Also one that is there: who made it may have been killed before its name was durable.
            fs.create_dir_all_durably(dir)?;
        }
        let log_id = tail.log_id.unwrap_or_else(|| rng.next_u64());
        let shared = Arc::new(Shared::new(fs, options, &tail, log_id, rng.next_u64()));
        for path in &tail.stray {
            // A recovery that was asked to sync has written it anew, and it has its name.
            if fs.exists(path)? {
                fs.remove(path)?;
            }
        }
        // ORDER: the header of the new segment says that all before it is on stable storage, so it
        // must be.
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
        shared.takes_less.store(false, Ordering::Release);
        if !tail.cut.is_empty() {
            // ORDER: a newer header is on stable storage before these go. How far the log has
            // reached would be unknown otherwise, and whoever remembers positions would see them a
            // second time. And where the newest of them outlives the one before it, as after a
            // crash among these removals it could, it would be taken for the log's newest segment
            // whose predecessors have all been released.
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
                    // Gives back the room of the segment that was begun. If it cannot, the next
                    // recovery does.
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
    /// Waits for reservations below `lsn` to be committed, never for later ones. Concurrent callers
    /// share one device flush; those who come while one is under way share the next. Costs a device
    /// flush, or nothing when it is done already. Errors: `Invalid` when `lsn` was never reserved;
    /// a failed sync poisons the log, and is not tried again (a kernel may drop what it could not
    /// write, and then says that all is well).
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.shared.sync_to(lsn)
    }

    /// [`Log::sync_to`] everything that was reserved before the call.
    pub fn sync(&self) -> Result<()> {
        self.sync_to(self.shared.reserved())
    }

    /// Gives back the process's memory of records that are committed, as far as that is more than a
    /// megabyte: they are the kernel's. For a large record, which nobody else would take out before
    /// the next sync.
    pub fn let_go(&self) {
        self.shared.let_memory_go();
    }

    /// Errors: `Poisoned` once the log has failed. An error of an [`Appender`] after which this is
    /// `Ok` has changed nothing.
    pub fn check(&self) -> Result<()> {
        self.shared.check()
    }

    /// The position up to which everything is on stable storage, or released.
    pub fn synced(&self) -> Lsn {
        self.shared.synced()
    }

    /// The position up to which records have been reserved.
    pub fn reserved(&self) -> Lsn {
        self.shared.reserved()
    }

    /// Nobody needs the records up to `lsn` any more. Segments without later ones are recycled or
    /// removed, but for the one being written.
    ///
    /// Whoever remembers where a recovery is to begin must have made a position at or after `lsn`
    /// durable before. Costs a rename for each segment and a sync of the directory. After an error
    /// of a rename the call can be repeated; a failed sync poisons the log.
    pub fn release_before(&self, lsn: Lsn) -> Result<()> {
        self.shared.release_before(lsn)
    }

    /// For a log that will not be written to much soon: removes the segments that are kept to be
    /// written again, and what was prepared, and begins with small segments again. With all records
    /// released and [`Appender::rotate`] behind it, next to nothing is left. Errors: of the file
    /// system; what is left then is tried the next time.
    pub fn trim(&self) -> Result<()> {
        self.shared.trim()
    }

    /// The last that is done with a log: makes everything durable, marks the end
    /// ([`Appender::close`]), and gives back the room for records that will not come: cuts the last
    /// segment behind the mark, and removes the one that was prepared and those that are kept.
    /// Reservations must be committed before.
    ///
    /// That room was given back is not made durable, and a crash may bring it back. Errors: of the
    /// file system, and those of a log that has failed; all records stay where they are whatever
    /// fails. Costs up to two syncs.
    pub fn close(&self, mut appender: Appender) -> Result<()> {
        self.end_helper();
        // Where there is no room for the mark there is some to give back.
        let marked = appender.mark_end();
        let (segment, end) = appender.into_last();
        // A segment that is shorter than it was begun ends in a mark, or was cut by somebody else.
        let shrunk = self.shared.shrink(&segment, marked.is_ok().then_some(end));
        marked.and(shrunk)
    }

    fn end_helper(&self) {
        self.shared.stop_helper();
        let helper = lock(&self.helper).take();
        if let Some(helper) = helper {
            // It does not panic; if it did, there is nobody left to tell.
            let _ = helper.join();
        }
    }

    /// What a later recovery is to find of this log at least
    /// ([`RecoveryOptions::known`](crate::RecoveryOptions::known)): everything that is on stable
    /// storage by now. For the owner to write down.
    pub fn known(&self) -> Known {
        self.shared.known()
    }

    /// What segments that are begun from now on, and the mark at the end, say for the owner
    /// ([`Tail::note`]): two numbers, of which the last ones count. [`Appender::note`] says so at
    /// once.
    pub fn set_note(&self, note: [u64; 2]) {
        *lock(&self.shared.note) = note;
    }

    /// A random number that all segments of this log carry.
    pub fn id(&self) -> u64 {
        self.shared.log_id
    }

    /// Whether segments are made smaller than usual, down to 8 KiB, where the disk has no room for
    /// more: for who gives room back, and has to append for it. Others are told that the disk is
    /// full while there is still some. Default false, but for the first segment of an opening.
    pub fn take_less(&self, on: bool) {
        self.shared.takes_less.store(on, Ordering::Release);
    }

    /// How large segments are made from now on, at most: less than the options say where the disk
    /// is full, so that several have room and can go one by one. In multiples of 4 KiB, 8 KiB at
    /// least; `None` for what the options say. A record that does not fit gets a segment of its own
    /// size, and what is kept to be written again has its size already.
    pub fn limit_segments(&self, bytes: Option<u32>) {
        let most = bytes.map_or(u32::MAX, |bytes| bytes.max(8 << 10).next_multiple_of(4096));
        self.shared.most_bytes.store(most, Ordering::Release);
    }

    /// The random number of the segment that a position is in, which this process has begun.
    /// Whoever remembers the position may remember this with it: another log that has gone on from
    /// a copy of this one has another one there ([`Tail::salt`]).
    pub fn salt(&self, lsn: Lsn) -> u64 {
        self.shared.salt_of(lsn.segment())
    }

    /// What it has done so far.
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

/// Takes over the files of earlier processes: those of the log, and those that can be written
/// again. Says which are known by now.
fn adopt(shared: &Shared, tail: &Tail) -> Result<BTreeSet<FileId>> {
    let mut files = lock(&shared.files);
    files.next = tail.highest.checked_add(1).ok_or_else(|| Error::invalid("no segment numbers are left"))?;
    // A crash in the middle of a rename can leave a file with both names, and it must not be
    // written as two.
    let mut known = BTreeSet::new();
    for old in &tail.segments {
        let metadata = shared.fs.metadata(&old.path)?;
        known.insert(metadata.id);
        let (number, path, end) = (old.number, old.path.clone(), old.end);
        lock(&shared.sealed).push_back(Sealed { number, path, end, bytes: metadata.len, progress: None });
    }
    for path in &tail.cut {
        // Not to be written under a second name either.
        known.insert(shared.fs.metadata(path)?.id);
    }
    for path in &tail.dead {
        retire(shared, &mut files, &mut known, path)?;
    }
    Ok(known)
}

/// Keeps a file that is of the log no more to be written again, or removes it.
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
