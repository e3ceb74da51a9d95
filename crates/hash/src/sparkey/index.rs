//! An open index, and lookups in it.
//!
//! The index uses Robin Hood hashing with linear probing: on the way from its home slot, an entry
//! takes the place of any other entry that is nearer to its own home. A lookup may therefore stop
//! at the first entry that is nearer to its home than the lookup is to its own, because the wanted
//! entry would have taken that place. A table may be full, as those of one and of three keys are.
//! If all entries of a full table share the hash, a lookup ends when it is back at its home slot.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_codec::murmur3;
use cairn_vfs::{Advice, File, Load, LoadReport, Map};

use super::index_header::{INDEX_HEADER_BYTES, IndexHeader};
use super::log::not_in_memory;
use super::options::Mode;
use super::slot::{Ring, Slot};
use crate::prefetch::prefetch;
use crate::{Error, Result};

/// Number of slots that a lookup reads from a file at once: nearly always enough for a whole probe.
const WINDOW_SLOTS: u64 = 64;

/// An open index.
#[derive(Debug)]
pub(super) struct Index {
    pub path: PathBuf,
    pub header: IndexHeader,
    pub ring: Ring,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    /// The whole file; its length was checked against the header.
    Map(Map),
    File(Arc<dyn File>),
}

/// A source of slots.
trait Slots {
    /// Reads slot number `slot`, which is below the capacity.
    fn read(&mut self, slot: u64) -> Result<Slot>;
}

/// Slots in memory.
struct MemorySlots<'a, const H: usize, const A: usize>(&'a [u8]);

impl<const H: usize, const A: usize> MemorySlots<'_, H, A> {
    #[inline(always)]
    fn get(&self, slot: u64) -> Slot {
        let at = slot as usize * (H + A);
        debug_assert!(at + H + A <= self.0.len(), "slot {slot}");
        Slot::decode::<H, A>(self.0.get(at..at + H + A).unwrap_or_default())
    }
}

impl<const H: usize, const A: usize> Slots for MemorySlots<'_, H, A> {
    #[inline(always)]
    fn read(&mut self, slot: u64) -> Result<Slot> {
        Ok(self.get(slot))
    }
}

/// Slots in a file, read one window at a time.
struct FileSlots<'a> {
    header: &'a IndexHeader,
    file: &'a dyn File,
    window_slots: u64,
    window: Vec<u8>,
    first: u64,
}

impl Slots for FileSlots<'_> {
    fn read(&mut self, slot: u64) -> Result<Slot> {
        debug_assert!(slot < self.header.capacity.get(), "slot {slot}");
        let slot_bytes = self.header.slot_bytes();
        let held = self.window.len() as u64 / slot_bytes;
        if slot < self.first || slot >= self.first + held {
            let count = self.window_slots.min(self.header.capacity.get() - slot);
            self.first = slot;
            self.window.resize((count * slot_bytes) as usize, 0);
            self.file.read_exact_at(&mut self.window, self.header.slot_offset(slot))?;
        }
        debug_assert!(slot >= self.first, "slot {slot} before the window at {}", self.first);
        let at = ((slot - self.first) * slot_bytes) as usize;
        let bytes = self.window.get(at..).unwrap_or_default();
        debug_assert!(bytes.len() as u64 >= slot_bytes, "the window ends before slot {slot}");
        Ok(match (self.header.hash_bytes, self.header.address_bytes) {
            (4, 4) => Slot::decode::<4, 4>(bytes),
            (4, _) => Slot::decode::<4, 8>(bytes),
            (_, 4) => Slot::decode::<8, 4>(bytes),
            (_, _) => Slot::decode::<8, 8>(bytes),
        })
    }
}

impl Index {
    /// Reads and validates the header of `file`, and maps or loads the file according to `mode`.
    pub fn open(file: Arc<dyn File>, mode: Mode) -> Result<Index> {
        let header = IndexHeader::read(&*file)?;
        let path = file.path().to_owned();
        let bytes = match mode {
            Mode::Mmap => Bytes::Map(file.map()?),
            Mode::Heap => Bytes::Map(Map::copy_of(&*file)?),
            Mode::Pread => Bytes::File(file),
        };
        if let Bytes::Map(map) = &bytes
            && Some(map.len() as u64) != header.file_bytes()
        {
            let detail = format!("the file changed its length to {} bytes while it was opened", map.len());
            return Err(Error::corruption(&path, map.len() as u64, detail));
        }
        Ok(Index { path, header, ring: Ring::new(header.capacity), bytes })
    }

