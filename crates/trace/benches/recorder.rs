//! The cost of recording for a user of `kv`: `cargo bench -p cairn-trace --features kv --bench
//! recorder -- [PAIRS] [WORD]`.
//!
//! A pair measures one store with and without a recorder: 100,000 lookups each, or six times as
//! many operations if there are writes. The two sides alternate in turns of 10,000 operations, in
//! random order, so that disturbances of the machine and the cost of flushes hit both. The output
//! is the median ratio of the pairs with its rank interval (95 %), and the final sample (one key in
//! n). In rows with "auto" the recorder chooses the sample, as by default. "no recorder" compares a
//! handle with itself: its result is noise. With "no keys" the recorder decides for each operation,
//! but records none.
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
/// Operations per turn. A turn is long compared with the half millisecond in which the helper
/// drains the rings, so that little of that work falls into the other side's turn. It is short
/// compared with disturbances by other users of the machine.
const TURN: u64 = 10_000;
/// Operations per pair with writes: enough for a flush and the compactions that follow.
const WRITES: u64 = 6 * OPERATIONS;
/// A keyspace besides the default one.
const NAMED: &str = "named";
/// Operations per batch and per multi-get.
const TOGETHER: u64 = 100;
/// The sample of rows that record one key in ten.
const SAMPLE: u32 = 10;
/// A sample so small that no key is in it.
const NONE: u32 = 1_000_000_000;
/// Pairs that are not counted, in which caches fill and the recorder finds its share of keys, at 50
/// ms per halving.
const WARM_UP: u64 = 20;

#[derive(Clone, Copy)]
enum Load {
    Get,
    Put,
    Mixed,
    /// Writes in batches of [`TOGETHER`].
    Batch,
    /// Like [`Load::Batch`], with ascending keys: the fastest way to write.
    Ascending(Each),
    /// Multi-gets of [`TOGETHER`] keys.
    MultiGet,
}

/// The operations of a batch. Unless a variant says otherwise, keys have 16 bytes and values 8.
#[derive(Clone, Copy)]
enum Each {
    Alike,
    /// Values of 0 to 59 bytes, no two neighbours of equal length.
    Varied,
    /// Every second operation is a deletion.
    Alternating,
    Removal,
    /// In a named keyspace.
    Named,
    /// Keys of 8 bytes.
    Short,
    /// Keys of 32 bytes.
    Long,
    /// Keys of 16 and 32 bytes in turn, as of records and of an index.
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

/// Measures one pair. Returns nanoseconds per operation for each side. Flushes and compacts first,
/// so that this pair does not pay for the writes of the one before.
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

/// Runs one turn and returns its nanoseconds. Not inlined, so that both sides run the same code.
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

/// Compares both sides. Without `options`, neither side has a recorder.
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

/// Measures the recorder in isolation: nanoseconds per lookup in the fastest of several turns.
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
            // The test runner lists tests with `--list`; a benchmark has none.
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
