//! The one end of a log where records are put in order.

use cairn_vfs::AppendMap;
use cairn_vfs::append_map::Slot;
use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::sync::{Arc, lock};

use crate::format::{
    HEAD_BYTES, HEADER_BYTES, Head, Header, Kind, MAX_RECORD_BYTES, NOTE_BYTES, Previous, Seed, note_bytes,
    record_bytes,
};
use crate::segment::{Prepared, Segment};
use crate::shared::{Sealed, Shared};
use crate::{Error, Lsn, Result};

/// What the mark of a log that is closed takes.
const MARK_BYTES: usize = HEAD_BYTES + NOTE_BYTES;

/// Hands out room for records, in the order in which a recovery will find them. There is one for
/// each log; many threads share it under a lock of theirs, which they hold for a reservation and
/// not for filling it.
#[derive(Debug)]
pub struct Appender {
    map: AppendMap,
    seed: Seed,
    number: u32,
    /// Where the segment before ends.
    before: Lsn,
    /// The helper is asked for more memory when a record ends behind this.
    wake_at: u64,
    segment: Arc<Segment>,
    shared: Arc<Shared>,
}

/// Room for one record, for its holder alone.
///
/// Fill [`Reservation::payload_mut`], then [`Reservation::commit`]. One that is dropped instead
/// leaves room that recoveries pass over. While one is out, no later record can be synced.
#[derive(Debug)]
pub struct Reservation {
    /// `None` only while it is being dropped.
    slot: Option<Slot>,
    lsn: Lsn,
    seed: Seed,
    len: u32,
    synced: u32,
}

impl Appender {
    /// Begins the first segment of this process.
    pub(crate) fn begin(shared: Arc<Shared>, previous: Option<Previous>) -> Result<Appender> {
        let prepared = shared.take_prepared(0)?;
        // What was taken over.
        let oldest = lock(&shared.sealed).front().map(|oldest| oldest.number);
        let (map, segment) = activate(&shared, prepared, previous, oldest)?;
        let (seed, number, before) = (segment.seed, segment.number, previous.map_or(Lsn::ZERO, |p| p.end));
        Ok(Appender { map, seed, number, before, wake_at: 0, segment, shared })
    }

    /// Takes room for a record with a payload of this many bytes, and gives it its position.
    ///
    /// Costs some ten nanoseconds; where nothing was prepared ahead, now and then a tenth of a
    /// millisecond for memory, and a few syncs for a segment. Waits when 512 reservations are out.
    /// Errors: `Invalid` above [`MAX_RECORD_BYTES`]; a full disk, after which it can be tried
    /// again; all others poison the log.
    #[inline]
    pub fn reserve(&mut self, payload_bytes: usize) -> Result<Reservation> {
        self.reserve_kind(payload_bytes, Kind::Data)
    }

    /// Appends a record whose payload is the concatenation of `parts`. Its position.
    pub fn append(&mut self, parts: &[&[u8]]) -> Result<Lsn> {
        let mut reservation = self.reserve(parts.iter().map(|part| part.len()).sum())?;
        let mut rest = reservation.payload_mut();
        for part in parts {
            let (place, tail) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = tail;
        }
        reservation.commit()
    }

    /// The position that the next record begins at.
    pub fn position(&self) -> Lsn {
        Lsn::new(self.number, self.map.position() as u32)
    }

    /// Begins a new segment, so that what was appended so far can be released when it is not needed
    /// any more. Does nothing in one without records. Returns [`Appender::position`]. Errors as
    /// [`Appender::reserve`].
    pub fn rotate(&mut self) -> Result<Lsn> {
        self.shared.check()?;
        if self.map.position() > u64::from(HEADER_BYTES) {
            self.next_segment(0)?;
        }
        Ok(self.position())
    }

    /// Syncs everything and marks the end, so that a later recovery can tell damage to any record
    /// from a crash. Of a log that has records in its last segment; in another one the header says
    /// the same. Reservations must be committed before.
    pub fn close(mut self) -> Result<()> {
        self.mark_end()
    }

