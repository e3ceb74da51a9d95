use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_trace::{Detail, Event, Header, KeyForm, Recorder, Sample, Writer};
use cairn_vfs::{Fs, ManualClock, thread};

use super::*;
use crate::core::process::Stop;
use crate::core::progress::Silent;
use crate::core::results::Run;
use crate::core::scratch::Scratch;
use crate::stores::catalog::Selection;
use crate::stores::kv::KvStore;
use crate::suites::kv::Options;
use crate::suites::kv::testing::{Fault, Planted};

/// Adds events, one per microsecond.
struct Making {
    writer: Writer,
    now: u64,
}

impl Making {
    fn new(path: &Path, keys: KeyForm, timed: bool) -> Making {
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        let header = Header {
            keys,
            timed,
            started_ns: 0,
            file_id: 1,
            sample: 1,
            adaptive: None,
            source: "a test".to_owned(),
        };
        Making { writer: Writer::create(&fs, path, &header).unwrap(), now: 0 }
    }

    fn add(&mut self, key: &[u8], detail: Detail<'_>, joined: bool) {
        let key_bytes = key.len() as u32;
        let event = Event { time_ns: self.now, lane: 0, joined, keyspace: 0, key, key_bytes, detail };
        self.writer.add(&event).unwrap();
        self.now += 1_000;
    }
}

/// Writes a trace with every kind of operation over 200 keys, half of which existed before.
fn make(path: &Path, keys: KeyForm) {
    let mut making = Making::new(path, keys, true);
    let get = |found: Option<u64>| Detail::Get(Some(found));
    for round in 0..4_u64 {
        for number in 0..200_u64 {
            let key = (number * 7 % 200).to_be_bytes();
            let there = number * 7 % 200 < 100;
            match (round, there) {
                (0, true) => making.add(&key, get(Some(50 + number)), false),
                (0, false) => making.add(&key, get(None), number % 5 == 1),
                (1, _) => making.add(&key, Detail::Put(number * 3), number % 4 > 0),
                (2, _) if number % 10 == 0 => making.add(&key, Detail::Delete, false),
                (2, _) if number % 10 == 1 => {
                    making.add(&key, Detail::Scan { entries: 20, backwards: false }, false)
                }
                (2, _) if number % 10 == 2 => making.add(&key, Detail::Merge(9), false),
                _ => making.add(&key, Detail::Get(None), number % 3 == 2),
            }
        }
    }
    making.writer.finish().unwrap();
}

fn options(scratch: &Scratch) -> Options {
    Options {
        rounds: 2,
        work_dir: scratch.path().join("work"),
        probes: None,
        worker: None,
        ..Options::default()
    }
}

fn planted(fault: Fault) -> Selection<dyn KvStore> {
    Selection { stores: vec![Box::new(Planted { name: "planted", fault })], skipped: Vec::new() }
}

fn scratch() -> Scratch {
    Scratch::in_dir(&std::env::temp_dir(), "replay-test").unwrap()
}

