use std::sync::Arc;

use cairn_vfs::MemFs;
use proptest::prelude::*;

use super::*;
use crate::event::Detail;
use crate::format::{Adaptive, KeyForm, SampleHash};
use crate::recorder::{Options, Recorder};

const PATH: &str = "/trace";

/// Returns the bytes of a trace with several blocks.
fn recorded(puts: u32) -> Vec<u8> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let recorder = Recorder::create_in(&fs, Path::new(PATH), Options::default()).unwrap();
    for number in 0..puts {
        recorder.put(number % 3, &number.to_le_bytes(), number as usize);
    }
    recorder.finish().unwrap();
    let map = fs.open(Path::new(PATH), OpenOptions::read()).unwrap().map().unwrap();
    map.to_vec()
}

fn open(bytes: &[u8]) -> Result<Trace> {
    let fs = MemFs::new();
    let file = fs.open(Path::new(PATH), OpenOptions::create_new()).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    Trace::open(&fs, Path::new(PATH))
}

/// Goal: a killed program's trace is readable up to its last complete block. Method: a trace cut at
/// every 9,973rd byte.
#[test]
fn cut_traces_are_read() {
    let bytes = recorded(20_000);
    let whole = open(&bytes).unwrap();
    assert_eq!((whole.records(), whole.ending()), (20_000, Ending::Complete { dropped: 0 }));
    let mut known = 0;
    for cut in (whole.header().encode().len()..bytes.len()).step_by(9_973) {
        let trace = open(&bytes[..cut]).unwrap();
        assert!(matches!(trace.ending(), Ending::Cut { .. }), "{cut}: {trace:?}");
        assert!(trace.records() >= known);
        known = trace.records();
        assert_eq!(trace.events().filter(std::result::Result::is_ok).count() as u64, known);
    }
    assert!(known > 15_000);
}

/// Goal: damage in the middle is told from a cut, and nothing after it is returned. Method: a
/// flipped bit in the second of several blocks; a file that ends in zeros.
#[test]
fn damage_is_reported() {
    let mut bytes = recorded(20_000);
    let second = open(&bytes).unwrap().blocks[1].offset;
    bytes[second + 5] ^= 1;
    let trace = open(&bytes).unwrap();
    assert_eq!(trace.ending(), Ending::Damaged { offset: (second - BLOCK_HEAD_BYTES) as u64 });
    assert_eq!(trace.blocks.len(), 1);
    bytes[second - BLOCK_HEAD_BYTES..].fill(0);
    assert!(matches!(open(&bytes).unwrap().ending(), Ending::Cut { .. }));
    for (bytes, word) in [(&b""[..], "CAIRNTRC"), (b"CAIRNTRC", "cut short"), (b"something else", "CAIRNTRC")]
    {
        let error = open(bytes).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains(PATH), "{error}");
        assert_eq!(error.contains("is not a trace: it does not begin with"), word == "CAIRNTRC", "{error}");
    }
    let mut other = recorded(1);
    other[8] = 9;
    assert!(matches!(open(&other), Err(Error::Unsupported { .. })));
}

/// Goal: invalid records in a block with a valid checksum cause an error that names the place, and
/// no panic.
/// Method: sealed blocks with too few, too many and impossible records.
#[test]
fn forged_records_are_refused() {
    let header = Header {
        keys: KeyForm::Raw,
        timed: true,
        started_ns: 0,
        file_id: 1,
        sample: 1,
        adaptive: None,
        source: String::new(),
    };
    for (payload, records) in
        [(&b"\x02\x01k"[..], 2), (b"\x02\x01k\x02\x01k", 1), (b"\x0f\x01k", 1), (b"\x02\xff\xff\x7f", 1)]
    {
        let mut bytes = header.encode();
        let mut block = vec![0; BLOCK_HEAD_BYTES];
        block.extend_from_slice(payload);
        let head = BlockHead {
            end: false,
            bytes: payload.len() as u32,
            records,
            lane: 0,
            sample: 0,
            first_ns: 0,
            last_ns: 0,
            number: 0,
        };
        head.seal(&mut block, 1);
        bytes.extend_from_slice(&block);
        let trace = open(&bytes).unwrap();
        let last = trace.events().last().unwrap();
        assert!(matches!(last, Err(Error::Corruption { offset: 56.., .. })), "{last:?}");
    }
}

