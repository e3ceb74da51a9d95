//! The model, and the steps performed on it and on the store.

use std::collections::BTreeMap;

use cairn_vfs::{Rng, SeededRng};

pub type Key = Vec<u8>;
pub type Value = Vec<u8>;

/// A sorted map in which merging appends.
#[derive(Debug, Clone, Default)]
pub struct Model {
    map: BTreeMap<Key, Value>,
}

impl Model {
    pub fn put(&mut self, key: Key, value: Value) {
        self.map.insert(key, value);
    }

    pub fn delete(&mut self, key: &Key) {
        self.map.remove(key);
    }

    pub fn merge(&mut self, key: Key, value: &Value) {
        self.map.entry(key).or_default().extend_from_slice(value);
    }

    pub fn delete_range(&mut self, start: &Key, end: &Key) {
        self.map.retain(|key, _| !(start <= key && key < end));
    }

    pub fn get(&self, key: &Key) -> Option<Value> {
        self.map.get(key).cloned()
    }

    pub fn range(&self, from: &Key, to: &Key) -> Vec<(Key, Value)> {
        self.map
            .iter()
            .filter(|(key, _)| from <= *key && *key < to)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    Put(Key, Value),
    Delete(Key),
    Merge(Key, Value),
    DeleteRange(Key, Key),
    Batch(Vec<(Key, Option<Value>)>),
    Get(Key),
    MultiGet(Vec<Key>),
    Scan(Key, Key, bool),
    Snapshot,
    Look(Key),
    Flush,
    Compact(Key, Key),
    Reopen,
}

impl Step {
    pub fn draw(rng: &mut SeededRng) -> Step {
        match rng.below(1000) {
            0..400 => Step::Put(key(rng), value(rng)),
            400..480 => Step::Delete(key(rng)),
            480..540 => Step::Merge(key(rng), value(rng)),
            540..550 => {
                let (start, end) = range(rng);
                Step::DeleteRange(start, end)
            }
            550..620 => {
                let count = 1 + rng.below(20);
                Step::Batch((0..count).map(|_| (key(rng), rng.chance(0.8).then(|| value(rng)))).collect())
            }
            620..820 => Step::Get(key(rng)),
            820..850 => Step::MultiGet((0..rng.below(30)).map(|_| key(rng)).collect()),
            850..920 => {
                let (from, to) = range(rng);
                Step::Scan(from, to, rng.chance(0.5))
            }
            920..935 => Step::Snapshot,
            935..970 => Step::Look(key(rng)),
            970..985 => Step::Flush,
            985..990 => {
                let (from, to) = range(rng);
                Step::Compact(from, to)
            }
            _ => Step::Reopen,
        }
    }
}

fn key(rng: &mut SeededRng) -> Key {
    // Short keys that are prefixes of others, and long ones with a common prefix.
    match rng.below(4) {
        0 => (0..rng.below(4)).map(|_| rng.below(3) as u8).collect(),
        1 => format!("a long common beginning {:03}", rng.below(200)).into_bytes(),
        _ => format!("k{:03}", rng.below(400)).into_bytes(),
    }
}

fn value(rng: &mut SeededRng) -> Value {
    let len = match rng.below(20) {
        0 => 0,
        1 => 2000,
        _ => rng.below(60),
    };
    let byte = rng.below(26) as u8 + b'a';
    vec![byte; len as usize]
}

fn range(rng: &mut SeededRng) -> (Key, Key) {
    let (a, b) = (key(rng), key(rng));
    if a <= b { (a, b) } else { (b, a) }
}