/// Goal: a trace is replayed on a store by one thread and by several, and its measurements are
/// recorded. Method: a map in memory, and Cairn's own store within the test's process; raw keys and
/// hashed ones.
#[test]
fn traces_are_replayed() {
    let scratch = scratch();
    for (keys, threads) in [(KeyForm::Raw, 1), (KeyForm::Raw, 3), (KeyForm::Hashed, 2)] {
        let path = scratch.path().join(format!("t-{threads}.trace"));
        make(&path, keys);
        let replay = Replay { threads, ..Replay::new(&path) };
        let loaded = replay.load().unwrap();
        assert_eq!((loaded.operations(), loaded.keys(), loaded.initial()), (800, 200, 100));
        assert_eq!(
            loaded.notes().len(),
            1 + usize::from(keys == KeyForm::Hashed) + usize::from(threads > 1),
            "{:?}",
            loaded.notes()
        );
        let cairn = Selection::<dyn KvStore> {
            stores: vec![
                Box::new(Planted { name: "planted", fault: Fault::None }),
                Box::new(crate::stores::cairn_kv::CairnKv),
            ],
            skipped: Vec::new(),
        };
        let run = run_with(&options(&scratch), &replay, cairn, &Silent, &Stop::default()).unwrap();
        assert_eq!(run.suite, NAME);
        for contender in &run.contenders {
            assert_eq!(contender.skipped, None);
            let figure = |operation: &str, metric: &str| {
                let found = run.measurements.iter().find(|m| {
                    m.contender == contender.name && m.case.operation == operation && m.metric == metric
                });
                found.unwrap_or_else(|| panic!("{operation}, {metric}: {:?}", run.measurements))
            };
            let throughput = figure("replay", "throughput");
            assert!(throughput.median > 0.0 && throughput.verified && throughput.samples.len() == 2);
            assert_eq!((throughput.case.threads, throughput.case.entries), (threads, 200));
            for kind in ["get", "put", "delete", "scan"] {
                assert!(figure(kind, "latency").percentiles.contains_key("p99"), "{kind}");
            }
            assert!(figure("replay", "space amplification").median >= 0.0);
        }
        assert!(
            run.data.contains("800 operations on 200 keys") && run.data.contains("full speed"),
            "{}",
            run.data
        );
    }
}

/// Goal: a store that gives wrong answers has no measurements. Method: each fault that a replay can
/// meet, planted in a map.
#[test]
fn wrong_answers_are_found() {
    let scratch = scratch();
    let path = scratch.path().join("t.trace");
    make(&path, KeyForm::Raw);
    for fault in [
        Fault::LosesPuts,
        Fault::KeepsOldValues,
        Fault::KeepsDeleted,
        Fault::CutsBatches,
        Fault::FindsTheAbsent,
        Fault::ScansWithGaps,
        Fault::ShiftsMultiGets,
        Fault::FlipsBytes,
        Fault::Fails,
    ] {
        let run =
            run_with(&options(&scratch), &Replay::new(&path), planted(fault), &Silent, &Stop::default());
        let run = run.unwrap();
        assert!(run.measurements.is_empty(), "{fault:?}: {:?}", run.measurements);
    }
}

/// Goal: at recorded speed a replay takes the recorded time, and latencies count from when
/// operations were due. Method: a trace over 40 ms, at its own speed and at twice that.
#[test]
fn recorded_speed() {
    let scratch = scratch();
    let path = scratch.path().join("t.trace");
    let mut making = Making::new(&path, KeyForm::Raw, true);
    for number in 0..40_u32 {
        making.add(&number.to_be_bytes(), Detail::Put(10), false);
        making.now += 999_000;
    }
    making.writer.finish().unwrap();
    for (speed, at_most) in [(1.0, 1_030.0), (2.0, 2_060.0)] {
        let replay = Replay { speed: Some(speed), ..Replay::new(&path) };
        let run =
            run_with(&options(&scratch), &replay, planted(Fault::None), &Silent, &Stop::default()).unwrap();
        let throughput = run.measurements.iter().find(|m| m.metric == "throughput").unwrap();
        assert!(throughput.median <= at_most, "{}", throughput.median);
        assert!(run.measurements.iter().any(|m| m.metric == "latency" && m.case.operation == "put"));
        let late = run.contenders[0].settings.keys().any(|name| name.contains("began late"));
        assert!(late, "{:?}", run.contenders[0].settings);
    }
}

/// Returns the due times, in microseconds, of a trace with operations at the given times, each
/// joined to the previous one or not.
fn due_micros(path: &Path, events: &[(u64, bool)], speed: Option<f64>) -> Vec<u64> {
    let mut making = Making::new(path, KeyForm::Raw, true);
    for (micros, joined) in events {
        making.now = micros * 1_000;
        making.add(b"key", Detail::Put(1), *joined);
    }
    making.writer.finish().unwrap();
    let loaded = Replay { speed, ..Replay::new(path) }.load().unwrap();
    loaded.steps[0].iter().map(|step| step.due_ns / 1_000).collect()
}

