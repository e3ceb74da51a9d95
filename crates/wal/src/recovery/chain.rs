//! Determines the segments that make up the log, and the proof that they had been synced.
//!
//! Every header names the previous segment: its number, salt, end, and how far it had been synced.
//! The segment with the highest number is the newest, and the log consists of the segments
//! reachable from it. An unreachable segment was cut off by a crash and abandoned by an earlier
//! recovery, or it was prepared but never begun.

use std::path::{Path, PathBuf};

use cairn_vfs::Fs;

use super::reader::{HeaderPage, Item, SegmentReader};
use super::{Damage, describe_proof};
use crate::files::{Listing, segment_path};
use crate::format::{HEADER_BYTES, HEADER_COPIES, Header};
use crate::{Error, Lsn, Mode, RecoveryOptions, Result};

/// A segment with a sound header.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) path: PathBuf,
    pub(super) header: Header,
}

/// Everything learned from the headers.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// Ascending by number.
    sound: Vec<Link>,
    /// Files whose header was overwritten with something else.
    damaged: Vec<(u32, PathBuf)>,
    /// Headers with one damaged copy.
    half_damaged: Vec<Damage>,
}

/// The segments to read, oldest first.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) links: Vec<Link>,
    /// Segments that were left out or are damaged.
    pub(super) damage: Vec<Damage>,
}

impl Headers {
    pub(super) fn read(fs: &dyn Fs, listing: &Listing) -> Result<Headers> {
        let mut headers = Headers::default();
        for (number, path) in &listing.segments {
            let mut reader = SegmentReader::open(fs, path.clone(), HEADER_BYTES as usize)?;
            match reader.header(*number)? {
                HeaderPage::Sound(header, copy) => {
                    if let Some(at) = copy {
                        headers.half_damaged.push(Damage::new(
                            path,
                            at,
                            at + 64,
                            "one of two copies of the header",
                        ));
                    }
                    headers.sound.push(Link { path: path.clone(), header });
                }
                HeaderPage::Damaged => headers.damaged.push((*number, path.clone())),
                HeaderPage::Unused => {}
            }
        }
        debug_assert!(headers.sound.is_sorted_by(|a, b| a.header.number < b.header.number));
        Ok(headers)
    }

    /// Returns the log id of the newest segment.
    pub(super) fn log_id(&self) -> Option<u64> {
        self.sound.last().map(|link| link.header.log_id)
    }

    /// Returns the chain of segments with records after `from`.
    pub(super) fn resolve(
        mut self,
        fs: &dyn Fs,
        listing: &Listing,
        from: Lsn,
        options: &RecoveryOptions,
    ) -> Result<Chain> {
        let mode = options.mode;
        let known = options.known.map(|known| known.log_id);
        let mut foreign = self.check_ids(mode, known)?;
        self.check_damaged_headers(from, mode)?;
        let mut chain = Chain { links: Vec::new(), damage: std::mem::take(&mut self.half_damaged) };
        chain.damage.append(&mut foreign);
        // Only segments with numbers below this are left to consider. BOUND: it decreases with each
        // piece.
        let mut below = u32::MAX;
        loop {
            let (piece, gap) = self.connected_segments(listing, from, below, options.nothing_released);
            let Some(gap) = gap else {
                chain.links.splice(0..0, piece);
                return Ok(chain);
            };
            let Some(lowest) = piece.first() else { return Ok(chain) };
            // The name was durable before the first record: a crash may lose the header, but not
            // the file.
            let gone = listing.segments.iter().all(|(number, _)| *number != gap.segment());
            let state = if gone { "does not exist" } else { "has no sound header" };
            let path = segment_path(lowest.path.parent().unwrap_or(Path::new("")), gap.segment());
            let what =
                format!("segment {} before it is needed, but {state}: {}", gap.segment(), path.display());
            // The segments between it and this piece were abandoned by an earlier recovery.
            debug_assert!(gap.segment() < below, "segment {} does not precede {below}", gap.segment());
            below = gap.segment();
            match mode {
                Mode::Salvage => {
                    chain.damage.push(Damage::new(&lowest.path, 0, 0, &what));
                    chain.links.splice(0..0, piece);
                }
                Mode::TolerateTornTail | Mode::Strict if gone || mode == Mode::Strict => {
                    return Err(Error::corruption(&lowest.path, 32, what));
                }
                Mode::Strict | Mode::TolerateTornTail => {
                    let synced =
                        lowest.header.previous.is_some_and(|previous| previous.synced > HEADER_BYTES);
                    let proof =
                        if synced { Some("its own header".to_owned()) } else { proof_in(fs, &piece)? };
                    if let Some(proof) = proof {
                        let what = format!("{what}, although it had been synced: {proof}");
                        return Err(Error::corruption(&lowest.path, 32, what));
                    }
                    for link in &piece {
                        chain.damage.push(Damage::new(&link.path, 0, 0, "cut off from the log by a crash"));
                    }
                }
            }
        }
    }

