//! The records of a run, in memory before any clock starts.

use std::collections::HashSet;

use super::{Arena, KeyShape, Records, ValueShape};

/// Distinct keys with their values, in the order in which stores receive them.
#[derive(Debug, Clone)]
pub struct Dataset {
    name: String,
    keys: Arena,
    values: Arena,
    /// Shape of the keys, from which absent keys are generated; `None` for real records.
    shape: Option<KeyShape>,
    left_out: Option<String>,
}

impl Dataset {
    /// Name of generated data.
    pub const SYNTHETIC: &str = "synthetic";

    /// Generates records `0..entries` of the given shapes. Costs 16 bytes per entry in addition to
    /// the bytes themselves.
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

    /// Creates a data set from records that were read from a file.
    pub fn real(name: &str, records: Records) -> Self {
        let left_out = records.left_out();
        Dataset { name: name.to_owned(), keys: records.keys, values: records.values, shape: None, left_out }
    }

    /// Returns `synthetic`, or the name of the real data.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes the lines of a file that are not in the data; see [`Records::left_out`].
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the total length of all keys and values: the size of a store without overhead.
    pub fn total_bytes(&self) -> u64 {
        (self.keys.total_bytes() + self.values.total_bytes()) as u64
    }

    /// Returns the mean length of a value, rounded.
    pub fn mean_value_bytes(&self) -> u32 {
        let count = self.values.len().max(1);
        ((self.values.total_bytes() + count / 2) / count) as u32
    }

    /// Returns key `index`, which must be below `len`.
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        self.keys.get(index)
    }

    /// Returns the value of key `index`.
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        self.values.get(index)
    }

    /// Iterates over keys and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.keys.iter().zip(self.values.iter())
    }

    /// Returns the record numbers ordered by key, for stores that load sorted input fastest.
    pub fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.key(a as usize).cmp(self.key(b as usize)));
        order
    }

    /// Returns a generator of keys that are not in the data but resemble it: the numbers after the
    /// last one, or real keys with one byte changed.
    pub(super) fn absent_keys(&self) -> AbsentKeys<'_> {
        let taken = match self.shape {
            Some(_) => HashSet::new(),
            None => self.keys.iter().collect(),
        };
        AbsentKeys { dataset: self, taken }
    }
}

/// Generates absent keys; see [`Dataset::absent_keys`].
pub(super) struct AbsentKeys<'a> {
    dataset: &'a Dataset,
    taken: HashSet<&'a [u8]>,
}

impl AbsentKeys<'_> {
    /// Appends the absent key for record `index`.
    pub(super) fn write(&self, index: usize, out: &mut Vec<u8>) {
        if let Some(shape) = &self.dataset.shape {
            return shape.write((self.dataset.len() + index) as u64, out);
        }
        let start = out.len();
        out.extend_from_slice(self.dataset.key(index));
        let last = out.len() - 1;
        // BOUND: 255 changes of the last byte, then longer keys; a key longer than all others is
        // certainly absent.
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