/// Goal: operations with the same time are due one after another at recorded speed, and keep their
/// times otherwise. Method: runs as a recorder leaves them, with a batch, a pause and an end; a
/// clock of whole seconds, with empty seconds; times that are all the same.
#[test]
fn equal_times_are_spread() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name);
    let events = [(0, false), (0, false), (0, true), (0, false), (90, false), (90, false)];
    let events = [&events[..], &[(50_000, false), (50_000, false)]].concat();
    assert_eq!(due_micros(&path("a"), &events, Some(2.0)), [0, 30, 30, 60, 90, 120, 50_000, 50_030]);
    assert_eq!(due_micros(&path("b"), &events, None), [0, 0, 0, 0, 90, 90, 50_000, 50_000]);
    let seconds = [0, 0, 0, 0, 1, 1, 3, 3].map(|second| (second * 1_000_000, false));
    let spread = [0, 250, 500, 750, 1_000, 1_500, 3_000, 3_500].map(|millis| millis * 1_000);
    assert_eq!(due_micros(&path("c"), &seconds, Some(1.0)), spread);
    assert_eq!(due_micros(&path("d"), &[(0, false); 3], Some(1.0)), [0, 0, 0]);
}

/// Goal: with several threads each run is spread by itself, and operations come in the order in
/// which they are due. Method: two threads that record in turns, under a clock that the test
/// controls.
#[test]
fn lanes_are_spread_by_themselves() {
    let scratch = scratch();
    let path = scratch.path().join("t.trace");
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let clock = Arc::new(ManualClock::new(Duration::ZERO));
    let options = cairn_trace::Options { keys: KeyForm::Raw, sample: Sample::OneIn(1), ..Default::default() };
    let recorder = Recorder::with_clock(&fs, &path, options, clock.clone()).unwrap();
    let elsewhere = |keys: &'static [&'static str]| {
        let recorder = recorder.clone();
        let work = move || keys.iter().for_each(|key| recorder.get(0, key.as_bytes(), None));
        thread::spawn("elsewhere", work).unwrap().join().unwrap();
    };
    ["a0", "a1", "a2"].iter().for_each(|key| recorder.get(0, key.as_bytes(), None));
    clock.advance(Duration::from_micros(30));
    elsewhere(&["b0", "b1", "b2"]);
    clock.advance(Duration::from_micros(60));
    recorder.get(0, b"a3", None);
    clock.advance(Duration::from_micros(30));
    elsewhere(&["b3"]);
    recorder.finish().unwrap();
    let loaded = Replay { speed: Some(1.0), ..Replay::new(&path) }.load().unwrap();
    let steps = loaded.steps[0].iter();
    let seen: Vec<(&[u8], u64)> = steps.map(|step| (loaded.key(step.key), step.due_ns / 1_000)).collect();
    let expected: [(&[u8], u64); 8] = [
        (b"a0", 0),
        (b"a1", 30),
        (b"b0", 30),
        (b"a2", 60),
        (b"b1", 60),
        (b"b2", 90),
        (b"a3", 90),
        (b"b3", 120),
    ];
    assert_eq!(seen, expected);
}

/// Goal: a trace that does not fit is cut with a note, and one that is cut as requested has no
/// note.
/// Method: room for three operations.
#[test]
fn trace_that_does_not_fit_is_cut_with_a_note() {
    let scratch = scratch();
    let path = scratch.path().join("t.trace");
    make(&path, KeyForm::Raw);
    let trace = Trace::open(&StdFs::new(), &path).unwrap();
    for (asked, told) in [(None, true), (Some(4), true), (Some(3), false)] {
        let limits = Limits { threads: 1, passed_over: 0, operations_max: asked, timed: false };
        let loaded = Loaded::with_room(&trace, limits, 3).unwrap();
        let is_told = loaded.notes().iter().any(|note| note.starts_with("3 of 800 operations only"));
        assert_eq!((loaded.operations(), is_told), (3, told), "{asked:?}: {:?}", loaded.notes());
    }
}

