//! Runs the bodies of the fuzz targets on stable Rust, with sound inputs and seeded mutations of
//! them.
//!
//! `CAIRN_SEED` selects other mutations, `CAIRN_SOAK=1` runs fifty times as many, and
//! `CAIRN_WRITE_CORPUS=1` writes the sound inputs to the corpus folders of cargo-fuzz.
#![allow(clippy::disallowed_methods, reason = "the corpus lies on the real disk")]

use cairn_vfs::{Rng, SeededRng};

use super::super::fuzz;
use super::*;
use cairn_codec::filter::FilterBuilder;

/// Numbers at which arithmetic often goes wrong.
const EDGES: [u64; 10] = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];

fn mutate(input: &mut Vec<u8>, rng: &mut SeededRng) {
    for _ in 0..1 + rng.below(4) {
        if input.is_empty() {
            input.push(0);
        }
        let len = input.len() as u64;
        // Trailers and footers are at the end, so half of the mutations hit the last bytes.
        let at = if rng.chance(0.5) { rng.below(len) } else { len - 1 - rng.below(len.min(100)) } as usize;
        match rng.below(6) {
            0 | 1 => input[at] ^= 1 << rng.below(8),
            2 => input[at] = rng.next_u64() as u8,
            3 => {
                let edge = EDGES[rng.below(EDGES.len() as u64) as usize];
                let width = [1, 2, 4, 8][rng.below(4) as usize];
                input[at..].iter_mut().zip(&edge.to_le_bytes()[..width]).for_each(|(to, from)| *to = *from);
            }
            4 => {
                let from = rng.below(len) as usize;
                let count = (1 + rng.below(64) as usize).min(input.len() - from.max(at));
                input.copy_within(from..from + count, at);
            }
            _ if rng.chance(0.3) => input.truncate(at + 1),
            _ => _ = input.remove(at),
        }
    }
}

fn run(name: &str, seeds: &[Vec<u8>], rounds: u64, body: fn(&[u8])) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("CAIRN_SEED").unwrap_or(1);
    let rounds = rounds * if number("CAIRN_SOAK").is_some_and(|soak| soak > 0) { 50 } else { 1 };
    seeds.iter().for_each(|input| body(input));
    if std::env::var_os("CAIRN_WRITE_CORPUS").is_some() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(format!("kv_{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        let write =
            |(at, bytes): (usize, &Vec<u8>)| std::fs::write(folder.join(format!("{at:02}")), bytes).unwrap();
        seeds.iter().enumerate().for_each(write);
    }
    for round in 0..rounds {
        let mut rng = SeededRng::new(seed ^ round << 8).fork(name);
        let mut input = seeds[rng.below(seeds.len() as u64) as usize].clone();
        mutate(&mut input, &mut rng);
        let result = std::panic::catch_unwind(|| body(&input));
        assert!(result.is_ok(), "{name}: CAIRN_SEED={seed}, round {round}");
    }
    println!("{name}: {rounds} mutations of {} inputs, CAIRN_SEED={seed}", seeds.len());
}

/// Returns sound tables of each compression and filter, small ones and ones with several
/// partitions.
fn tables() -> Vec<Vec<u8>> {
    let mut tables = Vec::new();
    for (at, compression) in compressions().into_iter().enumerate() {
        for count in [3, 200] {
            let fs = disk();
            let filter = Some(if at % 2 == 0 { FilterPolicy::bloom(8.0) } else { FilterPolicy::ribbon(6.0) });
            let prefix = Some(PrefixExtractor::Fixed(6));
            let small = TableOptions { block_bytes: 512, partition_bytes: 256, ..TableOptions::default() };
            let options = TableOptions { compression, filter, prefix, ..small };
            write(&fs, "t", fuzz::NUMBER, &options, &numbered(count, 12));
            let bytes =
                fs.open(Path::new("t"), cairn_vfs::OpenOptions::read()).unwrap().map().unwrap().to_vec();
            tables.extend([1, 2].map(|how| [&[how][..], &bytes].concat()));
        }
    }
    tables
}

/// Goal: no forged table makes a reader panic, loop endlessly or leak memory.
/// Method: mutations of sound tables, most with corrected checksums.
#[test]
fn forged_tables() {
    run("table", &tables(), 6000, fuzz::table);
}

/// Goal: no forged block or filter makes a reader panic or loop endlessly.
/// Method: mutations of sound ones.
#[test]
fn forged_blocks_and_filters() {
    let mut blocks = Vec::new();
    let mut filters = Vec::new();
    for interval in [1, 4, 16] {
        let mut block = crate::table::block::BlockBuilder::new(interval);
        let mut last: Option<Vec<u8>> = None;
        for ((key, seqno), (kind, value)) in &numbered(60, 7) {
            let shared = match &last {
                Some(last) if last == key => None,
                Some(last) => Some(crate::table::block::common_len(last, key)),
                None => Some(0),
            };
            block.add(key, shared, seqno.0, *kind, value);
            last = Some(key.clone());
        }
        let mut bytes = Vec::new();
        block.finish(&mut bytes);
        blocks.push(bytes);
        for policy in [FilterPolicy::bloom(f64::from(interval)), FilterPolicy::ribbon(f64::from(interval))] {
            let mut builder = FilterBuilder::new(policy);
            (0..300u64).for_each(|n| builder.add(hash_key(&n.to_le_bytes())));
            let mut bytes = Vec::new();
            builder.finish(&mut bytes).unwrap();
            filters.push(bytes);
        }
    }
    run("block", &blocks, 20_000, fuzz::block);
    run("filter", &filters, 20_000, fuzz::filter);
}
