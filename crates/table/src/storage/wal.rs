//! The write-ahead log as the storage uses it: one appender shared under a lock, and group syncs.

use std::error::Error as StdError;
use std::sync::Arc;

use cairn_pool::{Lsn, WriteAhead};
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::sync::{CacheAligned, Mutex, OnceLock, PoisonError, lock};
use cairn_vfs::{Bug, ensure};
use cairn_wal::{Appender, Log as Segments};

use super::log::Log;
use super::reclaiming::{Reclaiming, is_reclaiming, is_undoing};
use super::record::Record;
use super::redo::leaves_ghost;
use super::reserve::Reserve;
use crate::{Error, Result};

/// The log of a database. Appending is possible only after [`WalLog::begin`], because recovery
/// comes first.
#[derive(Debug)]
pub(crate) struct WalLog {
    /// The end at recovery.
    recovered: Lsn,
    open: OnceLock<Open>,
}

#[derive(Debug)]
struct Open {
    segments: Segments,
    reserve: Reserve,
    /// Held while reserving space and copying the record.
    appender: Mutex<Appender>,
    /// Start of the first record appended by this process.
    begun: Lsn,
    /// End of the last record. Every snapshot reads it, so it has a cache line of its own and needs
    /// no lock.
    end: CacheAligned<AtomicU64>,
    /// Size of all records appended.
    bytes: AtomicU64,
}

impl WalLog {
    /// Creates a log that recovery has read to its end.
    pub(crate) fn recovered(end: Lsn) -> WalLog {
        WalLog { recovered: end, open: OnceLock::new() }
    }

    pub(crate) fn begin(&self, segments: Segments, appender: Appender, reserve: Reserve) {
        let begun = Lsn(appender.position().get());
        let (appender, end, bytes) =
            (Mutex::new(appender), CacheAligned(AtomicU64::new(begun.0)), AtomicU64::new(0));
        assert!(begun >= self.recovered, "the log begins at {begun}, and was read up to {}", self.recovered);
        let opened = self.open.set(Open { segments, reserve, appender, begun, end, bytes });
        assert!(opened.is_ok(), "the log is opened twice");
    }

    fn open(&self) -> Result<&Open> {
        let open = self.open.get();
        open.ok_or_else(|| Bug::new("the log is written before recovery has read it").into())
    }

    /// Makes everything up to a position durable. Errors: the log's.
    pub(crate) fn sync_to(&self, lsn: Lsn) -> Result<()> {
        Ok(self.open()?.segments.sync_to(lsn.0.into())?)
    }

    /// Returns the position up to which the log is durable.
    pub(crate) fn synced(&self) -> Lsn {
        self.open.get().map_or(Lsn::NONE, |open| Lsn(open.segments.synced().get()))
    }

    /// Returns roughly how many bytes were written since the log was opened. Positions cannot tell,
    /// because they have gaps at the ends of segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.open.get().map_or(0, |open| open.bytes.load(Ordering::Relaxed))
    }

    /// Begins a new segment, so that the previous one can be released later, unless the disk has no
    /// space for it. Makes the log durable up to its end then, and returns that end, the salt of
    /// its segment, and whether the segment was begun. Errors: the log's.
    pub(crate) fn begin_segment(&self) -> Result<(Lsn, u64, bool)> {
        let open = self.open()?;
        let _reclaiming = Reclaiming::free_space();
        let mut rotated = open.rotate();
        while rotated.as_ref().is_err_and(cairn_wal::Error::is_full) && open.give_up() {
            rotated = open.rotate();
        }
        let (end, is_begun) = match rotated {
            Ok(begun) => (begun, true),
            Err(error) if error.is_full() => (open.segments.reserved(), false),
            Err(error) => return Err(error.into()),
        };
        debug_assert!(end.get() >= open.begun.0, "the log ends at {end}, and began at {}", open.begun);
        open.segments.sync_to(end)?;
        Ok((Lsn(end.get()), open.segments.salt(end), is_begun))
    }

    /// Releases the records up to a position. ORDER: everything must be durable, including the
    /// header of the newest segment ([`WalLog::begin_segment`]). After a crash some of the released
    /// segments may reappear and others not, and that header tells recovery that they are obsolete.
    /// Otherwise recovery might find only the start or only the end of a transaction whose commit
    /// was in the page cache, and undo it.
    /// Errors: the log's.
    pub(crate) fn release_before(&self, lsn: Lsn) -> Result<()> {
        let open = self.open()?;
        ensure!(lsn <= self.end(), "the log is released up to {lsn}, beyond its end {}", self.end());
        Ok(open.segments.release_before(lsn.0.into())?)
    }
}

