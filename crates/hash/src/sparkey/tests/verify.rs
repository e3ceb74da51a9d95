//! The full verification.

use std::collections::BTreeSet;

use super::*;

fn store(compression: Compression) -> Store {
    let mut ops: Vec<Op> = (0..60).map(|n| put(&format!("key {n}"), &format!("value {n}"))).collect();
    ops.extend((0..60).step_by(3).map(|n| put(&format!("key {n}"), "overwritten")));
    ops.extend((0..60).step_by(5).map(|n| delete(&format!("key {n}"))));
    let log = LogOptions::default().compression(compression).block_bytes(200).identifier(7);
    Store::build(&ops, &log, &IndexOptions::default().seed(1))
}

/// Goal: the report has the right counts. Method: a store with known counts.
#[test]
fn verify_report_counts_records() {
    for compression in [Compression::None, Compression::Snappy, Compression::ZSTD] {
        let store = store(compression);
        let report = store.reader().verify().unwrap();
        assert_eq!((report.puts, report.deletes, report.entries), (80, 12, 48));
        assert_eq!(report.slots, 105);
        assert!(report.garbage_bytes > 0 && report.garbage_bytes < report.record_bytes);
    }
}

/// Goal: any change of a slot or of a count in the header of the index is detected. Method: every
/// bit of the index, one at a time, except for fields that may have other values.
#[test]
fn every_flip_in_the_index_is_found() {
    let store = store(Compression::None);
    let (log, index) = (store.read(LOG), store.read(INDEX));
    // Minor version 0 is accepted like 1.
    for at in 0..index.len() {
        for bit in 0..8 {
            let mut changed = index.clone();
            changed[at] ^= 1 << bit;
            let other = Store::from_bytes(&log, &changed);
            let result = other.open(&ReaderOptions::default()).and_then(|reader| reader.verify());
            // The C library may have written a different garbage size.
            let garbage = (52..60).contains(&at)
                && other.open(&ReaderOptions::default()).is_ok_and(|reader| {
                    let found = reader.index.header.garbage_bytes;
                    super::super::garbage::is_possible(&reader.log, found).unwrap()
                });
            if (at, bit) == (8, 0) || garbage {
                assert!(result.is_ok());
            } else {
                assert!(result.is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}

/// Goal: an index with a missing or an outdated entry is detected even if its counts were adjusted.
/// Method: forge both.
#[test]
fn forged_indexes_are_found() {
    let ops = [put("a", "1"), put("b", "2"), put("a", "3")];
    let store = Store::build(&ops, &LogOptions::default().identifier(7), &IndexOptions::default().seed(1));
    let (log, index) = (store.read(LOG), store.read(INDEX));
    let forge = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut forged = index.clone();
        change(&mut forged);
        let store = Store::from_bytes(&log, &forged);
        store.reader().verify().unwrap_err().to_string()
    };
    let slot_of = |address: u8| (112..index.len()).step_by(8).find(|&at| index[at + 4] == address).unwrap();
    let (a, b) = (slot_of(92), slot_of(88));
    let outdated = forge(&|bytes| bytes[a + 4] = 84);
    assert!(outdated.contains("an older record"), "{outdated}");
    let missing = forge(&|bytes| {
        bytes[b..b + 8].fill(0);
        bytes[60] = 1;
    });
    assert!(missing.contains("missing") || missing.contains("displacement"), "{missing}");
}

/// Goal: the maxima in the header of the log are checked against its records. Method: every bit of
/// the longest key and value, and fewer entries per block than there are.
#[test]
fn longest_key_and_value_are_checked() {
    for compression in [Compression::None, Compression::Snappy] {
        let store = store(compression);
        let (log, index) = (store.read(LOG), store.read(INDEX));
        let verify = |changed: &[u8]| {
            Store::from_bytes(changed, &index)
                .open(&ReaderOptions::default())
                .and_then(|reader| reader.verify())
        };
        for at in 40..56 {
            for bit in 0..8 {
                let mut changed = log.clone();
                changed[at] ^= 1 << bit;
                assert!(verify(&changed).is_err(), "{compression:?}: bit {bit} of byte {at}");
            }
        }
        let mut changed = log.clone();
        if compression == Compression::None {
            changed[80] = 1; // as Java writes it
            verify(&changed).unwrap();
        } else {
            assert!(changed[80] > 1);
            changed[80] -= 1;
            assert!(verify(&changed).unwrap_err().to_string().contains("entries per block"));
        }
    }
}

/// Returns the sizes of the dead PUT records and of the DELETE records in the first `count` of
/// `ops`.
fn sums(ops: &[Op], count: usize) -> (u64, u64) {
    let (mut live, mut sums) = (BTreeMap::new(), (0, 0));
    for op in &ops[..count] {
        let dead = match op {
            Op::Put(key, value) => live.insert(key, 2 + key.len() + value.len()),
            Op::Delete(key) => {
                sums.1 += 2 + key.len() as u64;
                live.remove(key)
            }
            Op::Flush => None,
        };
        sums.0 += dead.unwrap_or(0) as u64;
    }
    sums
}

/// Returns all garbage sizes that Java and C may give an index of the first `count` of `ops`,
/// whatever indexes they wrote before: without a change of the hash size on the way, and with one.
fn sizes(ops: &[Op], count: usize) -> [BTreeSet<u64>; 2] {
    let (dead, deletes) = sums(ops, count);
    let mut sizes = [BTreeSet::from([dead, dead + deletes]), BTreeSet::new()];
    for before in 0..count {
        let (old_dead, old_deletes) = sums(ops, before);
        let [old, old_changed] = self::sizes(ops, before);
        let goes_on = |size: &u64| size + dead - old_dead + deletes - old_deletes;
        sizes[0].extend(old.iter().map(goes_on));
        sizes[1].extend(old_changed.iter().map(goes_on));
        sizes[1].extend(old.iter().map(|size| size + dead + deletes));
    }
    // An old index of the same records is kept, unless the hash size changes.
    let again: Vec<u64> = sizes[0].iter().map(|size| size + dead + deletes).collect();
    sizes[1].extend(again);
    sizes
}

/// Goal: a garbage size is accepted exactly if the two original writers can give it, in any order
/// of indexing. Method: stores with overwrites and deletes, with the size in the header set to each
/// number in turn. The sizes of the writers are derived from their behaviour, index after index.
#[test]
fn garbage_counts_of_c_and_java_are_accepted() {
    let first = [put("a", "1"), put("b", "2"), delete("a"), delete("b")];
    let mut second = vec![put("a", "1"), put("longer", "23"), delete("a"), put("c", "3456"), put("c", "4")];
    second.extend([delete("absent"), delete("longer"), put("a", "5"), delete("a")]);
    let third = [put("xyz", "123"), put("xyz", "12"), delete("x"), put("q", "123"), delete("q")];
    let mut taken = 0;
    for ops in [&first[..], &second, &third] {
        let log = LogOptions::default().identifier(7);
        let store = Store::build(ops, &log, &IndexOptions::default().seed(1));
        let (log, index) = (store.read(LOG), store.read(INDEX));
        let [once, twice] = sizes(ops, ops.len());
        for size in 0..100u8 {
            let mut changed = index.clone();
            changed[52] = size;
            let store = Store::from_bytes(&log, &changed);
            let verified = store.open(&ReaderOptions::default()).and_then(|reader| reader.verify());
            let size = u64::from(size);
            let expected = once.contains(&size) || twice.contains(&size);
            assert_eq!(
                verified.is_ok(),
                expected,
                "{ops:?}: {size}, of {once:?} and {twice:?}: {verified:?}"
            );
            taken += usize::from(expected);
        }
    }
    assert!(sizes(&first, 4)[0].contains(&11), "the pair of the issue");
    assert!(taken > 15, "{taken}");
}

/// Goal: a pair written by Java and the C library in turn is valid. Method: the bytes of this case:
/// Java puts `a=1` and `b=2`, deletes `a` and writes its index; the C library appends a delete of
/// `b` and indexes that.
#[test]
fn index_of_java_and_of_cairn_verify() {
    let ops = [put("a", "1"), put("b", "2"), delete("a"), delete("b")];
    let store = Store::log_only(&ops, &LogOptions::default().identifier(7));
    let mut log = store.read(LOG);
    log[80] = 1;
    let header = IndexHeader {
        data_end: log.len() as u64,
        key_bytes_max: 1,
        value_bytes_max: 1,
        puts: 2,
        garbage_bytes: 11,
        entry_bits: 1,
        ..super::header(4, 4)
    };
    let index = [&header.encode()[..], &[0; 8]].concat();
    let report = Store::from_bytes(&log, &index).reader().verify().unwrap();
    assert_eq!((report.puts, report.deletes, report.entries), (2, 2, 0));
}
