use std::collections::BTreeMap;
use std::time::Duration;

use cairn_codec::key_hash::KeyHash;
use cairn_vfs::{FaultFs, FaultOptions, ManualClock, MemFs, OpenOptions};

use super::*;
use crate::event::{Event, Kind};
use crate::reader::{Ending, Trace};

const PATH: &str = "/trace";

fn memory() -> Arc<dyn Fs> {
    Arc::new(MemFs::new())
}

fn recorder(fs: &Arc<dyn Fs>, options: Options) -> (Recorder, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000)));
    (Recorder::with_clock(fs, Path::new(PATH), options, clock.clone()).unwrap(), clock)
}

fn raw() -> Options {
    Options { keys: KeyForm::Raw, ..Options::default() }
}

/// Goal: every kind of operation is recorded correctly. Method: one of each, read back.
#[test]
fn operations_come_back() {
    let fs = memory();
    let (recorder, clock) = recorder(&fs, Options { source: "unit".to_owned(), ..raw() });
    recorder.put(0, b"a", 10);
    clock.advance(Duration::from_millis(5));
    recorder.get(7, b"b", None);
    recorder.get(0, b"a", Some(10));
    recorder.delete(0, b"a");
    recorder.scan(0, b"c", 12, true);
    recorder.record(0, b"d", Detail::DeleteRange { end: b"e", end_bytes: 1 });
    recorder.record(0, b"f", Detail::Merge(3));
    recorder.statement("SELECT 1", 1);
    assert_eq!(recorder.finish().unwrap().records, 8);
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    assert_eq!((trace.header().source.as_str(), trace.header().started_ns), ("unit", 1_000_000_000_000));
    let events: Vec<Event<'_>> = trace.events().map(|event| event.unwrap()).collect();
    let kinds: Vec<Kind> = events.iter().map(Event::kind).collect();
    let expected = [
        Kind::Put,
        Kind::Get,
        Kind::Get,
        Kind::Delete,
        Kind::Scan,
        Kind::DeleteRange,
        Kind::Merge,
        Kind::Statement,
    ];
    assert_eq!(kinds, expected);
    assert_eq!((events[1].keyspace, events[1].detail), (7, Detail::Get(Some(None))));
    assert_eq!(events[2].detail, Detail::Get(Some(Some(10))));
    assert_eq!(events[4].detail, Detail::Scan { entries: 12, backwards: true });
    assert_eq!(events[5].detail, Detail::DeleteRange { end: b"e", end_bytes: 1 });
    assert_eq!(events[7].key, b"SELECT 1");
}

/// Goal: hashed keys reveal nothing but their length, equal keys have equal hashes, and two traces
/// cannot be joined.
#[test]
fn hashes_hide_keys() {
    let hashes = |options: Options| {
        let fs = memory();
        let (recorder, _) = recorder(&fs, options);
        recorder.put(0, b"secret-key", 1);
        recorder.get(0, b"secret-key", Some(1));
        recorder.get(0, b"another", None);
        recorder.finish().unwrap();
        let map = fs.open(Path::new(PATH), OpenOptions::read()).unwrap().map().unwrap();
        assert!(!map.windows(6).any(|window| window == b"secret"));
        let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
        trace
            .events()
            .map(|event| event.map(|event| (event.id(), event.key_bytes)).unwrap())
            .collect::<Vec<_>>()
    };
    let (one, two) = (hashes(Options::default()), hashes(Options::default()));
    assert_eq!((one[0], one[0].1, one[2].1), (one[1], 10, 7));
    assert_ne!(one[0].0, one[2].0);
    assert_ne!(one[0].0, two[0].0);
    let seeded = || Options { hash_seed: Some(5), ..Options::default() };
    assert_eq!(hashes(seeded()), hashes(seeded()));
}

