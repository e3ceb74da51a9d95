//! What recording costs a user of `kv`: `cargo bench -p cairn-trace --features kv --bench recorder
//! -- [PAIRS] [WORD]`.
//!
//! Pairs of 100,000 lookups each, or six times as many operations with writes among them, with and
//! without a recorder, on one store. Within a pair the two take turns of 10,000 operations, who
//! goes first being drawn: what disturbs the machine, and what a flush costs, hits both. Printed is
//! the median of the pairs' ratios with the interval of its ranks (95 %), and of how many keys one
//! was recorded in the end: rows with "auto" leave that to the recorder, as is the default. "no
//! recorder" compares a handle with itself: what it says is noise. With "no keys" the recorder is
//! asked and records nothing.
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cairn_kv::{Background, Db, Durability, KeyspaceId, KeyspaceOptions, Operation, WriteBatch};
use cairn_trace::kv::TracedDb;
use cairn_trace::{KeyForm, Options, Recorder, Sample};
use cairn_vfs::{Rng, SeededRng, StdFs};

type Failure = Box<dyn std::error::Error>;

const ENTRIES: u64 = 100_000;
const OPERATIONS: u64 = 100_000;
/// Operations until the other one's turn. Long beside the half of a millisecond after which the
/// recorder's thread has taken out what was recorded, so that little of that falls into the
/// other's, and short beside what other users of the machine do to it.
const TURN: u64 = 10_000;
/// Pairs with writes are longer, so that each has a flush and the merges that follow.
const WRITES: u64 = 6 * OPERATIONS;
/// A keyspace besides the default one.
const NAMED: &str = "named";
/// Operations of a batch, and of a lookup of several keys.
const TOGETHER: u64 = 100;
/// Of so many keys a sample follows one.
const SAMPLE: u32 = 10;
/// Of these there is none that is recorded.
const NONE: u32 = 1_000_000_000;
/// Pairs that do not count: caches fill, and the recorder finds its share of the keys, which takes
/// it 50 ms for each step.
const WARM_UP: u64 = 20;

#[derive(Clone, Copy)]
enum Load {
    Get,
    Put,
    Mixed,
    /// Writes in batches of [`TOGETHER`].
    Batch,
    /// As [`Load::Batch`], each of keys that follow one another: nothing writes faster.
    Ascending(Each),
    /// Lookups of [`TOGETHER`] keys at once.
    MultiGet,
}

/// What the operations of a batch are like. Keys are of 16 bytes and values of 8, unless it says
/// otherwise.
#[derive(Clone, Copy)]
enum Each {
    Alike,
    /// Values of 0 to 59 bytes: none is as long as the one before.
    Varied,
    /// Every other one a removal.
    Alternating,
    Removal,
    /// In a keyspace with a name.
    Named,
    /// Keys of 8 bytes.
    Short,
    /// Keys of 32 bytes.
    Long,
    /// Keys of 16 and of 32 bytes in turn, as of records and of an index.
    Mixed,
}

impl Each {
    fn add(self, batch: &mut WriteBatch, named: KeyspaceId, number: u64) -> cairn_kv::Result<()> {
        let (key, value) = (key(number), [7; 8]);
        let is_odd = !number.is_multiple_of(2);
        match self {
            Each::Varied => batch.put(key, &[7; 60][..number as usize % 60]),
            Each::Alternating if is_odd => batch.delete(key),
            Each::Removal => batch.delete(key),
            Each::Named => batch.add(named, Operation::Put { key: &key, value: &value }),
            Each::Short => batch.put(&key[8..], value),
            Each::Mixed if is_odd => batch.put([key, key].as_flattened(), value),
            Each::Long => batch.put([key, key].as_flattened(), value),
            Each::Alike | Each::Alternating | Each::Mixed => batch.put(key, value),
        }
    }
}

impl Load {
    fn writes(self) -> bool {
        !matches!(self, Load::Get | Load::MultiGet)
    }
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

/// Nanoseconds an operation of each side. Begins with nothing left over of the pair before: what
/// that has still to be merged would be paid by this one.
fn pair(settled: &Db, sides: [&TracedDb; 2], load: Load, seed: u64) -> Result<[f64; 2], Failure> {
    if load.writes() {
        settled.flush()?;
        settled.wait_idle()?;
    }
    let mut order = SeededRng::new(seed);
    let mut keys = [SeededRng::new(seed + 1), SeededRng::new(seed + 2)];
    let operations = if load.writes() { WRITES } else { OPERATIONS };
    let mut nanos = [0.0; 2];
    for _ in 0..operations / TURN {
        let first = order.below(2) as usize;
        for side in [first, 1 - first] {
            nanos[side] += turn(sides[side], load, &mut keys[side])?;
        }
    }
    Ok(nanos.map(|nanos| nanos / operations as f64))
}

/// Nanoseconds. One function for both sides, so that both run the same code.
#[inline(never)]
fn turn(db: &TracedDb, load: Load, rng: &mut SeededRng) -> Result<f64, Failure> {
    let value = [7_u8; 100];
    let start = Instant::now();
    match load {
        Load::Batch => {
            for _ in 0..TURN / TOGETHER {
                let mut batch = WriteBatch::new();
                for _ in 0..TOGETHER {
                    batch.put(key(rng.below(ENTRIES)), value)?;
                }
                db.write(&batch)?;
            }
        }
        Load::Ascending(each) => {
            let named = db.keyspace(NAMED).ok_or("there is no such keyspace")?.id();
            for _ in 0..TURN / TOGETHER {
                let mut batch = WriteBatch::new();
                let first = rng.below(ENTRIES - TOGETHER);
                for number in first..first + TOGETHER {
                    each.add(&mut batch, named, number)?;
                }
                db.write(&batch)?;
            }
        }
        Load::MultiGet => {
            for _ in 0..TURN / TOGETHER {
                let keys: Vec<_> = (0..TOGETHER).map(|_| key(rng.below(ENTRIES))).collect();
                std::hint::black_box(db.multi_get(&keys)?);
            }
        }
        Load::Get | Load::Put | Load::Mixed => {
            for _ in 0..TURN {
                let number = rng.below(ENTRIES * 2);
                let key = key(number / 2);
                let read = match load {
                    Load::Get => true,
                    Load::Mixed => number.is_multiple_of(2),
                    _ => false,
                };
                if read {
                    std::hint::black_box(db.get(key)?);
                } else {
                    db.put(key, value)?;
                }
            }
        }
    }
    Ok(start.elapsed().as_nanos() as f64)
}

fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let at = |rank: f64| values[(rank.clamp(0.0, count - 1.0)) as usize];
    let reach = 0.98 * count.sqrt();
    (at((count - 1.0) / 2.0 - reach), at((count - 1.0) / 2.0), at((count - 1.0) / 2.0 + reach + 1.0))
}

