//! Derives the outcomes of lookups in RocksDB's traces. RocksDB does not record them, so they are
//! inferred from earlier writes of the same trace.
//!
//! An input may be larger than memory, and so may its set of keys. Therefore only keys of the
//! sample are kept, by their hashes and up to a bound; outcomes of further keys are unknown.
//! Deleted ranges are kept separately, each with its write number, and hide older writes. A range
//! deletion thus never iterates over all keys.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::event::Detail;

/// The maximum number of keys with known outcomes: about 200 MB.
const KEYS_MAX: usize = 4 << 20;
/// The maximum size of the bounds of deleted ranges, and the overhead per range.
const RANGES_BYTES_MAX: usize = 64 << 20;
const RANGE_BYTES: usize = 96;

/// The last write of a key.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// The number of the write.
    at: u64,
    /// The value's length; `None` if the key was deleted.
    found: Option<u64>,
}

/// A deleted range; its first key is the key of the map.
#[derive(Debug)]
struct Removed {
    end: Vec<u8>,
    at: u64,
}

/// The known outcomes so far.
#[derive(Debug)]
pub(super) struct Outcomes {
    /// By column family and hash.
    known: HashMap<(u32, u64), Known>,
    /// By column family. Ranges of a family do not overlap.
    removed: HashMap<u32, BTreeMap<Vec<u8>, Removed>>,
    range_bytes: usize,
    writes: u64,
    keys_max: usize,
    range_bytes_max: usize,
}

impl Outcomes {
    pub fn new() -> Outcomes {
        Outcomes {
            known: HashMap::new(),
            removed: HashMap::new(),
            range_bytes: 0,
            writes: 0,
            keys_max: KEYS_MAX,
            range_bytes_max: RANGES_BYTES_MAX,
        }
    }

    /// Returns a lookup of the key, with its outcome if that is known.
    pub fn get(&self, family: u32, key: &[u8], hash: u64) -> Detail<'static> {
        let known = self.known.get(&(family, hash)).filter(|known| known.at > self.removed_at(family, key));
        Detail::Get(known.map(|known| known.found))
    }

    /// Notes a write of the key with this hash: the length of its value, or `None` for a deletion.
    pub fn wrote(&mut self, family: u32, hash: u64, found: Option<u64>) {
        self.writes += 1;
        let known = Known { at: self.writes, found };
        if self.known.len() < self.keys_max {
            self.known.insert((family, hash), known);
        } else if let Some(slot) = self.known.get_mut(&(family, hash)) {
            *slot = known;
        }
    }

    /// Forgets the outcome of a key.
    pub fn forget(&mut self, family: u32, hash: u64) {
        self.known.remove(&(family, hash));
    }

    /// Notes that a range was deleted. The outcomes of all of its keys become unknown, because
    /// checking which of them existed would be too expensive.
    pub fn removed(&mut self, family: u32, start: &[u8], end: &[u8]) {
        if start >= end || self.known.is_empty() {
            return;
        }
        self.writes += 1;
        let ranges = self.removed.entry(family).or_default();
        let mut rest = None;
        let before = ranges.range_mut::<[u8], _>((Unbounded, Excluded(start))).next_back();
        if let Some((_, before)) = before.filter(|(_, before)| before.end[..] > *start) {
            let after = std::mem::replace(&mut before.end, start.to_vec());
            self.range_bytes = self.range_bytes + start.len() - after.len();
            rest = Some(Removed { end: after, at: before.at });
        }
        // BOUND: each range is removed once, and a new range adds at most two more.
        while let Some(key) = first_within(ranges, start, end) {
            rest = ranges.remove(&key);
            self.range_bytes -= RANGE_BYTES + key.len() + rest.as_ref().map_or(0, |range| range.end.len());
        }
        let rest = rest.filter(|range| range.end[..] > *end).map(|range| (end.to_vec(), range));
        let new = (start.to_vec(), Removed { end: end.to_vec(), at: self.writes });
        for (start, range) in rest.into_iter().chain([new]) {
            self.range_bytes += RANGE_BYTES + start.len() + range.end.len();
            ranges.insert(start, range);
        }
        if self.range_bytes > self.range_bytes_max {
            // Without known keys, there is nothing to hide.
            self.known.clear();
            self.removed.clear();
            self.range_bytes = 0;
        }
    }

    /// Returns the write number of the range deletion that covers this key; 0 if there is none.
    fn removed_at(&self, family: u32, key: &[u8]) -> u64 {
        let Some(ranges) = self.removed.get(&family) else { return 0 };
        let last = ranges.range::<[u8], _>((Unbounded, Included(key))).next_back();
        last.filter(|(_, range)| *key < range.end[..]).map_or(0, |(_, range)| range.at)
    }
}

