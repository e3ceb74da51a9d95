use std::cell::Cell;
use std::sync::mpsc;
use std::time::Duration;

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::key_hash::KeyHash;
use cairn_vfs::{ManualClock, MemFs, OpenOptions};

use super::*;
use crate::event::Kind;
use crate::format::{BLOCK_HEAD_BYTES, BlockHead, Header};
use crate::reader::{Ending, Trace};

const PATH: &str = "/trace";
const SEED: u64 = 0x5eed_5eed_5eed_5eed;

/// An event as read: time, lane, whether it is joined, id of its key, the key's length, kind, size.
type Row = (u64, u32, bool, u64, u32, Kind, Option<u64>);

type Script = fn(&Recorder, &ManualClock);

fn options(keys: KeyForm, sample: Sample) -> Options {
    Options { keys, sample, hash_seed: Some(SEED), ..Options::default() }
}

/// Records a script and returns the bytes of the trace.
fn recorded(options: Options, script: impl Fn(&Recorder, &ManualClock)) -> (Vec<u8>, Summary) {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(ManualClock::new(Duration::ZERO));
    let recorder = Recorder::with_clock(&fs, Path::new(PATH), options, clock.clone()).unwrap();
    script(&recorder, &clock);
    let summary = recorder.finish().unwrap();
    let map = fs.open(Path::new(PATH), OpenOptions::read()).unwrap().map().unwrap();
    (map.to_vec(), summary)
}

fn open(bytes: &[u8]) -> Trace {
    let fs = MemFs::new();
    let file = fs.open(Path::new(PATH), OpenOptions::create_new()).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    Trace::open(&fs, Path::new(PATH)).unwrap()
}

fn rows(trace: &Trace) -> Vec<Row> {
    let row = |event: crate::Event<'_>| {
        let (kind, bytes) = (event.kind(), event.value_bytes());
        (event.time_ns, event.lane, event.joined, event.id(), event.key_bytes, kind, bytes)
    };
    trace.events().map(|event| row(event.unwrap())).collect()
}

/// Returns a key; one in a hundred is too long for a ring.
fn key_of(number: u64) -> Vec<u8> {
    let number = number * 7_919 % 5_000;
    let mut key = number.to_be_bytes().to_vec();
    key.resize(if number.is_multiple_of(100) { 1_500 } else { 16 }, 7);
    key
}

/// Runs operations for `millis`, one every `operation_ns`. One in 64 is a batch of three.
fn work(recorder: &Recorder, clock: &ManualClock, operation_ns: u64, millis: u64) {
    for number in 0..millis * 1_000_000 / operation_ns {
        clock.advance(Duration::from_nanos(operation_ns));
        let key = key_of(number);
        match number % 64 {
            0 => recorder.batch(|batch| {
                clock.advance(Duration::from_nanos(2 * operation_ns));
                batch.record(0, &key, Detail::Put(number));
                batch.record(0, &key_of(number + 1), Detail::Delete);
                batch.record(3, &key_of(number + 2), Detail::Get(None));
            }),
            1 => recorder.put(0, &key, number as usize % 300),
            _ => recorder.get(0, &key, Some(100)),
        }
    }
}

/// Slow at first, then so fast that only a quarter of the keys is affordable, then slow again.
fn slow_fast_slow(recorder: &Recorder, clock: &ManualClock) {
    work(recorder, clock, 3_200, 30);
    work(recorder, clock, 1_300, 150);
    work(recorder, clock, 3_200, 100);
}

