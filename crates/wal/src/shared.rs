//! The state shared by the appender, syncing threads and the helper.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use cairn_vfs::append_map::Zeros;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, lock};
use cairn_vfs::{AppendMap, AppendProgress, Bug, File, Fs, OpenOptions};

use crate::files::{free_path, segment_path};
use crate::format::{HEADER_BYTES, MAX_SEGMENT_BYTES, Note};
use crate::group::{Group, Leader};
use crate::helper::{HelperRequests, RELEASE_MEMORY_BYTES};
use crate::recovery::Tail;
use crate::segment::{PreparedSegment, Segment};
use crate::{Error, Known, Lsn, Options, Result};

/// A sync of at least this many bytes first removes them from the process's memory. When the kernel
/// writes back a mapped page, it makes the page read-only and interrupts all processors. For a
/// transaction of about a hundred rows, that took a sixth of the total time. Releasing all pages at
/// once costs a single interrupt.
const RELEASE_MEMORY_BEFORE_SYNC_BYTES: u64 = 16 << 10;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) log_id: u64,
    /// Random. The salt of each segment derives from it and from the segment's number.
    pub(crate) salt: u64,
    /// Number and salt of the last segment of earlier processes.
    pub(crate) old: (u32, u64),
    /// The owner's note. Locked only briefly.
    pub(crate) note: Mutex<Note>,
    hot: Hot,
    failure: OnceLock<Arc<Error>>,
    /// Segments that may have unsynced records, oldest first; the last one is the current one.
    pub(crate) unsynced: Mutex<VecDeque<Arc<Segment>>>,
    /// Segments that are not released, oldest first, without the current one. Locked only briefly.
    pub(crate) sealed: Mutex<VecDeque<SealedSegment>>,
    /// The segment after the current one. Locked only briefly.
    prepared: Mutex<Option<PreparedSegment>>,
    /// Held while files are created, renamed or removed, which takes time. The appender does not
    /// wait for it as long as there is a prepared segment.
    pub(crate) files: Mutex<Files>,
    group: Group,
    /// How often memory was prepared since the last sync.
    windows_unsynced: AtomicU64,
    pub(crate) counts: Counts,
    /// See [`Log::allow_small_segments`](crate::Log::allow_small_segments).
    pub(crate) allows_small_segments: AtomicBool,
    /// See [`Log::limit_segments`](crate::Log::limit_segments).
    pub(crate) segment_bytes_limit: AtomicU32,
    pub(crate) requests: Mutex<HelperRequests>,
    pub(crate) requested: Condvar,
}

/// Fields that every reservation reads and only syncs write.
#[derive(Debug)]
#[repr(align(128))]
struct Hot {
    /// Everything before this position is on stable storage.
    synced: AtomicU64,
    poisoned: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) flushes: AtomicU64,
    pub(crate) segments: AtomicU64,
    pub(crate) recycled: AtomicU64,
    pub(crate) stalls: AtomicU64,
}

/// The state of the log's directory.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Number of the next segment to create.
    pub(crate) next: u32,
    /// How often the segment size has doubled since the log was small.
    doublings: u32,
    /// Released segments available for recycling.
    pub(crate) free: Vec<PathBuf>,
}

/// A completed segment.
#[derive(Debug)]
pub(crate) struct SealedSegment {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) end: u32,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// The progress of its slots, if this process wrote it.
    pub(crate) progress: Option<AppendProgress>,
}

impl Shared {
    pub(crate) fn new(fs: &Arc<dyn Fs>, options: &Options, tail: &Tail, log_id: u64, salt: u64) -> Shared {
        Shared {
            fs: Arc::clone(fs),
            dir: tail.dir.clone(),
            old: (tail.end.segment(), tail.salt),
            note: Mutex::new(tail.note),
            options: options.clone(),
            log_id,
            salt,
            hot: Hot { synced: AtomicU64::new(0), poisoned: AtomicBool::new(false) },
            failure: OnceLock::new(),
            unsynced: Mutex::default(),
            sealed: Mutex::default(),
            prepared: Mutex::default(),
            files: Mutex::default(),
            group: Group::default(),
            windows_unsynced: AtomicU64::new(0),
            counts: Counts::default(),
            // Without a first segment, a log could not be opened on a full disk.
            allows_small_segments: AtomicBool::new(true),
            segment_bytes_limit: AtomicU32::new(u32::MAX),
            requests: Mutex::default(),
            requested: Condvar::new(),
        }
    }