/// The reserve.
impl WalLog {
    /// Returns the amount of log after which a checkpoint follows while the database is short.
    pub(crate) fn short_checkpoint_bytes(&self) -> u64 {
        self.open.get().map_or(u64::MAX, |open| open.reserve.checkpoint_bytes())
    }

    /// Returns how much log a transaction may write while the database is short.
    pub(crate) fn short_most_bytes(&self) -> u64 {
        self.open.get().map_or(u64::MAX, |open| open.reserve.most_bytes())
    }

    /// Allocates the reserve again. Errors: a full disk's.
    pub(crate) fn restore_reserve(&self) -> Result<()> {
        let Some(open) = self.open.get() else { return Ok(()) };
        open.reserve.restore().inspect(|()| open.segments.limit_segments(None)).inspect_err(|_| {
            open.segments.limit_segments(Some(open.reserve.segment()));
        })
    }

    /// Sets space aside to undo a change. Errors: a full disk's.
    pub(crate) fn reserve_undo(&self, bytes: u64) -> Result<()> {
        let Some(open) = self.open.get() else { return Ok(()) };
        let was_short = open.reserve.is_short();
        open.reserve.reserve_undo(bytes, is_reclaiming())?;
        if open.reserve.is_short() && !was_short {
            open.begin_short();
        }
        Ok(())
    }

    /// Releases the space set aside.
    pub(crate) fn release_undo(&self, bytes: u64) {
        if let Some(open) = self.open.get() {
            open.reserve.release_undo(bytes);
        }
    }
}

impl Open {
    /// Gives up the reserve, or the rest of it.
    fn give_up(&self) -> bool {
        let is_freed = is_reclaiming() && self.reserve.give_up(is_undoing());
        if is_freed {
            self.begin_short();
        }
        is_freed
    }

    /// Makes the log use as little space as it can from now on.
    fn begin_short(&self) {
        self.segments.limit_segments(Some(self.reserve.segment()));
        // Segments kept for reuse serve better as free space. Those that cannot be removed stay.
        let _ = self.segments.trim();
    }

    /// Begins a new segment, whose start becomes the log's end. If nothing more is appended, the
    /// last segment can be released next time.
    fn rotate(&self) -> cairn_wal::Result<cairn_wal::Lsn> {
        let mut appender = lock(&self.appender);
        // A new segment allows the log before it to be released, so it may use the last free space.
        self.segments.allow_small_segments(true);
        let begun = appender.rotate();
        self.segments.allow_small_segments(false);
        let begun = begun?;
        debug_assert!(
            begun.get() >= self.end.load(Ordering::Relaxed),
            "a segment begins at {begun}, before the end of the log"
        );
        self.end.store(begun.get(), Ordering::Release);
        Ok(begun)
    }
}

/// Returns whether a record belongs to work that deletes rows, undoes or ends a transaction, or
/// frees pages. Page changes without a transaction count, because most of them do. Used only on a
/// full disk.
fn reclaims_space(record: &[u8]) -> bool {
    match Record::decode(record) {
        Some((Record::Row { .. }, changes)) => leaves_ghost(changes),
        Some((Record::Made { .. }, _)) | None => false,
        Some(_) => true,
    }
}

impl Drop for WalLog {
    /// Closes the log, so that later damage can be distinguished from a crash, and frees the space
    /// it has allocated ahead.
    fn drop(&mut self) {
        if let Some(Open { segments, appender, reserve, .. }) = self.open.take() {
            // Errors cannot be reported here. A log that was not closed is recovered as after a
            // crash.
            let _ = segments.close(appender.into_inner().unwrap_or_else(PoisonError::into_inner));
            reserve.leave_to_next_process();
        }
    }
}

impl Log for WalLog {
    fn give_up_reserve(&self) -> bool {
        self.open.get().is_some_and(Open::give_up)
    }

    fn is_short(&self) -> bool {
        self.open.get().is_some_and(|open| open.reserve.is_short())
    }

    fn may_grow(&self, bytes: u64) -> bool {
        // Restored rows may need space that neighbours have taken meanwhile.
        is_undoing() || self.open.get().is_none_or(|open| open.reserve.may_grow(bytes))
    }

