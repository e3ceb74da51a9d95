//! Reads a log back: record by record, in bounded memory, trusting nothing.
//!
//! A log ends at the first item that is not a valid record. Power losses leave such ends, so an end
//! on its own is not damage. Everything after it is lost as well, since a log has no holes. The end
//! counts as damage when there is proof that more had been synced. Such proof comes from:
//!
//! - the header of the next segment, which records how far this one had been synced;
//! - any record after the damage, which records how far its own segment had been synced when it was
//!   written;
//! - a record or header of a later segment that had itself been synced to any extent, since
//!   segments are synced in order.
//!
//! Nothing on disk changes before [`Log::open`](crate::Log::open), so a crash during a recovery
//! leaves the previous state.

use std::path::{Path, PathBuf};

use cairn_vfs::Fs;
use cairn_vfs::sync::Arc;

use crate::files::{Listing, segment_path};
use crate::format::{HEADER_BYTES, Kind, Note, Previous, Seed, read_note};
use crate::{Error, Known, Lsn, Mode, RecoveryOptions, Result};

mod chain;
mod harden;
mod reader;

use chain::{Headers, Link, proof_after, proof_in};
use harden::{Expected, harden, unbroken};
use reader::{Found, Item, SegmentReader};

/// Reads a log's records in the order of their positions.
///
/// After an error, every later call fails with the same error. A recovery may run beside a writer
/// of the same log; it then ends somewhere in the part being written.
#[derive(Debug)]
pub struct Recovery {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    options: RecoveryOptions,
    listing: Listing,
    log_id: Option<u64>,
    /// The segments of the log, oldest first.
    links: Vec<Link>,
    /// Index of the segment being read.
    index: usize,
    reader: Option<SegmentReader>,
    /// Offset of its next record.
    offset: u32,
    from: Lsn,
    damage: Vec<Damage>,
    state: State,
    /// Headers and records that were read prove that everything before this position is on stable
    /// storage.
    proven: Lsn,
    /// Segments below this index are on stable storage because this recovery put them there.
    hardened: usize,
    /// Offset of the closing mark, if it is the last record so far.
    close_mark: Option<u32>,
    /// End of the segment before the one being read.
    sealed_end: u32,
    /// The owner's latest note.
    note: Note,
}

#[derive(Debug)]
enum State {
    Reading,
    Ended,
    Failed(Error),
}

/// A record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its position, which is the end of the record.
    pub lsn: Lsn,
    /// The appended bytes.
    pub payload: &'a [u8],
}

/// A damaged part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The first byte that is or may be damaged.
    pub from: u64,
    /// The end of the damaged range; equal to `from` if the damage concerns the file as a whole.
    pub to: u64,
    /// A description of the damage and its consequences.
    pub what: String,
}

impl Damage {
    fn new(file: &Path, from: usize, to: usize, what: &str) -> Damage {
        Damage { file: file.to_owned(), from: from as u64, to: to as u64, what: what.to_owned() }
    }
}

/// The end of a recovered log and the content of its directory: everything needed to continue
/// writing.
#[derive(Debug)]
pub struct Tail {
    pub(crate) dir: PathBuf,
    pub(crate) log_id: Option<u64>,
    /// The end of the segment before the oldest one, as recorded by the oldest.
    start: Lsn,
    /// Numbers and salts of its segments, with or without records.
    salts: Vec<(u32, u64)>,
    pub(crate) end: Lsn,
    pub(crate) reached: Lsn,
    /// Segments after the end that are no longer part of the log: the newest one if it has no
    /// records, and abandoned ones. Headers of newer segments link to the log's earlier ones, and
    /// nothing else records how far the log reached. So none of these may be removed before a new
    /// header is written.
    pub(crate) cut: Vec<PathBuf>,
    /// The salt of the log's last segment, if it has one.
    pub(crate) salt: u64,
    /// The segments of the log, oldest first.
    pub(crate) segments: Vec<RecoveredSegment>,
    /// Segments no longer part of the log, and released ones.
    pub(crate) dead: Vec<PathBuf>,
    /// Files to remove.
    pub(crate) stray: Vec<PathBuf>,
    pub(crate) highest: u32,
    pub(crate) note: Note,
}

