//! The write end of a log, where records get their order.

use cairn_vfs::append_map::Slot;
use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::{AppendMap, Bug};

use crate::format::{
    HEAD_BYTES, HEADER_BYTES, Head, Header, Kind, MAX_RECORD_BYTES, NOTE_BYTES, Previous, RECORD_ALIGNMENT,
    Seed, note_bytes, record_bytes,
};
use crate::segment::{PreparedSegment, Segment};
use crate::shared::{SealedSegment, Shared};
use crate::{Error, Lsn, Result};

/// The size of the closing mark.
const MARK_BYTES: usize = HEAD_BYTES + NOTE_BYTES;
const _: () = assert!(MARK_BYTES.is_multiple_of(RECORD_ALIGNMENT as usize));
const _: () = assert!(MARK_BYTES as u64 + HEADER_BYTES as u64 <= 2 * HEADER_BYTES as u64);

/// Reserves space for records, in the order in which a recovery will find them. Each log has one
/// appender. Threads share it under a lock of their own, which they hold while reserving but not
/// while filling.
#[derive(Debug)]
pub struct Appender {
    map: AppendMap,
    seed: Seed,
    number: u32,
    /// The end of the previous segment.
    previous_end: Lsn,
    /// When a record ends past this offset, the helper is asked for more memory.
    wake_at: u64,
    segment: Arc<Segment>,
    shared: Arc<Shared>,
}

/// Space for one record, owned exclusively by its holder.
///
/// Fill [`Reservation::payload_mut`], then call [`Reservation::commit`]. A reservation that is
/// dropped instead leaves a void record, which recoveries skip. While a reservation is open, no
/// later record can be synced.
#[derive(Debug)]
pub struct Reservation {
    /// `None` only while the reservation is being dropped.
    slot: Option<Slot>,
    lsn: Lsn,
    seed: Seed,
    len: u32,
    synced: u32,
}

impl Appender {
    /// Begins the first segment written by this process.
    pub(crate) fn begin(shared: Arc<Shared>, previous: Option<Previous>) -> Result<Appender> {
        let prepared = shared.take_prepared(0)?;
        // The oldest segment taken over from earlier processes.
        let oldest = lock(&shared.sealed).front().map(|oldest| oldest.number);
        let (map, segment) = activate(&shared, prepared, previous, oldest)?;
        debug_assert!(previous.is_none_or(|p| p.end.segment() < segment.number && p.end <= shared.synced()));
        let (seed, number, previous_end) =
            (segment.seed, segment.number, previous.map_or(Lsn::ZERO, |p| p.end));
        Ok(Appender { map, seed, number, previous_end, wake_at: 0, segment, shared })
    }

    /// Reserves space for a record with a payload of this many bytes and assigns its position.
    ///
    /// Costs about ten nanoseconds. When nothing was prepared ahead, a call occasionally takes a
    /// tenth of a millisecond for memory, or a few syncs for a segment. Waits when 512 reservations
    /// are open. Errors: `Invalid` above [`MAX_RECORD_BYTES`]; a full disk, after which the call
    /// can be retried; all other errors poison the log.
    #[inline]
    pub fn reserve(&mut self, payload_bytes: usize) -> Result<Reservation> {
        self.reserve_kind(payload_bytes, Kind::Data)
    }

    /// Appends a record whose payload is the concatenation of `parts`, and returns its position.
    pub fn append(&mut self, parts: &[&[u8]]) -> Result<Lsn> {
        let mut reservation = self.reserve(parts.iter().map(|part| part.len()).sum())?;
        let mut rest = reservation.payload_mut();
        for part in parts {
            let (place, tail) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = tail;
        }
        debug_assert!(rest.is_empty(), "{} bytes of the payload were not filled", rest.len());
        reservation.commit()
    }

    /// Returns the position at which the next record begins.
    pub fn position(&self) -> Lsn {
        Lsn::new(self.number, self.map.position() as u32)
    }