/// Goal: a sample has all operations of its keys and none of others. Method: 4,000 keys three times
/// each, sampled one in four.
#[test]
fn samples_are_of_keys() {
    let fs = memory();
    let (recorder, _) = recorder(&fs, Options { sample: Sample::OneIn(4), hash_seed: Some(1), ..raw() });
    for round in 0..3_u32 {
        for key in 0..4_000_u32 {
            recorder.put(0, &key.to_be_bytes(), round as usize);
        }
    }
    recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for event in trace.events() {
        *counts.entry(event.unwrap().key.to_vec()).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 3));
    assert!((850..1150).contains(&counts.len()), "{}", counts.len());
    assert_eq!(trace.header().sample, 4);
}

/// Goal: the thread-local decision equals the recorder's: exactly the keys of the sample are in the
/// trace, at all key lengths, and the details of other operations are not computed. Method: two
/// recorders with different seeds, one after the other and in turns, with single operations and
/// batches; the sample is computed independently.
#[test]
fn skipped_keys_are_not_in_the_sample() {
    const KEYS: u64 = 6_000;
    let key_of = |number: u64| {
        let bytes = if number % 500 == 7 {
            KEY_BYTES_MAX - 1 + number as usize % 3
        } else {
            8 + number as usize % 150
        };
        let mut key = vec![number as u8; bytes];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    };
    let is_wanted = |key: &[u8], seed: u64| {
        KeyHash::new(seed).of(&key[..key.len().min(KEY_BYTES_MAX)]) <= crate::sample::threshold(3)
    };
    let stores = [memory(), memory()];
    let options = |seed| Options { sample: Sample::OneIn(3), hash_seed: Some(seed), ..Options::default() };
    let recorders = [0, 1].map(|at| recorder(&stores[at], options(at as u64)).0);
    let mut wanted = [const { Vec::new() }; 2];
    let (mut asked, mut singles) = (0, 0);
    for number in 0..KEYS {
        // Each recorder for 1,000 keys, then in turns, so that the thread switches recorders each
        // time.
        let at = if number < KEYS - 100 { number as usize / 1_000 % 2 } else { number as usize % 2 };
        let key = key_of(number);
        let in_batch = number % 5 == 0;
        if in_batch {
            recorders[at].batch(|batch| batch.record(0, &key, Detail::Put(number)));
        } else {
            recorders[at].record_with(0, &key, || {
                asked += 1;
                Detail::Put(number)
            });
        }
        if is_wanted(&key, at as u64) {
            singles += usize::from(!in_batch);
            wanted[at].push(Detail::Put(number));
        }
    }
    // Operations that read the clock compute their details too: the first ones after each switch,
    // and each 512th.
    assert!((singles..singles + 250).contains(&asked), "{asked} asked, {singles} wanted");
    for (at, recorder) in recorders.iter().enumerate() {
        recorder.finish().unwrap();
        let trace = Trace::open(&*stores[at], Path::new(PATH)).unwrap();
        let recorded: Vec<Detail<'_>> = trace.events().map(|event| event.unwrap().detail).collect();
        assert!(recorded == wanted[at], "recorder {at}: another sample than that of one key in three");
    }
}

/// Goal: times are exact while operations are rare, and late by at most 63 operations of a
/// microsecond while they are frequent. Method: a manual clock: a burst, a pause, rare operations.
#[test]
fn clock_is_read_rarely() {
    let fs = memory();
    let (recorder, clock) = recorder(&fs, raw());
    for _ in 0..256 {
        clock.advance(Duration::from_micros(1));
        recorder.put(0, b"burst", 1);
    }
    for _ in 0..104 {
        clock.advance(Duration::from_millis(50));
        recorder.put(0, b"rare", 1);
    }
    recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    let times: Vec<u64> = trace.events().map(|event| event.unwrap().time_ns).collect();
    for (number, time) in times.iter().enumerate().take(256) {
        let real = (number as u64 + 1) * 1_000;
        assert!(real - time <= 63_000, "operation {number} at {real} is noted at {time}");
    }
    let exact = |number: usize| 256_000 + (number as u64 - 255) * 50_000_000;
    // Times up to the next clock read are late, because there is no helper here that would tell
    // threads that time has passed.
    assert!((320..360).all(|number| times[number] == exact(number)), "{times:?}");
}