/// Goal: fast operations lower the share, which never rises again. The trace reads as if recorded
/// with the final share from the start: counts, times, batches. Method: both forms of keys, against
/// a trace of the same operations with that share given; every key is counted.
#[test]
fn a_lowered_trace_is_a_sample() {
    for keys in [KeyForm::Hashed, KeyForm::Raw] {
        let (bytes, summary) = recorded(options(keys, Sample::Auto), slow_fast_slow);
        let trace = open(&bytes);
        assert_eq!((trace.header().sample, trace.sample(), summary.sample), (1, 4, 4), "{keys:?}");
        let operation_ns = trace.lowered().unwrap().operation_ns.unwrap();
        assert!((1_268..=1_316).contains(&operation_ns), "{operation_ns}");
        let (explicit, given) = recorded(options(keys, Sample::OneIn(4)), slow_fast_slow);
        let read = rows(&trace);
        assert!(read == rows(&open(&explicit)), "{keys:?}: another sample than that of one key in four");
        assert_eq!((trace.records(), read.len() as u64), (given.records, given.records));
        assert!(summary.records > 2 * given.records, "more was recorded at first: {summary:?}");
        assert!(read.iter().any(|row| row.2), "batches are left");

        let is_in = |key: &[u8]| KeyHash::new(SEED).of(key) <= u64::MAX / 4;
        for at in 0..40_u64 {
            let key = key_of(at);
            let name = match keys {
                KeyForm::Hashed => KeyHash::new(SEED).of(&key).to_le_bytes().to_vec(),
                KeyForm::Raw => key.clone(),
            };
            let id = xxh3_64_seeded(&name, 0);
            assert_eq!(read.iter().any(|row| row.3 == id), is_in(&key), "key {at}");
        }
    }
}

/// Goal: slow threads keep all keys, and so do threads that are fast for a moment, between slow
/// operations or between pauses. Method: speeds just below the limit for a long time; bursts.
#[test]
fn slow_threads_and_bursts_keep_all_keys() {
    let scripts: [(&str, Script); 3] = [
        ("slow", |recorder, clock| work(recorder, clock, 3_200, 250)),
        ("bursts among slow ones", |recorder, clock| {
            for _ in 0..3 {
                work(recorder, clock, 150, 40);
                work(recorder, clock, 3_200, 60);
            }
        }),
        ("bursts between pauses", |recorder, clock| {
            for _ in 0..300 {
                work(recorder, clock, 150, 1);
                for _ in 0..3 {
                    clock.advance(Duration::from_millis(3));
                    recorder.put(0, b"late", 1);
                }
            }
        }),
    ];
    for (what, script) in scripts {
        let (bytes, summary) = recorded(options(KeyForm::Hashed, Sample::Auto), script);
        let trace = open(&bytes);
        assert_eq!((summary.sample, trace.sample(), trace.lowered()), (1, 1, None), "{what}");
        let (explicit, _) = recorded(options(KeyForm::Hashed, Sample::OneIn(1)), script);
        let read = rows(&trace);
        assert!(read == rows(&open(&explicit)) && read.len() as u64 == trace.records(), "{what}");
    }
}

/// Goal: an explicit share stays, and earlier versions can read its trace. Method: the fastest
/// operations with two shares.
#[test]
fn given_share_is_not_lowered() {
    for sample in [1, 3] {
        let script = |recorder: &Recorder, clock: &ManualClock| work(recorder, clock, 100, 150);
        let (bytes, summary) = recorded(options(KeyForm::Raw, Sample::OneIn(sample)), script);
        let trace = open(&bytes);
        assert_eq!(bytes[8..12], [1, 0, 0, 0]);
        assert_eq!((summary.sample, trace.sample(), trace.lowered()), (sample, sample, None));
        assert_eq!(trace.records(), summary.records);
    }
}

/// Goal: a trace that was cut is a uniform sample too. Method: a lowered trace cut after each of
/// its blocks, against the beginning of a trace recorded with the share that the cut one claims.
#[test]
fn cut_traces_are_samples() {
    let explicit = [1, 2, 4].map(|sample| {
        rows(&open(&recorded(options(KeyForm::Hashed, Sample::OneIn(sample)), slow_fast_slow).0))
    });
    let (bytes, _) = recorded(options(KeyForm::Hashed, Sample::Auto), slow_fast_slow);
    let (header, mut at) = Header::decode(&bytes).unwrap();
    let (mut before, mut claimed) = (1, Vec::new());
    while let Some((head, records)) = BlockHead::decode(&bytes[at..], header.file_id) {
        at += BLOCK_HEAD_BYTES + records.len();
        let trace = open(&bytes[..at]);
        assert_eq!(matches!(trace.ending(), Ending::Complete { .. }), head.end);
        assert!(trace.sample() >= before, "it only goes down");
        let is_new = trace.sample() > before || head.end;
        before = trace.sample();
        claimed.push(before);
        if is_new || claimed.len().is_multiple_of(8) {
            let whole = &explicit[before.ilog2() as usize];
            let read = rows(&trace);
            assert!(whole.starts_with(&read), "cut at {at}: no sample of one key in {before}");
            assert_eq!(read.len() as u64, trace.records());
            let told = trace.lowered().map(|lowered| lowered.operation_ns.is_some());
            assert_eq!(
                told,
                (before > 1).then_some(head.end),
                "without its end it does not say how fast it was"
            );
        }
    }
    assert_eq!(at, bytes.len());
    claimed.dedup();
    assert_eq!(claimed, [1, 2, 4]);
}

