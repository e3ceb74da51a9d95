//! Keys and versions as stored in the arena. After publication only their links change.
//!
//! ```text
//! Record   chain u64 | tag u64 | key_len u32 | value_len u32 | key … | value …
//!            │          the key and its first version
//!            ▼
//! Update   next u64  | tag u64 | value_len u32 | place u32 | [Tower] | value …
//!            │          a further version
//!            ▼ …older
//! ```
//!
//! A tag combines a sequence number and a kind: `seqno << 8 | kind`. Tags order like sequence
//! numbers. Only the record contains the key; each further version costs 24 bytes plus its value.
//!
//! The chain is in descending order of tags. The record's own version has some position in that
//! order (usually the last, as it arrived first); [`super::versions`] merges the two.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;

use super::arena::{Arena, Held, Link};
use crate::kind::{Kind, SEQNO_MAX, Seqno, Version};
use crate::{Error, Result};

/// The longest key, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = u32::MAX as usize;
/// The longest value, in bytes.
pub(crate) const VALUE_BYTES_MAX: usize = u32::MAX as usize;

/// Distance between two updates with towers, in updates.
const TOWER_EVERY: u32 = if cfg!(cairn_shuttle) { 2 } else { 16 };

const _: () = assert!(TOWER_EVERY.is_power_of_two(), "`Place::steps` is a mask");
const _: () = assert!(SEQNO_MAX <= u64::MAX >> 8, "a tag has a byte for the kind");
// A tower follows its update, and records and updates start at multiples of 8 bytes.
const _: () = assert!(size_of::<Update>().is_multiple_of(align_of::<Tower>()) && align_of::<Tower>() <= 8);
const _: () = assert!(align_of::<Record>() <= 8 && align_of::<Update>() <= 8);
#[cfg(not(cairn_shuttle))] // shuttle's atomics are larger
const _: () = assert!(size_of::<Record>() == 24 && size_of::<Update>() == 24, "the costs of a version");

/// A sequence number and a kind in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag(u64);

impl Tag {
    /// Returns the tag of a version.
    #[inline]
    pub(super) fn new(seqno: Seqno, kind: Kind) -> Self {
        debug_assert!(seqno <= SEQNO_MAX, "sequence number {seqno}");
        Tag(seqno << 8 | kind as u64)
    }

    /// Returns a tag that is not less than that of any version written at or before `seqno`, and
    /// less than that of any later one.
    #[inline]
    pub(super) fn last_at(seqno: Seqno) -> Self {
        Tag(seqno.min(SEQNO_MAX) << 8 | 0xff)
    }

    /// Returns the sequence number of the version.
    #[inline]
    pub(super) fn seqno(self) -> Seqno {
        self.0 >> 8
    }

    /// Returns the kind of the version. Tags are only made from valid kinds, so the default is
    /// never used.
    #[inline]
    pub(super) fn kind(self) -> Kind {
        debug_assert!(Kind::from_byte(self.0 as u8).is_some(), "a tag without a kind: {self:?}");
        Kind::from_byte(self.0 as u8).unwrap_or(Kind::Delete)
    }
}

/// An entry to insert, validated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'e> {
    pub(super) key: &'e [u8],
    pub(super) seqno: Seqno,
    pub(super) kind: Kind,
    pub(super) value: &'e [u8],
}

impl<'e> Entry<'e> {
    /// Validates an entry. Errors: [`Error::Invalid`] if the key or value is too long, or the
    /// sequence number is above [`SEQNO_MAX`].
    #[inline]
    pub(super) fn new(key: &'e [u8], seqno: Seqno, kind: Kind, value: &'e [u8]) -> Result<Self> {
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX || seqno > SEQNO_MAX {
            return Err(unacceptable(key.len(), value.len(), seqno));
        }
        Ok(Entry { key, seqno, kind, value })
    }

    /// Returns the bytes of key and value.
    #[inline]
    pub(super) fn raw_bytes(&self) -> usize {
        self.key.len() + self.value.len()
    }

    #[inline]
    pub(super) fn tag(&self) -> Tag {
        Tag::new(self.seqno, self.kind)
    }
}

#[cold]
fn unacceptable(key: usize, value: usize, seqno: Seqno) -> Error {
    Error::invalid(format!(
        "an entry with a key of {key} bytes, a value of {value} bytes and sequence number {seqno} cannot be stored: \
         at most {KEY_BYTES_MAX} bytes, {VALUE_BYTES_MAX} bytes and {SEQNO_MAX} are allowed"
    ))
}

