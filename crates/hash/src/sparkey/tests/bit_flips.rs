//! The effect of one flipped bit: the right answer or an error, except where the format cannot
//! tell.

use std::collections::BTreeSet;
use std::ops::Range;

use super::*;

/// Returns small stores of each shape: with overwritten and deleted keys, an empty key, and values
/// that span several blocks.
fn stores() -> Vec<(&'static str, Vec<Op>, LogOptions, IndexOptions)> {
    let mut many: Vec<Op> = (0..6).map(|n| put(&format!("key {n}"), &format!("value {n}"))).collect();
    many.extend([put("key 3", "new"), delete("key 5"), put("", "empty"), put("none", ""), delete("absent")]);
    let mut long = many.clone();
    long.push(Op::Put(b"long".to_vec(), b"0123456789".repeat(9)));
    let log = LogOptions::default().identifier(7);
    let blocks = log.clone().block_bytes(64);
    let (narrow, wide) = (IndexOptions::default().seed(1), IndexOptions::default().seed(1));
    let wide = wide.hash_width(HashWidth::Bits64);
    vec![
        ("two entries", vec![put("a", "1"), put("b", "2")], log.clone(), narrow.clone()),
        ("one entry, deleted", vec![put("a", "1"), delete("a")], log.clone(), narrow.clone()),
        ("many", many, log, narrow.clone()),
        ("snappy", long.clone(), blocks.clone().compression(Compression::Snappy), wide),
        ("zstd", long, blocks.compression(Compression::ZSTD), narrow),
    ]
}

/// Returns a copy of `bytes` for each bit, with that bit flipped.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = (usize, usize, Vec<u8>)> + '_ {
    (0..bytes.len()).flat_map(move |at| {
        (0..8).map(move |bit| {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1 << bit;
            (at, bit, changed)
        })
    })
}

/// Returns all entries of a scan, or its error.
fn scan(reader: &SparkeyReader) -> crate::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let (mut found, mut scan) = (BTreeMap::new(), reader.scan());
    while let Some(mut entry) = scan.next_entry()? {
        let value = entry.value()?.into_owned();
        assert_eq!(found.insert(entry.key().to_vec(), value), None, "a key came twice");
    }
    Ok(found)
}

fn keys_of(ops: &[Op]) -> BTreeSet<Vec<u8>> {
    let mut keys: BTreeSet<Vec<u8>> = [b"absent".to_vec(), b"nowhere".to_vec()].into();
    for op in ops {
        if let Op::Put(key, _) | Op::Delete(key) = op {
            keys.insert(key.clone());
        }
    }
    keys
}

const MODES: [Mode; 2] = [Mode::Mmap, Mode::Pread];

/// Looks up each key in all ways; `judge` receives the results that are not errors.
fn get_all(reader: &SparkeyReader, keys: &BTreeSet<Vec<u8>>, mut judge: impl FnMut(&[u8], Option<&[u8]>)) {
    let mut buffer = Vec::new();
    for key in keys {
        if let Ok(value) = reader.get(key) {
            judge(key, value.as_deref());
        }
        if let Ok(found) = reader.get_into(key, &mut buffer) {
            judge(key, found.then_some(&buffer));
        }
        if let Ok(Some(mut value)) = reader.value_reader(key) {
            let mut bytes = Vec::new();
            if std::io::Read::read_to_end(&mut value, &mut bytes).is_ok() {
                judge(key, Some(&bytes));
            }
        } else if let Ok(None) = reader.value_reader(key) {
            judge(key, None);
        }
    }
    let list: Vec<&Vec<u8>> = keys.iter().collect();
    let _ = reader.get_many(&list, |number, value| judge(list[number], value));
}