/// Goal: operations older than a second are in the file even if their block is not full. Method:
/// operations over two seconds, then a copy of the file.
#[test]
fn old_operations_are_written() {
    let fs = memory();
    let (recorder, clock) = recorder(&fs, raw());
    for _ in 0..21 {
        recorder.put(0, b"key", 1);
        clock.advance(Duration::from_millis(100));
    }
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    assert!(trace.records() >= 10 && matches!(trace.ending(), Ending::Cut { .. }), "{trace:?}");
    recorder.flush().unwrap();
    assert_eq!(Trace::open(&*fs, Path::new(PATH)).unwrap().records(), 21);
}

/// Goal: the size limit and a full disk end the recording but not the program, and both are
/// reported.
/// Method: a small limit; a quota.
#[test]
fn failed_recording_does_not_disturb_the_program() {
    let fs = memory();
    let (recorder, _) = recorder(&fs, Options { bytes_max: 100_000, ..raw() });
    for number in 0..100_000_u32 {
        recorder.put(0, &number.to_be_bytes(), 1);
    }
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.records + summary.dropped, 100_000);
    assert!(summary.dropped > 50_000 && summary.bytes < 200_000, "{summary:?}");
    assert_eq!(recorder.finish().unwrap(), summary);
    recorder.put(0, b"late", 1);
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    assert_eq!(trace.ending(), Ending::Complete { dropped: summary.dropped });

    let faults = FaultFs::new(FaultOptions::seeded(1));
    faults.set_quota(Some(100_000));
    let fs: Arc<dyn Fs> = Arc::new(faults);
    let (recorder, _) = self::recorder(&fs, raw());
    for number in 0..100_000_u32 {
        recorder.put(0, &number.to_be_bytes(), 1);
    }
    assert!(recorder.finish().unwrap_err().is_full());
    assert!(Trace::open(&*fs, Path::new(PATH)).unwrap().records() > 5_000);
}

/// Goal: a disk that is full from the start leaves no file that could pass for a damaged one.
/// Method: a quota too small for a header.
#[test]
fn full_disk_at_creation_is_an_error() {
    let faults = FaultFs::new(FaultOptions::seeded(1));
    faults.set_quota(Some(8));
    let fs: Arc<dyn Fs> = Arc::new(faults);
    let error = Recorder::create_in(&fs, Path::new(PATH), raw()).unwrap_err();
    assert!(error.is_full() && !fs.exists(Path::new(PATH)).unwrap(), "{error}");
}

/// Goal: no operation of any thread is lost. Method: four threads, with batches among their
/// operations.
#[test]
fn threads_record_together() {
    let fs = memory();
    let recorder = Recorder::create_in(&fs, Path::new(PATH), raw()).unwrap();
    cairn_vfs::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let recorder = recorder.clone();
            scope.spawn(move || {
                for number in 0..5_000_u32 {
                    recorder.get(thread, &number.to_be_bytes(), None);
                    recorder.batch(|batch| {
                        batch.record(thread, b"one", Detail::Put(1));
                        batch.record(thread, b"two", Detail::Delete);
                    });
                }
                recorder.flush().unwrap();
            });
        }
    });
    assert_eq!(recorder.finish().unwrap().records, 60_000);
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    let mut of_thread = [0; 4];
    let mut before: Option<(u32, bool)> = None;
    for event in trace.events() {
        let event = event.unwrap();
        of_thread[event.keyspace as usize] += 1;
        if event.joined {
            assert_eq!(before, Some((event.keyspace, true)), "a batch is whole");
        }
        before = Some((event.keyspace, event.kind() == Kind::Put));
    }
    assert_eq!(of_thread, [15_000; 4]);
}