    fn settle(&self) -> Option<(Lsn, u64)> {
        let open = self.open.get()?;
        let end = self.end();
        debug_assert!(end >= open.begun, "the log ends at {end}, and began at {}", open.begun);
        open.segments.sync_to(end.0.into()).ok()?;
        Some((end, open.segments.salt(end.0.into())))
    }

    fn end(&self) -> Lsn {
        self.open.get().map_or(Lsn::NONE, |open| Lsn(open.end.load(Ordering::Acquire)))
    }

    fn append(&self, record: &[u8]) -> Result<Lsn> {
        let log = |error: cairn_wal::Error| Error::Log { cause: Arc::new(error) };
        let open = self.open()?;
        debug_assert!(
            Record::decode(record).is_some(),
            "a record is appended that recovery cannot read: {record:?}"
        );
        let mut appender = lock(&open.appender);
        let lsn = match appender.append(&[record]) {
            // Work that frees space may use all that is left. Other work fails earlier.
            Err(error) if error.is_full() && (is_reclaiming() || reclaims_space(record)) => {
                open.segments.allow_small_segments(true);
                let mut appended = appender.append(&[record]);
                while appended.as_ref().is_err_and(cairn_wal::Error::is_full) && open.give_up() {
                    appended = appender.append(&[record]);
                }
                open.segments.allow_small_segments(false);
                appended.map_err(log)?
            }
            appended => appended.map_err(log)?,
        };
        let end = open.end.load(Ordering::Relaxed);
        debug_assert!(lsn.get() > end, "a record ends at {lsn}, and the one before it at {end}");
        // ORDER: under the lock, so the value only grows, and no later record gets an LSN that is
        // not greater.
        open.end.store(lsn.get(), Ordering::Release);
        // The lock allows a plain addition.
        open.bytes.store(open.bytes.load(Ordering::Relaxed) + record.len() as u64 + 16, Ordering::Relaxed);
        drop(appender);
        Ok(Lsn(lsn.get()))
    }
}

impl WriteAhead for WalLog {
    fn make_durable(&self, lsn: Lsn) -> Result<(), Box<dyn StdError + Send + Sync>> {
        Ok(self.sync_to(lsn)?)
    }

    fn durable(&self) -> Lsn {
        self.synced()
    }

    fn end_before(&self, lsn: Lsn) -> Option<Lsn> {
        if lsn <= self.recovered {
            return None;
        }
        // The records of this process begin at a new segment. No record lies between the end of the
        // recovered log and that.
        match self.open.get() {
            Some(open) if lsn >= open.begun => {
                let synced = self.synced();
                (lsn > synced).then_some(synced)
            }
            _ => Some(self.recovered),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cairn_vfs::{Fs, MemFs, SeededRng};
    use cairn_wal::{Recovery, RecoveryOptions};

    use super::*;
    use crate::storage::record::Before;

    /// Goal: the end that snapshots read is the log's own: no appended record is after it, and
    /// every later record is. It follows the start of a new segment, so an idle log is released
    /// entirely. Method: records over several segments, with new segments begun in between,
    /// comparing both ends after each.
    #[test]
    fn end_is_that_of_the_log() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let from = cairn_wal::Lsn::ZERO;
        let mut recovery = Recovery::open(&fs, Path::new("/log"), from, &RecoveryOptions::default()).unwrap();
        assert!(recovery.next().unwrap().is_none());
        let settings =
            cairn_wal::Options::default().segment_bytes(8 << 10).window_bytes(4 << 10).background(false);
        let (segments, appender) =
            cairn_wal::Log::open(&fs, &settings, recovery.finish().unwrap(), &mut SeededRng::new(1)).unwrap();
        let log = WalLog::recovered(Lsn::NONE);
        assert_eq!(log.end(), Lsn::NONE);
        log.begin(segments, appender, Reserve::none());
        let mut record = Vec::new();
        let before = Before::Value(&[7; 700]);
        Record::Row { transaction: 1, tree: 1, key: b"key", before }.encode(&mut record);
        let reserved = || log.open.get().unwrap().segments.reserved().get();
        assert_eq!(log.end().0, reserved());
        for turn in 0..40 {
            let before = log.end();
            let lsn = log.append(&record).unwrap();
            assert!(before < lsn && lsn <= log.end(), "{turn}");
            assert_eq!(log.end().0, reserved(), "{turn}");
            if turn % 7 == 0 {
                let end = log.end();
                assert!(log.begin_segment().unwrap().2);
                log.release_before(end).unwrap();
                assert!(log.end() > lsn, "{turn}");
                assert_eq!(log.end().0, reserved(), "{turn}");
            }
        }
    }
}
