//! The model: two sorted maps, and changes to them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use cairn_kv::Operation;
use cairn_vfs::{Rng, SeededRng};

/// The contents of both keyspaces.
pub type State = [Model; 2];

/// One write to one keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl Change {
    pub fn operation(&self) -> Operation<'_> {
        match self {
            Change::Put(key, value) => Operation::Put { key, value },
            Change::Delete(key) => Operation::Delete { key },
            Change::Merge(key, operand) => Operation::Merge { key, operand },
            Change::DeleteRange(start, end) => Operation::DeleteRange { start, end },
        }
    }

    /// Draws a random change. `tag` is in every value, so that no two writes are equal.
    pub fn draw(rng: &mut SeededRng, tag: u64) -> Change {
        match rng.below(100) {
            0..64 => Change::Put(key(rng), value(rng, tag)),
            64..80 => Change::Delete(key(rng)),
            80..95 => Change::Merge(key(rng), format!("+{tag}").into_bytes()),
            _ => {
                let (a, b) = (key(rng), key(rng));
                let (start, end) = if a <= b { (a, b) } else { (b, a) };
                Change::DeleteRange(start, end)
            }
        }
    }
}

/// Draws from few keys, so that most writes overwrite an earlier one.
pub fn key(rng: &mut SeededRng) -> Vec<u8> {
    match rng.below(12) {
        0 => vec![b'k'; rng.below(3) as usize],
        1 => format!("a beginning that many have in common {}", rng.below(8)).into_bytes(),
        _ => format!("key {:02}", rng.below(40)).into_bytes(),
    }
}

fn value(rng: &mut SeededRng, tag: u64) -> Vec<u8> {
    let mut value = format!("{tag}:").into_bytes();
    let len = [0, 10, 100, 400, 900][rng.below(5) as usize];
    let mut noise = vec![0; len];
    rng.fill(&mut noise[..len / 2]);
    value.extend(noise);
    value
}

/// A sorted map that maintains a digest of its contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    map: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The sum of all entries' hashes.
    digest: u64,
}

impl Model {
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Put(key, value) => self.set(key, Some(value.clone())),
            Change::Delete(key) => self.set(key, None),
            Change::Merge(key, operand) => {
                let mut value = self.map.get(key).cloned().unwrap_or_default();
                value.extend_from_slice(operand);
                self.set(key, Some(value));
            }
            Change::DeleteRange(start, end) => {
                let keys: Vec<_> =
                    self.map.range(start.clone()..end.clone()).map(|(key, _)| key.clone()).collect();
                keys.iter().for_each(|key| self.set(key, None));
            }
        }
    }

    fn set(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        let new = value.as_ref().map_or(0, |value| hash(key, value));
        let old = match value {
            Some(value) => self.map.insert(key.to_vec(), value),
            None => self.map.remove(key),
        };
        let old = old.map_or(0, |old| hash(key, &old));
        self.digest = self.digest.wrapping_add(new).wrapping_sub(old);
    }

    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.map.get(key).map(Vec::as_slice)
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.map.iter()
    }

    /// Describes the differences between two models, for messages.
    pub fn difference(&self, other: &Model) -> String {
        let text = |value: Option<&[u8]>| {
            value.map(|value| String::from_utf8_lossy(&value[..value.len().min(24)]).into_owned())
        };
        let keys: std::collections::BTreeSet<_> = self.map.keys().chain(other.map.keys()).collect();
        let different = keys.into_iter().filter(|key| self.get(key) != other.get(key));
        different
            .map(|key| {
                format!(
                    "{}: {:?} != {:?}; ",
                    String::from_utf8_lossy(key),
                    text(self.get(key)),
                    text(other.get(key))
                )
            })
            .collect()
    }
}

fn hash(key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}