    /// See [`Appender::close`].
    pub(crate) fn mark_end(&mut self) -> Result<()> {
        self.shared.sync_to(self.position())?;
        if self.map.position() <= u64::from(HEADER_BYTES) {
            return Ok(());
        }
        let mark = self.append_note(Kind::Close)?;
        self.shared.sync_to(mark)
    }

    /// Appends what the owner has noted ([`Log::set_note`](crate::Log::set_note)), for a recovery
    /// to find without waiting for the next segment. Its position. Errors as [`Appender::reserve`].
    pub fn note(&mut self) -> Result<Lsn> {
        self.append_note(Kind::Note)
    }

    fn append_note(&mut self, kind: Kind) -> Result<Lsn> {
        let note = *lock(&self.shared.note);
        let mut reservation = self.reserve_kind(NOTE_BYTES, kind)?;
        reservation.payload_mut().copy_from_slice(&note_bytes(note));
        reservation.commit_as(kind)
    }

    /// Ends appending: the segment that was written last, and where its last record ends.
    pub(crate) fn into_last(self) -> (Arc<Segment>, u64) {
        (Arc::clone(&self.segment), self.map.position())
    }

    #[inline]
    fn reserve_kind(&mut self, payload_bytes: usize, kind: Kind) -> Result<Reservation> {
        self.shared.check()?;
        if payload_bytes > MAX_RECORD_BYTES {
            return Err(too_long(payload_bytes));
        }
        let bytes = record_bytes(payload_bytes);
        // So there is always room for the mark of a log that is closed, on a full disk as well:
        // without it the next process has to write anew what this one has synced.
        let behind = if kind == Kind::Close { 0 } else { MARK_BYTES };
        if self.map.position() + (bytes + behind) as u64 > self.map.end() {
            self.next_segment(bytes + behind)?;
        }
        let slot = match self.map.reserve(bytes) {
            Some(slot) => slot,
            None => self.reserve_slowly(bytes)?,
        };
        if slot.end() > self.wake_at {
            self.wake_helper();
        }
        Ok(Reservation {
            lsn: Lsn::new(self.number, slot.end() as u32),
            seed: self.seed,
            len: payload_bytes as u32,
            synced: self.synced_here(),
            slot: Some(slot),
        })
    }

    /// What is on stable storage, as records and headers say it.
    #[inline]
    fn synced_here(&self) -> u32 {
        let synced = self.shared.synced();
        if synced.segment() == self.number {
            synced.offset()
        } else if synced >= self.before {
            HEADER_BYTES
        } else {
            0
        }
    }

    /// When memory is not ready, or the segment is full.
    #[cold]
    fn reserve_slowly(&mut self, bytes: usize) -> Result<Slot> {
        loop {
            let end = self.map.position() + bytes as u64;
            if end > self.map.end() {
                self.next_segment(bytes)?;
                continue;
            }
            self.shared.counts.stalls.fetch_add(1, Ordering::Relaxed);
            let to = end + u64::from(self.shared.options.window_bytes);
            self.shared.prepare_window(&self.segment.progress, to)?;
            if let Some(slot) = self.map.reserve(bytes) {
                return Ok(slot);
            }
        }
    }

    #[cold]
    fn wake_helper(&mut self) {
        if !self.shared.options.background {
            self.wake_at = u64::MAX;
            return;
        }
        let window = u64::from(self.shared.options.window_bytes);
        let position = self.map.position();
        self.wake_at = position + window / 2;
        self.shared.want_window(self.segment.progress.clone(), position + 2 * window);
    }

    /// Seals the segment and begins one with room for a record of `bytes`.
    #[cold]
    fn next_segment(&mut self, bytes: usize) -> Result<()> {
        let wanted = u64::from(HEADER_BYTES) + bytes as u64;
        let prepared = self.shared.take_prepared(wanted)?;
        let end = self.map.position() as u32;
        let (end_here, synced) = (Lsn::new(self.number, end), self.synced_here());
        let previous = Previous { salt: self.segment.header.salt, end: end_here, synced };
        self.segment.seal(end);
        let sealed = Sealed {
            number: self.number,
            path: self.segment.path.clone(),
            end,
            bytes: u64::from(self.segment.bytes),
            progress: Some(self.segment.progress.clone()),
        };
        let oldest = lock(&self.shared.sealed).front().map_or(self.number, |oldest| oldest.number);
        let (map, segment) = activate(&self.shared, prepared, Some(previous), Some(oldest))?;
        // Behind that: a segment can be released when there is one after it.
        lock(&self.shared.sealed).push_back(sealed);
        (self.map, self.seed, self.number, self.before) = (map, segment.seed, segment.number, end_here);
        self.segment = segment;
        self.wake_at = 0;
        if self.shared.options.background {
            self.shared.want_segment();
        }
        Ok(())
    }
}

