//! One thread, against a `BTreeMap`.

use cairn_vfs::Rng;
use proptest::prelude::*;

use super::*;

/// Inserts `count` versions of keys that `key` draws, in a random order of sequence numbers.
fn random(count: usize, seed: u64, key: impl Fn(&mut SeededRng) -> Vec<u8>) -> (Arc<Memtable>, Model) {
    let (memtable, mut model, mut rng) = (Arc::new(Memtable::new()), Model::default(), SeededRng::new(seed));
    let mut seqnos: Vec<Seqno> = (0..count as Seqno).map(|seqno| seqno * 3).collect();
    // All late, some late, none late.
    match rng.below(3) {
        0 => shuffle(&mut seqnos, &mut rng),
        1 => seqnos.chunks_mut(4).for_each(|part| shuffle(part, &mut rng)),
        _ => {}
    }
    for seqno in seqnos {
        let (key, kind, len) = (key(&mut rng), kind(&mut rng), rng.below(40) as usize);
        let value = vec![seqno as u8; if kind == Kind::Delete { 0 } else { len }];
        memtable.insert(&key, seqno, kind, &value).unwrap();
        model.insert(&key, seqno, kind, &value);
    }
    (memtable, model)
}

/// Checks content and lookups at every `step`th entry and beside it.
fn check(memtable: &Arc<Memtable>, model: &Model, step: usize) {
    check_content(memtable, model);
    let mut cursor = memtable.cursor();
    for (key, seqno, ..) in model.all().step_by(step) {
        for at in [seqno, seqno + 1, seqno.saturating_sub(1), 0, Seqno::MAX] {
            check_at(memtable, &mut cursor, model, &key, at);
        }
        let longer = [&key[..], &[0]].concat();
        let shorter = &key[..key.len().saturating_sub(1)];
        let mut greater = key.clone();
        if let Some(last) = greater.last_mut() {
            *last = last.wrapping_add(1);
        }
        for key in [&longer, shorter, &greater, &[], &[255; 310]] {
            check_at(memtable, &mut cursor, model, key, seqno);
        }
    }
}

proptest! {
    #![proptest_config(crate::test_config::cases(48))]

    /// Goal: a memtable is an ordered map of versions, whatever the keys and the order of arrival. Method: keys that
    /// are hard on prefixes and heads, many versions of some; every position from both sides.
    #[test]
    fn hard_keys(seed: u64, count in 0..600_usize) {
        let (memtable, model) = random(count, seed, hard_key);
        check(&memtable, &model, 7);
    }

    /// Goal: as above with few keys and long chains of versions.
    #[test]
    fn few_keys(seed: u64, count in 0..600_usize, keys in 1..6_u64) {
        let (memtable, model) = random(count, seed, |rng| vec![b'k'; rng.below(keys) as usize]);
        check(&memtable, &model, 7);
    }
}

/// Goal: deep trees hold too, in whatever order they grow. Method: 12,000 keys (three levels) of several shapes, in
/// ascending, descending and random order and from both ends to the middle.
#[test]
fn deep_trees() {
    const COUNT: u64 = 12_000;
    let shapes: [fn(u64) -> Vec<u8>; 5] = [
        |number| format!("{number:016}").into_bytes(),
        |number| number.to_be_bytes().to_vec(),
        |number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
        |number| {
            format!("tenant-{:04}/a long common path of an object/{number:012}", number % 97).into_bytes()
        },
        // Prefixes of each other: lengths differ, zero bytes at the ends.
        |number| {
            let mut key = vec![b'p'; (number % 50) as usize];
            key.extend((number / 50).to_be_bytes().into_iter().skip_while(|byte| *byte == 0));
            key.resize(key.len() + (number % 3) as usize, 0);
            key
        },
    ];
    let mut rng = SeededRng::new(11);
    for (shape, key) in shapes.into_iter().enumerate() {
        for order in 0..4 {
            let mut numbers: Vec<u64> = (0..COUNT).collect();
            match order {
                0 => {}
                1 => numbers.reverse(),
                2 => shuffle(&mut numbers, &mut rng),
                _ => numbers = (0..COUNT / 2).flat_map(|number| [number, COUNT - 1 - number]).collect(),
            }
            let (memtable, mut model) = (Arc::new(Memtable::new()), Model::default());
            for (seqno, number) in numbers.into_iter().enumerate() {
                let (key, value) = (key(number), number.to_le_bytes());
                memtable.insert(&key, seqno as Seqno, Kind::Put, &value).unwrap();
                model.insert(&key, seqno as Seqno, Kind::Put, &value);
            }
            println!("shape {shape}, order {order}");
            check(&memtable, &model, 997);
        }
    }
}

/// Goal: any key and value within the limits is stored, empty ones and large ones included; what cannot be is refused
/// without a trace.
#[test]
fn limits() {
    let (memtable, mut model) = (Arc::new(Memtable::new()), Model::default());
    check_content(&memtable, &model);
    let large = vec![7; 3 << 20];
    let keys = [&b""[..], b"\0", b"\0\0", &large[..1 << 16], &large[..(1 << 16) + 1], &[255; 24], &[255; 25]];
    for (seqno, key) in (crate::kind::SEQNO_MAX - 20..).zip(keys) {
        for (seqno, value) in [(seqno, &large[..]), (seqno - 100, &[])] {
            memtable.insert(key, seqno, Kind::Put, value).unwrap();
            model.insert(key, seqno, Kind::Put, value);
        }
    }
    let error = memtable.insert(b"k", crate::kind::SEQNO_MAX + 1, Kind::Put, b"").unwrap_err();
    assert_eq!(error.kind(), cairn_vfs::ErrorKind::Invalid);
    assert!(memtable.delete_range(b"a", b"b", crate::kind::SEQNO_MAX + 1).is_err());
    assert!(!memtable.has_range_tombstones());
    check(&memtable, &model, 1);
}