/// Goal: the constant store takes part if a trace only reads, and reports why not otherwise.
/// Method: lookups of present and absent keys, single and joined; the same with a write.
#[test]
fn the_constant_store_takes_part() {
    let scratch = scratch();
    for writes in [false, true] {
        let path = scratch.path().join(format!("t-{writes}"));
        let mut making = Making::new(&path, KeyForm::Hashed, true);
        for number in 0..300_u64 {
            let found = (number % 3 > 0).then_some(number);
            making.add(&(number % 150).to_le_bytes(), Detail::Get(Some(found)), number % 7 > 4);
        }
        if writes {
            making.add(b"8 bytes.", Detail::Put(1), false);
        }
        making.writer.finish().unwrap();
        let store = || Selection::<dyn KvStore> {
            stores: vec![Box::new(crate::stores::cairn_hash_kv::CairnHashKv)],
            skipped: Vec::new(),
        };
        let run =
            run_with(&options(&scratch), &Replay::new(&path), store(), &Silent, &Stop::default()).unwrap();
        assert_eq!(run.measurements.is_empty(), writes, "{:?}", run.contenders);
        let reason = run.contenders[0].skipped.clone().unwrap_or_default();
        assert_eq!(reason.contains("takes no writes"), writes, "{reason}");
    }
}

/// Goal: a trace that cannot be replayed is refused with the reason, and differences in the replay
/// are noted.
#[test]
fn refusals_and_notes() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name);
    let mut making = Making::new(&path("pages"), KeyForm::Raw, false);
    making.add(b"page", Detail::Block { bytes: 0, hit: None }, false);
    making.add(b"page", Detail::Block { bytes: 0, hit: Some(true) }, false);
    making.writer.finish().unwrap();
    let loaded = Replay::new(&path("pages")).load().unwrap();
    assert_eq!((loaded.operations(), loaded.initial(), loaded.value_bytes_mean()), (2, 1, 0));
    assert!(loaded.notes()[0].contains("1 keys of unknown content"), "{:?}", loaded.notes());
    let slow = Replay { speed: Some(1.0), ..Replay::new(&path("pages")) };
    assert!(slow.load().unwrap_err().to_string().contains("no times"));
    for bad in [Replay { threads: 0, ..Replay::new(&path("pages")) }, Replay { speed: Some(0.0), ..slow }] {
        assert!(bad.load().is_err());
    }
    let no_turns = Options { rounds: 0, ..options(&scratch) };
    let replay = Replay::new(&path("pages"));
    let error = run_with(&no_turns, &replay, planted(Fault::None), &Silent, &Stop::default());
    assert!(error.unwrap_err().to_string().contains("rounds 0"));
    let mut making = Making::new(&path("odd"), KeyForm::Raw, true);
    making.add(b"SELECT 1", Detail::Statement(1), false);
    making.add(b"a", Detail::DeleteRange { end: b"b", end_bytes: 1 }, false);
    making.writer.finish().unwrap();
    let error = run_with(
        &options(&scratch),
        &Replay::new(&path("odd")),
        planted(Fault::None),
        &Silent,
        &Stop::default(),
    );
    assert!(error.unwrap_err().to_string().contains("no operation"));
    let first = Replay { operations_max: Some(1), ..Replay::new(&path("pages")) };
    assert_eq!(first.load().unwrap().operations(), 1);
}

fn event<'a>(keyspace: u32, key: &'a [u8], detail: Detail<'a>) -> Event<'a> {
    Event { time_ns: 0, lane: 0, joined: false, keyspace, key, key_bytes: key.len() as u32, detail }
}