/// A key, with the version that arrived first.
#[repr(C)]
pub(super) struct Record {
    /// The other versions.
    pub(super) chain: Link<Update>,
    /// The tag of the first version.
    pub(super) tag: Tag,
    key_len: u32,
    value_len: u32,
    // Followed by `key_len` bytes of key and `value_len` bytes of value.
}

/// A further version of a key that already had one.
#[repr(C)]
pub(super) struct Update {
    /// The next older update in the chain.
    pub(super) next: Link<Update>,
    /// The tag of this version.
    pub(super) tag: Tag,
    value_len: u32,
    place: Place,
    // Followed by a `Tower`, if `place` says so, and `value_len` bytes of value.
}

/// The ordinal of an update in its chain. It spaces the towers of long chains evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u32);

impl Place {
    const STEPS: u32 = TOWER_EVERY - 1;

    /// Returns the number of updates since the last one with a tower; 0 if this one has a tower.
    fn steps(self) -> u32 {
        self.0 & Self::STEPS
    }

    /// Returns the number of towers up to here.
    fn towers(self) -> u32 {
        self.0 / TOWER_EVERY
    }
}

/// Shortcuts over a chain, in every sixteenth update. They make any version reachable in a
/// logarithmic number of steps (Myers, *An applicative random-access stack*, IPL 1983).
#[repr(C)]
pub(super) struct Tower {
    /// The next older update with a tower.
    pub(super) below: Link<Update>,
    /// An update with a tower further down.
    pub(super) jump: Link<Update>,
}

/// An update that has not been linked yet.
pub(super) struct Unlinked<'a>(Held<'a, Update>);

impl Record {
    /// Stores an entry with a new key in the arena.
    #[inline]
    pub(super) fn create<'a>(arena: &'a Arena, entry: &Entry<'_>) -> Held<'a, Record> {
        let bytes = size_of::<Record>() + entry.raw_bytes();
        let start = arena.entry(bytes, entry.seqno, entry.kind, entry.raw_bytes());
        // SAFETY: `start` has room for `bytes`.
        let record = unsafe { Record::write(start, entry) };
        debug_assert!(
            record.key() == entry.key && record.first().value == entry.value,
            "an entry that would not be read back"
        );
        record
    }

    /// Stores a key without a version in the arena, as a separator between nodes of the tree.
    pub(super) fn separator<'a>(arena: &'a Arena, key: &[u8]) -> Held<'a, Record> {
        let start = arena.bytes(size_of::<Record>() + key.len());
        // SAFETY: `start` has room for a record with this key and no value.
        unsafe { Record::write(start, &Entry { key, seqno: 0, kind: Kind::Delete, value: &[] }) }
    }

    /// # Safety
    /// `start` must come from the arena, aligned to 8 bytes, with room for a record, the key and
    /// the value.
    #[inline]
    unsafe fn write<'a>(start: NonNull<u8>, entry: &Entry<'_>) -> Held<'a, Record> {
        debug_assert!(start.cast::<Record>().is_aligned(), "a record at {start:?}");
        debug_assert!(entry.key.len() <= KEY_BYTES_MAX && entry.value.len() <= VALUE_BYTES_MAX);
        let header = Record {
            chain: Link::empty(),
            tag: entry.tag(),
            key_len: entry.key.len() as u32,
            value_len: entry.value.len() as u32,
        };
        // SAFETY: the caller provides the room. It is new memory, so it does not overlap with the
        // entry's bytes.
        unsafe {
            start.cast::<Record>().write(header);
            let bytes = start.add(size_of::<Record>());
            bytes.copy_from_nonoverlapping(NonNull::from(entry.key).cast(), entry.key.len());
            let bytes = bytes.add(entry.key.len());
            bytes.copy_from_nonoverlapping(NonNull::from(entry.value).cast(), entry.value.len());
            Held::new(start.cast())
        }
    }
}

impl<'a> Held<'a, Record> {
    /// Returns the key.
    #[inline]
    pub(super) fn key(self) -> &'a [u8] {
        // SAFETY: `write` stored `key_len` bytes after the header, and they do not change.
        unsafe { trailing(self, size_of::<Record>(), self.get().key_len) }
    }

    /// Returns the first version.
    #[inline]
    pub(super) fn first(self) -> Version<'a> {
        let record = self.get();
        // SAFETY: `write` stored `value_len` bytes after the key, and they do not change.
        let value =
            unsafe { trailing(self, size_of::<Record>() + record.key_len as usize, record.value_len) };
        Version { seqno: record.tag.seqno(), kind: record.tag.kind(), value }
    }
}