/// Goal: one flipped bit in an index causes an error or has no effect. Method: every bit of small
/// stores; lookups that check the slots they pass, in every mode, scans, the counts in the header
/// and a full verification. The only exception is an address that becomes that of an older record
/// of the key: it gives a lookup an older value of the key. Scans and the full verification detect
/// that too.
#[test]
fn every_bit_of_an_index() {
    for (name, ops, log, index) in stores() {
        let sound = Store::build(&ops, &log, &index);
        let (log, index, keys) = (sound.read(LOG), sound.read(INDEX), keys_of(&ops));
        let header = sound.reader().info().index;
        for (at, bit, changed) in flipped(&index) {
            let context = format!("{name}: bit {bit} of byte {at}");
            let damaged = Store::from_bytes(&log, &changed);
            for mode in MODES {
                let options = ReaderOptions::default().mode(mode).check_absent(true);
                let Ok(reader) = damaged.open(&options) else { continue };
                get_all(&reader, &keys, |key, value| {
                    let outdated = at >= 112
                        && ops
                            .iter()
                            .any(|op| matches!(op, Op::Put(k, v) if k == key && Some(&v[..]) == value));
                    let right = sound.live.get(key).map(Vec::as_slice) == value;
                    assert!(right || outdated, "{context}: {key:?} gives {value:?}");
                });
                if let Ok(found) = scan(&reader) {
                    assert_eq!(found, sound.live, "{context}");
                }
                if reader.verify_counts().is_ok() {
                    let found = reader.info().index;
                    let of_slots = |header: &IndexHeader| {
                        (
                            header.entries,
                            header.displacement_max,
                            header.displacement_total,
                            header.collisions,
                        )
                    };
                    assert_eq!(of_slots(&found), of_slots(&header), "{context}");
                }
                // Undetectable changes: version 1.0 is read as 1.1; a garbage size that another
                // writer may give; and without entries nothing depends on the seed or on the split
                // of addresses.
                let garbage = (52..60).contains(&at) && damaged_garbage_is_possible(&reader);
                let unused = header.entries == 0 && ((16..20).contains(&at) || (92..96).contains(&at));
                if (at, bit) != (8, 0) && !garbage && !unused {
                    assert!(reader.verify().is_err(), "{context}: sound by verify");
                }
            }
        }
    }
}

fn damaged_garbage_is_possible(reader: &SparkeyReader) -> bool {
    super::super::garbage::is_possible(&reader.log, reader.index.header.garbage_bytes).unwrap()
}

/// Goal: even lookups that do not read the records they pass detect nearly all flipped bits in
/// hashes, because a damaged hash puts the entry out of reach of its home. Method: every bit of the
/// hash of some keys of a larger store, each with a lookup of the key, with default options.
#[test]
fn flipped_hashes_hide_their_entries() {
    let ops: Vec<Op> = (0..600).map(|n| put(&format!("key {n}"), "v")).collect();
    let sound = Store::build(&ops, &LogOptions::default().identifier(7), &IndexOptions::default().seed(1));
    let (log, index) = (sound.read(LOG), sound.read(INDEX));
    let (mut lost, mut flips) = (0, 0);
    for op in ops.iter().step_by(20) {
        let Op::Put(key, _) = op else { continue };
        let hash = crate::sparkey::index::hash_key(4, 1, key).to_le_bytes();
        let slot = (112..index.len()).step_by(8).find(|&at| index[at..at + 4] == hash[..4]).unwrap();
        for bit in 0..32 {
            let mut changed = index.clone();
            changed[slot + bit / 8] ^= 1 << (bit % 8);
            let damaged = Store::from_bytes(&log, &changed);
            flips += 1;
            lost += usize::from(
                damaged
                    .open(&ReaderOptions::default())
                    .is_ok_and(|reader| matches!(reader.get(key), Ok(None))),
            );
        }
    }
    // Only as many slots as the largest displacement are within reach, here some 20 of 781. In a
    // larger store the share is smaller.
    assert!(lost * 10 < flips, "{lost} of {flips}");
}

