//! A node of a B+tree: sorted records in a page.
//!
//! ```text
//!   0      kind: 1 leaf, 2 inner            u8
//!   1      level: 0 leaf                    u8
//!   2      number of records                u16
//!   4      start of the heap                u16     it grows down from the end
//!   6      garbage bytes in the heap        u16
//!   8      length of the common prefix of all keys       u16
//!   10     place and length of the lower fence      2 x u16     exclusive
//!          length 0xffff: none, the leftmost node
//!   14     place and length of the upper fence      2 x u16     inclusive
//!          length 0xffff: none, the rightmost node
//!   18     number of ghosts, in a leaf      u16     bit 0 of a value's first byte marks a ghost
//!   20     the child beyond the last key, in an inner node       u32
//!   24     slots: head u32, place u16, key length u16, value length u16      10 bytes each
//!          free
//!          heap: key without prefix, value, back to back
//! ```
//!
//! Numbers are little endian, except for heads: a head is the first four bytes of the key after the
//! prefix, as a number that sorts as they do. The value of a record in an inner node is the child
//! (u32) that holds the keys up to and including the record's.
//!
//! The layout follows LeanStore's (Alhomssi, Leis, "Contention and Space Management in B-Trees",
//! CIDR 2021).

use std::cmp::Ordering;
use std::ops::Range;

use cairn_pool::{Changed, PAGE_HEADER_LEN};

use super::packed::{ColumnSet, PACKED, Packed};
use super::source::Source;

pub(crate) const LEAF: u8 = 1;
pub(crate) const INNER: u8 = 2;

const KIND: usize = 0;
const LEVEL: usize = 1;
const COUNT: usize = 2;
/// Kind, level and count are read together.
const _: () = assert!(LEVEL == KIND + 1 && COUNT == KIND + 2);
/// The fields of the header follow one another, and the slots follow the header.
const _: () = assert!(HEAP == COUNT + 2 && GARBAGE == HEAP + 2 && PREFIX == GARBAGE + 2);
const _: () = assert!(LOWER == PREFIX + 2 && UPPER == LOWER + 4 && GHOSTS == UPPER + 4);
const _: () = assert!(LAST_CHILD == GHOSTS + 2 && HEADER == LAST_CHILD + size_of::<u32>());
/// No kind is taken for another.
const _: () = assert!(LEAF != INNER && LEAF != PACKED && INNER != PACKED);
/// A slot has a head and three lengths.
const _: () = assert!(SLOT == size_of::<u32>() + 3 * size_of::<u16>());
const HEAP: usize = 4;
const GARBAGE: usize = 6;
const PREFIX: usize = 8;
const LOWER: usize = 10;
const UPPER: usize = 14;
const GHOSTS: usize = 18;
const LAST_CHILD: usize = 20;
pub(crate) const HEADER: usize = 24;
pub(crate) const SLOT: usize = 10;
/// The bit of a value's first byte that makes a record of a leaf a ghost. Each leaf stores the
/// number of its ghosts, so that rows can be counted without reading each one.
pub(crate) const GHOST: u8 = 1;
const _: () = assert!(GHOST.is_power_of_two());
const NO_FENCE: u16 = u16::MAX;
/// No fence is that long, also on the longest pages. Four of the longest records fit beside two
/// fences, so a node can be divided.
const _: () = {
    let (mut size, largest) = (4 << 10, 64 << 10);
    while size <= largest {
        let record = max_record(size - PAGE_HEADER_LEN);
        assert!(record < NO_FENCE as usize);
        assert!(HEADER + 4 * (SLOT + record) + 2 * record <= size - PAGE_HEADER_LEN);
        size *= 2;
    }
};

/// Distance from a guess within which to search before binary search takes over.
const NEAR: usize = 4;
/// A node for which a guess is computed has records.
const _: () = assert!(NEAR > 0);

/// Returns the maximum size of key and value together for a payload of this length. Four such
/// records fit beside two fences.
pub(crate) const fn max_record(payload: usize) -> usize {
    (payload - HEADER) / 6 - SLOT
}

