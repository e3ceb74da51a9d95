//! Damage: any flipped bit, truncation or garbage leads to an error or an answer, never to a panic
//! or an endless loop.
//!
//! Sparkey has no checksums, so a flipped bit in a value gives a wrong value, and one in a key
//! makes the key absent. These tests assert that every call returns. `tests/sparkey_memory.rs` also
//! asserts how much memory is allocated.

use std::io::Read;

use super::*;

fn ops() -> Vec<Op> {
    let mut ops: Vec<Op> = (0..12).map(|n| put(&format!("key {n}"), &format!("value {n}"))).collect();
    ops.push(Op::Put(b"long".to_vec(), b"0123456789".repeat(15)));
    ops.extend([put("key 3", "new"), delete("key 5"), put("", "empty key"), put("empty value", "")]);
    ops
}

pub(crate) fn store(compression: Compression, width: HashWidth) -> Store {
    let log = LogOptions::default().compression(compression).block_bytes(64).identifier(7);
    Store::build(&ops(), &log, &IndexOptions::default().seed(1).hash_width(width))
}

/// Performs every kind of operation on two files. Returns the number of errors.
pub(crate) fn exercise(store: &Store) -> usize {
    let mut errors = 0;
    let mut note = |failed: bool| errors += usize::from(failed);
    if let Ok(log) = LogReader::open_in(&store.fs, LOG, Mode::Pread) {
        let mut scan = log.scan();
        while let Some(mut entry) = scan.next_entry().unwrap_or(None) {
            note(entry.value().is_err());
        }
    }
    for (mode, cache) in [(Mode::Mmap, 1 << 20), (Mode::Pread, 0)] {
        let reader = match store.open(&ReaderOptions::default().mode(mode).block_cache_bytes(cache)) {
            Ok(reader) => reader,
            Err(_) => {
                note(true);
                continue;
            }
        };
        let mut keys: Vec<String> = (0..14).map(|n| format!("key {n}")).collect();
        keys.extend(["", "long", "empty value", "absent"].map(str::to_owned));
        let mut buffer = Vec::new();
        for key in &keys {
            let key = key.as_bytes();
            note(reader.get(key).is_err());
            note(reader.get_into(key, &mut buffer).is_err());
            match reader.value_reader(key) {
                Ok(Some(mut stream)) => note(stream.read_to_end(&mut buffer).is_err()),
                other => note(other.is_err()),
            }
        }
        note(reader.get_many(&keys, |_, _| {}).is_err());
        let mut scan = reader.scan();
        loop {
            match scan.next_entry() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => note(true),
            }
        }
        note(reader.verify().is_err());
    }
    for construction in [Construction::InMemory, Construction::Sorting { memory_bytes: 1 << 16 }] {
        note(build_index_in(&store.fs, LOG, &IndexOptions::default().construction(construction)).is_err());
    }
    errors
}

const ALL: [(Compression, HashWidth); 3] = [
    (Compression::None, HashWidth::Bits32),
    (Compression::Snappy, HashWidth::Bits64),
    (Compression::ZSTD, HashWidth::Bits32),
];

/// Goal: a sound store gives no errors in `exercise`, so that the other tests are meaningful.
#[test]
fn undamaged_store_verifies() {
    for (compression, width) in ALL {
        assert_eq!(exercise(&store(compression, width)), 0);
    }
}

/// Goal: every flipped bit in either file is handled, and a flipped bit in the index never gives a
/// key a value that it never had.
/// Method: all single bits.
#[test]
fn every_bit_flip() {
    for (compression, width) in ALL {
        let sound = store(compression, width);
        let (log, index) = (sound.read(LOG), sound.read(INDEX));
        let mut noticed = 0;
        for at in 0..log.len() + index.len() {
            for bit in 0..8 {
                let (mut log, mut index) = (log.clone(), index.clone());
                match at.checked_sub(log.len()) {
                    None => log[at] ^= 1 << bit,
                    Some(at) => index[at] ^= 1 << bit,
                }
                let damaged = Store::from_bytes(&log, &index);
                if index != sound.read(INDEX) {
                    only_known_values(&damaged);
                }
                noticed += usize::from(exercise(&damaged) > 0);
            }
        }
        let flips = 8 * (log.len() + index.len());
        assert!(noticed * 10 > flips * 6, "{compression:?}: {noticed} of {flips} flips were noticed");
    }
}

