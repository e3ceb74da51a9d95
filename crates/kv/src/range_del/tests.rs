use std::collections::BTreeSet;

use proptest::prelude::*;

use super::encoding::Malformed;
use super::*;
use crate::kind::SEQNO_MAX;

/// Generates a tombstone over keys of up to two letters, so that many of them overlap, touch or
/// cover nothing.
fn tombstone() -> impl Strategy<Value = RangeTombstone> {
    let key = || prop::collection::vec(prop_oneof![Just(0_u8), b'a'..b'e', Just(255)], 0..3);
    (key(), key(), 1..40_u64).prop_map(|(start, end, seqno)| RangeTombstone { start, end, seqno })
}

fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
    prop::collection::vec(tombstone(), 0..12)
}

/// Returns all keys of up to two letters of the tombstones' alphabet, and some between them.
fn keys() -> Vec<Vec<u8>> {
    let letters = [0, b'a', b'b', b'c', b'd', b'e', 255];
    let mut keys = vec![vec![]];
    for a in letters {
        keys.push(vec![a]);
        keys.extend(letters.map(|b| vec![a, b]));
        keys.push(vec![a, b'b', 0]);
    }
    keys
}

/// Returns the sequence numbers that cover `key`.
fn covering<'a>(tombstones: impl IntoIterator<Item = &'a RangeTombstone>, key: &[u8]) -> BTreeSet<Seqno> {
    let covers = |t: &&RangeTombstone| t.start.as_slice() <= key && key < t.end.as_slice();
    tombstones.into_iter().filter(covers).map(|t| t.seqno).collect()
}

/// Checks the order that the type guarantees, and that the set covers each key as `expected` says.
fn check(set: &RangeTombstones, expected: impl Fn(&[u8]) -> BTreeSet<Seqno>) {
    let pieces: Vec<_> = set.pieces().collect();
    assert!(pieces.iter().all(|(start, end, seqnos)| start < end && seqnos.is_sorted_by(|a, b| a > b)));
    assert!(
        pieces
            .windows(2)
            .all(|pair| pair[0].1 < pair[1].0 || (pair[0].1 == pair[1].0 && pair[0].2 != pair[1].2))
    );
    let all: Vec<_> = set.iter().collect();
    assert_eq!(all.len(), set.len());
    let mut seen = BTreeSet::new();
    for key in keys() {
        let covers = expected(&key);
        seen.extend(covers.iter().copied());
        let owned = all.iter().filter(|t| t.start <= &key[..] && &key[..] < t.end).map(|t| t.seqno);
        assert_eq!(owned.collect::<BTreeSet<_>>(), covers, "{key:?}");
        for at in 0..=41 {
            assert_eq!(set.newest_covering(&key, at), covers.range(..=at).last().copied(), "{key:?} at {at}");
        }
    }
    assert_eq!(set.is_empty(), all.is_empty());
    let span = all.iter().map(|t| t.start).min().zip(all.iter().map(|t| t.end).max());
    assert_eq!(set.span(), span);
    let seqnos = all.iter().map(|t| t.seqno).min().zip(all.iter().map(|t| t.seqno).max());
    assert_eq!(set.seqno_range(), seqnos);
}

fn encoded(set: &RangeTombstones) -> Vec<u8> {
    let mut bytes = Vec::new();
    set.encode(&mut bytes);
    bytes
}