/// Returns the first bytes of a key as a number that sorts as they do.
fn head(key: &[u8]) -> u32 {
    let mut bytes = [0; 4];
    let len = key.len().min(4);
    bytes[..len].copy_from_slice(&key[..len]);
    u32::from_be_bytes(bytes)
}

/// Returns whether a value in a leaf is a ghost.
pub(crate) fn is_ghost(value: &[u8]) -> bool {
    value.first().is_some_and(|flags| flags & GHOST != 0)
}

/// A node to read.
#[derive(Debug)]
pub(crate) struct Node<'a, S: ?Sized>(pub(crate) &'a S);

impl<S: ?Sized> Clone for Node<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Node<'_, S> {}

#[derive(Debug, Clone, Copy)]
struct Slot {
    place: usize,
    key: usize,
    value: usize,
}

impl<S: Source + ?Sized> Node<'_, S> {
    pub(crate) fn kind(&self) -> Result<u8, Changed> {
        self.0.u8(KIND)
    }

    pub(crate) fn level(&self) -> Result<u8, Changed> {
        self.0.u8(LEVEL)
    }

    /// Returns whether this is a packed leaf, whose records are stored as columns (`packed`). Its
    /// records are read like others, but cannot be changed in place.
    #[inline]
    pub(crate) fn is_packed(&self) -> Result<bool, Changed> {
        Ok(self.0.u8(KIND)? == PACKED)
    }

    #[inline]
    pub(crate) fn count(&self) -> Result<usize, Changed> {
        self.0.u16(COUNT).map(usize::from)
    }

    /// Returns the number of ghosts.
    #[inline]
    pub(crate) fn ghosts(&self) -> Result<usize, Changed> {
        self.0.u16(GHOSTS).map(usize::from)
    }

    /// Returns the number of records of a leaf, and the number of ghosts among them; `None` for
    /// other nodes. Cheaper than reading the fields one by one.
    #[inline]
    pub(crate) fn leaf_records(&self) -> Result<Option<(usize, usize)>, Changed> {
        let head = self.0.u32(KIND)?.to_le_bytes();
        let [kind, level, count @ ..] = head;
        let count = usize::from(u16::from_le_bytes(count));
        let ghosts = self.ghosts()?;
        Ok((level == 0 && matches!(kind, LEAF | PACKED)).then_some((count, ghosts)))
    }

    #[inline]
    pub(crate) fn prefix_len(&self) -> Result<usize, Changed> {
        self.0.u16(PREFIX).map(usize::from)
    }

    fn heap(&self) -> Result<usize, Changed> {
        self.0.u16(HEAP).map(usize::from)
    }

    #[inline]
    fn slot(&self, at: usize) -> Result<Slot, Changed> {
        let start = HEADER + at * SLOT;
        let field = |skip| self.0.u16(start + skip).map(usize::from);
        Ok(Slot { place: field(4)?, key: field(6)?, value: field(8)? })
    }

    fn fence_place(&self, field: usize) -> Result<Option<(usize, usize)>, Changed> {
        let (place, len) = (self.0.u16(field)?, self.0.u16(field + 2)?);
        Ok((len != NO_FENCE).then_some((place.into(), len.into())))
    }

    fn fence(&self, field: usize, to: &mut Vec<u8>) -> Result<bool, Changed> {
        to.clear();
        match self.fence_place(field)? {
            Some((place, len)) => self.0.append_to(place, len, to).map(|()| true),
            None => Ok(false),
        }
    }

    /// Reads the lower fence, which is less than all keys of this node. Returns false for the
    /// leftmost node.
    pub(crate) fn lower(&self, to: &mut Vec<u8>) -> Result<bool, Changed> {
        self.fence(LOWER, to)
    }

    /// Reads the upper fence, the greatest key that this node may hold. Returns false for the
    /// rightmost node.
    pub(crate) fn upper(&self, to: &mut Vec<u8>) -> Result<bool, Changed> {
        self.fence(UPPER, to)
    }

    /// Compares the upper fence with a key. Returns `None` for the rightmost node.
    pub(crate) fn compare_upper(&self, key: &[u8]) -> Result<Option<Ordering>, Changed> {
        match self.fence_place(UPPER)? {
            Some((place, len)) => self.0.compare(place, len, key).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the bytes available to records after a compaction. For a packed leaf, the unused
    /// bytes.
    pub(crate) fn free(&self) -> Result<usize, Changed> {
        if self.is_packed()? {
            return self.heap()?.checked_sub(self.0.u16(GARBAGE)?.into()).ok_or(Changed);
        }
        let slots = HEADER + self.count()? * SLOT;
        let garbage = self.0.u16(GARBAGE).map(usize::from)?;
        (self.heap()? + garbage).checked_sub(slots).ok_or(Changed)
    }

    /// Returns whether the heap's start and garbage in the header agree with the fences and
    /// records. If they do not, records that should fit would be refused. Always true for a packed
    /// leaf.
    pub(crate) fn adds_up(&self) -> Result<bool, Changed> {
        if self.is_packed()? {
            return Ok(true);
        }
        let mut sum = self.heap()? + usize::from(self.0.u16(GARBAGE)?);
        for field in [LOWER, UPPER] {
            sum += self.fence_place(field)?.map_or(0, |(_, len)| len);
        }
        for at in 0..self.count()? {
            let slot = self.slot(at)?;
            sum += slot.key + slot.value;
        }
        Ok(sum == self.0.len())
    }

    /// Returns the first record whose key is not below `key`, and whether its key equals `key`. The
    /// key must be in the node's range.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> Result<(usize, bool), Changed> {
        if self.is_packed()? {
            return Packed(self.0).search(key);
        }
        let rest = key.get(self.prefix_len()?..).ok_or(Changed)?;
        let wanted = head(rest);
        let (mut low, mut high) = (0, self.count()?);
        let mut middle = self.guess(wanted, high)?;
        let mut is_near = false;
        while low < high {
            debug_assert!(
                (low..high).contains(&middle),
                "record {middle} is looked at between {low} and {high}"
            );
            let order = match self.0.u32(HEADER + middle * SLOT)?.cmp(&wanted) {
                // Heads decide unless they are equal.
                Ordering::Equal => {
                    let slot = self.slot(middle)?;
                    self.0.compare(slot.place, slot.key, rest)?
                }
                order => order,
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok((middle, true)),
            }
            // The guess is rarely far off, so the next probe is close to it, and the following ones
            // halve the rest.
            middle = match is_near {
                true => low.midpoint(high),
                false if order == Ordering::Less => (low + NEAR).min(low.midpoint(high)),
                false => high.saturating_sub(NEAR + 1).max(low.midpoint(high)),
            };
            is_near = true;
        }
        Ok((low, false))
    }

    /// Returns the position of a key if heads are spread evenly between the first and the last one,
    /// as consecutive numbers and hashes are. This saves the probes at the middle, the quarter and
    /// so on, each of which is on a cache line of its own.
    #[inline]
    fn guess(&self, wanted: u32, count: usize) -> Result<usize, Changed> {
        if count < 2 * NEAR {
            return Ok(count / 2);
        }
        let (first, last) = (self.0.u32(HEADER)?, self.0.u32(HEADER + (count - 1) * SLOT)?);
        let guess = match (wanted.checked_sub(first), last.checked_sub(first)) {
            (None, _) => 0,
            (Some(skip), Some(all)) if skip < all => {
                // Both factors are below 2^32 and the count is below 2^16.
                (u64::from(skip) * (count as u64 - 1) / u64::from(all)) as usize
            }
            _ => count - 1,
        };
        debug_assert!(guess < count, "record {guess} of {count} is guessed");
        Ok(guess)
    }

    /// Returns the child that holds a key, and its position among the children.
    #[inline]
    pub(crate) fn child_of(&self, key: &[u8]) -> Result<(u32, usize), Changed> {
        let (at, _) = self.search(key)?;
        self.child(at).map(|child| (child, at))
    }

    /// Returns a child by position. There is one more child than there are records.
    #[inline]
    pub(crate) fn child(&self, at: usize) -> Result<u32, Changed> {
        let count = self.count()?;
        if at >= count {
            return if at == count { self.0.u32(LAST_CHILD) } else { Err(Changed) };
        }
        let slot = self.slot(at)?;
        self.0.u32(slot.place + slot.key)
    }

    /// Appends the value of a record to a buffer.
    #[inline]
    pub(crate) fn value(&self, at: usize, to: &mut Vec<u8>) -> Result<(), Changed> {
        self.value_of(at, ColumnSet::ALL, to)
    }

    /// Like [`Node::value`], for callers that need only some columns of a packed leaf: the others
    /// are NULL.
    pub(crate) fn value_of(&self, at: usize, wanted: ColumnSet, to: &mut Vec<u8>) -> Result<(), Changed> {
        if self.is_packed()? {
            return Packed(self.0).value(at, wanted, to);
        }
        let slot = self.slot(at)?;
        self.0.append_to(slot.place + slot.key, slot.value, to)
    }

    pub(crate) fn value_len(&self, at: usize) -> Result<usize, Changed> {
        self.slot(at).map(|slot| slot.value)
    }

    /// Reads the whole key of a record into a buffer.
    pub(crate) fn key(&self, at: usize, to: &mut Vec<u8>) -> Result<(), Changed> {
        if self.is_packed()? {
            return Packed(self.0).key(at, to);
        }
        self.prefix(to)?;
        let slot = self.slot(at)?;
        self.0.append_to(slot.place, slot.key, to)
    }

    /// Reads the prefix into a buffer. Both fences begin with it.
    pub(crate) fn prefix(&self, to: &mut Vec<u8>) -> Result<(), Changed> {
        to.clear();
        let len = self.prefix_len()?;
        if len == 0 {
            return Ok(());
        }
        let (place, fence) = self.fence_place(LOWER)?.ok_or(Changed)?;
        if fence < len { Err(Changed) } else { self.0.append_to(place, len, to) }
    }
}

