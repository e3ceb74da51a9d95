//! The test cases: operation lists that cover every corner of the format, and a model of their
//! results.

use std::collections::BTreeMap;

use cairn_vfs::{Rng, SeededRng};

/// One operation on a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Gives a key a value.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
}

impl Op {
    /// Returns the size of key and value.
    pub fn len(&self) -> usize {
        match self {
            Op::Put(key, value) => key.len() + value.len(),
            Op::Delete(key) => key.len(),
        }
    }
}

/// How to write a pair of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The subject of the case, for messages.
    pub name: &'static str,
    /// `NONE`, `SNAPPY` or `ZSTD`.
    pub compression: &'static str,
    /// Size of a block before compression, in bytes.
    pub block: u32,
    /// Width of a hash: 4 or 8.
    pub hash_bytes: u32,
    /// The seed of the hash, never 0, because Java would choose a random one.
    pub seed: u32,
}

/// All of Sparkey's compressions.
pub const COMPRESSIONS: [&str; 3] = ["NONE", "SNAPPY", "ZSTD"];

/// Returns a case for every compression with both hash widths.
pub fn shapes(name: &'static str, block: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, compression) in (0_u32..).zip(COMPRESSIONS) {
        for hash_bytes in [4, 8] {
            cases.push(Case { name, compression, block, hash_bytes, seed: 1 + 10 * index + hash_bytes });
        }
    }
    cases
}

/// Returns the small operation lists, by name.
pub fn small() -> Vec<(&'static str, Vec<Op>)> {
    let put = |key: &str, value: &str| Op::Put(key.into(), value.into());
    let delete = |key: &str| Op::Delete(key.into());
    vec![
        ("empty", vec![]),
        ("one entry", vec![put("key", "value")]),
        ("overwrites", vec![put("a", "1"), put("b", "2"), put("a", "333"), put("a", ""), put("b", "22")]),
        (
            "deletes",
            vec![put("a", "1"), put("bb", "22"), put("a", "333"), delete("bb"), put("ccc", ""), delete("x")],
        ),
        ("all deleted", vec![put("a", "1"), put("b", "2"), delete("b"), delete("a"), delete("a")]),
        ("back again", vec![put("a", "1"), delete("a"), put("a", "2"), delete("a"), put("a", "3")]),
        ("empty key", vec![put("", "of the empty key"), put("a", ""), put("b", "2")]),
        ("empty key and value", vec![put("", ""), put("a", ""), delete("a"), put("c", "")]),
        ("only deletes", vec![delete(""), delete("")]),
        ("lengths around a varint's end", around_varints()),
    ]
}

/// Returns keys and values with lengths just below and above each length at which a varint grows by
/// a byte.
fn around_varints() -> Vec<Op> {
    let lengths = [126_usize, 127, 128, 129, 16_382, 16_383, 16_384, 16_385];
    let keys = lengths.iter().map(|&len| Op::Put(vec![b'k'; len], b"value".to_vec()));
    let values = lengths.iter().map(|&len| Op::Put(format!("v{len}").into_bytes(), vec![b'v'; len]));
    let deletes = [127, 16_383].map(|len| Op::Delete(vec![b'k'; len]));
    keys.chain(values).chain(deletes).collect()
}

/// Returns `count` random operations over keys that often recur: 15 % deletes, values from empty to
/// longer than a block, some of them compressible.
pub fn random(seed: u64, count: u64) -> Vec<Op> {
    let mut rng = SeededRng::new(seed);
    let mut ops = Vec::new();
    for _ in 0..count {
        let number = rng.below(count / 3 + 1);
        let mut key = format!("key {number}").into_bytes();
        if number.is_multiple_of(50) {
            key.resize(key.len() + 300, b'+');
        }
        if rng.chance(0.15) {
            ops.push(Op::Delete(key));
            continue;
        }
        let len = match rng.below(20) {
            0 => 0,
            1..17 => rng.below(60),
            17..19 => rng.below(700),
            _ => rng.below(9_000),
        };
        let mut value = vec![b'.'; len as usize];
        if rng.chance(0.5) {
            rng.fill(&mut value);
        }
        ops.push(Op::Put(key, value));
    }
    ops
}

/// Returns values of 1 MiB among small ones, one that compresses well and one that does not.
pub fn large_values() -> Vec<Op> {
    let mut noise = vec![0; 1 << 20];
    SeededRng::new(7).fill(&mut noise);
    let put = |key: &str, value: Vec<u8>| Op::Put(key.into(), value);
    vec![
        put("before", b"small".to_vec()),
        put("noise", noise),
        put("between", b"small".to_vec()),
        put("zeros", vec![0; 1 << 20]),
        put("one more byte", vec![b'x'; (1 << 20) + 1]),
        put("after", b"small".to_vec()),
    ]
}

/// Returns `count` entries as in a benchmark: short keys and values, each key once.
pub fn plain(count: u64) -> Vec<Op> {
    (0..count).map(|i| Op::Put(format!("key_{i}").into_bytes(), format!("value_{i}").into_bytes())).collect()
}

/// Returns entries so small that a block holds thousands of them. The number of an entry in its
/// block then takes so many bits of an address that a log of some hundred KiB needs addresses of 8
/// bytes.
pub fn tiny(seed: u64, count: u64) -> Vec<Op> {
    let mut rng = SeededRng::new(seed);
    (0..count).map(|_| Op::Put(rng.next_u64().to_le_bytes()[..5].to_vec(), Vec::new())).collect()
}

/// Returns the content of a store after `ops`.
pub fn model(ops: &[Op]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut live = BTreeMap::new();
    for op in ops {
        match op {
            Op::Put(key, value) => live.insert(key.clone(), value.clone()),
            Op::Delete(key) => live.remove(key),
        };
    }
    live
}

/// Returns the live entries in log order.
pub fn live_in_log_order(ops: &[Op]) -> Vec<Op> {
    let mut last = BTreeMap::new();
    for (index, op) in ops.iter().enumerate() {
        let (Op::Put(key, _) | Op::Delete(key)) = op;
        last.insert(key, index);
    }
    let live = ops.iter().enumerate().filter(|(index, op)| match op {
        Op::Put(key, _) => last[key] == *index,
        Op::Delete(_) => false,
    });
    live.map(|(_, op)| op.clone()).collect()
}

/// Returns the operations that a log records. Writers drop a delete of a key longer than any key
/// put before it, because no such key can exist.
pub fn recorded(ops: &[Op]) -> Vec<Op> {
    let mut longest = 0;
    let kept = ops.iter().filter(|op| match op {
        Op::Put(key, _) => {
            longest = longest.max(key.len());
            true
        }
        Op::Delete(key) => key.len() <= longest,
    });
    kept.cloned().collect()
}

/// Returns every key in `ops`, and as many absent keys.
pub fn questions(ops: &[Op]) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = ops
        .iter()
        .map(|op| match op {
            Op::Put(key, _) | Op::Delete(key) => key.clone(),
        })
        .collect();
    keys.sort();
    keys.dedup();
    let absent: Vec<Vec<u8>> = keys.iter().map(|key| [key.as_slice(), b"?"].concat()).collect();
    keys.extend(absent);
    keys.push(Vec::new());
    keys
}
