//! Lookups of many keys at once, with overlapped cache misses.
//!
//! A single lookup waits for memory twice, first for the slot, then for the record. A batch takes a
//! group of lookups through these stages together, so that their waits overlap: hash every key and
//! prefetch its slot; find every candidate address and prefetch its record; compare every key.

use super::fast_path::{InMemory, Record, Step, match_record, probe};
use super::reader::SparkeyReader;
use super::record_lookup::{FoundValue, ValueLocation};
use crate::Result;
use crate::prefetch::prefetch;

/// Number of lookups that go through the stages together. More than the number of misses that a
/// core can have in flight (10 to 16 on current ones), and few enough that the lines are still
/// cached when they are used.
const GROUP: usize = 32;

impl SparkeyReader {
    /// Looks up all `keys` and calls `found` once for each, with its position in `keys` and its
    /// value, or `None` if it is absent. The order of the calls is not that of the keys. The value
    /// is borrowed only for the call.
    ///
    /// Cost: for uncompressed files in memory, and for cached blocks, a fraction of the time of
    /// single lookups, because the misses of 32 lookups overlap. Other blocks are decompressed once
    /// for all keys in them. Errors: as for [`SparkeyReader::get`]; the first one ends the batch.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        for (number, group) in keys.chunks(GROUP).enumerate() {
            let first = number * GROUP;
            let Some(in_memory) = self.in_memory() else {
                self.get_by_block(group, first, &mut found)?;
                continue;
            };
            match (in_memory.header.hash_bytes, in_memory.header.address_bytes) {
                (4, 4) => self.get_many_in_memory::<4, 4, K>(&in_memory, group, first, &mut found)?,
                (4, _) => self.get_many_in_memory::<4, 8, K>(&in_memory, group, first, &mut found)?,
                (_, 4) => self.get_many_in_memory::<8, 4, K>(&in_memory, group, first, &mut found)?,
                (_, _) => self.get_many_in_memory::<8, 8, K>(&in_memory, group, first, &mut found)?,
            }
        }
        Ok(())
    }

    /// Looks up a group whose index and records are in memory.
    #[inline(always)]
    fn get_many_in_memory<const H: usize, const A: usize, K: AsRef<[u8]>>(
        &self,
        in_memory: &InMemory<'_>,
        keys: &[K],
        first: usize,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        debug_assert!(keys.len() <= GROUP, "{} keys in a group", keys.len());
        let mut hashes = [0; GROUP];
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = in_memory.hash::<H>(key.as_ref());
            in_memory.prefetch_slots::<H, A>(*hash);
        }
        let mut steps = [Step::Absent; GROUP];
        for (step, &hash) in steps.iter_mut().zip(hashes.iter().take(keys.len())) {
            *step = probe::<H, A>(in_memory, hash);
            if let Step::Candidate(address) = *step {
                in_memory.prefetch_record(address);
            }
        }
        for (number, (key, step)) in keys.iter().zip(steps).enumerate() {
            let key = key.as_ref();
            let candidate = match step {
                Step::Candidate(address) => in_memory.record(address, key),
                Step::Absent if !self.check_absent => {
                    found(first + number, None);
                    continue;
                }
                Step::Absent | Step::Unsure => Record::Bad,
            };
            match candidate {
                Record::Value(value) => found(first + number, Some(value)),
                // The record is damaged, or has another key with the same hash.
                Record::OtherKey | Record::Bad => {
                    self.get_one(key, first + number, &mut Vec::new(), found)?;
                }
            }
        }
        Ok(())
    }

    /// Looks up a group whose records are compressed or have to be read.
    fn get_by_block<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        first: usize,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        debug_assert!(keys.len() <= GROUP, "{} keys in a group", keys.len());
        let mut hashes = [0; GROUP];
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = self.index.hash(key.as_ref());
            self.index.prefetch(*hash);
        }
        // The first address stored under the hash of each key; 0 if there is none.
        let mut addresses = [0; GROUP];
        for (address, &hash) in addresses.iter_mut().zip(hashes.iter().take(keys.len())) {
            *address = self.index.find(hash, |address| Ok(Some(address)))?.unwrap_or(0);
        }
        // Records in cached blocks come first, also in stages.
        let mut blocks = [None; GROUP];
        for (block, &address) in blocks.iter_mut().zip(&addresses) {
            *block = self.log.blocks.get(self.index.header.split(address).0);
        }
        let mut records = [None; GROUP];
        for (record, (block, &address)) in records.iter_mut().zip(blocks.iter().zip(&addresses)) {
            *record = block.and_then(|block| {
                let offset = *block.offsets.get(self.index.header.split(address).1 as usize)?;
                prefetch(&block.bytes, offset as usize);
                block.bytes.get(offset as usize..)
            });
        }
        // The remaining keys with their addresses. Sorting them by address decompresses each block
        // only once.
        let mut rest = Vec::new();
        for (number, ((key, record), address)) in keys.iter().zip(records).zip(addresses).enumerate() {
            match record.map_or(Record::Bad, |record| match_record(record, key.as_ref())) {
                Record::Value(value) => found(first + number, Some(value)),
                _ if address == 0 && !self.check_absent => found(first + number, None),
                _ if address == 0 => self.get_one(key.as_ref(), first + number, &mut Vec::new(), found)?,
                _ => rest.push((address, number)),
            }
        }
        rest.sort_unstable();
        debug_assert!(rest.iter().all(|(address, _)| *address != 0), "an empty slot has no record");
        let (mut cursor, mut buffer) = (None, Vec::new());
        for (address, number) in rest {
            let (key, place) = (keys[number].as_ref(), first + number);
            let hash = hashes.get(number).copied().unwrap_or_default();
            match (self.check_anywhere(&mut cursor, address, key, hash)?, &mut cursor) {
                (Some(ValueLocation::Borrowed(value)), _) => found(place, Some(value)),
                (Some(ValueLocation::AtCursor(value_bytes)), Some(cursor)) => {
                    buffer.clear();
                    cursor.append_to(value_bytes, &mut buffer)?;
                    found(place, Some(&buffer));
                }
                // The record has another key with the same hash.
                _ => self.get_one(key, place, &mut buffer, found)?,
            }
        }
        Ok(())
    }

    fn get_one(
        &self,
        key: &[u8],
        place: usize,
        buffer: &mut Vec<u8>,
        found: &mut impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        match self.find(key)? {
            None => found(place, None),
            Some(FoundValue::Borrowed(value)) => found(place, Some(value)),
            Some(hit) => {
                buffer.clear();
                hit.append_to(buffer)?;
                found(place, Some(buffer));
            }
        }
        Ok(())
    }
}
