//! Compares random tables with random options to a `BTreeMap`.

use proptest::prelude::*;

use super::*;
use crate::kind::SEQNO_MAX;

/// The options for writing and opening one table.
#[derive(Debug, Clone)]
struct Setup {
    table: TableOptions,
    open: OpenOptions,
    cursor: CursorOptions,
    cache_bytes: u64,
}

fn options() -> impl Strategy<Value = Setup> {
    let sizes = prop_oneof![Just(256usize), Just(700), Just(1024), Just(4096), Just(65536)];
    let compression = (0usize..5).prop_map(|at| compressions()[at]);
    let filter = prop_oneof![
        Just(None),
        Just(Some(FilterPolicy::bloom(10.0))),
        Just(Some(FilterPolicy::bloom(2.5))),
        Just(Some(FilterPolicy::ribbon(7.2))),
    ];
    let prefix = prop_oneof![
        Just(None),
        Just(Some(PrefixExtractor::Fixed(2))),
        Just(Some(PrefixExtractor::UpTo(b'b'))),
    ];
    let table = (sizes, prop_oneof![Just(256usize), Just(4096)], 1u32..20, compression, filter, prefix);
    let reading = (any::<bool>(), any::<bool>(), prop_oneof![Just(0usize), Just(1000), Just(1 << 18)]);
    (table, reading, prop_oneof![Just(0u64), Just(20_000), Just(1 << 20)]).prop_map(
        |(
            (block_bytes, partition_bytes, restart_interval, compression, filter, prefix),
            reading,
            cache_bytes,
        )| {
            let (pin, fill_cache, readahead_bytes) = reading;
            let table = TableOptions {
                block_bytes,
                partition_bytes,
                restart_interval,
                compression,
                filter,
                prefix,
                ..TableOptions::default()
            };
            let open = OpenOptions { pin, ..OpenOptions::default() };
            let cursor = CursorOptions { fill_cache, readahead_bytes, ..CursorOptions::default() };
            Setup { table, open, cursor, cache_bytes }
        },
    )
}

/// Generates keys of several shapes: many share prefixes, are prefixes of each other, or differ in
/// their last byte.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)], 0..6),
        (0u32..400).prop_map(|n| n.to_be_bytes().to_vec()),
        (0u32..300).prop_map(|n| format!("user:{n:05}/profile").into_bytes()),
        (0u32..40, 0usize..300).prop_map(|(n, pad)| [&vec![b'l'; 40 + pad][..], &n.to_be_bytes()].concat()),
    ]
}

fn model() -> impl Strategy<Value = Model> {
    let kind = prop_oneof![4 => Just(Kind::Put), 1 => Just(Kind::Delete), 1 => Just(Kind::Merge), 1 => Just(Kind::Blob)];
    let value = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0u8..9, 0usize..3000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    let seqno = prop_oneof![Just(0u64), 1u64..50, (1u64 << 40)..(1 << 40) + 50, Just(SEQNO_MAX)];
    let plain =
        prop::collection::vec((key(), Just(0u64), Just(Kind::Put), Just(b"12345678".to_vec())), 1..400);
    let mixed = prop::collection::vec((key(), seqno, kind, value), 1..400);
    prop_oneof![1 => plain, 3 => mixed].prop_map(|entries| {
        entries
            .into_iter()
            .map(|(key, seqno, kind, value)| {
                let value = if kind == Kind::Delete { Vec::new() } else { value };
                ((key, Reverse(seqno)), (kind, value))
            })
            .collect()
    })
}

/// Returns the first entry at or after a key and a sequence number.
fn at_or_after(model: &Model, key: &[u8], seqno: Seqno) -> Option<Shown> {
    model.range((key.to_vec(), Reverse(seqno))..).next().map(entry)
}

/// Returns the last entry whose key is less than `key`, or with `inclusive` not greater.
fn before(model: &Model, key: &[u8], inclusive: bool) -> Option<Shown> {
    let end = (key.to_vec(), Reverse(if inclusive { 0 } else { SEQNO_MAX }));
    match inclusive {
        true => model.range(..=end).next_back().map(entry),
        false => model.range(..end).next_back().map(entry),
    }
}

/// Returns present keys, and some similar absent ones.
fn probes(model: &Model) -> Vec<Vec<u8>> {
    let mut probes = vec![Vec::new(), vec![0xff; 50]];
    for (key, _) in model.keys() {
        probes.push(key.clone());
        probes.push([&key[..], &[0]].concat());
        if let Some((last, rest)) = key.split_last() {
            probes.push(rest.to_vec());
            probes.push([rest, &[last.wrapping_add(1)]].concat());
        }
    }
    probes.sort();
    probes.dedup();
    probes
}

