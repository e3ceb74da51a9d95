//! The log's fuzz target on stable Rust: the committed corpus, and seeded mutations of it.
//!
//! `CAIRN_SEED` selects other mutations, `CAIRN_ROUND` a single one of them, and `CAIRN_SOAK=1`
//! runs fifty times as many. `CAIRN_WRITE_CORPUS=1` rewrites the corpus after a change of the
//! format.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a test program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Fs, MemFs, OpenOptions, Rng, SeededRng};
use cairn_wal::{Log, Lsn, Options, Recovery, RecoveryOptions};

#[path = "../../../fuzz/src/wal.rs"]
mod target;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wal_segments")
}

fn corpus() -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Goal: no interesting input of the past breaks a recovery. Method: every file of the corpus.
#[test]
fn corpus_breaks_no_recovery() {
    if std::env::var_os("CAIRN_WRITE_CORPUS").is_some() {
        write_corpus();
    }
    let corpus = corpus();
    assert!(corpus.len() >= 4);
    corpus.iter().for_each(|bytes| target::wal_segments(bytes));
}

/// Goal: no similar input breaks a recovery either. Method: flipped bits, numbers at the edges of
/// arithmetic, blocks copied and cut.
#[test]
fn mutated_corpus_breaks_no_recovery() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("CAIRN_SEED").unwrap_or(1);
    let rounds = if std::env::var_os("CAIRN_SOAK").is_some() { 500_000 } else { 10_000 };
    let corpus = corpus();
    println!("{rounds} mutations of {} files, CAIRN_SEED={seed}", corpus.len());
    for round in number("CAIRN_ROUND").map_or(0..rounds, |round| round..round + 1) {
        let mut rng = SeededRng::new(seed ^ round << 8);
        let mut input = corpus[rng.below(corpus.len() as u64) as usize].clone();
        for _ in 0..1 + rng.below(4) {
            mutate(&mut input, &mut rng);
        }
        let result = std::panic::catch_unwind(|| target::wal_segments(&input));
        assert!(result.is_ok(), "CAIRN_SEED={seed} CAIRN_ROUND={round}");
    }
}

fn mutate(input: &mut Vec<u8>, rng: &mut SeededRng) {
    const EDGES: [u32; 8] = [0, 1, 7, 8, 4095, 0x4000_0000, 0x7fff_ffff, u32::MAX];
    // Mutate written bytes, in headers and records, instead of the zeros between them.
    let written: Vec<usize> = (0..input.len()).filter(|&at| input[at] != 0).collect();
    let Some(&at) = written.get(rng.below(written.len() as u64) as usize) else { return };
    match rng.below(6) {
        0 | 1 => input[at] ^= 1 << rng.below(8),
        2 | 3 => {
            let value = EDGES[rng.below(8) as usize].wrapping_sub(rng.below(2) as u32);
            let at = at / 4 * 4 + 3;
            if let Some(place) = input.get_mut(at..at + 4) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        4 => {
            let (from, len) = (rng.below(input.len() as u64) as usize, rng.below(200) as usize);
            let len = len.min(input.len() - from.max(at));
            input.copy_within(from..from + len, at);
        }
        _ => input.truncate(at),
    }
}

fn write_corpus() {
    let make = |name: &str, flags: u8, lives: u64, records: &[usize], close: bool| {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let dir = Path::new("log");
        for life in 0..lives {
            let recovery = Recovery::open(&fs, dir, Lsn::ZERO, &RecoveryOptions::default()).unwrap();
            let options = Options::default().segment_bytes(8192).window_bytes(4096).background(false);
            let tail = recovery.finish().unwrap();
            let (log, mut appender) = Log::open(&fs, &options, tail, &mut SeededRng::new(life)).unwrap();
            for (index, len) in records.iter().enumerate() {
                let lsn = appender.append(&[&vec![index as u8 + 1; *len]]).unwrap();
                if index % 3 == 1 {
                    log.sync_to(lsn).unwrap();
                }
            }
            drop(appender.reserve(20).unwrap());
            if close {
                appender.close().unwrap();
            }
        }
        let read = |name: &str| {
            let file = fs.open(Path::new(name), OpenOptions::read()).ok()?;
            let mut bytes = file.map().unwrap().to_vec();
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(used.next_multiple_of(8));
            Some(bytes)
        };
        let (first, second) = (read("log/000001.wal").unwrap(), read("log/000002.wal").unwrap_or_default());
        let len = (first.len() / 8) as u16;
        let all = [&[flags][..], &len.to_le_bytes(), &first, &second].concat();
        std::fs::create_dir_all(folder()).unwrap();
        std::fs::write(folder().join(name), all).unwrap();
    };
    make("empty", 1, 1, &[], false);
    make("closed", 0, 1, &[10, 0, 200, 33, 5], true);
    make("reopened", 1, 2, &[1, 50, 7, 8, 9, 300], false);
    make("rotated", 1, 1, &[900, 800, 700, 600, 500, 400, 300, 200], false);
    make("large", 0, 1, &[30, 6000, 3], false);
}