    /// Returns the segments connected to the newest one below a number, oldest first. If the
    /// segment before them is missing although it should exist, also returns its end.
    fn connected_segments(
        &self,
        listing: &Listing,
        from: Lsn,
        below: u32,
        nothing_released: bool,
    ) -> (Vec<Link>, Option<Lsn>) {
        let mut links: Vec<Link> = Vec::new();
        let newest = self.sound.iter().rev().find(|link| link.header.number < below);
        let Some(newest) = newest.filter(|link| link.header.number >= from.segment()) else {
            return (links, None);
        };
        links.push(newest.clone());
        // The oldest segment that had not been released when the newest one was begun.
        let oldest = Some(newest.header.oldest).filter(|oldest| nothing_released && *oldest > 0);
        let may_be_released = |number: u32| {
            from == Lsn::ZERO
                && oldest.is_none_or(|oldest| number < oldest)
                && listing.segments.iter().all(|(n, _)| *n != number)
        };
        let mut lowest = newest;
        let gap = loop {
            let Some(previous) = lowest.header.previous.filter(|previous| previous.end > from) else {
                break None;
            };
            let number = previous.end.segment();
            let found = self
                .sound
                .iter()
                .find(|link| link.header.number == number && link.header.salt == previous.salt);
            match found {
                Some(link) => {
                    links.push(link.clone());
                    lowest = link;
                }
                // Released, unless something requires it to exist.
                None if may_be_released(number) => break None,
                None => break Some(previous.end),
            }
        };
        links.reverse();
        debug_assert!(links.windows(2).all(|pair| {
            let before = pair[1].header.previous;
            before.is_some_and(|p| p.salt == pair[0].header.salt && p.end.segment() == pair[0].header.number)
        }));
        (links, gap)
    }

    /// Checks that all segments belong to one log: the known one, or else that of the newest
    /// segment. A salvage leaves the others out, and reports them if the log id is known.
    fn check_ids(&mut self, mode: Mode, known: Option<u64>) -> Result<Vec<Damage>> {
        let Some(id) = known.or(self.log_id()) else { return Ok(Vec::new()) };
        let mut damage = Vec::new();
        for foreign in self.sound.iter().filter(|link| link.header.log_id != id) {
            let what = format!("it belongs to log {:016x}, expected log {id:016x}", foreign.header.log_id);
            if mode != Mode::Salvage {
                return Err(Error::corruption(&foreign.path, 16, what));
            }
            if known.is_some() {
                damage.push(Damage::new(&foreign.path, 0, 0, &what));
            }
        }
        self.sound.retain(|link| link.header.log_id == id);
        debug_assert!(mode == Mode::Salvage || damage.is_empty());
        Ok(damage)
    }

    /// Reports damaged headers among the needed segments. In the strict mode they are errors.
    fn check_damaged_headers(&mut self, from: Lsn, mode: Mode) -> Result<()> {
        let needed = self.damaged.iter().filter(|(number, _)| *number >= from.segment());
        for (_, path) in needed {
            if mode == Mode::Strict {
                return Err(Error::corruption(path, 0, "the header is damaged"));
            }
            self.half_damaged.push(Damage::new(path, 0, HEADER_COPIES[1] + 64, "the header"));
        }
        match self.half_damaged.first() {
            Some(damage) if mode == Mode::Strict => {
                Err(Error::corruption(&damage.file, damage.from, "a copy of the header is damaged"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns proof, if any, that everything before these segments had been synced. The header of the
/// oldest one does not count.
pub(super) fn proof_in(fs: &dyn Fs, links: &[Link]) -> Result<Option<String>> {
    for (index, link) in links.iter().enumerate() {
        if index > 0 && link.header.previous.is_some_and(|previous| previous.synced > 0) {
            return Ok(Some(format!("the header of {}", link.path.display())));
        }
        let mut reader = SegmentReader::open(fs, link.path.clone(), 1 << 20)?;
        if let Some(proof) = proof_after(&mut reader, link, HEADER_BYTES, 0)? {
            return Ok(Some(proof));
        }
    }
    Ok(None)
}

/// Returns proof, if a record at or after `offset` states that more than `synced` had been synced.
pub(super) fn proof_after(
    reader: &mut SegmentReader,
    link: &Link,
    mut offset: u32,
    synced: u32,
) -> Result<Option<String>> {
    let (seed, len) = (link.header.seed(), reader.len());
    loop {
        // Records are contiguous, so most need no search.
        let found = match reader.item(seed, offset, len)? {
            Item::Record(found) => Some(found),
            _ => reader.search(seed, offset..len)?,
        };
        match found {
            Some(found) if found.head.synced > synced => return Ok(Some(describe_proof(&link.path, &found))),
            Some(found) => {
                debug_assert!(found.end > offset, "the search for proof stays at {offset}");
                offset = found.end;
            }
            None => return Ok(None),
        }
    }
}