#[cold]
fn too_long(payload_bytes: usize) -> Error {
    Error::invalid(format!("a record of {payload_bytes} bytes, expected at most {MAX_RECORD_BYTES}"))
}

/// Writes the header of a prepared segment, which makes it one.
fn activate(
    shared: &Arc<Shared>,
    mut prepared: Prepared,
    previous: Option<Previous>,
    oldest: Option<u32>,
) -> Result<(AppendMap, Arc<Segment>)> {
    let number = prepared.number;
    let oldest = oldest.unwrap_or(number);
    // ORDER: after the oldest is known. What was released before is so by the owner's word, which
    // the note is then not older than.
    let (salt, note) = (shared.salt_of(number), *lock(&shared.note));
    let bytes = u64::from(prepared.bytes());
    let header = Header { number, log_id: shared.log_id, salt, previous, oldest, bytes, note };
    let segment = Arc::new(Segment::new(&prepared, header));
    // A record that was not written is a hole, and no recovery reaches what is behind it: nothing
    // more is to be acknowledged, whoever commits.
    let log = Arc::downgrade(shared);
    prepared.map.on_failure(move |error| {
        if let Some(log) = log.upgrade() {
            _ = log.poison(Arc::clone(error).into());
        }
    });
    let written = match prepared.map.reserve(HEADER_BYTES as usize) {
        Some(mut slot) => {
            header.encode(slot.bytes_mut());
            slot.commit().map_err(Error::from)
        }
        None => Err(Error::invalid("a prepared segment has no room for its header")),
    };
    written.map_err(|error| shared.poison(error))?;
    lock(&shared.unsynced).push_back(Arc::clone(&segment));
    Ok((prepared.map, segment))
}

impl Reservation {
    /// The record's position.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Where the payload goes. Zeros.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let len = self.len as usize;
        let bytes = self.slot.as_mut().map(Slot::bytes_mut).unwrap_or_default();
        bytes.get_mut(HEAD_BYTES..HEAD_BYTES + len).unwrap_or_default()
    }

    /// Makes it a record, and returns its position. It belongs to the kernel then. It outlives the
    /// process once all that were reserved before it are committed or given up as well: recoveries
    /// read from record to record. Whoever acknowledges records that several threads commit waits
    /// for those, and then asks [`Log::check`](crate::Log::check) whether any of them could not be
    /// written.
    ///
    /// Costs the checksum of the payload. Fails only where the file system has no mappings, as on a
    /// full disk that does not keep what it has allocated; the log is poisoned then.
    #[inline]
    pub fn commit(self) -> Result<Lsn> {
        self.commit_as(Kind::Data)
    }

    #[inline]
    fn commit_as(mut self, kind: Kind) -> Result<Lsn> {
        match self.slot.take() {
            Some(slot) => self.write(slot, kind)?,
            None => return Err(Error::invalid("the reservation is committed")),
        }
        Ok(self.lsn)
    }

    #[inline]
    fn write(&self, mut slot: Slot, kind: Kind) -> Result<()> {
        let head = Head { kind, len: self.len, synced: self.synced };
        let offset = slot.start() as u32;
        let (place, rest) = slot.bytes_mut().split_at_mut(HEAD_BYTES);
        let payload = rest.get(..self.len as usize).unwrap_or_default();
        place.copy_from_slice(&head.encode(self.seed, offset, payload));
        Ok(slot.commit()?)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            // A failed write has poisoned the log, which tells everybody who comes.
            let _ = self.write(slot, Kind::Void);
        }
    }
}