impl Node<'_, [u8]> {
    /// Returns the locations of key (without prefix) and value of a record. Not for packed leaves.
    pub(crate) fn record(&self, at: usize) -> Result<(Range<usize>, Range<usize>), Changed> {
        let slot = self.slot(at)?;
        let (middle, end) = (slot.place + slot.key, slot.place + slot.key + slot.value);
        if end > self.0.len() { Err(Changed) } else { Ok((slot.place..middle, middle..end)) }
    }

    /// Returns whether the node is as every change leaves it: the sizes add up, keys ascend within
    /// the bounds, and heads and the number of ghosts match the records. For assertions: reads all
    /// records. True for a packed leaf, which is only written as a whole.
    pub(crate) fn is_sound(&self) -> bool {
        self.has_sound_records().unwrap_or(false)
    }

    fn has_sound_records(&self) -> Result<bool, Changed> {
        if self.is_packed()? {
            return Ok(true);
        }
        let (kind, level, count, heap) = (self.kind()?, self.level()?, self.count()?, self.heap()?);
        let is_node = if level == 0 { kind == LEAF } else { kind == INNER };
        if !is_node || !self.adds_up()? || HEADER + count * SLOT > heap {
            return Ok(false);
        }
        let (mut key, mut last, mut ghosts) = (Vec::new(), Vec::new(), 0);
        let mut has_last = self.lower(&mut last)?;
        for at in 0..count {
            let (own, value) = self.record(at)?;
            let (place, own) = (own.start, self.0.get(own).ok_or(Changed)?);
            let value = self.0.get(value).ok_or(Changed)?;
            self.key(at, &mut key)?;
            let is_child = level == 0 || value.len() == size_of::<u32>();
            let has_head = self.0.u32(HEADER + at * SLOT)? == head(own);
            if place < heap || !is_child || !has_head || has_last && key <= last {
                return Ok(false);
            }
            ghosts += usize::from(level == 0 && is_ghost(value));
            std::mem::swap(&mut key, &mut last);
            has_last = true;
        }
        let is_within = !has_last || self.compare_upper(&last)? != Some(Ordering::Less);
        Ok(is_within && ghosts == self.ghosts()?)
    }
}