proptest! {
    #![proptest_config(crate::test_config::cases(256))]

    /// Goal: a set covers the same keys as its tombstones, in whatever order and parts they are
    /// added.
    /// Method: all short keys at all sequence numbers, compared with a linear search.
    #[test]
    fn covers(tombstones in tombstones(), parts in 1..4_usize) {
        let set = RangeTombstones::new(tombstones.clone());
        check(&set, |key| covering(&tombstones, key));
        let sets: Vec<_> = (0..parts)
            .map(|part| RangeTombstones::new(tombstones.iter().skip(part).step_by(parts).cloned().collect()))
            .collect();
        prop_assert_eq!(&RangeTombstones::merge(&sets), &set);
        prop_assert_eq!(&RangeTombstones::merge([&set, &set]), &set);
    }

    /// Goal: clipped sets cover nothing outside the bounds and the same inside, and merging
    /// adjacent parts restores the whole.
    #[test]
    fn clips(tombstones in tombstones(), a in 0..58_usize, b in 0..58_usize) {
        let (keys, set) = (keys(), RangeTombstones::new(tombstones.clone()));
        let (start, end) = (keys[a.min(b)].as_slice().min(&keys[a.max(b)]), keys[a].as_slice().max(&keys[b]));
        let clipped = set.clip(Some(start), Some(end));
        let inside = |key: &[u8]| start <= key && key < end;
        check(&clipped, |key| if inside(key) { covering(&tombstones, key) } else { BTreeSet::new() });
        let parts = [set.clip(None, Some(start)), clipped, set.clip(Some(end), None)];
        prop_assert_eq!(&RangeTombstones::merge(&parts), &set);
        prop_assert_eq!(&set.clip(None, None), &set);
    }

    /// Goal: tombstones dropped by age, or because no snapshot sees them, change nothing for the
    /// remaining readers.
    /// Method: all keys, compared with a linear search.
    #[test]
    fn drops(tombstones in tombstones(), limit in 0..41_u64, snapshots in prop::collection::btree_set(1..40_u64, 0..4)) {
        let set = RangeTombstones::new(tombstones.clone());
        let newer = |key: &[u8]| covering(&tombstones, key).into_iter().filter(|&seqno| seqno > limit).collect();
        check(&set.newer_than(limit), newer);
        let snapshots: Vec<_> = snapshots.into_iter().collect();
        let thin = set.for_snapshots(&snapshots);
        check(&thin, |key| {
            let all = covering(&tombstones, key);
            snapshots.iter().chain(&[SEQNO_MAX]).filter_map(|at| all.range(..=at).last().copied()).collect()
        });
        prop_assert_eq!(&thin.for_snapshots(&snapshots), &thin);
        let at_once = RangeTombstones::build_for(tombstones.iter().map(RangeTombstone::borrow), Some(&snapshots));
        prop_assert_eq!(at_once, thin);
    }

    /// Goal: sets survive encoding, and no truncation or changed byte causes a panic or passes as
    /// an encoding that no writer produces.
    /// Method: every prefix, and one random change.
    #[test]
    fn encodes(tombstones in tombstones(), at: prop::sample::Index, byte: u8) {
        let set = RangeTombstones::new(tombstones);
        let mut bytes = encoded(&set);
        prop_assert_eq!(&RangeTombstones::decode(&bytes).unwrap(), &set);
        for len in 0..bytes.len() {
            prop_assert!(RangeTombstones::decode(&bytes[..len]).is_err());
        }
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(other) = RangeTombstones::decode(&bytes) {
            prop_assert_eq!(encoded(&other), bytes);
        }
    }

    /// Goal: all bytes that decode are canonical and sound.
    /// Method: small bytes, which are often valid.
    #[test]
    fn decodes_garbage(bytes in prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..24)) {
        let bytes: Vec<u8> = [1].into_iter().chain(bytes).collect();
        if let Ok(set) = RangeTombstones::decode(&bytes) {
            prop_assert_eq!(encoded(&set), bytes);
            prop_assert_eq!(&RangeTombstones::build(set.iter()), &set);
        }
    }
}

/// Goal: the bytes match the documented format.
/// Method: compare the encoding of the drawing in the module documentation with bytes written by
/// hand.
#[test]
fn known_encoding() {
    let t = |start: &[u8], end: &[u8], seqno| RangeTombstone { start: start.into(), end: end.into(), seqno };
    let set = RangeTombstones::new(vec![t(b"a", b"m", 7), t(b"f", b"t", 9), t(b"x", b"x", 3)]);
    let expected = [1, 4, 1, b'a', 1, 7, 1, b'f', 2, 9, 2, 1, b'm', 1, 9, 1, b't', 0];
    assert_eq!(encoded(&set), expected);
    assert_eq!(encoded(&RangeTombstones::default()), [1, 0]);
}

/// Goal: each rule of the encoding is checked.
/// Method: one violation each, and the offset at which it is reported.
#[test]
fn violations() {
    let cases: [(&[u8], usize, &str); 10] = [
        (&[], 0, "a format byte"),
        (&[2, 0], 0, "format 1 of range tombstones"),
        (&[1, 200, 1], 1, "a number of cuts that fits"),
        (&[1, 2, 9, b'a', 1, 7], 2, "a key that fits"),
        (&[1, 2, 1, b'a', 1, 7, 1, b'a', 0], 9, "ascending keys"),
        (&[1, 2, 1, b'a', 0, 1, b'b', 0], 5, "a list that differs from the one before"),
        (&[1, 2, 1, b'a', 1, 7, 1, b'b', 1, 6], 10, "no sequence numbers after the last key"),
        (&[1, 2, 1, b'a', 2, 7, 0, 1, b'b', 0], 6, "descending sequence numbers"),
        (&[1, 2, 1, b'a', 2, 7, 8, 1, b'b', 0], 6, "descending sequence numbers"),
        (&[1, 0, 0], 2, "the end"),
    ];
    for (bytes, offset, what) in cases {
        assert_eq!(RangeTombstones::decode(bytes), Err(Malformed { offset, what }), "{bytes:?}");
    }
    let mut too_high = vec![1, 2, 1, b'a', 1];
    cairn_codec::varint::push(SEQNO_MAX + 1, &mut too_high);
    too_high.extend([1, b'b', 0]);
    assert!(RangeTombstones::decode(&too_high).is_err());
}
