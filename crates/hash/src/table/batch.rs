//! Lookups of many keys at once, their cache misses overlapped.
//!
//! One lookup waits for its index line, then for its record. A batch asks for all lines first, then for all
//! records, and only then compares: while one line is on its way, so are the others (group prefetching, Chen et
//! al., "Improving Hash Join Performance through Prefetching", 2004).

use super::probe::{Probe, home_line_offset};
use super::reader::Reader;
use super::record::Tag;
use crate::Result;
use crate::prefetch::prefetch;

/// Keys in flight. Processors keep 10 to 48 misses open per core; more keys only wait in the queue.
const GROUP: usize = 32;
/// No record for this key.
const ABSENT: u64 = u64::MAX;

impl Reader {
    /// Looks all of `keys` up and hands each result to `found`, with the key's position, in the order given.
    ///
    /// Several times as fast as single lookups once the table is larger than the processor's caches. Compressed
    /// values are decompressed into a buffer that lives for the call of `found`. Stops at the first error.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut value = Vec::new();
        if self.file.is_some() {
            for (position, key) in keys.iter().enumerate() {
                let is_there = self.get_into(key.as_ref(), &mut value)?;
                found(position, is_there.then_some(&value));
            }
            return Ok(());
        }
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let first = group * GROUP;
            if self.header.is_fixed() {
                self.get_group::<true, K>(keys, &mut value, |index, value| found(first + index, value))?;
            } else {
                self.get_group::<false, K>(keys, &mut value, |index, value| found(first + index, value))?;
            }
        }
        Ok(())
    }

    #[inline]
    fn get_group<const FIXED: bool, K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        buffer: &mut Vec<u8>,
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let bytes = self.window().bytes;
        let mut hashes = [0u64; GROUP];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hash(key.as_ref());
            prefetch(bytes, home_line_offset(self, *hash) as usize);
        }
        let mut records = [ABSENT; GROUP];
        for ((record, &hash), key) in records.iter_mut().zip(&hashes).zip(keys) {
            let key_bytes = key.as_ref().len();
            if FIXED && key_bytes as u64 != self.header.key_bytes_max {
                continue;
            }
            if let Some(start) = Probe::<FIXED>::new(self, hash)?.next(self)? {
                *record = start;
                prefetch(bytes, start as usize);
                // A record that runs into the next line shall not wait there.
                prefetch(bytes, start as usize + key_bytes + 8);
            }
        }
        for (index, ((key, &record), &hash)) in keys.iter().zip(&records).zip(&hashes).enumerate() {
            if record == ABSENT {
                found(index, None);
                continue;
            }
            let at = match self.match_mapped::<FIXED>(record, key.as_ref())? {
                Some(at) => Some(at),
                // Another key with this fingerprint stands before it, or instead of it.
                None => self.find(key.as_ref(), hash)?,
            };
            match at {
                None => found(index, None),
                Some(at) if at.tag == Tag::Compressed => {
                    buffer.clear();
                    let stored = self.checked_range(at.start, at.bytes)?;
                    self.decompress(stored, at.start, buffer)?;
                    found(index, Some(buffer));
                }
                Some(at) => found(index, self.value(at)?.as_deref()),
            }
        }
        Ok(())
    }
}