/// Goal: memory is counted: all that was inserted, and not much more. Method: entries of several sizes; an empty
/// memtable costs little, a filled one at most an eighth more than its chunks must hold.
#[test]
fn memory() {
    let empty = Memtable::new().allocated_bytes();
    assert!((1..=8 << 10).contains(&empty), "{empty} bytes");
    for value_len in [0, 8, 100, 5_000] {
        let memtable = Memtable::new();
        let (value, mut held, mut last) = (vec![1; value_len], 0, 0);
        for number in 0..20_000_u64 {
            memtable.insert(&number.to_be_bytes(), number, Kind::Put, &value).unwrap();
            held += 24 + 8 + value_len.next_multiple_of(8);
            let allocated = memtable.allocated_bytes();
            assert!(allocated >= last && allocated >= held);
            last = allocated;
        }
        // Full leaves of 64 take 17 bytes an entry; inner nodes, next to nothing.
        let needed = held + 20_000 * 18;
        assert!(last <= needed + needed / 4 + (1 << 14), "{last} bytes for {needed}, values of {value_len}");
    }
}

/// Goal: versions of a key that is written over and over are found in a logarithmic number of steps, not by walking
/// past all newer ones. Method: a walk backwards over 200,000 versions, each step of which searches; it would take
/// hours otherwise.
#[test]
fn long_chains() {
    const COUNT: Seqno = 200_000;
    let memtable = Arc::new(Memtable::new());
    for seqno in 0..COUNT {
        memtable.insert(b"counter", seqno, Kind::Merge, &seqno.to_le_bytes()).unwrap();
    }
    let mut cursor = memtable.cursor();
    cursor.seek_last().unwrap();
    for seqno in 0..COUNT {
        assert_eq!((cursor.seqno(), cursor.value()), (seqno, &seqno.to_le_bytes()[..]));
        let found = memtable.versions(b"counter", seqno).next().unwrap();
        assert_eq!(found.seqno, seqno);
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
}

/// Goal: range tombstones are all there, with whatever was asked for between them. Method: add one after the other,
/// compare with a set of all so far.
#[test]
fn range_tombstones() {
    let (memtable, mut rng) = (Memtable::new(), SeededRng::new(5));
    let (mut tombstones, before) = (Vec::new(), memtable.allocated_bytes());
    assert!(
        memtable.range_tombstones().is_empty() && !memtable.has_range_tombstones() && memtable.is_empty()
    );
    assert_eq!((memtable.newest_covering(b"a", 9), memtable.seqnos()), (None, None));
    memtable.delete_range(b"b", b"a", 1).unwrap();
    memtable.delete_range(b"a", b"a", 1).unwrap();
    assert!(!memtable.has_range_tombstones());
    for seqno in 10..200 {
        let key = |rng: &mut SeededRng| vec![rng.below(20) as u8; 1 + rng.below(3) as usize];
        let (a, b) = (key(&mut rng), key(&mut rng));
        memtable
            .delete_range(a.clone().min(b.clone()).as_slice(), a.clone().max(b.clone()).as_slice(), seqno)
            .unwrap();
        if a != b {
            tombstones.push(RangeTombstone { start: a.clone().min(b.clone()), end: a.max(b), seqno });
        }
        let expected = RangeTombstones::new(tombstones.clone());
        for at in [seqno, seqno / 2, 0] {
            let key = key(&mut rng);
            assert_eq!(memtable.newest_covering(&key, at), expected.newest_covering(&key, at));
        }
        if rng.chance(0.2) {
            assert_eq!(*memtable.range_tombstones(), expected);
        }
        assert_eq!(memtable.seqnos(), expected.seqno_range());
    }
    assert_eq!(*memtable.range_tombstones(), RangeTombstones::new(tombstones));
    assert!(!memtable.is_empty() && memtable.allocated_bytes() > before);
}

/// Goal: memory that readers make a memtable take is counted. Method: as a queue's consumer does it, longer and longer ranges that all
/// overlap, with a look at all of them after each.
#[test]
fn memory_of_range_tombstones() {
    const COUNT: u64 = 400;
    let (memtable, mut expected) = (Memtable::new(), Vec::new());
    let before = memtable.allocated_bytes();
    for seqno in 1..=COUNT {
        let end = seqno.to_be_bytes().to_vec();
        memtable.delete_range(&[0], &end, seqno).unwrap();
        expected.push(RangeTombstone { start: vec![0], end, seqno });
        let set = memtable.range_tombstones();
        assert!(memtable.allocated_bytes() - before >= set.memory_bytes(), "{seqno}");
    }
    let set = memtable.range_tombstones();
    assert_eq!(*set, RangeTombstones::new(expected));
    assert!(set.memory_bytes() as u64 > COUNT * COUNT * 4, "they overlap: {}", set.memory_bytes());
}