/// Without `options` both sides are without a recorder.
fn compare(
    dir: &Path,
    name: &str,
    load: Load,
    options: Option<Options>,
    pairs: usize,
) -> Result<(), Failure> {
    let store = dir.join(name.replace([' ', ','], "-"));
    let db = Db::builder(&store).keyspace(NAMED, KeyspaceOptions::default());
    let db = db.background(Background::Threads(1)).durability(Durability::Buffered).open()?;
    for number in 0..ENTRIES {
        db.put(key(number), [1; 100])?;
    }
    let fs: Arc<dyn cairn_vfs::Fs> = Arc::new(StdFs::new());
    let create = |options| {
        Recorder::create_in(&fs, &store.join("bench.trace"), Options { bytes_max: 4 << 30, ..options })
    };
    let recorder = options.map(create).transpose()?;
    let plain = TracedDb::new(db.clone(), None);
    let traced = TracedDb::new(db.clone(), recorder.clone());
    let (mut ratios, mut nanos) = (Vec::new(), Vec::new());
    for pair in 0..pairs as u64 + WARM_UP {
        let [without, with] = self::pair(&db, [&plain, &traced], load, pair * 3)?;
        if pair >= WARM_UP {
            ratios.push(with / without);
            nanos.push(without);
        }
    }
    let (low, middle, high) = median(&mut ratios);
    let (_, without, _) = median(&mut nanos);
    let cost = format!(
        "{name:30} {without:7.0} ns plain   {:+6.2} % ({:+.2} to {:+.2})",
        (middle - 1.0) * 100.0,
        (low - 1.0) * 100.0,
        (high - 1.0) * 100.0
    );
    match recorder.map(|recorder| recorder.finish()).transpose()? {
        Some(summary) if summary.records > 0 => println!(
            "{cost}   {:5.1} B a record, of one key in {}",
            summary.bytes as f64 / summary.records as f64,
            summary.sample
        ),
        _ => println!("{cost}   nothing recorded"),
    }
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
        "the recorder alone             {best:7.1} ns, {:.1} B a record",
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
    let none = of(KeyForm::Hashed, Sample::OneIn(NONE));
    for (name, load, options) in [
        ("get, no recorder", Load::Get, None),
        ("get, no keys", Load::Get, Some(&none)),
        ("get, auto", Load::Get, Some(&auto)),
        ("get, all keys", Load::Get, Some(&all)),
        ("get, a key in 10", Load::Get, Some(&some)),
        ("put, auto", Load::Put, Some(&auto)),
        ("put, all keys", Load::Put, Some(&all)),
        ("mixed, auto", Load::Mixed, Some(&auto)),
        ("mixed, all keys", Load::Mixed, Some(&all)),
        ("mixed, a key in 10", Load::Mixed, Some(&some)),
        ("batches of 100, auto", Load::Batch, Some(&auto)),
        ("batches of 100, all keys", Load::Batch, Some(&all)),
        ("ascending batches, no recorder", Load::Ascending(Each::Alike), None),
        ("ascending batches, no keys", Load::Ascending(Each::Alike), Some(&none)),
        ("ascending batches, auto", Load::Ascending(Each::Alike), Some(&auto)),
        ("ascending batches, all keys", Load::Ascending(Each::Alike), Some(&all)),
        ("varied batches, auto", Load::Ascending(Each::Varied), Some(&auto)),
        ("alternating batches, auto", Load::Ascending(Each::Alternating), Some(&auto)),
        ("batches of removals, auto", Load::Ascending(Each::Removal), Some(&auto)),
        ("batches, named keyspace, auto", Load::Ascending(Each::Named), Some(&auto)),
        ("batches, keys of 8, auto", Load::Ascending(Each::Short), Some(&auto)),
        ("batches, keys of 32, auto", Load::Ascending(Each::Long), Some(&auto)),
        ("batches, mixed keys, auto", Load::Ascending(Each::Mixed), Some(&auto)),
        ("lookups of 100, auto", Load::MultiGet, Some(&auto)),
        ("lookups of 100, all keys", Load::MultiGet, Some(&all)),
        ("get, raw, auto", Load::Get, Some(&raw_auto)),
        ("get, raw, all keys", Load::Get, Some(&raw)),
    ] {
        if name.contains(&word) {
            compare(dir.path(), name, load, options.cloned(), pairs.max(10))?;
        }
    }
    Ok(())
}