/// Goal: the number of dropped operations counts only those of the sample, because others would not
/// have been recorded anyway. Method: single operations and batches far beyond a small limit,
/// sampled one key in eight.
#[test]
fn only_operations_of_the_sample_are_dropped() {
    const KEYS: u32 = 200_000;
    let fs = memory();
    let sample = Sample::OneIn(8);
    let (recorder, _) = recorder(&fs, Options { bytes_max: 10_000, sample, hash_seed: Some(3), ..raw() });
    for number in 0..KEYS {
        let key = number.to_be_bytes();
        match number % 3 {
            0 => recorder.batch(|batch| batch.record(0, &key, Detail::Delete)),
            _ => recorder.put(0, &key, 1),
        }
    }
    let summary = recorder.finish().unwrap();
    let is_wanted = |number: &u32| KeyHash::new(3).of(&number.to_be_bytes()) <= crate::sample::threshold(8);
    let wanted = (0..KEYS).filter(is_wanted).count() as u64;
    assert!(summary.dropped > 1_000, "{summary:?}");
    assert_eq!(summary.records + summary.dropped, wanted);
}

/// Goal: operations of a thread that has ended are in the trace, two recorders of one thread do not
/// mix, and operations recorded within a batch count as dropped instead of causing a panic. Method:
/// operation counts that do not fill a block.
#[test]
fn records_of_ended_threads_are_written() {
    let fs = memory();
    let recorder = Recorder::create_in(&fs, Path::new(PATH), raw()).unwrap();
    let other = Recorder::create_in(&fs, Path::new("/other"), raw()).unwrap();
    let of_thread = recorder.clone();
    let put = move || (0..11).for_each(|_| of_thread.put(0, b"thread", 1));
    thread::spawn("recording", put).unwrap().join().unwrap();
    for _ in 0..5 {
        recorder.put(0, b"one", 1);
        other.put(0, b"other", 1);
    }
    recorder.batch(|batch| {
        batch.record(0, b"inside", Detail::Delete);
        recorder.put(0, b"within", 1);
    });
    assert_eq!(recorder.finish().unwrap().records, 11 + 5 + 1);
    assert_eq!(recorder.finish().unwrap().dropped, 1);
    drop(other);
    let trace = Trace::open(&*fs, Path::new("/other")).unwrap();
    assert!(trace.events().all(|event| event.unwrap().key == b"other"));
    assert_eq!((trace.records(), trace.ending()), (5, Ending::Complete { dropped: 0 }));
}

/// Goal: a finished trace contains the operations of threads that still run, and none that they
/// recorded elsewhere. Method: a running thread with three operations, and one that has used
/// another recorder.
#[test]
fn records_of_other_threads_are_flushed() {
    let fs = memory();
    let (recorder, _) = recorder(&fs, raw());
    let other = Recorder::create_in(&fs, Path::new("/other"), raw()).unwrap();
    let (said, hears) = std::sync::mpsc::channel();
    cairn_vfs::thread::scope(|scope| {
        for (recorder, count) in [(recorder.clone(), 3), (other.clone(), 5)] {
            let said = said.clone();
            let (end, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                (0..count).for_each(|_| recorder.put(0, b"kept", 1));
                said.send(end).unwrap();
                let _ = wait.recv();
                // After the trace was finished.
                recorder.put(0, b"late", 1);
            });
        }
        let running: Vec<_> = (0..2).map(|_| hears.recv().unwrap()).collect();
        recorder.put(0, b"own", 1);
        let summary = recorder.finish().unwrap();
        assert_eq!((summary.records, summary.dropped), (4, 0));
        drop(running);
    });
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    assert!(trace.events().all(|event| event.unwrap().key != b"late"));
    assert_eq!(trace.ending(), Ending::Complete { dropped: 0 });
    assert_eq!(other.finish().unwrap().records, 6);
}