/// Goal: one fast thread lowers the share for all, all lanes are filtered alike, and each operation
/// of a batch counts. Method: two threads that take turns under one clock; lookups of a hundred
/// keys at once.
#[test]
fn lanes_share_one_share() {
    let turns = |recorder: &Recorder, clock: &ManualClock| {
        thread::scope(|scope| {
            let (did, done) = mpsc::channel();
            let workers = [1_300, 3_200].map(|operation_ns| {
                let (todo, next) = mpsc::channel::<()>();
                let did = did.clone();
                scope.spawn(move || {
                    for () in next {
                        work(recorder, clock, operation_ns, 25);
                        did.send(()).unwrap();
                    }
                });
                todo
            });
            for turn in 0..14 {
                workers[turn % 2].send(()).unwrap();
                done.recv().unwrap();
            }
        });
    };
    let (bytes, _) = recorded(options(KeyForm::Raw, Sample::Auto), turns);
    let trace = open(&bytes);
    assert_eq!((trace.sample(), trace.lanes()), (4, 2));
    assert!(
        rows(&trace) == rows(&open(&recorded(options(KeyForm::Raw, Sample::OneIn(4)), turns).0)),
        "another sample than that of one key in four"
    );

    let (bytes, _) = recorded(options(KeyForm::Raw, Sample::Auto), |recorder, clock| {
        for round in 0..4_000_u64 {
            clock.advance(Duration::from_micros(130));
            recorder.batch(|batch| {
                (0..100).for_each(|at| batch.record(0, &key_of(round * 100 + at), Detail::Get(None)));
            });
        }
    });
    assert_eq!(open(&bytes).sample(), 4);
}

thread_local! {
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

/// A clock per thread, so that a thread's times do not depend on other threads.
#[derive(Debug)]
struct OwnClock;

impl Clock for OwnClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(TICKS.get())
    }

    fn wall(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, _: Duration) {}
}

/// Goal: under concurrency, each key of the final share has all of its operations. Method: four
/// threads that are all too fast, each with its own clock.
#[test]
fn threads_lower_the_share_together() {
    const EACH: u64 = 400_000;
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = options(KeyForm::Raw, Sample::Auto);
    let recorder = Recorder::with_clock(&fs, Path::new(PATH), options, Arc::new(OwnClock)).unwrap();
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let recorder = &recorder;
            scope.spawn(move || {
                for number in 0..EACH {
                    TICKS.set(TICKS.get() + 200);
                    recorder.put(0, &((number + thread) % 1_000).to_be_bytes(), 1);
                }
            });
        }
    });
    let summary = recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    assert_eq!(trace.sample(), summary.sample);
    assert!(trace.sample() > 1);
    let mut counts = std::collections::BTreeMap::new();
    for event in trace.events() {
        *counts.entry(event.unwrap().key.to_vec()).or_insert(0) += 1;
    }
    for number in 0..1_000_u64 {
        let key = number.to_be_bytes();
        let is_in = KeyHash::new(SEED).of(&key) <= u64::MAX / u64::from(trace.sample());
        assert_eq!(counts.get(&key[..]), is_in.then_some(&(4 * EACH / 1_000)), "key {number}");
    }
}

/// Goal: a trace of hashes does not contain the seed, with which keys could be guessed; a trace of
/// raw keys needs it. Method: a search for the seed's bytes.
#[test]
fn the_seed_stays_secret() {
    for (keys, is_there) in [(KeyForm::Hashed, false), (KeyForm::Raw, true)] {
        let (bytes, _) = recorded(options(keys, Sample::Auto), |recorder, _| recorder.put(0, b"key", 1));
        assert_eq!(bytes.windows(8).any(|window| window == SEED.to_le_bytes()), is_there, "{keys:?}");
        assert_eq!(bytes[8..12], [3, 0, 0, 0], "who knows only version 1 refuses it");
    }
}