    /// Returns the hash by which this index places `key`.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        hash_key(self.header.hash_bytes, self.header.seed, key)
    }

    /// Prefetches the cache line of the first slot that may hold `hash`.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Bytes::Map(map) = &self.bytes {
            prefetch(map, self.header.slot_offset(self.ring.home(hash)) as usize);
        }
    }

    /// Passes the addresses stored under `hash` to `check` until it returns a result.
    #[inline]
    pub fn find<T>(&self, hash: u64, mut check: impl FnMut(u64) -> Result<Option<T>>) -> Result<Option<T>> {
        self.walk(hash, |slot| if slot.hash == hash { check(slot.address) } else { Ok(None) })
    }

    /// Passes the used slots on the way of a lookup for `hash` to `check` until it returns a
    /// result. The slot that ends the lookup is passed too.
    #[inline]
    pub fn walk<T>(&self, hash: u64, check: impl FnMut(Slot) -> Result<Option<T>>) -> Result<Option<T>> {
        let bytes = match &self.bytes {
            Bytes::Map(map) => map.get(INDEX_HEADER_BYTES..).unwrap_or_default(),
            Bytes::File(file) => return self.probe(self.file_slots(&**file, WINDOW_SLOTS), hash, check),
        };
        match (self.header.hash_bytes, self.header.address_bytes) {
            (4, 4) => self.probe(MemorySlots::<4, 4>(bytes), hash, check),
            (4, _) => self.probe(MemorySlots::<4, 8>(bytes), hash, check),
            (_, 4) => self.probe(MemorySlots::<8, 4>(bytes), hash, check),
            (_, _) => self.probe(MemorySlots::<8, 8>(bytes), hash, check),
        }
    }

    #[inline(always)]
    fn probe<T>(
        &self,
        mut slots: impl Slots,
        hash: u64,
        mut check: impl FnMut(Slot) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut slot = self.ring.home(hash);
        let mut displacement = 0;
        loop {
            let found = slots.read(slot)?;
            if found.is_empty() {
                return if found == Slot::EMPTY { Ok(None) } else { Err(self.half_empty(slot, found.hash)) };
            }
            if let Some(found) = check(found)? {
                return Ok(Some(found));
            }
            if found.hash != hash {
                let others = self.ring.displacement(slot, found.hash);
                if others > self.header.displacement_max {
                    // The hash is damaged, most likely: it has another home.
                    return Err(self.too_far(slot));
                }
                if others < displacement {
                    return Ok(None);
                }
            }
            // BOUND: an entry this far from its home contradicts the maximum in the header, which
            // is at most the number of entries. In a full table the lookup may be back at its home
            // slot by then, and has seen all entries.
            if displacement > self.header.displacement_max {
                return if displacement >= self.ring.capacity { Ok(None) } else { Err(self.too_far(slot)) };
            }
            slot = self.ring.next_slot(slot);
            displacement += 1;
        }
    }

    #[cold]
    fn half_empty(&self, slot: u64, hash: u64) -> Error {
        let detail = format!("an empty slot with hash {hash:#x}");
        Error::corruption(&self.path, self.header.slot_offset(slot), detail)
    }

    #[cold]
    fn too_far(&self, slot: u64) -> Error {
        let most = self.header.displacement_max;
        let detail = format!(
            "slot {slot} is more than {most} slots from its home, which is the maximum in the header"
        );
        Error::corruption(&self.path, self.header.slot_offset(slot), detail)
    }

    /// Visits all slots in order.
    pub fn for_each_slot(&self, visit: impl FnMut(u64, Slot) -> Result<()>) -> Result<()> {
        self.for_slots(self.ring.capacity, WINDOW_SLOTS * WINDOW_SLOTS, visit)
    }

    /// Visits the first `count` slots, or all if there are fewer.
    pub fn for_first_slots(&self, count: u64, mut visit: impl FnMut(Slot) -> Result<()>) -> Result<()> {
        self.for_slots(count.min(self.ring.capacity), count, |_, found| visit(found))
    }

    fn for_slots(
        &self,
        count: u64,
        window_slots: u64,
        mut visit: impl FnMut(u64, Slot) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(count <= self.ring.capacity, "{count} slots of {}", self.ring.capacity);
        let mut file_slots = match &self.bytes {
            Bytes::Map(_) => None,
            Bytes::File(file) => Some(self.file_slots(&**file, window_slots)),
        };
        for slot in 0..count {
            let found = match &mut file_slots {
                None => self.slot_in_memory(slot),
                Some(slots) => slots.read(slot)?,
            };
            visit(slot, found)?;
        }
        Ok(())
    }

    fn slot_in_memory(&self, slot: u64) -> Slot {
        let bytes = self.memory().unwrap_or_default();
        match (self.header.hash_bytes, self.header.address_bytes) {
            (4, 4) => MemorySlots::<4, 4>(bytes).get(slot),
            (4, _) => MemorySlots::<4, 8>(bytes).get(slot),
            (_, 4) => MemorySlots::<8, 4>(bytes).get(slot),
            (_, _) => MemorySlots::<8, 8>(bytes).get(slot),
        }
    }

    /// Returns the bytes of the slots, if they are in memory.
    #[inline]
    pub fn memory(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Map(map) => map.get(INDEX_HEADER_BYTES..),
            Bytes::File(_) => None,
        }
    }

    fn file_slots<'a>(&'a self, file: &'a dyn File, window_slots: u64) -> FileSlots<'a> {
        FileSlots { header: &self.header, file, window_slots, window: Vec::new(), first: 0 }
    }

    /// Loads the index into memory and reports how much was achieved.
    pub fn load(&self, load: Load) -> LoadReport {
        match &self.bytes {
            Bytes::Map(map) => map.load(0..map.len(), load),
            Bytes::File(_) => not_in_memory(self.header.file_bytes().unwrap_or(0), load),
        }
    }

    pub fn advise(&self, advice: Advice) {
        if let Bytes::Map(map) = &self.bytes {
            map.advise(0..map.len(), advice);
        }
    }
}

/// Returns the hash of `key` with `hash_bytes` of 4 or 8.
#[inline]
pub(super) fn hash_key(hash_bytes: u32, seed: u32, key: &[u8]) -> u64 {
    debug_assert!(hash_bytes == 4 || hash_bytes == 8, "a hash of {hash_bytes} bytes");
    if hash_bytes == 4 { u64::from(murmur3::hash32(key, seed)) } else { murmur3::hash64(key, seed) }
}