/// Goal: traces of version 1 are read as before, whatever they hold in the fields that version 2
/// added, and later versions are refused. Method: in each version, a trace built by hand without an
/// end, with a block that claims one key in four.
#[test]
fn versions_are_told_apart() {
    let key = |number: u64| (number * (u64::MAX / 100)).to_le_bytes();
    let forged = |hash: Option<SampleHash>| {
        let adaptive = hash.map(|hash| Adaptive { hash, seed: 0 });
        let (keys, source) = (KeyForm::Hashed, String::new());
        let header = Header { keys, timed: true, started_ns: 0, file_id: 1, sample: 1, adaptive, source };
        let mut block = vec![0; BLOCK_HEAD_BYTES];
        for number in 0..100 {
            block.push(2);
            block.extend_from_slice(&key(number));
            block.push(8);
        }
        let bytes = block.len() as u32 - BLOCK_HEAD_BYTES as u32;
        let (lane, sample, first_ns, last_ns, number) = (0, 4, 0, 0, 0);
        let head = BlockHead { end: false, bytes, records: 100, lane, sample, first_ns, last_ns, number };
        head.seal(&mut block, 1);
        [header.encode(), block].concat()
    };
    let (one, two) = (open(&forged(None)).unwrap(), open(&forged(Some(SampleHash::Xxh3))).unwrap());
    assert_eq!((one.sample(), one.records(), one.events().count(), one.lowered()), (1, 100, 100, None));
    assert_eq!((two.sample(), two.records(), two.events().count()), (4, 26, 26));
    assert!((0..26).zip(two.events()).all(|(number, event)| event.unwrap().key == key(number)));
    assert_eq!(two.lowered().map(|lowered| lowered.operation_ns), Some(None));
    for version in [0, 4, 255] {
        let mut bytes = forged(Some(SampleHash::Rapid));
        bytes[8] = version;
        let error = open(&bytes).unwrap_err();
        assert!(
            matches!(&error, Error::Unsupported { what, .. } if what.contains("expected 1 to 3")),
            "{error}"
        );
    }
}

/// Goal: raw keys are filtered by the hash function of the trace's version. Method: in either
/// version, a trace built by hand with a block that claims one key in four; the sample is computed
/// independently.
#[test]
fn each_version_has_its_hash() {
    let key = |number: u32| format!("key {number}").into_bytes();
    let stays = |hash: SampleHash| {
        let adaptive = Some(Adaptive { hash, seed: 77 });
        let (keys, source) = (KeyForm::Raw, String::new());
        let header = Header { keys, timed: true, started_ns: 0, file_id: 1, sample: 1, adaptive, source };
        let mut block = vec![0; BLOCK_HEAD_BYTES];
        for number in 0..100 {
            let key = key(number);
            block.extend_from_slice(&[2, key.len() as u8]);
            block.extend_from_slice(&key);
        }
        let bytes = block.len() as u32 - BLOCK_HEAD_BYTES as u32;
        let (lane, sample, first_ns, last_ns, number) = (0, 4, 0, 0, 0);
        let head = BlockHead { end: false, bytes, records: 100, lane, sample, first_ns, last_ns, number };
        head.seal(&mut block, 1);
        let trace = open(&[header.encode(), block].concat()).unwrap();
        trace.events().map(|event| event.unwrap().key.to_vec()).collect::<Vec<_>>()
    };
    let expected = |hash: fn(&[u8]) -> u64| {
        (0..100).map(key).filter(|key| hash(key) <= u64::MAX / 4).collect::<Vec<_>>()
    };
    let before = expected(|key| cairn_codec::checksum::xxh3_64_seeded(key, 77));
    let now = expected(|key| cairn_codec::key_hash::KeyHash::new(77).of(key));
    assert!(before != now && before.len() > 10 && now.len() > 10, "{before:?}, {now:?}");
    assert_eq!((stays(SampleHash::Xxh3), stays(SampleHash::Rapid)), (before, now));
}

/// Goal: lanes are merged by time and batches stay whole. Method: two threads take turns under a
/// manual clock, one of them with a batch.
#[test]
fn lanes_are_merged() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(cairn_vfs::ManualClock::new(std::time::Duration::ZERO));
    let recorder = Recorder::with_clock(
        &fs,
        Path::new(PATH),
        Options { keys: KeyForm::Raw, ..Options::default() },
        clock.clone(),
    )
    .unwrap();
    cairn_vfs::thread::scope(|scope| {
        let (did, done) = std::sync::mpsc::channel();
        let workers: Vec<_> = [false, true]
            .map(|batch| {
                let (todo, next) = std::sync::mpsc::channel::<&'static [u8]>();
                let (recorder, did) = (&recorder, did.clone());
                scope.spawn(move || {
                    for key in next {
                        if batch {
                            recorder.batch(|batch| {
                                batch.record(0, key, Detail::Put(1));
                                batch.record(0, key, Detail::Delete);
                            });
                        } else {
                            recorder.put(0, key, 1);
                        }
                        did.send(()).unwrap();
                    }
                });
                todo
            })
            .into();
        for (at, key) in [&b"a"[..], b"b", b"c", b"d"].into_iter().enumerate() {
            clock.advance(std::time::Duration::from_millis(10));
            workers[at % 2].send(key).unwrap();
            done.recv().unwrap();
        }
    });
    recorder.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new(PATH)).unwrap();
    let seen: Vec<(u8, bool, u64)> = trace
        .events()
        .map(|event| event.unwrap())
        .map(|event| (event.key[0], event.joined, event.time_ns / 1_000_000))
        .collect();
    let expected = [
        (b'a', false, 10),
        (b'b', false, 20),
        (b'b', true, 20),
        (b'c', false, 30),
        (b'd', false, 40),
        (b'd', true, 40),
    ];
    assert_eq!(seen, expected);
    assert_eq!(trace.lanes(), 2, "each thread has a lane");
}

proptest! {
    #![proptest_config(crate::test_config::cases(128))]

    /// Goal: damaged or arbitrary input never causes a panic. Method: random changes of an intact
    /// trace, and random bytes.
    #[test]
    fn arbitrary_bytes_cause_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut: prop::sample::Index,
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = recorded(200);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        prop_assert!(fuzz(&bytes) <= 200);
        fuzz(&noise);
    }
}