    /// Returns the salt of a segment of this process: one number per segment from the Weyl sequence
    /// that SplitMix64 uses.
    pub(crate) fn salt_of(&self, number: u32) -> u64 {
        self.salt.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// See [`Log::known`](crate::Log::known).
    pub(crate) fn known(&self) -> Known {
        let reached = self.synced();
        let salt = match reached.segment() {
            0 => 0,
            number if number == self.old.0 => self.old.1,
            number => self.salt_of(number),
        };
        Known { log_id: self.log_id, reached, salt }
    }

    /// Fails if the log has failed.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.hot.poisoned.load(Ordering::Acquire) { Err(self.poisoned()) } else { Ok(()) }
    }

    #[cold]
    fn poisoned(&self) -> Error {
        match self.failure.get() {
            Some(cause) => Error::Poisoned { dir: self.dir.clone(), cause: Arc::clone(cause) },
            None => Bug::new("the log is poisoned without a cause").into(),
        }
    }

    /// Makes every later operation fail, and returns the error.
    #[cold]
    pub(crate) fn poison(&self, error: Error) -> Error {
        if !matches!(error, Error::Poisoned { .. }) {
            _ = self.failure.set(Arc::new(error.clone()));
        }
        debug_assert!(self.failure.get().is_some(), "the log is poisoned by its own poison");
        self.hot.poisoned.store(true, Ordering::Release);
        error
    }

    /// Returns the position up to which everything is on stable storage.
    #[inline]
    pub(crate) fn synced(&self) -> Lsn {
        Lsn::from(self.hot.synced.load(Ordering::Acquire))
    }

    pub(crate) fn raise_synced(&self, to: Lsn) {
        self.hot.synced.fetch_max(to.get(), Ordering::AcqRel);
    }

    /// Returns the position up to which the newest segment has been handed out.
    pub(crate) fn reserved(&self) -> Lsn {
        let newest = lock(&self.unsynced).back().map_or(Lsn::ZERO, |segment| {
            Lsn::new(segment.number, u32::try_from(segment.progress.reserved()).unwrap_or(u32::MAX))
        });
        // ORDER: the synced position is read after the list. Between the end of one segment and the
        // beginning of the next, a sync may have removed the old segment from the list, and it
        // raised the synced position before that.
        newest.max(self.synced())
    }

    /// See [`Log::release_memory`](crate::Log::release_memory).
    pub(crate) fn release_memory(&self) {
        let newest = lock(&self.unsynced).back().cloned();
        // If releasing fails, the only cost is memory.
        let _ = newest.map(|segment| segment.progress.release_memory(RELEASE_MEMORY_BYTES));
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.group.waiting()
    }

    /// See [`Log::sync_to`](crate::Log::sync_to).
    pub(crate) fn sync_to(&self, lsn: Lsn) -> Result<()> {
        self.check()?;
        if lsn <= self.synced() {
            return Ok(());
        }
        if lsn > self.reserved() {
            return Err(Error::invalid(format!(
                "position {lsn} was not reserved, only up to {}",
                self.reserved()
            )));
        }
        let is_done = || lsn <= self.synced() || self.hot.poisoned.load(Ordering::Acquire);
        self.group.enter(lsn, is_done, |lead| self.lead(lsn, lead).map_err(|error| self.poison(error)))?;
        // The position of this thread is synced, or the log is poisoned.
        if lsn <= self.synced() { Ok(()) } else { self.check() }
    }

    /// Syncs for all threads that have arrived by then.
    fn lead(&self, lsn: Lsn, lead: &Leader<'_>) -> Result<()> {
        lead.gather();
        self.windows_unsynced.store(0, Ordering::Relaxed);
        let arrivals = lead.begin();
        self.flush(lsn, lead)?;
        lead.serve(arrivals);
        Ok(())
    }

