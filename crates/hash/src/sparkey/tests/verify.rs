//! What the full check finds.

use super::*;

fn store(compression: Compression) -> Store {
    let mut ops: Vec<Op> = (0..60).map(|n| put(&format!("key {n}"), &format!("value {n}"))).collect();
    ops.extend((0..60).step_by(3).map(|n| put(&format!("key {n}"), "overwritten")));
    ops.extend((0..60).step_by(5).map(|n| delete(&format!("key {n}"))));
    let log = LogOptions::default().compression(compression).block_bytes(200).identifier(7);
    Store::build(&ops, &log, &IndexOptions::default().seed(1))
}

/// Goal: the report says what is there. Method: counts of a store made by hand.
#[test]
fn report() {
    for compression in [Compression::None, Compression::Snappy, Compression::ZSTD] {
        let store = store(compression);
        let report = store.reader().verify().unwrap();
        assert_eq!((report.puts, report.deletes, report.entries), (80, 12, 48));
        assert_eq!(report.slots, 105);
        assert!(report.garbage_bytes > 0 && report.garbage_bytes < report.record_bytes);
    }
}

/// Goal: any change of a slot or of a count in the header of the index is found. Method: every bit of the index, one at
/// a time, but for those fields that may have other values.
#[test]
fn every_flip_in_the_index_is_found() {
    let store = store(Compression::None);
    let (log, index) = (store.read(LOG), store.read(INDEX));
    // Minor version 0 is as good as 1; a smaller garbage, key or value maximum is found, a minor of 1 cannot be.
    for at in 0..index.len() {
        for bit in 0..8 {
            let mut changed = index.clone();
            changed[at] ^= 1 << bit;
            let other = Store::from_bytes(&log, &changed);
            let result = other.open(&ReaderOptions::default()).and_then(|reader| reader.verify());
            if (at, bit) == (8, 0) {
                assert!(result.is_ok());
            } else {
                assert!(result.is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}

/// Goal: an index with a missing or an outdated entry is found even when its counts were adjusted. Method: forge both.
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
    assert!(outdated.contains("an older one"), "{outdated}");
    let missing = forge(&|bytes| {
        bytes[b..b + 8].fill(0);
        bytes[60] = 1;
    });
    assert!(missing.contains("missing") || missing.contains("displacement"), "{missing}");
}

/// Goal: the maxima in the header of the log are held against its records. Method: every bit of the longest key and value,
/// and fewer entries a block than there are.
#[test]
fn maxima_of_the_log() {
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
            assert!(verify(&changed).unwrap_err().to_string().contains("entries a block"));
        }
    }
}
