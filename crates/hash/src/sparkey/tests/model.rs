//! Random operations compared with a map.

use std::io::Read;

use super::*;

fn check(store: &Store, options: &ReaderOptions) -> Result<(), TestCaseError> {
    let reader = store.open(options).unwrap();
    let mut keys: Vec<Vec<u8>> = store.live.keys().cloned().collect();
    keys.extend((0u8..45).map(|n| format!("key{n}").into_bytes()));
    keys.extend([Vec::new(), b"absent".to_vec(), vec![0; 100]]);
    let mut buffer = b"old".to_vec();
    for key in &keys {
        let expected = store.live.get(key);
        let found = reader.get(key).unwrap();
        prop_assert_eq!(found.as_deref(), expected.map(|value| &value[..]));
        prop_assert_eq!(reader.contains(key).unwrap(), expected.is_some());
        prop_assert_eq!(reader.get_into(key, &mut buffer).unwrap(), expected.is_some());
        prop_assert_eq!(&buffer[..], expected.map_or(&[][..], |value| value));
        let mut streamed = reader.value_reader(key).unwrap();
        prop_assert_eq!(streamed.is_some(), expected.is_some());
        if let (Some(stream), Some(expected)) = (&mut streamed, expected) {
            prop_assert_eq!(stream.remaining(), expected.len() as u64);
            let mut value = Vec::new();
            stream.read_to_end(&mut value).unwrap();
            prop_assert_eq!(&value, expected);
        }
    }
    let mut answers = vec![None; keys.len()];
    reader
        .get_many(&keys, |number, value| {
            let answer: &mut Option<Option<Vec<u8>>> = &mut answers[number];
            assert!(answer.replace(value.map(<[u8]>::to_vec)).is_none(), "answered twice");
        })
        .unwrap();
    for (key, answer) in keys.iter().zip(answers) {
        prop_assert_eq!(answer, Some(store.live.get(key).cloned()));
    }
    prop_assert_eq!(&scanned(&reader), &store.live);
    let report = reader.verify().unwrap();
    prop_assert_eq!(report.entries, store.live.len() as u64);
    prop_assert_eq!(reader.len(), store.live.len() as u64);
    Ok(())
}

fn widths() -> impl Strategy<Value = HashWidth> {
    prop_oneof![Just(HashWidth::Auto), Just(HashWidth::Bits32), Just(HashWidth::Bits64)]
}

fn constructions() -> impl Strategy<Value = Construction> {
    prop_oneof![
        Just(Construction::InMemory),
        Just(Construction::Sorting { memory_bytes: IndexOptions::MEMORY_BYTES_MIN }),
        Just(Construction::default()),
    ]
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Mmap), Just(Mode::Heap), Just(Mode::Pread)]
}

proptest! {
    #![proptest_config(cases(150))]

    /// Goal: a store gives the same answers as a map, for every kind of query. Method: random
    /// operations, formats, builds and readers; all possible keys, and some that cannot exist.
    #[test]
    fn answers_as_a_map(
        ops in ops(120), log in compressions(), width in widths(), construction in constructions(), seed: u32,
        sparsity in 1.3f64..3.0, index_mode in modes(), log_mode in modes(),
        cache in prop_oneof![Just(0u64), Just(4000), Just(64 << 20)],
    ) {
        let index = IndexOptions::default().hash_width(width).seed(seed).construction(construction).sparsity(sparsity);
        let store = Store::build(&ops, &log, &index);
        let options = ReaderOptions::default().index_mode(index_mode).log_mode(log_mode).block_cache_bytes(cache);
        check(&store, &options)?;
    }

    /// Goal: the log holds the written records in order, regardless of flushes. Method: compare a
    /// scan of the log with the operations, without deletes of keys that are too long to exist.
    #[test]
    fn log_is_the_operations(ops in ops(120), options in compressions(), mode in modes()) {
        let store = Store::log_only(&ops, &options);
        let log = LogReader::open_in(&store.fs, LOG, mode).unwrap();
        let mut scan = log.scan();
        let (mut longest, mut previous) = (0, None);
        for op in &ops {
            let (kind, key, value) = match op {
                Op::Put(key, value) => (RecordKind::Put, key, &value[..]),
                Op::Delete(key) if key.len() <= longest => (RecordKind::Delete, key, &[][..]),
                _ => continue,
            };
            if kind == RecordKind::Put {
                longest = longest.max(key.len());
            }
            let mut entry = scan.next_entry().unwrap().unwrap();
            let place = (entry.position(), entry.number_in_block());
            prop_assert!(previous < Some(place));
            previous = Some(place);
            prop_assert_eq!((entry.kind(), entry.key()), (kind, &key[..]));
            prop_assert_eq!(entry.value_bytes(), value.len() as u64);
            // Some values are read, some in part, the others skipped.
            if value.len() % 3 == 0 {
                let found = entry.value().unwrap();
                prop_assert_eq!(&found[..], value);
            } else if value.len() % 3 == 1 {
                let mut part = vec![0; value.len() / 2];
                entry.read_exact(&mut part).unwrap();
                prop_assert_eq!(&part[..], &value[..value.len() / 2]);
            }
        }
        prop_assert!(scan.next_entry().unwrap().is_none());
        prop_assert!(scan.next_entry().unwrap().is_none());
    }
}