    /// Syncs segment by segment, up to at least `lsn`. Called by one thread at a time.
    fn flush(&self, lsn: Lsn, lead: &Leader<'_>) -> Result<()> {
        loop {
            let oldest =
                lock(&self.unsynced).front().filter(|oldest| oldest.number <= lsn.segment()).cloned();
            // None left: released in the meantime, so there is nothing to sync.
            let Some(segment) = oldest else { return Ok(()) };
            let is_last = segment.number == lsn.segment();
            let sealed = segment.end();
            // Nothing was ever reserved past the end of a sealed segment.
            let end = sealed.unwrap_or(lsn.offset());
            let wanted = if is_last { lsn.offset().min(end) } else { end };
            debug_assert!(
                is_last || sealed.is_some(),
                "segment {} is not sealed, but another follows",
                segment.number
            );
            let committed = segment.progress.wait(u64::from(wanted));
            debug_assert!(committed >= u64::from(wanted) && committed <= u64::from(segment.bytes));
            if let Some(failure) = segment.progress.failure() {
                return Err(failure.into());
            }
            // ORDER: the sync covers the records that are committed before it begins.
            let covered = Lsn::new(segment.number, u32::try_from(committed).unwrap_or(u32::MAX));
            lead.covers(covered);
            // If releasing fails, the only cost is time.
            let _ = segment.progress.release_memory(RELEASE_MEMORY_BEFORE_SYNC_BYTES);
            segment.file.sync_data()?;
            self.counts.flushes.fetch_add(1, Ordering::Relaxed);
            self.raise_synced(covered);
            if sealed.is_some_and(|end| u64::from(end) == committed) {
                self.forget_unsynced(segment.number);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Removes a segment that has nothing left to sync.
    fn forget_unsynced(&self, number: u32) {
        lock(&self.unsynced).retain(|segment| segment.number != number);
    }

    /// Chooses how to fill the next window. A workload that syncs does so at least once in this
    /// many windows.
    pub(crate) fn zeros(&self) -> Zeros {
        const WINDOWS: u64 = 3;
        let before = self.windows_unsynced.fetch_add(1, Ordering::Relaxed);
        if before < WINDOWS { Zeros::Small } else { Zeros::Large }
    }

    /// Takes the prepared segment, or creates one; of at least `bytes`.
    ///
    /// After a full disk or too many open files, everything is unchanged and the call can be
    /// retried. Other errors poison the log.
    pub(crate) fn take_prepared(&self, bytes: u64) -> Result<PreparedSegment> {
        let mut ready = lock(&self.prepared).take();
        if let Some(prepared) = ready.take_if(|prepared| u64::from(prepared.bytes()) >= bytes) {
            return Ok(prepared);
        }
        debug_assert!(bytes <= u64::from(MAX_SEGMENT_BYTES), "a segment of {bytes} bytes");
        self.counts.stalls.fetch_add(1, Ordering::Relaxed);
        let mut files = lock(&self.files);
        // The helper may have prepared one meanwhile.
        match ready.or_else(|| lock(&self.prepared).take()) {
            Some(prepared) if u64::from(prepared.bytes()) >= bytes => Ok(prepared),
            // Too small for a large record: extend the same file.
            Some(prepared) => {
                let (number, path, file) = (prepared.number, prepared.path, prepared.file);
                drop(prepared.map);
                self.clean_up_on_error(&path, self.make_ready(number, path.clone(), file, bytes))
            }
            None => self.prepare(&mut files, bytes),
        }
    }

    /// Prepares the segment after the current one, unless that has been done.
    pub(crate) fn prepare_ahead(&self) -> Result<()> {
        self.check()?;
        let mut files = lock(&self.files);
        if lock(&self.prepared).is_none() {
            let prepared = self.prepare(&mut files, 0)?;
            let unused = lock(&self.prepared).replace(prepared);
            debug_assert!(unused.is_none(), "{unused:?} was prepared already");
        }
        Ok(())
    }

    /// Returns the size of the next segment, unless a record needs more.
    fn usual_bytes(&self, files: &Files) -> u64 {
        let doubled = u64::from(self.options.first_segment_bytes) << files.doublings;
        let most = self.options.segment_bytes.min(self.segment_bytes_limit.load(Ordering::Acquire));
        debug_assert!(most >= 2 * HEADER_BYTES && files.doublings < u32::BITS, "segments of {most} bytes");
        doubled.min(u64::from(most))
    }

    /// Prepares a file of at least `bytes`, a recycled one if that is large enough.
    fn prepare(&self, files: &mut MutexGuard<'_, Files>, bytes: u64) -> Result<PreparedSegment> {
        let number = files.next;
        let following =
            number.checked_add(1).ok_or_else(|| Error::invalid("the log is out of segment numbers"))?;
        debug_assert!(number != 0, "segments are counted from 1");
        let path = segment_path(&self.dir, number);
        let full = u64::from(self.options.segment_bytes);
        let recycled = if bytes <= full { files.free.pop() } else { None };
        let usual = if recycled.is_some() { full } else { self.usual_bytes(files) };
        let least = bytes.max(2 * u64::from(HEADER_BYTES)).next_multiple_of(4096);
        let mut bytes = bytes.max(usual).next_multiple_of(4096);
        debug_assert!(least <= bytes && bytes.is_multiple_of(4096), "{bytes} bytes, at least {least}");
        let prepared = loop {
            let result = self
                .open_file(recycled.as_deref(), &path)
                .and_then(|file| self.make_ready(number, path.clone(), file, bytes));
            match self.clean_up_on_error(&path, result) {
                // A smaller one may fit. A recycled file already has its space.
                Err(error)
                    if error.is_full()
                        && recycled.is_none()
                        && bytes > least
                        && self.allows_small_segments.load(Ordering::Acquire) =>
                {
                    bytes = (bytes / 4).max(least).next_multiple_of(4096);
                }
                result => break result?,
            }
        };
        assert!(u64::from(prepared.bytes()) >= least, "{} bytes, expected {least}", prepared.bytes());
        files.next = following;
        // This many doublings exceed any segment size.
        files.doublings = (files.doublings + 1).min(u32::BITS - 1);
        self.counts.segments.fetch_add(1, Ordering::Relaxed);
        self.counts.recycled.fetch_add(u64::from(recycled.is_some()), Ordering::Relaxed);
        Ok(prepared)
    }

    /// Opens the file of a new segment: a released one, renamed, or a new one.
    fn open_file(&self, recycled: Option<&Path>, path: &Path) -> Result<Arc<dyn File>> {
        if let Some(recycled) = recycled {
            self.fs.rename(recycled, path)?;
        }
        Ok(Arc::from(self.fs.open(path, OpenOptions::create())?))
    }

    /// Allocates and maps a file, and makes its name, its size and its empty header durable.
    fn make_ready(
        &self,
        number: u32,
        path: PathBuf,
        file: Arc<dyn File>,
        bytes: u64,
    ) -> Result<PreparedSegment> {
        let map = AppendMap::new(Arc::clone(&file), 0..bytes)?;
        map.progress().prepare(u64::from(self.options.window_bytes.max(HEADER_BYTES)), self.zeros())?;
        debug_assert!(map.position() == 0 && map.end() == bytes, "the file is in use already");
        // Syncs size, extents and zeros here, so that the first sync of a record need not.
        file.sync_data()?;
        // ORDER: the name is durable before the first record, whose sync does not cover names.
        self.fs.sync_dir(&self.dir)?;
        Ok(PreparedSegment { number, path, file, map })
    }

    /// Removes a half-made file after a full disk or too many open files. Poisons the log after
    /// other errors.
    fn clean_up_on_error(&self, path: &Path, result: Result<PreparedSegment>) -> Result<PreparedSegment> {
        result.map_err(|error| {
            if !error.is_transient() {
                return self.poison(error);
            }
            // The file may not exist. If it cannot be removed, the next attempt opens it, or a
            // recovery finds it unused.
            let _ = self.fs.remove(path);
            error
        })
    }

    /// See [`Log::release_before`](crate::Log::release_before).
    pub(crate) fn release_before(&self, lsn: Lsn) -> Result<()> {
        self.check()?;
        let mut files = lock(&self.files);
        let (mut released, mut result) = (Vec::new(), Ok(()));
        // Only this function removes segments from the list, under the lock of the files.
        while let Some((path, end, bytes)) = self.releasable(lsn) {
            result = self.remove_segment(&mut files, &path, end, bytes);
            if result.is_err() {
                break;
            }
            debug_assert!(released.last().is_none_or(|last| *last < end), "{end} is released out of order");
            released.push(end);
            let gone = lock(&self.sealed).pop_front();
            assert!(
                gone.is_some_and(|gone| gone.number == end.segment()),
                "{end} was not the oldest segment"
            );
        }
        if let Some(&end) = released.last() {
            // ORDER: the old name of a released segment is durably gone before the file gets a new
            // one. It is also gone before any record states that the segment was completely synced:
            // if the segment then came back with an unsynced end, it would be taken for damaged.
            // Until then, syncs of later segments therefore sync it as well.
            self.fs.sync_dir(&self.dir).map_err(|error| self.poison(error.into()))?;
            released.iter().for_each(|end| self.forget_unsynced(end.segment()));
            self.raise_synced(end);
        }
        result
    }

    /// Removes the name of a released segment. Keeps the file for recycling if there is room for
    /// it.
    fn remove_segment(&self, files: &mut Files, path: &Path, end: Lsn, bytes: u64) -> Result<()> {
        let full = u64::from(self.options.segment_bytes);
        // While segments grow, one of the full size would be too large.
        let fits = bytes == full && self.usual_bytes(files) == full;
        if !fits || files.free.len() >= self.options.recycled_max {
            return Ok(self.fs.remove(path)?);
        }
        debug_assert!(files.free.len() < self.options.recycled_max);
        let free = free_path(&self.dir, end.segment());
        self.fs.rename(path, &free)?;
        files.free.push(free);
        Ok(())
    }

    /// See [`Log::trim`](crate::Log::trim).
    pub(crate) fn trim(&self) -> Result<()> {
        let mut files = lock(&self.files);
        files.doublings = 0;
        while let Some(path) = files.free.last() {
            self.fs.remove(path)?;
            files.free.pop();
        }
        let mut prepared = lock(&self.prepared);
        if let Some(large) = prepared.take_if(|prepared| prepared.bytes() > self.options.first_segment_bytes)
        {
            // It has no record, so it is not part of the log yet.
            let PreparedSegment { number, path, map, .. } = large;
            drop(map);
            drop(prepared);
            // Segment numbers have no gaps. Even if the file cannot be removed, the next segment
            // uses it.
            assert!(
                number.checked_add(1) == Some(files.next),
                "segment {number} was not the last one prepared"
            );
            files.next = number;
            self.fs.remove(&path)?;
            // Prepare a small one before it is needed.
            if self.options.background {
                self.want_segment();
            }
        }
        Ok(())
    }

    /// See [`Log::close`](crate::Log::close). Appending has ended, and the helper has stopped. The
    /// last segment is truncated at `end`, where there is a mark or no record.
    pub(crate) fn shrink(&self, last: &Segment, end: Option<u64>) -> Result<()> {
        self.check()?;
        self.trim()?;
        if let Some(PreparedSegment { path, map, .. }) = lock(&self.prepared).take() {
            drop(map);
            // It has no record, so it is not part of the log yet.
            self.fs.remove(&path)?;
        }
        // An open reservation must not lose the part of the file it is writing to.
        debug_assert!(
            end.is_none_or(|end| end == last.progress.reserved()),
            "records follow the end {end:?}"
        );
        if let Some(end) = end.filter(|end| last.progress.committed() == *end) {
            last.file.set_len(end)?;
        }
        Ok(())
    }

    /// Returns file, end and size of the oldest segment if all its records are at or before `lsn`.
    fn releasable(&self, lsn: Lsn) -> Option<(PathBuf, Lsn, u64)> {
        let sealed = lock(&self.sealed);
        let oldest = sealed.front()?;
        let end = Lsn::new(oldest.number, oldest.end);
        debug_assert!(
            u64::from(oldest.end) <= oldest.bytes || oldest.progress.is_none(),
            "{end} is past its file"
        );
        // An open reservation may still write to it, and must not write into the file's next use.
        let idle = oldest.progress.as_ref().is_none_or(|slots| slots.committed() >= u64::from(oldest.end));
        (end <= lsn && idle).then(|| (oldest.path.clone(), end, oldest.bytes))
    }
}