/// Looks up all keys of a store whose log is sound: a key has a value that it was once given, or
/// none.
fn only_known_values(store: &Store) {
    let Ok(reader) = store.open(&ReaderOptions::default()) else { return };
    for op in ops() {
        let (Op::Put(key, _) | Op::Delete(key)) = &op else { continue };
        if let Ok(Some(value)) = reader.get(key) {
            assert!(ops().contains(&Op::Put(key.clone(), value.to_vec())), "{key:?} has {value:?}");
        }
    }
    let mut scan = reader.scan();
    while let Ok(Some(mut entry)) = scan.next_entry() {
        if let Ok(value) = entry.value().map(|value| value.into_owned()) {
            assert!(ops().contains(&Op::Put(entry.key().to_vec(), value)));
        }
    }
}

/// Goal: truncating either file at any byte causes an error at open. Method: all lengths.
#[test]
fn every_truncation() {
    for (compression, width) in ALL {
        let sound = store(compression, width);
        let (log, index) = (sound.read(LOG), sound.read(INDEX));
        for cut in 0..log.len() {
            let store = Store::from_bytes(&log[..cut], &index);
            assert!(store.open(&ReaderOptions::default()).is_err(), "log of {cut} bytes");
            assert!(exercise(&store) > 0);
        }
        for cut in 0..index.len() {
            let store = Store::from_bytes(&log, &index[..cut]);
            assert!(store.open(&ReaderOptions::default()).is_err(), "index of {cut} bytes");
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// Goal: heavier damage is handled too. Method: overwrite random ranges of either file with
    /// random bytes, zeros or ones, preferably in the headers.
    #[test]
    fn random_damage(
        which in 0usize..3,
        damage in prop::collection::vec(
            (any::<bool>(), prop_oneof![0usize..112, 0usize..700], prop_oneof![
                prop::collection::vec(any::<u8>(), 1..9), Just(vec![0; 8]), Just(vec![0xff; 8]), Just(vec![0x80; 11]),
            ]),
            1..5,
        ),
    ) {
        let (compression, width) = ALL[which];
        let sound = store(compression, width);
        let mut files = [sound.read(LOG), sound.read(INDEX)];
        for (index, at, bytes) in damage {
            let file = &mut files[usize::from(index)];
            let at = at % file.len();
            let end = file.len().min(at + bytes.len());
            file[at..end].copy_from_slice(&bytes[..end - at]);
        }
        exercise(&Store::from_bytes(&files[0], &files[1]));
    }

    /// Goal: slots with arbitrary addresses are handled. Method: a valid header over random slots,
    /// many with the hashes of the keys.
    #[test]
    fn random_slots(seed: u64) {
        use cairn_vfs::{Rng, SeededRng};
        for (compression, width) in ALL {
            let sound = store(compression, width);
            let (log, mut index) = (sound.read(LOG), sound.read(INDEX));
            let hash_bytes = if width == HashWidth::Bits64 { 8 } else { 4 };
            let mut rng = SeededRng::new(seed);
            for slot in index[112..].chunks_mut(hash_bytes + 4) {
                let key = format!("key {}", rng.below(14));
                let hash = crate::sparkey::index::hash_key(hash_bytes as u32, 1, key.as_bytes());
                slot[..hash_bytes].copy_from_slice(&hash.to_le_bytes()[..hash_bytes]);
                let address = rng.below(8 * log.len() as u64) as u32;
                slot[hash_bytes..].copy_from_slice(&address.to_le_bytes());
            }
            exercise(&Store::from_bytes(&log, &index));
        }
    }
}