/// Returns the offsets of the head with the key, and of the value, of each record of an
/// uncompressed log.
fn records(ops: &[Op]) -> Vec<(Op, Range<usize>, Range<usize>)> {
    let (mut at, mut all) = (84, Vec::new());
    for op in ops {
        let (key, value) = match op {
            Op::Put(key, value) => (key.len(), value.len()),
            Op::Delete(key) => (key.len(), 0),
            Op::Flush => continue,
        };
        // The writer drops a delete of a key longer than any put before. Only the last operation of
        // a store can be one, so the offsets of the others are right.
        all.push((op.clone(), at..at + 2 + key, at + 2 + key..at + 2 + key + value));
        at += 2 + key + value;
    }
    all
}

/// Goal: one flipped bit in a log causes an error or has no effect, except within a record: its
/// value may differ, and a lookup may return a part of it or more. Method: every bit of small
/// stores.
#[test]
fn every_bit_of_a_log() {
    for (name, ops, options, index) in stores() {
        let sound = Store::build(&ops, &options, &index);
        let (log, index, keys) = (sound.read(LOG), sound.read(INDEX), keys_of(&ops));
        let is_plain = sound.reader().info().log.compression == Format::None;
        let places = if is_plain { records(&ops) } else { Vec::new() };
        for (at, bit, changed) in flipped(&log) {
            let context = format!("{name}: bit {bit} of byte {at}");
            let damaged = Store::from_bytes(&changed, &index);
            let within = |op: &Op, key: &[u8]| matches!(op, Op::Put(k, _) if k == key);
            let in_value =
                |key: &[u8]| places.iter().any(|(op, _, value)| within(op, key) && value.contains(&at));
            let in_record = |key: &[u8]| {
                places
                    .iter()
                    .any(|(op, head, value)| within(op, key) && (head.start..value.end).contains(&at))
            };
            for mode in MODES {
                let options = ReaderOptions::default().mode(mode).check_absent(true);
                let Ok(reader) = damaged.open(&options) else { continue };
                get_all(&reader, &keys, |key, value| {
                    let right = sound.live.get(key).map(Vec::as_slice) == value;
                    let untold = at >= 84 && value.is_some() && (!is_plain || in_record(key));
                    assert!(right || untold, "{context}: {key:?} gives {value:?}");
                });
                if let Ok(found) = scan(&reader) {
                    assert!(found.keys().eq(sound.live.keys()), "{context}: {found:?}");
                    for (key, value) in &found {
                        let untold = at >= 84 && (!is_plain || in_value(key));
                        assert!(sound.live[key] == *value || untold, "{context}: {key:?} gives {value:?}");
                    }
                }
                let untold =
                    at >= 84 && (!is_plain || places.iter().any(|(_, _, value)| value.contains(&at)));
                let unused = (68..72).contains(&at) || (80..84).contains(&at);
                if !untold && !unused && reader.verify().is_ok() {
                    // The key of a dead record may change to another key that is dead or
                    // overwritten, and the key of a delete without effect to any absent key.
                    let of_dead = places.iter().any(|(op, head, value)| {
                        head.contains(&at)
                            && match op {
                                Op::Put(key, last) => {
                                    sound.live.get(key) != Some(last) || value.len() != last.len()
                                }
                                Op::Delete(key) => key == b"absent",
                                Op::Flush => false,
                            }
                    });
                    assert!(of_dead, "{context}: sound by verify");
                }
            }
        }
    }
}

/// Goal: a scan reports a lost entry. Regression test of an issue in which the scan printed one of
/// two entries without an error. Method: flip a bit in the hash of the first entry.
#[test]
fn scan_reports_a_lost_entry() {
    let ops = [put("a", "1"), put("b", "2")];
    for seed in 0..20 {
        let index = IndexOptions::default().seed(seed);
        let sound = Store::build(&ops, &LogOptions::default().identifier(7), &index);
        let mut index = sound.read(INDEX);
        let used = (112..index.len()).step_by(8).find(|&at| index[at + 4] != 0).unwrap();
        index[used] ^= 1;
        let damaged = Store::from_bytes(&sound.read(LOG), &index);
        let found = damaged.open(&ReaderOptions::default()).and_then(|reader| scan(&reader));
        assert!(matches!(found, Err(crate::Error::Corruption { .. })), "seed {seed}: {found:?}");
    }
}