/// A segment written by an earlier process.
#[derive(Debug)]
pub(crate) struct RecoveredSegment {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) end: u32,
    /// The content that recovery found, if nothing proves that all of it is on stable storage.
    unsynced: Option<Expected>,
}

impl RecoveredSegment {
    /// Puts the segment on stable storage as it was recovered, unless it is known to be there.
    pub(crate) fn make_durable(&self, fs: &Arc<dyn Fs>) -> Result<()> {
        match &self.unsynced {
            Some(expected) => harden(fs, &self.path, self.end, expected),
            None => Ok(()),
        }
    }
}

impl Tail {
    /// Returns the end of the last record.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// Returns the number that all segments of the log carry; `None` for a log without segments.
    pub fn id(&self) -> Option<u64> {
        self.log_id
    }

    /// Sets the number of a log without segments. Without this call, the number is random.
    #[must_use]
    pub fn with_id(mut self, id: u64) -> Tail {
        self.log_id.get_or_insert(id);
        self
    }

    /// Returns the position after which everything up to [`Tail::end`] exists; earlier records were
    /// released or are missing. It is [`Lsn::ZERO`] for a log that is complete from its beginning.
    /// Valid for a recovery from [`Lsn::ZERO`].
    pub fn start(&self) -> Lsn {
        self.start
    }

    /// Returns the salt of the segment with this number; `None` when the segment does not exist.
    /// See [`Log::salt`](crate::Log::salt).
    pub fn salt(&self, segment: u32) -> Option<u64> {
        self.salts.iter().find(|(number, _)| *number == segment).map(|(_, salt)| *salt)
    }

    /// Returns the highest position that anyone can have seen: the end of the log, or the beginning
    /// of its newest segment if that has no records.
    pub fn reached(&self) -> Lsn {
        self.reached
    }

    /// Returns the owner's last note ([`Log::set_note`](crate::Log::set_note)), or zeros if there
    /// is none. Notes in released parts of the log are gone.
    pub fn note(&self) -> [u64; 2] {
        self.note
    }

    /// Sets the note that the reopened log carries from its first segment on.
    pub fn set_note(&mut self, note: [u64; 2]) {
        self.note = note;
    }

    /// Declares that the records up to `lsn` are no longer needed, like
    /// [`Log::release_before`](crate::Log::release_before). Segments without later records are not
    /// taken over, which saves making them durable. The last segment stays.
    pub fn release_before(&mut self, lsn: Lsn) {
        let last = self.segments.len().saturating_sub(1);
        debug_assert!(
            self.segments.is_sorted_by(|a, b| a.number < b.number),
            "the segments are out of order"
        );
        let is_over = |old: &&RecoveredSegment| Lsn::new(old.number, old.end) <= lsn;
        let count = self.segments.iter().take(last).take_while(is_over).count();
        self.dead.extend(self.segments.drain(..count).map(|old| old.path));
    }
}

impl Recovery {
    /// Opens the log in `dir` for reading after the record with position `from`. [`Lsn::ZERO`]
    /// begins with the oldest record that was not released. A missing directory is an empty log.
    ///
    /// Costs a read of 4 KiB for each segment. Errors: `Invalid` when no record can end at `from`;
    /// `Corruption` when segments are missing or have damaged headers; `Unsupported` for a later
    /// version of the format.
    pub fn open(fs: &Arc<dyn Fs>, dir: &Path, from: Lsn, options: &RecoveryOptions) -> Result<Recovery> {
        if !from.offset().is_multiple_of(8) {
            return Err(Error::invalid(format!(
                "no record of a log ends at {from}: offsets are multiples of 8"
            )));
        }
        let listing = Listing::read(&**fs, dir)?;
        let headers = Headers::read(&**fs, &listing)?;
        let log_id = options.known.map(|known| known.log_id).or(headers.log_id());
        let chain = headers.resolve(&**fs, &listing, from, options)?;
        let later = listing.segments.last().is_some_and(|(number, _)| *number >= from.segment());
        let mut damage = chain.damage;
        if from != Lsn::ZERO && !later {
            let path = segment_path(dir, from.segment());
            let what =
                format!("it is missing: the log is needed from {from} on, but there is no such segment");
            if options.mode != Mode::Salvage {
                return Err(Error::corruption(&path, 0, what));
            }
            damage.push(Damage::new(&path, 0, 0, &what));
        }
        let mut recovery = Recovery {
            fs: Arc::clone(fs),
            dir: dir.to_owned(),
            options: options.clone(),
            listing,
            log_id,
            links: chain.links,
            index: 0,
            reader: None,
            offset: HEADER_BYTES,
            from,
            damage,
            state: State::Reading,
            proven: Lsn::ZERO,
            hardened: 0,
            close_mark: None,
            sealed_end: HEADER_BYTES,
            note: [0; 2],
        };
        debug_assert!(recovery.links.is_sorted_by(|a, b| a.header.number < b.header.number));
        recovery.check_salt()?;
        recovery.offset = recovery.links.first().map_or(HEADER_BYTES, |link| recovery.first_offset(link));
        Ok(recovery)
    }

