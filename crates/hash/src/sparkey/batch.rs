//! Many lookups at once, with their cache misses overlapped.
//!
//! One lookup waits for memory twice, first for the slot, then for the record. A group of lookups is taken through
//! these stages together, so that the waits of the whole group overlap: hash every key and ask for its slot; find
//! every candidate address and ask for its record; compare every key.

use super::hit::{Hit, Located};
use super::index::MemorySlots;
use super::reader::SparkeyReader;
use crate::Result;
use crate::prefetch::prefetch;

/// Lookups that go through the stages together. More than the misses that a core can have under way (10 to 16 on
/// current ones), few enough for the lines to be still there when they are used.
const GROUP: usize = 32;

/// A cache line, on all common processors.
const LINE_BYTES: usize = 64;

impl SparkeyReader {
    /// Looks up all `keys` and calls `found` once for each, with its position in `keys` and its value, or `None` when
    /// it is absent. The order of the calls is not that of the keys. The value is borrowed for the call only.
    ///
    /// Cost: for uncompressed files in memory the time of a lookup falls to a fraction, as the misses of 32 lookups
    /// overlap; in compressed files, keys of one block decompress it once. Errors: as
    /// [`SparkeyReader::get`]; the first one ends the batch.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (number, group) in keys.chunks(GROUP).enumerate() {
            let first = number * GROUP;
            let Some(slots) = self.index.memory() else {
                self.get_group_by_reading(group, first, &mut found)?;
                continue;
            };
            let header = &self.index.header;
            match (header.hash_bytes, header.address_bytes) {
                (4, 4) => self.get_group(MemorySlots::<4, 4>(slots), group, first, &mut found)?,
                (4, _) => self.get_group(MemorySlots::<4, 8>(slots), group, first, &mut found)?,
                (_, 4) => self.get_group(MemorySlots::<8, 4>(slots), group, first, &mut found)?,
                (_, _) => self.get_group(MemorySlots::<8, 8>(slots), group, first, &mut found)?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn get_group<const H: usize, const A: usize, K: AsRef<[u8]>>(
        &self,
        slots: MemorySlots<'_, H, A>,
        keys: &[K],
        first: usize,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut hashes = [0; GROUP];
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = self.index.hash(key.as_ref());
            slots.prefetch(self.index.ring.home(*hash));
        }
        let flat = self.log.flat();
        // The first address under each hash; 0 where there is none.
        let mut addresses = [0; GROUP];
        for (address, &hash) in addresses.iter_mut().zip(&hashes[..keys.len()]) {
            let candidate =
                self.index.probe(MemorySlots::<H, A>(slots.0), hash, |address| Ok(Some(address)))?;
            *address = candidate.unwrap_or(0);
            if let (Some(bytes), true) = (flat, *address != 0) {
                let position = self.index.header.split(*address).0 as usize;
                prefetch(bytes, position);
                prefetch(bytes, position.saturating_add(LINE_BYTES));
            }
        }
        match flat {
            Some(bytes) => self.compare_flat(bytes, keys, &addresses, first, found),
            None => self.compare_by_block(keys, &addresses, first, found),
        }
    }

    #[inline(always)]
    fn compare_flat<K: AsRef<[u8]>>(
        &self,
        bytes: &[u8],
        keys: &[K],
        addresses: &[u64; GROUP],
        first: usize,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (number, (key, &address)) in keys.iter().zip(addresses).enumerate() {
            let key = key.as_ref();
            let mut value = None;
            if address != 0 {
                value = self.check_flat(bytes, address, key)?;
                if value.is_none() {
                    // Another key with this hash came first.
                    let hash = self.index.hash(key);
                    value = self.index.find(hash, |address| self.check_flat(bytes, address, key))?;
                }
            }
            found(first + number, value);
        }
        Ok(())
    }

    /// Takes the candidates in the order of the log, so that each block is decompressed once.
    fn compare_by_block<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        addresses: &[u64; GROUP],
        first: usize,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut order: [u8; GROUP] = std::array::from_fn(|number| number as u8);
        let order = &mut order[..keys.len()];
        order.sort_unstable_by_key(|&number| addresses[usize::from(number)]);
        let (mut cursor, mut buffer) = (None, Vec::new());
        for &number in order.iter() {
            let number = usize::from(number);
            let (key, address) = (keys[number].as_ref(), addresses[number]);
            let candidate = match address {
                0 => None,
                _ => self.check_anywhere(&mut cursor, address, key)?,
            };
            match (candidate, address) {
                (Some(Located::Borrowed(value)), _) => found(first + number, Some(value)),
                (Some(Located::AtCursor(value_bytes)), _) => {
                    buffer.clear();
                    if let Some(cursor) = &mut cursor {
                        cursor.append_to(value_bytes, &mut buffer)?;
                    }
                    found(first + number, Some(&buffer));
                }
                (None, 0) => found(first + number, None),
                (None, _) => self.get_one(key, first + number, &mut buffer, found)?,
            }
        }
        Ok(())
    }

    fn get_group_by_reading<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        first: usize,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut buffer = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            self.get_one(key.as_ref(), first + number, &mut buffer, found)?;
        }
        Ok(())
    }

    fn get_one(
        &self,
        key: &[u8],
        number: usize,
        buffer: &mut Vec<u8>,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        match self.find(key)? {
            None => found(number, None),
            Some(Hit::Borrowed(value)) => found(number, Some(value)),
            Some(hit) => {
                buffer.clear();
                hit.append_to(buffer)?;
                found(number, Some(buffer));
            }
        }
        Ok(())
    }
}