fn trace_of(path: &Path, keys: KeyForm, events: &[Event<'_>]) {
    let mut making = Making::new(path, keys, true);
    for (number, event) in events.iter().enumerate() {
        making.writer.add(&Event { time_ns: number as u64 * 1_000, ..*event }).unwrap();
    }
    making.writer.finish().unwrap();
}

fn measured(scratch: &Scratch, replay: &Replay, fault: Fault) -> Run {
    run_with(&options(scratch), replay, planted(fault), &Silent, &Stop::default()).unwrap()
}

/// Goal: keys of different keyspaces, and the empty key, are different keys of the store. Method:
/// keys that would collide without a prefix, with different values, each looked up.
#[test]
fn keys_stay_apart() {
    let scratch = scratch();
    let path = scratch.path().join("t.trace");
    let found = |bytes| Detail::Get(Some(Some(bytes)));
    let events = [
        event(0, b"\0\0\0\x01a", Detail::Put(10)),
        event(1, b"a", Detail::Put(20)),
        event(0, b"", Detail::Put(30)),
        event(0, b"\0", Detail::Put(40)),
        event(0, b"\0\0\0\x01a", found(10)),
        event(1, b"a", found(20)),
        event(0, b"", found(30)),
        event(0, b"\0", found(40)),
    ];
    trace_of(&path, KeyForm::Raw, &events);
    let loaded = Replay::new(&path).load().unwrap();
    let keys: std::collections::BTreeSet<&[u8]> = (0..4).map(|number| loaded.key(number)).collect();
    assert!(keys.len() == 4 && !keys.contains(&b""[..]), "{keys:?}");
    assert!(loaded.notes().iter().any(|note| note.contains("keyspace")), "{:?}", loaded.notes());
    assert!(!measured(&scratch, &Replay::new(&path), Fault::None).measurements.is_empty());
    // With a single keyspace and no empty key, keys stay unchanged.
    trace_of(&scratch.path().join("one"), KeyForm::Raw, &events[..1]);
    assert_eq!(Replay::new(&scratch.path().join("one")).load().unwrap().key(0), b"\0\0\0\x01a");
}

/// Goal: a length that a trace claims is checked before it is used, and one long key does not end
/// the replay. Method: a hashed key of 4 GiB, a raw one of 60 kB and another that differs from it
/// only at its end.
#[test]
fn long_keys_are_shortened() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name);
    let claimed = Event { key_bytes: u32::MAX, ..event(0, b"8 bytes.", Detail::Put(1)) };
    trace_of(&path("hashed"), KeyForm::Hashed, &[claimed]);
    let loaded = Replay::new(&path("hashed")).load().unwrap();
    assert_eq!((loaded.key(0).len(), &loaded.key(0)[..8]), (511, &b"8 bytes."[..]));
    let mut other = vec![7; 60_000];
    let long = other.clone();
    *other.last_mut().unwrap() = 8;
    let events =
        [event(0, &long, Detail::Put(1)), event(0, &other, Detail::Put(2)), event(0, &long, Detail::Delete)];
    trace_of(&path("raw"), KeyForm::Raw, &events);
    let loaded = Replay::new(&path("raw")).load().unwrap();
    assert!(loaded.keys() == 2 && loaded.key(0).len() == 511 && loaded.key(0) != loaded.key(1));
    assert!(loaded.notes()[0].contains("2 keys are shortened"), "{:?}", loaded.notes());
    assert!(!measured(&scratch, &Replay::new(&path("raw")), Fault::None).measurements.is_empty());
}