    /// Begins a new segment, so that the records appended so far can be released once they are no
    /// longer needed. Does nothing if the current segment has no records. Returns
    /// [`Appender::position`]. Errors: those of [`Appender::reserve`].
    pub fn rotate(&mut self) -> Result<Lsn> {
        self.shared.check()?;
        if self.map.position() > u64::from(HEADER_BYTES) {
            self.next_segment(0)?;
        }
        debug_assert!(self.map.position() == u64::from(HEADER_BYTES), "the new segment has records");
        Ok(self.position())
    }

    /// Syncs everything and writes a closing mark, so that a later recovery can distinguish damage
    /// to any record from a crash. If the last segment has no records, no mark is written, since
    /// its header serves the same purpose. All reservations must be committed before.
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

    /// Appends the owner's note ([`Log::set_note`](crate::Log::set_note)) as a record, so that a
    /// recovery finds it before the next segment begins. Returns the position of the record.
    /// Errors: those of [`Appender::reserve`].
    pub fn note(&mut self) -> Result<Lsn> {
        self.append_note(Kind::Note)
    }

    fn append_note(&mut self, kind: Kind) -> Result<Lsn> {
        let note = *lock(&self.shared.note);
        debug_assert!(matches!(kind, Kind::Close | Kind::Note), "a note in a record of kind {kind:?}");
        let mut reservation = self.reserve_kind(NOTE_BYTES, kind)?;
        reservation.payload_mut().copy_from_slice(&note_bytes(note));
        reservation.commit_as(kind)
    }

    /// Ends appending. Returns the last segment and the end of its last record.
    pub(crate) fn into_last_segment(self) -> (Arc<Segment>, u64) {
        (Arc::clone(&self.segment), self.map.position())
    }

    #[inline]
    fn reserve_kind(&mut self, payload_bytes: usize, kind: Kind) -> Result<Reservation> {
        self.shared.check()?;
        if payload_bytes > MAX_RECORD_BYTES {
            return Err(too_long_error(payload_bytes));
        }
        let bytes = record_bytes(payload_bytes);
        // Always leave space for the closing mark, even on a full disk. Without the mark, the next
        // process has to copy records that this one has already synced.
        let reserved_tail = if kind == Kind::Close { 0 } else { MARK_BYTES };
        if self.map.position() + (bytes + reserved_tail) as u64 > self.map.end() {
            self.next_segment(bytes + reserved_tail)?;
        }
        let slot = match self.map.reserve(bytes) {
            Some(slot) => slot,
            None => self.reserve_slowly(bytes)?,
        };
        debug_assert!(slot.start() >= u64::from(HEADER_BYTES), "a record in the header");
        debug_assert!(slot.end() - slot.start() == bytes as u64 && slot.end() <= self.map.end());
        debug_assert!(
            slot.start().is_multiple_of(u64::from(RECORD_ALIGNMENT)),
            "a record at {}",
            slot.start()
        );
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

    /// Returns the synced offset in the form that records and headers store.
    #[inline]
    fn synced_here(&self) -> u32 {
        let synced = self.shared.synced();
        debug_assert!(synced.segment() <= self.number, "synced up to {synced}, in segment {}", self.number);
        if synced.segment() == self.number {
            synced.offset()
        } else if synced >= self.previous_end {
            HEADER_BYTES
        } else {
            0
        }
    }

    /// Reserves when memory is not ready or the segment is full.
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

    /// Seals the segment and begins one with space for a record of `bytes`.
    #[cold]
    fn next_segment(&mut self, bytes: usize) -> Result<()> {
        let wanted = u64::from(HEADER_BYTES) + bytes as u64;
        let prepared = self.shared.take_prepared(wanted)?;
        assert!(prepared.number > self.number, "segment {} after {}", prepared.number, self.number);
        let end = self.map.position() as u32;
        let (end_here, synced) = (Lsn::new(self.number, end), self.synced_here());
        let previous = Previous { salt: self.segment.header.salt, end: end_here, synced };
        self.segment.seal(end);
        let sealed = SealedSegment {
            number: self.number,
            path: self.segment.path.clone(),
            end,
            bytes: u64::from(self.segment.bytes),
            progress: Some(self.segment.progress.clone()),
        };
        let oldest = lock(&self.shared.sealed).front().map_or(self.number, |oldest| oldest.number);
        debug_assert!(oldest <= self.number && synced <= end, "oldest {oldest}, synced {synced} of {end}");
        let (map, segment) = activate(&self.shared, prepared, Some(previous), Some(oldest))?;
        // After the activation: a segment can be released only once another follows it.
        let mut segments = lock(&self.shared.sealed);
        debug_assert!(segments.back().is_none_or(|last| last.number < sealed.number), "sealed out of order");
        segments.push_back(sealed);
        drop(segments);
        (self.map, self.seed, self.number, self.previous_end) = (map, segment.seed, segment.number, end_here);
        self.segment = segment;
        self.wake_at = 0;
        if self.shared.options.background {
            self.shared.want_segment();
        }
        Ok(())
    }
}

#[cold]
fn too_long_error(payload_bytes: usize) -> Error {
    Error::invalid(format!("a record of {payload_bytes} bytes, expected at most {MAX_RECORD_BYTES}"))
}

/// Writes the header of a prepared segment, which makes it part of the log.
fn activate(
    shared: &Arc<Shared>,
    mut prepared: PreparedSegment,
    previous: Option<Previous>,
    oldest: Option<u32>,
) -> Result<(AppendMap, Arc<Segment>)> {
    let number = prepared.number;
    let oldest = oldest.unwrap_or(number);
    // ORDER: the note is read after the oldest segment is determined. Earlier segments were
    // released on the owner's request, and the note must not be older than that.
    let (salt, note) = (shared.salt_of(number), *lock(&shared.note));
    let bytes = u64::from(prepared.bytes());
    let header = Header { number, log_id: shared.log_id, salt, previous, oldest, bytes, note };
    let segment = Arc::new(Segment::new(&prepared, header));
    // A failed record is a hole, and no recovery reads past it. No record may be acknowledged from
    // now on, whichever thread commits it.
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
        None => Err(Bug::new("a prepared segment has no room for its header").into()),
    };
    written.map_err(|error| shared.poison(error))?;
    debug_assert!(prepared.map.position() == u64::from(HEADER_BYTES), "records precede the header");
    let mut unsynced = lock(&shared.unsynced);
    debug_assert!(
        unsynced.back().is_none_or(|last| last.number < number),
        "segment {number} is out of order"
    );
    unsynced.push_back(Arc::clone(&segment));
    drop(unsynced);
    Ok((prepared.map, segment))
}

