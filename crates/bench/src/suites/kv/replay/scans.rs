//! The expected results of scans. They are computed before the clock starts, because the entries
//! alone do not reveal that one is missing.
//!
//! With one thread, the contents of the store at each scan are known, and so are number and
//! contents of the entries that the scan must read. With several threads, it is known which keys
//! exist throughout the replay, and so the minimum number of entries.

use std::collections::BTreeSet;

use super::load::{KeyContent, Loaded, OperationKind};
use super::values::Bodies;

/// The expected result of one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// Exactly these entries.
    Exactly(ScanTotal),
    /// At least this many entries.
    AtLeast(u32),
}

/// The entries that were read: their number and a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ScanTotal {
    pub entries: u32,
    digest: u64,
}

impl ScanTotal {
    /// Adds an entry by the lengths and the ends of key and value. Costs about two nanoseconds, the
    /// same for every store.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let lengths = ((key.len() as u64) << 32) | value.len() as u64;
        let ends =
            head(key) ^ tail(key).rotate_left(17) ^ head(value).rotate_left(31) ^ tail(value).rotate_left(47);
        self.digest = (self.digest ^ ends ^ lengths).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.entries += 1;
    }
}

fn head(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or_else(|| short(bytes), |chunk| u64::from_le_bytes(*chunk))
}

fn tail(bytes: &[u8]) -> u64 {
    bytes.last_chunk().map_or_else(|| short(bytes), |chunk| u64::from_le_bytes(*chunk))
}

fn short(bytes: &[u8]) -> u64 {
    bytes.iter().fold(1, |all, byte| all << 8 | u64::from(*byte))
}

/// Returns the expected result of each scan, by its index.
pub(super) fn expected(loaded: &Loaded, bodies: &Bodies) -> Vec<Expected> {
    if loaded.scans == 0 {
        return Vec::new();
    }
    let mut order: Vec<u32> = (0..loaded.keys() as u32).collect();
    order.sort_unstable_by(|a, b| loaded.key(*a).cmp(loaded.key(*b)));
    let mut ranks = vec![0_u32; order.len()];
    for (rank, number) in order.iter().enumerate() {
        if let Some(place) = ranks.get_mut(*number as usize) {
            *place = rank as u32;
        }
    }
    match loaded.steps.as_slice() {
        [_] => exactly(loaded, bodies, &order, &ranks),
        _ => at_least(loaded, &order, &ranks),
    }
}

fn exactly(loaded: &Loaded, bodies: &Bodies, order: &[u32], ranks: &[u32]) -> Vec<Expected> {
    let rank_of = |number: u32| ranks.get(number as usize).copied().unwrap_or_default();
    let mut held: Vec<KeyContent> = loaded.before.clone();
    let there = held.iter().enumerate().filter(|(_, held)| held.version > 0);
    let mut live: BTreeSet<u32> = there.map(|(number, _)| rank_of(number as u32)).collect();
    let mut all = Vec::with_capacity(loaded.scans);
    for step in loaded.steps.iter().flatten() {
        let rank = rank_of(step.key);
        match step.doing {
            OperationKind::Get => {}
            OperationKind::Put | OperationKind::Delete => {
                let is_put = step.doing == OperationKind::Put;
                let now = if is_put {
                    KeyContent { version: step.version, bytes: step.amount }
                } else {
                    KeyContent::default()
                };
                if let Some(place) = held.get_mut(step.key as usize) {
                    *place = now;
                }
                _ = if is_put { live.insert(rank) } else { live.remove(&rank) };
            }
            OperationKind::Scan => {
                let mut seen = ScanTotal::default();
                for rank in live.range(rank..).take(step.amount as usize) {
                    let Some(&number) = order.get(*rank as usize) else { continue };
                    let KeyContent { version, bytes } =
                        held.get(number as usize).copied().unwrap_or_default();
                    seen.add(loaded.key(number), bodies.value(number, version, bytes));
                }
                all.push(Expected::Exactly(seen));
            }
        }
    }
    all
}

fn at_least(loaded: &Loaded, order: &[u32], ranks: &[u32]) -> Vec<Expected> {
    let mut always: Vec<bool> = loaded.before.iter().map(|held| held.version > 0).collect();
    for step in loaded.steps.iter().flatten().filter(|step| step.doing == OperationKind::Delete) {
        if let Some(place) = always.get_mut(step.key as usize) {
            *place = false;
        }
    }
    // For each rank, the number of keys from there on that exist throughout the replay.
    let mut from = vec![0_u32; order.len()];
    let mut count = 0;
    for (rank, number) in order.iter().enumerate().rev() {
        count += u32::from(always.get(*number as usize).copied().unwrap_or_default());
        if let Some(place) = from.get_mut(rank) {
            *place = count;
        }
    }
    let mut all = vec![Expected::AtLeast(0); loaded.scans];
    for step in loaded.steps.iter().flatten().filter(|step| step.doing == OperationKind::Scan) {
        let rank = ranks.get(step.key as usize).copied().unwrap_or_default();
        let least = from.get(rank as usize).copied().unwrap_or_default().min(step.amount);
        if let Some(place) = all.get_mut(step.version as usize) {
            *place = Expected::AtLeast(least);
        }
    }
    all
}

/// Returns how many entries the scans of a replay read at least.
pub(super) fn entries(expected: &[Expected]) -> u64 {
    let read = expected.iter().map(|one| match one {
        Expected::Exactly(seen) => u64::from(seen.entries),
        Expected::AtLeast(entries) => u64::from(*entries),
    });
    read.sum()
}