    /// Returns the next record; `None` at the end of the log.
    ///
    /// Costs one read for each window, see [`RecoveryOptions::read_bytes`]. Errors: `Corruption`,
    /// see [`Mode`].
    #[expect(clippy::should_implement_trait, reason = "a record borrows from the recovery")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        let found = loop {
            match &self.state {
                State::Failed(error) => return Err(error.clone()),
                State::Ended => return Ok(None),
                State::Reading => {}
            }
            match self.step() {
                Ok(Some(found)) if found.head.kind == Kind::Data => break found,
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.state = match self.check_reached() {
                        Ok(()) => State::Ended,
                        Err(error) => State::Failed(error),
                    };
                }
                Err(error) => self.state = State::Failed(error),
            }
        };
        let lsn = self.position();
        match self.reader.as_mut().map(|reader| reader.payload(&found)) {
            Some(payload) => Ok(Some(Record { lsn, payload: payload? })),
            None => Ok(None),
        }
    }

    /// Makes the records read so far durable. Records that another process wrote without syncing
    /// may exist only in the page cache. Call this before making anything durable that follows from
    /// the records.
    ///
    /// Costs a copy of each segment read since the last call that is not known to be durable, and
    /// reading the copy back. Errors: file system errors, which include a copy that lacks records.
    pub fn sync(&mut self) -> Result<()> {
        for index in self.hardened..self.links.len().min(self.index + 1) {
            let sealed_at = self.sealed_at(index).unwrap_or(u32::MAX);
            let read_to = if index == self.index { self.offset } else { sealed_at };
            if let Some(link) = self.links.get(index)
                && Lsn::new(link.header.number, read_to) > self.proven
            {
                // In the segment being read, records that have not been read yet count too; no
                // process appends to it.
                let end = if index == self.index { self.unbroken_end(link, sealed_at)? } else { sealed_at };
                harden(&self.fs, &link.path, sealed_at, &self.expected(link, end))?;
                debug_assert!(self.hardened <= index, "segment {index} was made durable already");
                self.hardened = index + 1;
                if index == self.index {
                    // The rest has to be read from the copy, since the open file has lost its name.
                    self.reader = None;
                }
            }
        }
        Ok(())
    }

    /// Scans ahead for the end of the records in the segment being read.
    fn unbroken_end(&self, link: &Link, sealed_at: u32) -> Result<u32> {
        let mut ahead = SegmentReader::open(&*self.fs, link.path.clone(), self.options.read_bytes)?;
        unbroken(&mut ahead, link.header.seed(), self.offset, sealed_at)
    }

    /// Returns the required content of a copy of a segment whose records end at `end`.
    fn expected(&self, link: &Link, end: u32) -> Expected {
        let records = match self.options.mode {
            // A salvage may skip holes.
            Mode::Salvage => 0..0,
            Mode::TolerateTornTail | Mode::Strict => self.first_offset(link)..end,
        };
        Expected { header: link.header, records }
    }

    /// Returns the known position of the log, unless it was released.
    fn known(&self) -> Option<Known> {
        self.options.known.filter(|known| known.reached > self.from)
    }

    /// Checks that the segment of the known position has the known salt. Another salt means a
    /// segment of another log, or of another continuation of this one.
    fn check_salt(&mut self) -> Result<()> {
        let Some(known) = self.known() else { return Ok(()) };
        let number = known.reached.segment();
        let other =
            self.links.iter().find(|link| link.header.number == number && link.header.salt != known.salt);
        let Some(path) = other.map(|link| link.path.clone()) else { return Ok(()) };
        let what = format!("it is not the segment {number} that was written here: its salt differs");
        self.report_or_fail(path, 24, what)
    }

    /// Checks that the log reaches the known position.
    fn check_reached(&mut self) -> Result<()> {
        let end = self.position();
        let Some(known) = self.known().filter(|known| end < known.reached) else { return Ok(()) };
        let reached = known.reached;
        let path = segment_path(&self.dir, reached.segment());
        let (offset, what) = match self.listing.segments.iter().any(|(_, there)| *there == path) {
            false => (0, "it is missing"),
            true if end.segment() == reached.segment() => (end.offset(), "it ends here"),
            true => (0, "it has no record that belongs to the log"),
        };
        if self.options.mode == Mode::Salvage && self.damage.iter().any(|damage| damage.file == path) {
            return Ok(()); // the salvage has reported it already
        }
        let what = format!("{what}, but the log was on stable storage up to {reached}; it ends at {end}");
        self.report_or_fail(path, offset, what)
    }

    /// Handles damage that concerns a file as a whole: reports it in a salvage, and fails
    /// otherwise.
    fn report_or_fail(&mut self, file: PathBuf, offset: u32, what: String) -> Result<()> {
        if self.options.mode != Mode::Salvage {
            return Err(Error::corruption(&file, u64::from(offset), what));
        }
        self.damage.push(Damage::new(&file, offset as usize, offset as usize, &what));
        Ok(())
    }

    /// Returns the damage found so far: damage that was skipped, and damage that ended the log,
    /// such as a torn tail.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Reads the rest of the log and returns its end. Errors: those of [`Recovery::next`].
    pub fn finish(mut self) -> Result<Tail> {
        while self.next()?.is_some() {}
        debug_assert!(
            self.links.is_empty() || self.links.len() == self.index + 1,
            "the log ends in segment {} of {}",
            self.index,
            self.links.len()
        );
        let reached = self.position();
        let start = self.links.first().and_then(|link| link.header.previous).map_or(Lsn::ZERO, |p| p.end);
        let salts = self.links.iter().map(|link| (link.header.number, link.header.salt)).collect();
        // The closing mark has served its purpose and need not be made durable.
        self.offset = self.close_mark.unwrap_or(self.offset);
        // Neither need a segment without records.
        if self.links.len() == self.index + 1 && self.offset == HEADER_BYTES {
            self.links.pop();
            self.index = self.index.saturating_sub(1);
            self.offset = self.sealed_end;
        }
        let mut segments: Vec<RecoveredSegment> = Vec::with_capacity(self.links.len());
        for (index, link) in self.links.iter().enumerate() {
            let (number, end) = (link.header.number, self.sealed_at(index).unwrap_or(self.offset));
            let unsynced = index >= self.hardened && Lsn::new(number, end) > self.proven;
            let unsynced = unsynced.then(|| self.expected(link, end));
            segments.push(RecoveredSegment { number, path: link.path.clone(), end, unsynced });
        }
        debug_assert!(segments.is_sorted_by(|a, b| a.number < b.number), "the segments are out of order");
        let alive = |path: &PathBuf| segments.iter().any(|old| old.path == *path);
        // Free names first: of a file with two names, the first is kept for recycling, and the
        // second removed.
        let all = self.listing.free.iter().chain(&self.listing.segments).map(|(_, path)| path);
        let last = segments.last().map_or(0, |old| old.number);
        let behind = self.listing.segments.iter().filter(|(number, _)| *number > last);
        let cut: Vec<PathBuf> = behind.map(|(_, path)| path.clone()).collect();
        let dead = all.filter(|path| !alive(path) && !cut.contains(path)).cloned().collect();
        Ok(Tail {
            dir: self.dir.clone(),
            log_id: self.log_id,
            start,
            salts,
            end: self.position(),
            reached,
            cut,
            salt: self.links.last().map_or(0, |link| link.header.salt),
            dead,
            stray: self.listing.stray.clone(),
            highest: self.listing.highest(),
            segments,
            note: self.note,
        })
    }

    /// Returns the offset at which the recovery begins in a segment.
    fn first_offset(&self, link: &Link) -> u32 {
        if link.header.number == self.from.segment() {
            self.from.offset().max(HEADER_BYTES)
        } else {
            HEADER_BYTES
        }
    }

    /// Returns the end of the last record that was read.
    fn position(&self) -> Lsn {
        match self.links.get(self.index) {
            Some(link) => Lsn::new(link.header.number, self.offset),
            None => self.from,
        }
    }

    /// Returns the end of a segment as the next one's header records it. In a salvage with a
    /// missing segment in between, the end is unknown (`u32::MAX`).
    fn sealed_at(&self, index: usize) -> Option<u32> {
        let (link, next) = (self.links.get(index)?, self.links.get(index + 1)?);
        let previous = next.header.previous.filter(|p| p.end.segment() == link.header.number);
        Some(previous.map_or(u32::MAX, |previous| previous.end.offset()))
    }

    /// Returns the next record of any kind.
    fn step(&mut self) -> Result<Option<Found>> {
        loop {
            let Some(link) = self.links.get(self.index) else { return Ok(None) };
            let (header, sealed_at) = (link.header, self.sealed_at(self.index));
            if let Some(end) = sealed_at.filter(|end| self.offset >= *end) {
                debug_assert!(self.index + 1 < self.links.len(), "no segment follows the sealed one");
                self.index += 1;
                self.reader = None;
                self.offset = HEADER_BYTES;
                self.sealed_end = end;
                continue;
            }
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => {
                    let path = link.path.clone();
                    if header.note != [0; 2] {
                        self.note = header.note;
                    }
                    if let Some(previous) = header.previous.filter(|previous| previous.synced > 0) {
                        let recorded = Lsn::new(previous.end.segment(), previous.synced);
                        self.proven = self.proven.max(recorded);
                    }
                    self.reader.insert(SegmentReader::open(&*self.fs, path, self.options.read_bytes)?)
                }
            };
            let (seed, limit) = (header.seed(), sealed_at.unwrap_or(u32::MAX));
            let found = match reader.item(seed, self.offset, limit)? {
                Item::Record(found) => found,
                item => match self.handle_gap(&item, sealed_at) {
                    Ok(true) => continue,
                    Ok(false) => return Ok(None),
                    Err(error) => self.reread_record(seed, limit, error)?,
                },
            };
            self.proven = self.proven.max(synced_according_to(header.previous, header.number, &found));
            if matches!(found.head.kind, Kind::Close | Kind::Note)
                && let Some(reader) = &mut self.reader
                && let Some(note) = read_note(reader.payload(&found)?)
            {
                self.note = note;
            }
            debug_assert!(
                found.start == self.offset && found.end > found.start,
                "not the next record: {found:?}"
            );
            debug_assert!(found.end <= limit, "{found:?} is past the end of its segment at {limit}");
            self.close_mark = (found.head.kind == Kind::Close).then_some(found.start);
            self.offset = found.end;
            return Ok(Some(found));
        }
    }

    /// Reads the record at [`Self::offset`] again, in case it has been completed since. Beside a
    /// writer of this log, the window in memory may be older than the bytes that prove it damaged.
    fn reread_record(&mut self, seed: Seed, limit: u32, error: Error) -> Result<Found> {
        if let (Error::Corruption { .. }, Some(reader)) = (&error, &mut self.reader) {
            reader.forget();
            if let Item::Record(found) = reader.item(seed, self.offset, limit)? {
                return Ok(found);
            }
        }
        Err(error)
    }

    /// Decides how to handle an item that is not a record. Returns true to continue at
    /// [`Self::offset`], false when the log ends there.
    fn handle_gap(&mut self, item: &Item, sealed_at: Option<u32>) -> Result<bool> {
        let (Some(link), Some(reader)) = (self.links.get(self.index), self.reader.as_mut()) else {
            return Ok(false);
        };
        debug_assert!(!matches!(item, Item::Record(_)), "a record is not a gap");
        let (seed, offset, len) = (link.header.seed(), self.offset, reader.len());
        let until = sealed_at.map_or(len, |end| end.min(len));
        // After the mark of a closed log come only zeros, or bytes of an earlier use of the file.
        let looks_torn = matches!(item, Item::Damaged) && self.close_mark.is_none();
        // A crash does not shorten a file below the length it had before its first record.
        let cut = expected_if_truncated(link, len, sealed_at, offset, self.close_mark)
            .map(|wanted| format!("the file was truncated: it has {len} bytes, expected {wanted}"));
        match self.options.mode {
            Mode::Salvage => {
                let found = reader.search(seed, offset..until)?;
                let next = found.as_ref().map_or(until, |found| found.start);
                debug_assert!(
                    found.is_none() || next >= offset,
                    "the search went back from {offset} to {next}"
                );
                if let Some(what) = cut.filter(|_| found.is_none()) {
                    self.damage.push(Damage::new(&reader.path, len as usize, len as usize, &what));
                }
                if found.is_some() || sealed_at.is_some() || looks_torn {
                    let what = "no valid record; the data here is lost";
                    self.damage.push(Damage::new(&reader.path, offset as usize, next as usize, what));
                }
                if found.is_none() && sealed_at.is_none() {
                    return Ok(false);
                }
                self.offset = if found.is_some() { next } else { u32::MAX };
                Ok(true)
            }
            Mode::Strict => {
                let clean = sealed_at.is_none() && !looks_torn;
                if clean && reader.search(seed, offset..len)?.is_none() {
                    return Ok(false);
                }
                Err(Error::corruption(&reader.path, u64::from(offset), "there is no sound record here"))
            }
            Mode::TolerateTornTail => {
                let mut proof = proof_after(reader, link, offset, offset)?;
                let later = self.links.get(self.index + 1..).unwrap_or_default();
                if let (None, Some(next)) = (&proof, later.first()) {
                    let says = next.header.previous.is_some_and(|previous| previous.synced > offset);
                    let header = || format!("the header of {}", next.path.display());
                    proof = if says { Some(header()) } else { proof_in(&*self.fs, later)? };
                }
                if let Some(proof) = proof {
                    let what = format!(
                        "there is no sound record here, but the log had been synced beyond this point: {proof}"
                    );
                    return Err(Error::corruption(&link.path, u64::from(offset), what));
                }
                if let Some(what) = cut {
                    return Err(Error::corruption(&link.path, u64::from(len), what));
                }
                if sealed_at.is_some() || looks_torn {
                    let what = "the log ends here, torn by a crash before it was synced";
                    self.damage.push(Damage::new(&link.path, offset as usize, until as usize, what));
                }
                for link in later {
                    self.damage.push(Damage::new(&link.path, 0, 0, "cut off from the log by a crash"));
                }
                self.links.truncate(self.index + 1);
                Ok(false)
            }
        }
    }
}