/// The fences of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) lower: Option<&'a [u8]>,
    pub(crate) upper: Option<&'a [u8]>,
}

impl Bounds<'_> {
    /// Returns the length of the common prefix of all keys in between.
    pub(crate) fn prefix_len(&self) -> usize {
        match (self.lower, self.upper) {
            (Some(lower), Some(upper)) => lower.iter().zip(upper).take_while(|(a, b)| a == b).count(),
            _ => 0,
        }
    }
}

/// Writes the fences at the end of a node, where everything from `low` on must be unused.
pub(crate) fn put_fences(payload: &mut [u8], bounds: Bounds<'_>, low: usize) -> Result<(), Changed> {
    let mut heap = payload.len();
    let mut node = NodeMut(payload);
    for (field, fence) in [(LOWER, bounds.lower), (UPPER, bounds.upper)] {
        let Some(fence) = fence else {
            node.put(field + 2, &NO_FENCE.to_le_bytes())?;
            continue;
        };
        heap = heap.checked_sub(fence.len()).filter(|heap| *heap >= low).ok_or(Changed)?;
        debug_assert!(fence.len() < usize::from(NO_FENCE), "a fence of {} bytes would be none", fence.len());
        node.put(heap, fence)?;
        node.put_u16(field, heap)?;
        node.put_u16(field + 2, fence.len())?;
    }
    node.put_u16(HEAP, heap)
}

