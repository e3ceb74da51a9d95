//! Compares two indexes for Cairn's table: a line of fingerprints and offsets, and a minimal
//! perfect hash over an array of them. Prints nanoseconds per lookup and bytes per entry for both,
//! on the same keys and the same record bytes, in interleaved rounds. The result is described in
//! `docs/src/design/table.md`.
//!
//! `cargo run --release --manifest-path testing/index-candidates/Cargo.toml -- 1000000`

use std::hint::black_box;
use std::time::Instant;

use cairn_hash::table::{BuildOptions, Builder, Mode, Reader, ReaderOptions, Trust};
use ptr_hash::{FastPtrHash, PtrHashParams, hash::NoHash};
use xxhash_rust::xxh3::xxh3_64;

const ROUNDS: usize = 7;
const LOOKUPS: usize = 1_000_000;

/// A perfect hash into slots of 16 bits of fingerprint and 32 bits of offset: the minimum for a
/// lookup to reject an absent key and to find a record of any size.
struct Perfect {
    hash: FastPtrHash<NoHash, u64>,
    slots: Vec<[u8; 6]>,
    data: Vec<u8>,
}

impl Perfect {
    fn build(records: &[(String, String)]) -> Perfect {
        let hashes: Vec<u64> = records.iter().map(|(key, _)| xxh3_64(key.as_bytes())).collect();
        let hash = <FastPtrHash<NoHash, u64>>::new(&hashes, PtrHashParams::default_fast());
        let mut slots = vec![[0; 6]; hash.max_index()];
        let mut data = Vec::new();
        for ((key, value), h) in records.iter().zip(&hashes) {
            let slot = &mut slots[hash.index_no_remap(h)];
            slot[..2].copy_from_slice(&(*h as u16).to_le_bytes());
            slot[2..].copy_from_slice(&(data.len() as u32).to_le_bytes());
            data.extend_from_slice(&[key.len() as u8, value.len() as u8]);
            data.extend_from_slice(key.as_bytes());
            data.extend_from_slice(value.as_bytes());
        }
        Perfect { hash, slots, data }
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let h = xxh3_64(key);
        let slot = self.slots[self.hash.index_no_remap(&h)];
        if u16::from_le_bytes([slot[0], slot[1]]) != h as u16 {
            return None;
        }
        let at = u32::from_le_bytes([slot[2], slot[3], slot[4], slot[5]]) as usize;
        let record = &self.data[at..];
        let (key_bytes, value_bytes) = (record[0] as usize, record[1] as usize);
        (&record[2..2 + key_bytes] == key).then(|| &record[2 + key_bytes..2 + key_bytes + value_bytes])
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let entries: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let records: Vec<_> = (0..entries).map(|n| (format!("key_{n}"), format!("value_{n}"))).collect();
    let path = std::env::temp_dir().join(format!("index-candidates-{}.cairn", std::process::id()));
    let mut builder = Builder::create(&path, BuildOptions::default()).expect("a builder");
    records.iter().for_each(|(key, value)| builder.put(key.as_bytes(), value.as_bytes()).expect("put"));
    let summary = builder.finish().expect("a table");
    let options = ReaderOptions::default().mode(Mode::Heap);
    let checked = Reader::open(&path, options).expect("a reader");
    let unchecked = Reader::open(&path, options.trust(Trust::Unchecked)).expect("a reader");
    let perfect = Perfect::build(&records);

    // Lookup keys are in one arena, in the order of the lookups, so that reading a key costs no
    // cache miss.
    let mut arena = Vec::new();
    let mut spans = Vec::new();
    let mut state = 88_172_645_463_325_252u64;
    for index in 0..2 * LOOKUPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let prefix = if index < LOOKUPS { "key" } else { "Key" };
        let start = arena.len();
        arena.extend_from_slice(format!("{prefix}_{}", state % entries).as_bytes());
        spans.push(start..arena.len());
    }
    let mut samples = [const { Vec::new() }; 6];
    for _ in 0..ROUNDS {
        for (present, spans) in [&spans[..LOOKUPS], &spans[LOOKUPS..]].into_iter().enumerate() {
            let mut time = |contender: usize, get: &dyn Fn(&[u8]) -> usize| {
                let start = Instant::now();
                let found: usize = spans.iter().map(|span| get(&arena[span.clone()])).sum();
                assert_eq!(black_box(found) > 0, present == 0);
                samples[contender * 2 + present].push(start.elapsed().as_nanos() as f64 / LOOKUPS as f64);
            };
            time(0, &|key| checked.get(key).expect("a sound table").map_or(0, |value| value.len()));
            time(1, &|key| unchecked.get(key).expect("a sound table").map_or(0, |value| value.len()));
            time(2, &|key| perfect.get(key).map_or(0, <[u8]>::len));
        }
    }
    let bits = perfect.hash.bits_per_element();
    let perfect_bytes = (bits.0 + bits.1) / 8.0 + 6.0 * perfect.slots.len() as f64 / entries as f64;
    let line_bytes = summary.index_bytes as f64 / entries as f64;
    println!("{entries} entries, medians of {ROUNDS} rounds of {LOOKUPS} lookups");
    for (name, bytes, contender) in [
        ("lines, checked pages", line_bytes, 0),
        ("lines, unchecked", line_bytes, 1),
        ("perfect hash + slots", perfect_bytes, 2),
    ] {
        let [present, absent] = [0, 1].map(|keys| median(samples[contender * 2 + keys].clone()));
        println!("{name:22} {bytes:5.2} B/entry  present {present:6.1} ns  absent {absent:6.1} ns");
    }
    std::fs::remove_file(&path).expect("the table is ours");
}