/// Goal: entries that a scan omits are noticed, with one thread and with several, and it is noted
/// if the recorded scans read more. Method: a store with gaps in its scans, and a correct one;
/// scans that read more entries than the trace knows.
#[test]
fn scans_are_counted() {
    let scratch = scratch();
    let path = scratch.path().join("t.trace");
    let keys: Vec<[u8; 8]> = (0..50_u64).map(u64::to_be_bytes).collect();
    let mut events: Vec<Event<'_>> =
        keys.iter().map(|key| event(0, key, Detail::Get(Some(Some(20))))).collect();
    fn scan(key: &[u8], entries: u64) -> Event<'_> {
        event(0, key, Detail::Scan { entries, backwards: false })
    }
    events.extend([scan(&keys[5], 10), scan(&keys[45], 10), scan(&[], 3)]);
    trace_of(&path, KeyForm::Raw, &events);
    // A scan that found nothing misses nothing.
    trace_of(&scratch.path().join("none"), KeyForm::Raw, &[event(0, b"a", Detail::Put(1)), scan(b"b", 0)]);
    let none = Replay::new(&scratch.path().join("none"));
    assert_eq!(none.load().unwrap().all_notes(), Vec::<String>::new());
    assert!(!measured(&scratch, &none, Fault::None).measurements.is_empty());
    for threads in [1, 2] {
        let replay = Replay { threads, ..Replay::new(&path) };
        let right = measured(&scratch, &replay, Fault::None);
        assert!(!right.measurements.is_empty(), "{:?}", right.contenders);
        let told = right.data.contains("of the recorded 23 entries") && right.data.contains("scans read 18");
        assert!(told, "{}", right.data);
        // The check at the end would notice the missing entry too. The first wrong answer ends a
        // turn before that.
        let wrong = measured(&scratch, &replay, Fault::ScansWithGaps);
        let reason = wrong.contenders[0].skipped.clone().unwrap_or_default();
        let expected = if threads == 1 { "gave entries that differ" } else { "a scan of" };
        assert!(wrong.measurements.is_empty() && reason.contains(expected), "{threads}: {reason}");
    }
}

/// Goal: differences in the replay are noted with their counts. Method: lookups that contradict the
/// writes before them, batches over keys of several threads, a scan among joined writes.
#[test]
fn contradictions_are_told() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name);
    let get = |found| Detail::Get(Some(found));
    let events = [
        event(0, b"a", Detail::Put(10)),
        event(0, b"a", get(Some(11))),
        event(0, b"a", get(None)),
        event(0, b"a", get(Some(10))),
        event(0, b"b", get(None)),
        event(0, b"b", get(Some(3))),
    ];
    trace_of(&path("odd"), KeyForm::Raw, &events);
    let notes = Replay::new(&path("odd")).load().unwrap().notes().to_vec();
    assert!(notes.len() == 1 && notes[0].starts_with("3 lookups found something else"), "{notes:?}");

    let keys: Vec<[u8; 8]> = (0..100_u64).map(u64::to_be_bytes).collect();
    let joined = |key, detail| Event { joined: true, ..event(0, key, detail) };
    let batch: Vec<Event<'_>> = keys.iter().map(|key| joined(key, Detail::Put(1))).collect();
    trace_of(&path("batch"), KeyForm::Raw, &batch);
    let notes = |threads| Replay { threads, ..Replay::new(&path("batch")) }.load().unwrap().notes().to_vec();
    assert!(
        notes(1).is_empty() && notes(4)[0].contains("operations of batches are done apart"),
        "{:?}",
        notes(4)
    );

    let mixed = [
        event(0, b"a", Detail::Put(1)),
        joined(b"b", Detail::Put(1)),
        joined(b"a", Detail::Scan { entries: 2, backwards: false }),
        joined(b"c", Detail::Put(1)),
    ];
    trace_of(&path("mixed"), KeyForm::Raw, &mixed);
    let loaded = Replay::new(&path("mixed")).load().unwrap();
    let parts: Vec<bool> = loaded.steps[0].iter().map(|step| step.joined).collect();
    assert_eq!((parts, loaded.left()), (vec![false, true, false, false], 3));
    assert!(!measured(&scratch, &Replay::new(&path("mixed")), Fault::None).measurements.is_empty());
}
