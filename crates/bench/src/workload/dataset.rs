//! The records of a run, in memory before any clock starts.

use std::collections::HashSet;

use super::{Arena, KeyShape, Records, ValueShape};

/// Distinct keys with their values, in the order in which stores receive them.
#[derive(Debug, Clone)]
pub struct Dataset {
    name: String,
    keys: Arena,
    values: Arena,
    /// How to write keys that are not there; real records have no rule for it.
    shape: Option<KeyShape>,
    left_out: Option<String>,
}

impl Dataset {
    /// The name of data that was made up.
    pub const SYNTHETIC: &str = "synthetic";

    /// Records `0..entries` of the given shapes. Costs 16 bytes an entry over the bytes themselves.
    pub fn synthetic(entries: u64, keys: &KeyShape, values: &ValueShape) -> Self {
        let count = entries as usize;
        let mut dataset = Dataset {
            name: Dataset::SYNTHETIC.to_owned(),
            keys: Arena::with_capacity(count, 0),
            values: Arena::with_capacity(count, 0),
            shape: Some(keys.clone()),
            left_out: None,
        };
        for n in 0..entries {
            dataset.keys.push_with(|out| keys.write(n, out));
            dataset.values.push_with(|out| values.write(n, out));
        }
        dataset
    }

    /// Records read from a file.
    pub fn real(name: &str, records: Records) -> Self {
        let left_out = records.left_out();
        Dataset { name: name.to_owned(), keys: records.keys, values: records.values, shape: None, left_out }
    }

    /// `synthetic`, or the name of the real data.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which lines of a file are not in the data; see [`Records::left_out`].
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// How many records.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The length of all keys and values together: what a store without overhead would need.
    pub fn total_bytes(&self) -> u64 {
        (self.keys.total_bytes() + self.values.total_bytes()) as u64
    }

    /// The mean length of a value, rounded.
    pub fn mean_value_bytes(&self) -> u32 {
        let count = self.values.len().max(1);
        ((self.values.total_bytes() + count / 2) / count) as u32
    }

    /// Key `index`, which must be under `len`.
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        self.keys.get(index)
    }

    /// The value of key `index`.
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        self.values.get(index)
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.keys.iter().zip(self.values.iter())
    }

    /// The record numbers in the order of their keys, for stores that load sorted input fastest.
    pub fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.key(a as usize).cmp(self.key(b as usize)));
        order
    }

    /// Writes keys that are not in the data but look as if they could be: the numbers after the
    /// last one, or real keys with one byte changed.
    pub(super) fn absent_keys(&self) -> AbsentKeys<'_> {
        let taken = match self.shape {
            Some(_) => HashSet::new(),
            None => self.keys.iter().collect(),
        };
        AbsentKeys { dataset: self, taken }
    }
}

/// See [`Dataset::absent_keys`].
pub(super) struct AbsentKeys<'a> {
    dataset: &'a Dataset,
    taken: HashSet<&'a [u8]>,
}

impl AbsentKeys<'_> {
    /// Appends the absent key that belongs to record `index`.
    pub(super) fn write(&self, index: usize, out: &mut Vec<u8>) {
        if let Some(shape) = &self.dataset.shape {
            return shape.write((self.dataset.len() + index) as u64, out);
        }
        let start = out.len();
        out.extend_from_slice(self.dataset.key(index));
        let last = out.len() - 1;
        // BOUND: 255 changes of the last byte, then longer keys; a key longer than all others is
        // absent for certain.
        loop {
            for change in 1..=u8::MAX {
                out[last] ^= change;
                if !self.taken.contains(&out[start..]) {
                    return;
                }
                out[last] ^= change;
            }
            out.push(b'~');
            if !self.taken.contains(&out[start..]) {
                return;
            }
        }
    }
}