impl<'a> Held<'a, Update> {
    /// Returns the version.
    #[inline]
    pub(super) fn version(self) -> Version<'a> {
        let update = self.get();
        let tower = if update.place.steps() == 0 { size_of::<Tower>() } else { 0 };
        // SAFETY: `Unlinked::create` stored `value_len` bytes after the header and tower, and they
        // do not change.
        let value = unsafe { trailing(self, size_of::<Update>() + tower, update.value_len) };
        Version { seqno: update.tag.seqno(), kind: update.tag.kind(), value }
    }

    /// Returns the tower, if the update has one.
    #[inline]
    pub(super) fn tower(self) -> Option<&'a Tower> {
        if self.get().place.steps() != 0 {
            return None;
        }
        // SAFETY: an update with this place was created with a tower after its header, and its
        // pointer covers it.
        Some(unsafe { self.as_ptr().add(1).cast::<Tower>().as_ref() })
    }

    /// Returns the nearest update with a tower: this one or an older one.
    fn nearest_tower(self) -> Option<Held<'a, Update>> {
        // BOUND: towers are sixteen updates apart, apart from late arrivals between them.
        let mut at = Some(self);
        while let Some(update) = at
            && update.place.steps() != 0
        {
            at = update.get().next.get();
        }
        at
    }
}

impl<'a> Unlinked<'a> {
    /// Stores a further version of a key in the arena. It is to be linked above `newest`, unless it
    /// arrives late.
    pub(super) fn create(arena: &'a Arena, entry: &Entry<'_>, newest: Option<Held<'a, Update>>) -> Self {
        let place = Place(newest.map_or(1, |newest| newest.place.0.wrapping_add(1)));
        let tower = if place.steps() == 0 { size_of::<Tower>() } else { 0 };
        let bytes = size_of::<Update>() + tower + entry.value.len();
        let start = arena.entry(bytes, entry.seqno, entry.kind, entry.raw_bytes());
        debug_assert!(start.cast::<Update>().is_aligned(), "an update at {start:?}");
        debug_assert!(entry.value.len() <= VALUE_BYTES_MAX, "a value of {} bytes", entry.value.len());
        let header =
            Update { next: Link::empty(), tag: entry.tag(), value_len: entry.value.len() as u32, place };
        // SAFETY: `start` has room for `bytes`, aligned for header and tower. It is new memory, so
        // it does not overlap with the entry's bytes.
        unsafe {
            start.cast::<Update>().write(header);
            let bytes = start.add(size_of::<Update>());
            if tower > 0 {
                bytes.cast::<Tower>().write(Tower { below: Link::empty(), jump: Link::empty() });
            }
            let bytes = bytes.add(tower);
            bytes.copy_from_nonoverlapping(NonNull::from(entry.value).cast(), entry.value.len());
            Unlinked(Held::new(start.cast()))
        }
    }

    /// Links the update into `link`, which must lead to `older`. Returns false, without any effect,
    /// if it no longer does.
    pub(super) fn link(&self, link: &Link<Update>, older: Option<Held<'a, Update>>) -> bool {
        debug_assert!(older.is_none_or(|older| older.tag <= self.0.tag), "the chain descends");
        self.0.next.set(older);
        if let Some(tower) = self.0.tower() {
            let below = older.and_then(Held::nearest_tower);
            tower.below.set(below);
            tower.jump.set(below.and_then(jump_above));
        }
        link.replace(older, self.0)
    }
}

/// Returns the jump target of a tower above `below`.
fn jump_above<'a>(below: Held<'a, Update>) -> Option<Held<'a, Update>> {
    let jump_of = |update: Option<Held<'a, Update>>| update?.tower()?.jump.get();
    let towers = |update: Option<Held<'a, Update>>| update.map_or(0, |update| update.place.towers());
    let first = jump_of(Some(below));
    let second = jump_of(first);
    debug_assert!(below.place.steps() == 0, "only updates with towers are below one");
    // Two jumps of equal length from `below` are combined into one.
    let lengths =
        (towers(Some(below)).wrapping_sub(towers(first)), towers(first).wrapping_sub(towers(second)));
    if lengths.0 == lengths.1 { second } else { Some(below) }
}

/// # Safety
/// `len` bytes at `offset` from the start of `held` must be initialized, covered by its provenance
/// and immutable.
#[inline]
unsafe fn trailing<'a, T>(held: Held<'a, T>, offset: usize, len: u32) -> &'a [u8] {
    // SAFETY: guaranteed by the caller; the bytes live as long as the arena.
    unsafe { std::slice::from_raw_parts(held.as_ptr().cast::<u8>().as_ptr().add(offset), len as usize) }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("tag", &self.tag).finish_non_exhaustive()
    }
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update").field("tag", &self.tag).finish_non_exhaustive()
    }
}