/// Goal: threads beyond the number of rings share lanes, in which batches stay whole, and lanes of
/// ended threads are reused. Method: three times as many concurrent threads as rings, twice.
#[test]
fn more_threads_than_rings() {
    const THREADS: u32 = 200;
    let fs = memory();
    let recorder = Recorder::create_in(&fs, Path::new(PATH), raw()).unwrap();
    for _ in 0..2 {
        let all_there = std::sync::Barrier::new(THREADS as usize);
        cairn_vfs::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (recorder, all_there) = (&recorder, &all_there);
                scope.spawn(move || {
                    recorder.get(thread, b"first", None);
                    all_there.wait();
                    for _ in 0..20 {
                        recorder.batch(|batch| {
                            batch.record(thread, b"one", Detail::Put(1));
                            batch.record(thread, b"two", Detail::Delete);
                        });
                    }
                });
            }
        });
    }
    let summary = recorder.finish().unwrap();
    assert_eq!((summary.records, summary.dropped), (2 * u64::from(THREADS) * 41, 0));
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    assert!((64..=80).contains(&trace.lanes()), "{}", trace.lanes());
    let mut before: Option<(u32, bool)> = None;
    for event in trace.events() {
        let event = event.unwrap();
        assert_eq!(event.joined, event.kind() == Kind::Delete);
        if event.joined {
            assert_eq!(before, Some((event.keyspace, true)), "a batch is whole");
        }
        before = Some((event.keyspace, event.kind() == Kind::Put));
    }
}

/// Goal: keys too long for a ring are recorded in order, batches with them stay whole, and sampling
/// keeps batches intact. Method: short and long keys in turn, more than a ring holds.
#[test]
fn long_keys_pass_by_the_ring() {
    let fs = memory();
    let (recorder, _) = recorder(&fs, Options { sample: Sample::OneIn(2), hash_seed: Some(9), ..raw() });
    let key_of = |number: u64| {
        let mut key = number.to_be_bytes().to_vec();
        key.resize(if number.is_multiple_of(3) { 3_000 } else { 20 }, 7);
        key
    };
    for number in 0..10_000_u64 {
        recorder.batch(|batch| {
            batch.record(0, &key_of(number), Detail::Put(number));
            batch.record(5_000, &key_of(number), Detail::Get(Some(Some(number << 32))));
            batch.record(0, &key_of(number + 1), Detail::Delete);
        });
    }
    let summary = recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    let mut events = trace.events();
    for number in 0..10_000_u64 {
        let is_sampled = |number| KeyHash::new(9).of(&key_of(number)) <= u64::MAX / 2;
        let mut expected = Vec::new();
        if is_sampled(number) {
            expected.push((0, number, Detail::Put(number)));
            expected.push((5_000, number, Detail::Get(Some(Some(number << 32)))));
        }
        if is_sampled(number + 1) {
            expected.push((0, number + 1, Detail::Delete));
        }
        for (at, (keyspace, of_key, detail)) in expected.into_iter().enumerate() {
            let event = events.next().unwrap().unwrap();
            assert_eq!((event.joined, event.keyspace, event.detail), (at > 0, keyspace, detail));
            assert_eq!(event.key, key_of(of_key));
        }
    }
    assert!(events.next().is_none());
    assert!((13_500..16_500).contains(&summary.records), "{summary:?}");
}

/// Goal: operations of an idle thread are written by other threads. Method: a batch of a thread
/// that then waits, two seconds of operations of another thread.
#[test]
fn records_of_idle_threads_are_written() {
    let fs = memory();
    let (recorder, clock) = recorder(&fs, raw());
    let (said, hears) = std::sync::mpsc::channel();
    cairn_vfs::thread::scope(|scope| {
        let quiet = recorder.clone();
        scope.spawn(move || {
            quiet.batch(|batch| batch.record(7, b"quiet", Detail::Delete));
            let (end, wait) = std::sync::mpsc::channel::<()>();
            said.send(end).unwrap();
            let _ = wait.recv();
        });
        let running = hears.recv().unwrap();
        for _ in 0..30 {
            clock.advance(Duration::from_millis(100));
            recorder.put(0, b"key", 1);
        }
        let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
        assert!(trace.events().any(|event| event.unwrap().keyspace == 7), "{trace:?}");
        drop(running);
    });
    recorder.finish().unwrap();
}

/// Goal: invalid options and existing files are refused.
#[test]
fn refusals() {
    let fs = memory();
    assert!(
        Recorder::create_in(&fs, Path::new(PATH), Options { sample: Sample::OneIn(0), ..raw() }).is_err()
    );
    let _one = Recorder::create_in(&fs, Path::new(PATH), raw()).unwrap();
    assert!(Recorder::create_in(&fs, Path::new(PATH), raw()).is_err());
}