fn first_within(ranges: &BTreeMap<Vec<u8>, Removed>, start: &[u8], end: &[u8]) -> Option<Vec<u8>> {
    ranges.range::<[u8], _>((Included(start), Excluded(end))).next().map(|(key, _)| key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(key: u8) -> u64 {
        u64::from(key)
    }

    fn outcomes(keys_max: usize, range_bytes_max: usize) -> Outcomes {
        Outcomes { keys_max, range_bytes_max, ..Outcomes::new() }
    }

    /// Goal: known outcomes equal those of a table of all keys. Method: 5,000 pseudorandom writes,
    /// deletions, merges and range deletions over two families of fifty keys, compared with such a
    /// table.
    #[test]
    fn outcomes_are_those_of_a_table() {
        let mut found = outcomes(1000, 1 << 20);
        let mut table: BTreeMap<(u32, u8), Option<u64>> = BTreeMap::new();
        let mut state = 7_u64;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for number in 0..5_000 {
            let (family, key) = (below(2) as u32, below(50) as u8);
            match below(6) {
                0 | 1 => {
                    found.wrote(family, hash(key), Some(number));
                    table.insert((family, key), Some(number));
                }
                2 => {
                    found.wrote(family, hash(key), None);
                    table.insert((family, key), None);
                }
                3 => {
                    found.forget(family, hash(key));
                    table.remove(&(family, key));
                }
                4 => {
                    let end = below(50) as u8;
                    found.removed(family, &[key], &[end]);
                    table.retain(|(of, known), _| *of != family || *known < key || *known >= end);
                }
                _ => {}
            }
            for key in 0..50 {
                let expected = Detail::Get(table.get(&(family, key)).copied());
                assert_eq!(found.get(family, &[key], hash(key)), expected, "after {number}: {key}");
            }
        }
        let bytes = |(start, range): (&Vec<u8>, &Removed)| RANGE_BYTES + start.len() + range.end.len();
        let kept: usize = found.removed.values().flat_map(|ranges| ranges.iter().map(bytes)).sum();
        assert!(kept > 0 && kept == found.range_bytes);
    }

    /// Goal: memory is bounded, and outcomes that do not fit are unknown. Method: more keys than
    /// the limit, of which the first ones stay known; more ranges than the limit, after which only
    /// later writes are known.
    #[test]
    fn outcomes_beyond_the_memory_limit_are_unknown() {
        let mut outcomes = outcomes(3, 10 * RANGE_BYTES);
        (0..5).for_each(|key| outcomes.wrote(0, hash(key), Some(1)));
        outcomes.wrote(0, hash(1), None);
        let found = |outcomes: &Outcomes| [0, 1, 3, 4].map(|key| outcomes.get(0, &[key], hash(key)));
        let unknown = Detail::Get(None);
        assert_eq!(found(&outcomes), [Detail::Get(Some(Some(1))), Detail::Get(Some(None)), unknown, unknown]);
        (100..120).for_each(|key| outcomes.removed(0, &[key], &[key + 1]));
        assert_eq!(found(&outcomes), [unknown; 4]);
        assert!(outcomes.range_bytes <= 10 * RANGE_BYTES);
        outcomes.wrote(0, hash(4), Some(9));
        assert_eq!(found(&outcomes)[3], Detail::Get(Some(Some(9))));
    }
}
