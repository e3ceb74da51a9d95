//! What recording costs a user of `kv`: `cargo bench -p cairn-trace --features kv --bench recorder -- [PAIRS] [WORD]`.
//!
//! Turns of 100,000 lookups, or six times as many operations with writes among them, with and without a recorder alternate, in an order that changes from pair to pair, on one store: a
//! disturbance hits both. Printed is the median of the pairs' ratios with the interval of its ranks (95 %), and of how many keys one was recorded in
//! the end: rows with "auto" leave that to the recorder, as is the default.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cairn_kv::{Background, Db, Durability};
use cairn_trace::kv::TracedDb;
use cairn_trace::{KeyForm, Options, Recorder, Sample};
use cairn_vfs::{Rng, SeededRng, StdFs};

type Failure = Box<dyn std::error::Error>;

const ENTRIES: u64 = 100_000;
const OPERATIONS: u64 = 100_000;
/// Turns with writes are longer, so that each has a flush and the merges that follow: what falls into one of a pair and not into the other is noise.
const WRITES: u64 = 6 * OPERATIONS;
/// Of so many keys a sample follows one.
const SAMPLE: u32 = 10;
/// Pairs that do not count: caches fill, and the recorder finds its share of the keys, which takes it 50 ms for each step.
const WARM_UP: u64 = 20;

#[derive(Clone, Copy)]
enum Load {
    Get,
    Put,
    Mixed,
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key0000000000000";
    let mut rest = number;
    for digit in key.iter_mut().rev().take(13) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Nanoseconds an operation. Begins with nothing left over of the turn before: what that has still to be merged would be paid by this one.
fn turn(settled: &Db, db: &TracedDb, load: Load, seed: u64) -> Result<f64, Failure> {
    if !matches!(load, Load::Get) {
        settled.flush()?;
        settled.wait_idle()?;
    }
    let mut rng = SeededRng::new(seed);
    let value = [7_u8; 100];
    let operations = if matches!(load, Load::Get) { OPERATIONS } else { WRITES };
    let start = Instant::now();
    for _ in 0..operations {
        let number = rng.below(ENTRIES * 2);
        let key = key(number / 2);
        let read = match load {
            Load::Get => true,
            Load::Put => false,
            Load::Mixed => number.is_multiple_of(2),
        };
        if read {
            std::hint::black_box(db.get(key)?);
        } else {
            db.put(key, value)?;
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / operations as f64)
}

fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let at = |rank: f64| values[(rank.clamp(0.0, count - 1.0)) as usize];
    let reach = 0.98 * count.sqrt();
    (at((count - 1.0) / 2.0 - reach), at((count - 1.0) / 2.0), at((count - 1.0) / 2.0 + reach + 1.0))
}

fn compare(dir: &Path, name: &str, load: Load, options: Options, pairs: usize) -> Result<(), Failure> {
    let store = dir.join(name.replace([' ', ','], "-"));
    let db =
        Db::builder(&store).background(Background::Threads(1)).durability(Durability::Buffered).open()?;
    for number in 0..ENTRIES {
        db.put(key(number), [1; 100])?;
    }
    let fs: Arc<dyn cairn_vfs::Fs> = Arc::new(StdFs::new());
    let options = Options { bytes_max: 4 << 30, ..options };
    let recorder = Recorder::create_in(&fs, &store.join("bench.trace"), options)?;
    let plain = TracedDb::new(db.clone(), None);
    let traced = TracedDb::new(db.clone(), Some(recorder.clone()));
    let (mut ratios, mut nanos) = (Vec::new(), Vec::new());
    for pair in 0..pairs as u64 + WARM_UP {
        let (without, with) = if pair % 2 == 0 {
            let without = turn(&db, &plain, load, pair)?;
            (without, turn(&db, &traced, load, pair)?)
        } else {
            let with = turn(&db, &traced, load, pair)?;
            (turn(&db, &plain, load, pair)?, with)
        };
        if pair >= WARM_UP {
            ratios.push(with / without);
            nanos.push(without);
        }
    }
    let (low, middle, high) = median(&mut ratios);
    let (_, without, _) = median(&mut nanos);
    let summary = recorder.finish()?;
    println!(
        "{name:24} {without:7.0} ns plain   {:+6.2} % ({:+.2} to {:+.2})   {:5.1} B a record, of one key in {}",
        (middle - 1.0) * 100.0,
        (low - 1.0) * 100.0,
        (high - 1.0) * 100.0,
        summary.bytes as f64 / summary.records as f64,
        summary.sample
    );
    Ok(())
}

/// The recorder by itself: nanoseconds a lookup, of the quietest of some turns.
fn alone(dir: &Path) -> Result<(), Failure> {
    let fs: Arc<dyn cairn_vfs::Fs> = Arc::new(StdFs::new());
    let all = Options { sample: Sample::OneIn(1), ..Options::default() };
    let recorder = Recorder::create_in(&fs, &dir.join("alone.trace"), all)?;
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let start = Instant::now();
        for number in 0..OPERATIONS {
            recorder.get(0, std::hint::black_box(&key(7)), Some((number % 2) as usize * 100));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / OPERATIONS as f64);
    }
    let summary = recorder.finish()?;
    println!(
        "the recorder alone       {best:7.1} ns, {:.1} B a record",
        summary.bytes as f64 / summary.records as f64
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let (mut pairs, mut word) = (100, String::new());
    for argument in std::env::args().skip(1) {
        match argument.parse() {
            Ok(number) => pairs = number,
            // Asked by the test runner what there is to run: a bench has no tests.
            Err(_) if argument == "--list" => return Ok(()),
            Err(_) if argument.starts_with('-') => {}
            Err(_) => word = argument,
        }
    }
    let dir = tempfile::tempdir()?;
    alone(dir.path())?;
    let of = |keys: KeyForm, sample: Sample| Options { keys, sample, ..Options::default() };
    let (auto, all) = (of(KeyForm::Hashed, Sample::Auto), of(KeyForm::Hashed, Sample::OneIn(1)));
    let (raw_auto, raw) = (of(KeyForm::Raw, Sample::Auto), of(KeyForm::Raw, Sample::OneIn(1)));
    let some = of(KeyForm::Hashed, Sample::OneIn(SAMPLE));
    for (name, load, options) in [
        ("get, auto", Load::Get, &auto),
        ("get, all keys", Load::Get, &all),
        ("get, a key in 10", Load::Get, &some),
        ("put, auto", Load::Put, &auto),
        ("put, all keys", Load::Put, &all),
        ("mixed, auto", Load::Mixed, &auto),
        ("mixed, all keys", Load::Mixed, &all),
        ("mixed, a key in 10", Load::Mixed, &some),
        ("get, raw, auto", Load::Get, &raw_auto),
        ("get, raw, all keys", Load::Get, &raw),
    ] {
        if name.contains(&word) {
            compare(dir.path(), name, load, options.clone(), pairs.max(10))?;
        }
    }
    Ok(())
}
