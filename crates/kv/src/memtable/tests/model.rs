//! A single thread, compared with a `BTreeMap`.

use cairn_vfs::Rng;
use proptest::prelude::*;

use super::*;
use crate::range_del::RangeTombstone;

/// Inserts `count` versions of keys drawn by `key`, in a random order of sequence numbers.
fn random(count: usize, seed: u64, key: impl Fn(&mut SeededRng) -> Vec<u8>) -> (Arc<Memtable>, Model) {
    let (memtable, mut model, mut rng) = (Arc::new(Memtable::new()), Model::default(), SeededRng::new(seed));
    let mut seqnos: Vec<Seqno> = (0..count as Seqno).map(|seqno| seqno * 3).collect();
    // All versions arrive late, some do, or none does.
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

/// Checks the content, and lookups at and next to every `step`th entry.
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

    /// Goal: a memtable is an ordered map of versions, whatever the keys and the order of arrival.
    /// Method: keys that stress prefixes and heads, some with many versions; lookups and seeks at
    /// many positions, from both sides.
    #[test]
    fn hard_keys(seed: u64, count in 0..600_usize) {
        let (memtable, model) = random(count, seed, hard_key);
        check(&memtable, &model, 7);
    }

    /// Goal: the same with few keys and long chains of versions.
    #[test]
    fn few_keys(seed: u64, count in 0..600_usize, keys in 1..6_u64) {
        let (memtable, model) = random(count, seed, |rng| vec![b'k'; rng.below(keys) as usize]);
        check(&memtable, &model, 7);
    }
}

/// Goal: deep trees work too, in whatever order they grow. Method: 12,000 keys (three levels) of
/// several shapes, in ascending, descending and random order and from both ends to the middle.
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
        // Prefixes of one another: keys of different lengths, with zero bytes at the ends.
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

/// Goal: every key and value within the limits is stored, including empty and large ones; anything
/// else is refused without a trace.
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

/// Goal: memory is counted completely, and little of it is wasted. Method: entries of several
/// sizes; an empty memtable takes little, and a filled one at most a quarter more than its entries
/// and nodes need.
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
        // Full leaves of 64 take 17 bytes per entry; inner nodes take next to nothing.
        let needed = held + 20_000 * 18;
        assert!(last <= needed + needed / 4 + (1 << 14), "{last} bytes for {needed}, values of {value_len}");
    }
}

/// Goal: versions of a frequently overwritten key are found in a logarithmic number of steps,
/// without passing over all newer ones. Method: a backward scan over 200,000 versions, which
/// searches at each step and would otherwise take hours.
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

/// Goal: all range tombstones take effect, with queries in between. Method: add one after the
/// other, and compare with a set of all tombstones so far.
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
        for at in [seqno, seqno / 2, 20, 0] {
            let key = key(&mut rng);
            assert_eq!(memtable.newest_covering(&key, at), expected.newest_covering(&key, at));
            check_cover(&memtable, &expected, &key, at);
            let after = rng.below(seqno + 1);
            let newest = expected.newest_covering(&key, Seqno::MAX);
            assert_eq!(memtable.covers_after(&key, after, at), newest.is_some_and(|newest| newest > after));
        }
        if rng.chance(0.2) {
            assert_eq!(memtable.range_tombstones(), expected);
            let snapshots = [seqno / 3, seqno / 2];
            assert_eq!(memtable.range_tombstones_for(&snapshots), expected.for_snapshots(&snapshots));
        }
        assert_eq!(memtable.seqnos(), expected.seqno_range());
    }
    assert_eq!(memtable.range_tombstones(), RangeTombstones::new(tombstones));
    assert!(!memtable.is_empty() && memtable.allocated_bytes() > before);
}

/// Checks for short keys that a cover holds in the range that it claims.
fn check_cover(memtable: &Memtable, expected: &RangeTombstones, key: &[u8], at: Seqno) {
    let cover = memtable.cover(key, at);
    assert!(cover.holds_for(key), "{cover:?} for {key:?}");
    for (first, len) in (0..21).flat_map(|first| (1..4).map(move |len| (first, len))) {
        let other = vec![first; len];
        if cover.holds_for(&other) {
            assert_eq!(
                cover.seqno,
                expected.newest_covering(&other, at).unwrap_or(0),
                "{cover:?}, {other:?}"
            );
        }
    }
}

/// Goal: range tombstones that arrive after others with higher numbers are below those. Method:
/// numbers in random order; in between and at the end all keys are compared with a list, as of
/// several numbers.
#[test]
fn late_range_tombstones() {
    let mut rng = SeededRng::new(6);
    for _ in 0..20 {
        let (memtable, mut tombstones) = (Memtable::new(), Vec::new());
        let mut numbers: Vec<Seqno> = (1..80).collect();
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, rng.below(at as u64 + 1) as usize);
        }
        for seqno in numbers {
            let (a, b) = (rng.below(30) as u8, rng.below(30) as u8);
            memtable.delete_range(&[a.min(b)], &[a.max(b)], seqno).unwrap();
            tombstones.push(RangeTombstone { start: vec![a.min(b)], end: vec![a.max(b)], seqno });
            if tombstones.len() % 20 == 19 || rng.chance(0.1) {
                let expected = RangeTombstones::new(tombstones.clone());
                for key in 0..30 {
                    let newest = memtable.newest_covering(&[key], Seqno::MAX);
                    assert_eq!(newest, expected.newest_covering(&[key], Seqno::MAX), "{key}");
                    let at = rng.below(80);
                    assert_eq!(memtable.newest_covering(&[key], at), expected.newest_covering(&[key], at));
                    check_cover(&memtable, &expected, &[key], at);
                }
            }
        }
    }
}

/// Goal: the work for range tombstones grows linearly with their number, however they overlap, also
/// with reads in between and with a reader at an earlier moment. Method: 20,000 and 40,000
/// tombstones, disjoint and all overlapping, each followed by a read; counts the painted ones.
#[test]
fn work_of_range_tombstones() {
    for overlap in [false, true] {
        let work = |count: u64| {
            let memtable = Memtable::new();
            for seqno in 1..=count {
                let (start, end) = if overlap { (0, seqno * 10 + 5) } else { (seqno * 10, seqno * 10 + 5) };
                memtable.delete_range(&start.to_be_bytes(), &end.to_be_bytes(), seqno).unwrap();
                let key = (seqno * 10 + 4).to_be_bytes();
                assert_eq!(memtable.newest_covering(&key, seqno), Some(seqno));
                // A reader that has read the first half stays at that moment.
                if seqno > count / 2 {
                    assert_eq!(memtable.newest_covering(&key, count / 2), None);
                }
            }
            let pieces = memtable.range_tombstones_for(&[]).pieces().count() as u64;
            assert_eq!(pieces, if overlap { 1 } else { count });
            (memtable.range_work(), memtable.allocated_bytes())
        };
        let (small, large) = (work(20_000), work(40_000));
        assert!(small.0 < 2 * 20_000, "{small:?}");
        assert!(large.0 <= 2 * small.0 + 100 && large.1 <= 2 * small.1 + (1 << 20), "{small:?} {large:?}");
    }
}