/// A node to change. The caller checks with [`Node::free`] that new data fits. For an inconsistent
/// node, functions return [`Changed`] and may leave it half changed.
pub(crate) struct NodeMut<'a>(pub(crate) &'a mut [u8]);

impl NodeMut<'_> {
    fn node(&self) -> Node<'_, [u8]> {
        Node(self.0)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), Changed> {
        let end = at.checked_add(bytes.len()).ok_or(Changed)?;
        self.0.get_mut(at..end).ok_or(Changed)?.copy_from_slice(bytes);
        Ok(())
    }

    fn put_u16(&mut self, at: usize, value: usize) -> Result<(), Changed> {
        let value = u16::try_from(value).map_err(|_| Changed)?;
        self.put(at, &value.to_le_bytes())
    }

    /// Initializes an empty node.
    pub(crate) fn clear(&mut self, level: u8, bounds: Bounds<'_>) -> Result<(), Changed> {
        self.0.get_mut(..HEADER).ok_or(Changed)?.fill(0);
        self.put(KIND, &[if level == 0 { LEAF } else { INNER }, level])?;
        put_fences(self.0, bounds, HEADER)?;
        self.put_u16(PREFIX, bounds.prefix_len())?;
        debug_assert!(
            self.node().count() == Ok(0) && self.node().adds_up() == Ok(true),
            "an empty node of level {level} does not add up: {bounds:?}"
        );
        Ok(())
    }

    pub(crate) fn set_last_child(&mut self, child: u32) -> Result<(), Changed> {
        self.put(LAST_CHILD, &child.to_le_bytes())
    }

    /// Sets the child at a position, including the last one.
    pub(crate) fn set_child(&mut self, at: usize, child: u32) -> Result<(), Changed> {
        if at == self.count()? {
            return self.set_last_child(child);
        }
        let slot = self.node().slot(at)?;
        self.put(slot.place + slot.key, &child.to_le_bytes())
    }

    /// Returns the number of records, after checking that all slots are within the page. Fails for
    /// a packed leaf, which has no slots.
    fn count(&self) -> Result<usize, Changed> {
        if self.node().is_packed()? {
            return Err(Changed);
        }
        let count = self.node().count()?;
        if HEADER + count * SLOT > self.0.len() { Err(Changed) } else { Ok(count) }
    }

    /// Inserts a record before the one at `at`. `key` excludes the prefix.
    pub(crate) fn insert(&mut self, at: usize, key: &[u8], value: &[u8]) -> Result<(), Changed> {
        let count = self.count()?;
        if at > count {
            return Err(Changed);
        }
        let need = key.len() + value.len();
        if self.node().heap()? < HEADER + (count + 1) * SLOT + need {
            self.compact()?;
        }
        let heap = self.node().heap()?;
        let place =
            heap.checked_sub(need).filter(|&place| place >= HEADER + (count + 1) * SLOT).ok_or(Changed)?;
        self.put(place, key)?;
        self.put(place + key.len(), value)?;
        let start = HEADER + at * SLOT;
        self.0.copy_within(start..HEADER + count * SLOT, start + SLOT);
        self.put(start, &head(key).to_le_bytes())?;
        self.put_u16(start + 4, place)?;
        self.put_u16(start + 6, key.len())?;
        self.put_u16(start + 8, value.len())?;
        self.put_u16(HEAP, place)?;
        self.count_ghosts(0, usize::from(is_ghost(value)))?;
        self.put_u16(COUNT, count + 1)?;
        // The record lies behind the slots, so nothing above has overwritten it.
        debug_assert!(
            self.node()
                .record(at)
                .is_ok_and(|(found, of)| { self.0.get(found) == Some(key) && self.0.get(of) == Some(value) }),
            "record {at} of {count} is not read as it was inserted"
        );
        Ok(())
    }

    /// Removes a record.
    pub(crate) fn remove(&mut self, at: usize) -> Result<(), Changed> {
        let count = self.count()?;
        if at >= count {
            return Err(Changed);
        }
        let slot = self.node().slot(at)?;
        self.add_garbage(slot.key + slot.value)?;
        let value = self.node().record(at)?.1;
        self.count_ghosts(usize::from(is_ghost(self.0.get(value).ok_or(Changed)?)), 0)?;
        let start = HEADER + at * SLOT;
        self.0.copy_within(start + SLOT..HEADER + count * SLOT, start);
        self.put_u16(COUNT, count - 1)
    }

    fn add_garbage(&mut self, bytes: usize) -> Result<(), Changed> {
        let garbage = usize::from(self.0.u16(GARBAGE)?);
        self.put_u16(GARBAGE, garbage + bytes)
    }

    /// Updates the number of ghosts of a leaf. Only values in leaves have flags.
    fn count_ghosts(&mut self, gone: usize, come: usize) -> Result<(), Changed> {
        if gone == come || self.node().kind()? != LEAF {
            return Ok(());
        }
        let ghosts = (self.node().ghosts()? + come).checked_sub(gone).ok_or(Changed)?;
        self.put_u16(GHOSTS, ghosts)
    }

    /// Replaces the value of a record.
    pub(crate) fn replace(&mut self, at: usize, value: &[u8]) -> Result<(), Changed> {
        if at >= self.count()? {
            return Err(Changed);
        }
        let (key, old) = self.node().record(at)?;
        if value.len() <= old.len() {
            let was = is_ghost(self.0.get(old.clone()).ok_or(Changed)?);
            self.count_ghosts(usize::from(was), usize::from(is_ghost(value)))?;
            self.put(old.start, value)?;
            self.add_garbage(old.len() - value.len())?;
            return self.put_u16(HEADER + at * SLOT + 8, value.len());
        }
        let key = self.0.get(key).ok_or(Changed)?.to_vec();
        self.remove(at)?;
        self.insert(at, &key, value)
    }

    /// Moves the records together, so that the free space is contiguous.
    fn compact(&mut self) -> Result<(), Changed> {
        let old = self.0.to_vec();
        let (node, slots) = (Node(&old[..]), HEADER + self.node().count()? * SLOT);
        let mut heap = self.0.len();
        for field in [LOWER, UPPER] {
            if let Some((place, len)) = node.fence_place(field)? {
                heap = heap.checked_sub(len).ok_or(Changed)?;
                self.put(heap, old.get(place..place + len).ok_or(Changed)?)?;
                self.put_u16(field, heap)?;
            }
        }
        for at in 0..node.count()? {
            let (key, value) = node.record(at)?;
            let len = value.end - key.start;
            heap = heap.checked_sub(len).filter(|&heap| heap >= slots).ok_or(Changed)?;
            self.put(heap, old.get(key.start..value.end).ok_or(Changed)?)?;
            self.put_u16(HEADER + at * SLOT + 4, heap)?;
        }
        self.put_u16(HEAP, heap)?;
        self.put_u16(GARBAGE, 0)?;
        debug_assert!(!node.is_sound() || self.node().is_sound(), "moving its records damages a node");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
