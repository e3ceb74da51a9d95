//! The write-ahead log as the storage uses it: one appender that threads take turns at, and syncs
//! that they share.

use std::error::Error as StdError;
use std::sync::Arc;

use cairn_pool::{Lsn, WriteAhead};
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::sync::{Line, Mutex, OnceLock, PoisonError, lock};
use cairn_wal::{Appender, Log as Segments};

use super::giving::{Giving, is_giving, is_undoing};
use super::log::Log;
use super::record::Record;
use super::redo::leaves_ghost;
use super::reserve::Reserve;
use crate::{Error, Result};

/// The log of a database. There is nothing to append to before [`WalLog::begin`]: recovery comes
/// first.
#[derive(Debug)]
pub(crate) struct WalLog {
    /// Where it ended when it was recovered.
    recovered: Lsn,
    open: OnceLock<Open>,
}

#[derive(Debug)]
struct Open {
    segments: Segments,
    reserve: Reserve,
    /// Held for a reservation and the copy of the record.
    appender: Mutex<Appender>,
    /// Where the first of its records begins.
    begun: Lsn,
    /// Where the last of them ends. Every snapshot asks for it, so that is a look at a line of its
    /// own, and no turn at a lock.
    end: Line<AtomicU64>,
    /// Of all records.
    bytes: AtomicU64,
}

impl WalLog {
    /// A log that was read to its end.
    pub(crate) fn recovered(end: Lsn) -> WalLog {
        WalLog { recovered: end, open: OnceLock::new() }
    }

    pub(crate) fn begin(&self, segments: Segments, appender: Appender, reserve: Reserve) {
        let begun = Lsn(appender.position().get());
        let (appender, end, bytes) = (Mutex::new(appender), Line(AtomicU64::new(begun.0)), AtomicU64::new(0));
        let _ = self.open.set(Open { segments, reserve, appender, begun, end, bytes });
    }

    fn open(&self) -> Result<&Open> {
        self.open.get().ok_or_else(|| Error::Invalid { what: "the log is not open yet".to_owned() })
    }

    /// Makes everything up to a position durable. Errors: the log's.
    pub(crate) fn sync_to(&self, lsn: Lsn) -> Result<()> {
        Ok(self.open()?.segments.sync_to(lsn.0.into())?)
    }

    /// Up to where it is durable.
    pub(crate) fn synced(&self) -> Lsn {
        self.open.get().map_or(Lsn::NONE, |open| Lsn(open.segments.synced().get()))
    }

    /// Bytes that were written since it was opened, about: positions have gaps where segments end.
    pub(crate) fn bytes(&self) -> u64 {
        self.open.get().map_or(0, |open| open.bytes.load(Ordering::Relaxed))
    }

    /// Begins a new segment, so that the last one can go as well in its time; not where the disk
    /// has no room for one. Makes the log durable up to where it ends then, and gives that, the
    /// random number of its segment, and whether it was begun. Errors: the log's.
    pub(crate) fn begin_segment(&self) -> Result<(Lsn, u64, bool)> {
        let open = self.open()?;
        let _giving = Giving::back();
        let mut rotated = open.rotate();
        while rotated.as_ref().is_err_and(cairn_wal::Error::is_full) && open.give_up() {
            rotated = open.rotate();
        }
        let (end, is_begun) = match rotated {
            Ok(begun) => (begun, true),
            Err(error) if error.is_full() => (open.segments.reserved(), false),
            Err(error) => return Err(error.into()),
        };
        open.segments.sync_to(end)?;
        Ok((Lsn(end.get()), open.segments.salt(end), is_begun))
    }

    /// Nobody needs records up to a position any more. ORDER: everything is durable, the header of
    /// the newest segment included ([`WalLog::begin_segment`]). A crash may bring some of the
    /// released segments back and not others, and by that header a recovery tells that they are
    /// over. Of a transaction whose commit was in the page cache only it would find the beginning
    /// otherwise, or the end, and undo that. Errors: the log's.
    pub(crate) fn release_before(&self, lsn: Lsn) -> Result<()> {
        Ok(self.open()?.segments.release_before(lsn.0.into())?)
    }
}

/// The room that is kept for who gives room back.
impl WalLog {
    /// How much log a checkpoint follows meanwhile.
    pub(crate) fn short_checkpoint_bytes(&self) -> u64 {
        self.open.get().map_or(u64::MAX, |open| open.reserve.checkpoint_bytes())
    }

    /// How much a transaction may write meanwhile.
    pub(crate) fn short_most_bytes(&self) -> u64 {
        self.open.get().map_or(u64::MAX, |open| open.reserve.most_bytes())
    }

    /// Takes it again. Errors: a full disk's.
    pub(crate) fn restore_reserve(&self) -> Result<()> {
        let Some(open) = self.open.get() else { return Ok(()) };
        open.reserve.restore().inspect(|()| open.segments.limit_segments(None)).inspect_err(|_| {
            open.segments.limit_segments(Some(open.reserve.segment()));
        })
    }