impl Reservation {
    /// Returns the position of the record.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Returns the payload to fill, initially zeros.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let len = self.len as usize;
        debug_assert!(self.slot.is_some(), "the reservation was committed already");
        let bytes = self.slot.as_mut().map(Slot::bytes_mut).unwrap_or_default();
        bytes.get_mut(HEAD_BYTES..HEAD_BYTES + len).unwrap_or_default()
    }

    /// Completes the record and returns its position. The record is then in the page cache. It
    /// survives a crash of the process once every earlier reservation is committed or dropped as
    /// well, because recoveries read record by record. A thread that acknowledges records committed
    /// by several threads first waits for all of them, and then calls
    /// [`Log::check`](crate::Log::check) to learn whether any of them failed.
    ///
    /// Costs the checksum of the payload. Fails only where the file system has no mappings, for
    /// example when a disk that does not keep its allocations is full. The log is poisoned then.
    #[inline]
    pub fn commit(self) -> Result<Lsn> {
        self.commit_as(Kind::Data)
    }

    #[inline]
    fn commit_as(mut self, kind: Kind) -> Result<Lsn> {
        match self.slot.take() {
            Some(slot) => self.write(slot, kind)?,
            None => return Err(Bug::new("a reservation is committed twice").into()),
        }
        Ok(self.lsn)
    }

    #[inline]
    fn write(&self, mut slot: Slot, kind: Kind) -> Result<()> {
        let head = Head { kind, len: self.len, synced: self.synced };
        debug_assert!(
            slot.end() == u64::from(self.lsn.offset()),
            "{} is not the end of its record",
            self.lsn
        );
        debug_assert!(slot.end() - slot.start() == record_bytes(self.len as usize) as u64);
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
            // A failed write has poisoned the log, so later calls report it.
            let _ = self.write(slot, Kind::Void);
        }
    }
}