fn check_gets(table: &Table, model: &Model) {
    let probes = probes(model);
    for at in [SEQNO_MAX, 1 << 40, 25, 0] {
        let expected = |key: &[u8]| -> Vec<(Seqno, Kind, Vec<u8>)> {
            model
                .range((key.to_vec(), Reverse(at))..=(key.to_vec(), Reverse(0)))
                .map(|((_, seqno), (kind, value))| (seqno.0, *kind, value.clone()))
                .collect()
        };
        let queries: Vec<_> = probes.iter().map(|key| Query { key, hash: hash_key(key) }).collect();
        let mut many = vec![Vec::new(); queries.len()];
        table
            .get_many(&queries, at, |query, version, _| {
                many[query].push((version.seqno, version.kind, version.value.to_vec()));
                ControlFlow::Continue(())
            })
            .unwrap();
        for (key, many) in probes.iter().zip(many) {
            let expected = expected(key);
            assert_eq!(versions(table, key, at).unwrap(), expected, "get {key:?} at {at}");
            assert_eq!(many, expected, "get_many {key:?} at {at}");
            assert!(expected.is_empty() || table.may_contain(key, hash_key(key)).unwrap());
        }
    }
}

fn check_cursor(table: &Arc<Table>, model: &Model, options: &CursorOptions) {
    let mut cursor = table.cursor(options);
    assert!(!cursor.valid());
    cursor.seek_first().unwrap();
    for expected in model.iter().map(entry) {
        assert_eq!(shown(&cursor), Some(expected));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    for expected in model.iter().rev().map(entry) {
        assert_eq!(shown(&cursor), Some(expected));
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
    for key in probes(model) {
        for at in [SEQNO_MAX, 25, 0] {
            cursor.seek(&key, at).unwrap();
            assert_eq!(shown(&cursor), at_or_after(model, &key, at), "seek {key:?} at {at}");
        }
        for inclusive in [false, true] {
            cursor.seek_back(&key, inclusive).unwrap();
            assert_eq!(shown(&cursor), before(model, &key, inclusive), "seek_back {key:?} {inclusive}");
        }
    }
}

/// Checks that cursors with bounds and prefixes return the model's entries within them.
fn check_bounds(table: &Arc<Table>, model: &Model, options: &CursorOptions, low: &[u8], high: &[u8]) {
    let bounded = CursorOptions { lower: Some(low.to_vec()), upper: Some(high.to_vec()), ..options.clone() };
    let inside = |key: &[u8]| low <= key && key < high;
    let expected: Vec<_> = model.iter().map(entry).filter(|entry| inside(&entry.0)).collect();
    check_both_ways(table, &bounded, &expected);
    let mut cursor = table.cursor(&bounded);
    for key in probes(model) {
        cursor.seek(&key, SEQNO_MAX).unwrap();
        let from = key.clone().max(low.to_vec());
        assert_eq!(
            shown(&cursor),
            at_or_after(model, &from, SEQNO_MAX).filter(|entry| inside(&entry.0)),
            "{key:?}"
        );
        cursor.seek_back(&key, true).unwrap();
        let found =
            if key.as_slice() >= high { before(model, high, false) } else { before(model, &key, true) };
        assert_eq!(shown(&cursor), found.filter(|entry| inside(&entry.0)), "{key:?} in {low:?}..{high:?}");
    }
    for prefix in [&low[..low.len().min(2)], low, high] {
        let expected: Vec<_> = model.iter().map(entry).filter(|entry| entry.0.starts_with(prefix)).collect();
        check_both_ways(
            table,
            &CursorOptions { prefix: Some(prefix.to_vec()), ..options.clone() },
            &expected,
        );
    }
}

fn check_both_ways(table: &Arc<Table>, options: &CursorOptions, expected: &[Shown]) {
    let mut cursor = table.cursor(options);
    cursor.seek_first().unwrap();
    for entry in expected {
        assert_eq!(shown(&cursor).as_ref(), Some(entry));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    cursor.seek_last().unwrap();
    for entry in expected.iter().rev() {
        assert_eq!(shown(&cursor).as_ref(), Some(entry));
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
}

proptest! {
    #![proptest_config(crate::test_config::cases(48))]

    /// Goal: with any options, a table equals the map that was written.
    /// Method: single and batched lookups, seeks in both directions, scans, bounds and prefixes of
    /// present and similar absent keys, compared with a `BTreeMap`; then `verify`.
    #[test]
    fn tables_are_maps(model in model(), setup in options(), low in key(), high in key()) {
        let fs = disk();
        let meta = write(&fs, "t", 7, &setup.table, &model);
        let cache = Arc::new(Cache::new(setup.cache_bytes));
        let table = Table::open(&fs, Path::new("t"), 7, &cache, setup.open).unwrap();
        prop_assert_eq!(meta.entries, model.len() as u64);
        prop_assert_eq!(meta.bytes, table.bytes());
        prop_assert_eq!(Some(&meta.smallest), model.keys().next().map(|key| &key.0));
        prop_assert_eq!(Some(&meta.largest), model.keys().next_back().map(|key| &key.0));
        let seqnos = || model.keys().map(|key| key.1.0);
        prop_assert_eq!(Some(meta.seqnos), seqnos().min().zip(seqnos().max()));
        check_gets(&table, &model);
        check_cursor(&table, &model, &setup.cursor);
        check_bounds(&table, &model, &setup.cursor, (&low).min(&high), (&low).max(&high));
        let summary = table.verify(Some(meta.checksum)).unwrap();
        prop_assert_eq!(summary.entries, model.len() as u64);
        let stats = cache.stats();
        prop_assert!(stats.used_bytes <= setup.cache_bytes, "{:?}", stats);
        drop(table);
        prop_assert_eq!((cache.stats().used_bytes, cache.stats().pinned_bytes), (0, 0));
    }
}