    /// Sets room aside for undoing a change. Errors: a full disk's.
    pub(crate) fn owe(&self, bytes: u64) -> Result<()> {
        let Some(open) = self.open.get() else { return Ok(()) };
        let was_short = open.reserve.is_short();
        open.reserve.owe(bytes, is_giving())?;
        if open.reserve.is_short() && !was_short {
            open.begin_short();
        }
        Ok(())
    }

    /// Takes back what was set aside.
    pub(crate) fn settle_owed(&self, bytes: u64) {
        if let Some(open) = self.open.get() {
            open.reserve.settle(bytes);
        }
    }
}

impl Open {
    /// Lets go of the reserve, or of what is left of it.
    fn give_up(&self) -> bool {
        let is_given = is_giving() && self.reserve.give_up(is_undoing());
        if is_given {
            self.begin_short();
        }
        is_given
    }

    /// The log takes as little as it can from now on.
    fn begin_short(&self) {
        self.segments.limit_segments(Some(self.reserve.segment()));
        // What is kept to be written again is better used in parts. What cannot go stays.
        let _ = self.segments.trim();
    }

    /// Begins a new segment, which is where the log ends then: with nothing more appended, the last
    /// segment can go at the next time.
    fn rotate(&self) -> cairn_wal::Result<cairn_wal::Lsn> {
        let mut appender = lock(&self.appender);
        // Behind it the log before it can go: so it is worth the last room that there is.
        self.segments.take_less(true);
        let begun = appender.rotate();
        self.segments.take_less(false);
        let begun = begun?;
        self.end.store(begun.get(), Ordering::Release);
        Ok(begun)
    }
}

/// Whether a record is of something that deletes rows, undoes or ends a transaction, or gives pages
/// back; changes of pages on nobody's behalf are most of that. Looked at on a full disk only.
fn gives_back(record: &[u8]) -> bool {
    match Record::decode(record) {
        Some((Record::Row { .. }, changes)) => leaves_ghost(changes),
        Some((Record::Made { .. }, _)) | None => false,
        Some(_) => true,
    }
}

impl Drop for WalLog {
    /// Closes the log, so that damage to it can be told from a crash, and what it has allocated
    /// ahead is given back.
    fn drop(&mut self) {
        if let Some(Open { segments, appender, reserve, .. }) = self.open.take() {
            // Nobody is left to be told; what is not closed is recovered as after a crash.
            let _ = segments.close(appender.into_inner().unwrap_or_else(PoisonError::into_inner));
            reserve.leave();
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

    fn lets_grow(&self, bytes: u64) -> bool {
        // Rows that are put back may need room that neighbours took meanwhile.
        is_undoing() || self.open.get().is_none_or(|open| open.reserve.lets_grow(bytes))
    }

    fn settle(&self) -> Option<(Lsn, u64)> {
        let open = self.open.get()?;
        let end = self.end();
        open.segments.sync_to(end.0.into()).ok()?;
        Some((end, open.segments.salt(end.0.into())))
    }

    fn end(&self) -> Lsn {
        self.open.get().map_or(Lsn::NONE, |open| Lsn(open.end.load(Ordering::Acquire)))
    }

    fn append(&self, record: &[u8]) -> Result<Lsn> {
        let log = |error: cairn_wal::Error| Error::Log { cause: Arc::new(error) };
        let open = self.open()?;
        let mut appender = lock(&open.appender);
        let lsn = match appender.append(&[record]) {
            // What it takes to give room back has what room there is. Others are told earlier.
            Err(error) if error.is_full() && (is_giving() || gives_back(record)) => {
                open.segments.take_less(true);
                let mut appended = appender.append(&[record]);
                while appended.as_ref().is_err_and(cairn_wal::Error::is_full) && open.give_up() {
                    appended = appender.append(&[record]);
                }
                open.segments.take_less(false);
                appended.map_err(log)?
            }
            appended => appended.map_err(log)?,
        };
        // ORDER: under the lock, so it only grows, and no record is appended later with a number
        // that is not above it.
        open.end.store(lsn.get(), Ordering::Release);
        // Under the lock, so a plain addition.
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
        // What this process has written begins a segment. Nobody has been between the end of the
        // last one and that.
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

    /// Goal: the end that snapshots read is the log's own: none of what was appended is behind it,
    /// and what comes is. It goes on where a segment begins, so an idle log is given back whole.
    /// Method: records over several segments, with segments begun between them, and both ends after
    /// each.
    #[test]
    fn ends_where_the_log_does() {
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
        let reserved = || log.open.get().unwrap().segments.reserved().get();
        assert_eq!(log.end().0, reserved());
        for turn in 0..40 {
            let before = log.end();
            let lsn = log.append(&[7; 700]).unwrap();
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