/// Returns the expected length of a segment that has no record at `offset` and is only `len` bytes
/// long; `None` if it is not too short. Closing a log truncates its last segment after the mark, or
/// after the header if there are no records.
fn expected_if_truncated(
    link: &Link,
    len: u32,
    sealed_at: Option<u32>,
    offset: u32,
    mark: Option<u32>,
) -> Option<u64> {
    let wanted = match sealed_at.filter(|end| *end != u32::MAX) {
        Some(end) => u64::from(end),
        None if mark.is_some() || (offset == HEADER_BYTES && len == HEADER_BYTES) => 0,
        None => link.header.bytes,
    };
    (u64::from(len) < wanted).then_some(wanted)
}

/// Returns the position that a record proves to be on stable storage.
fn synced_according_to(previous: Option<Previous>, number: u32, found: &Found) -> Lsn {
    match found.head.synced {
        0 => Lsn::ZERO,
        HEADER_BYTES => previous.map_or(Lsn::ZERO, |previous| previous.end),
        synced => Lsn::new(number, synced),
    }
}

/// Describes the record that holds the proof.
fn describe_proof(path: &Path, found: &Found) -> String {
    format!(
        "the record at offset {} of {} says that {} bytes had been synced",
        found.start,
        path.display(),
        found.head.synced
    )
}
