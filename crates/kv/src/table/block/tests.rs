//! Compares blocks with a sorted list, and decodes garbage.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::kind::{Kind, Seqno};

type Row = (Vec<u8>, Seqno, Kind, Vec<u8>);

fn build(rows: &[Row], restart_interval: u32) -> Vec<u8> {
    let mut builder = BlockBuilder::new(restart_interval);
    let mut last: Option<&[u8]> = None;
    for (key, seqno, kind, value) in rows {
        let shared = match last {
            Some(last) if last == key.as_slice() => None,
            Some(last) => Some(common_len(last, key)),
            None => Some(0),
        };
        builder.add(key, shared, *seqno, *kind, value);
        last = Some(key);
    }
    let mut out = Vec::new();
    builder.finish(&mut out);
    out
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let byte = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)];
    let key = (prop::collection::vec(byte, 0..7), 0usize..2)
        .prop_map(|(key, long)| [&vec![b'p'; long * 30][..], &key].concat());
    let kind = prop_oneof![Just(Kind::Delete), Just(Kind::Put), Just(Kind::Merge), Just(Kind::Blob)];
    let value = prop::collection::vec(any::<u8>(), 0..30);
    prop::collection::vec((key, 0u64..6, kind, value), 1..120).prop_map(|mut rows| {
        rows.sort_by(|a, b| (&a.0, std::cmp::Reverse(a.1)).cmp(&(&b.0, std::cmp::Reverse(b.1))));
        rows.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
        rows
    })
}

/// Reads a block through all interfaces. Returns the rows that a cursor yields.
fn exercise(bytes: &[u8], layout: &Layout, keys: &[Vec<u8>]) -> Vec<Row> {
    let entries = Entries::new(bytes, layout);
    let mut cursor = BlockCursor::default();
    let mut rows = Vec::new();
    let row = |cursor: &BlockCursor| {
        (cursor.key().to_vec(), cursor.seqno(&entries), cursor.kind(), bytes[cursor.value()].to_vec())
    };
    cursor.seek_first(&entries);
    while cursor.valid() {
        rows.push(row(&cursor));
        cursor.next(&entries);
    }
    let mut back = Vec::new();
    cursor.seek_last(&entries);
    while cursor.valid() {
        back.push(row(&cursor));
        cursor.prev(&entries);
    }
    back.reverse();
    assert_eq!(rows, back);
    for key in keys {
        cursor.seek(&entries, key);
        entries.lookup(key, 3, &mut |_, _, value| {
            assert!(value.end <= bytes.len());
            ControlFlow::Continue(())
        });
        let _ = entries.value_at_or_after(key).and_then(|value| entries.value_after(&value));
    }
    rows
}

proptest! {
    #![proptest_config(crate::test_config::cases(300))]

    /// Goal: a block contains exactly the list of its entries.
    /// Method: iteration, seeks and lookups, compared with the list.
    #[test]
    fn blocks_are_lists(rows in rows(), restart_interval in 1u32..20) {
        let bytes = build(&rows, restart_interval);
        let layout = Layout::check(&bytes).unwrap();
        prop_assert_eq!(layout.entries as usize, rows.len());
        prop_assert_eq!(exercise(&bytes, &layout, &[]), rows.clone());
        let entries = Entries::new(&bytes, &layout);
        let mut cursor = BlockCursor::default();
        let mut keys: Vec<_> = rows.iter().map(|row| row.0.clone()).collect();
        keys.extend(rows.iter().map(|row| [&row.0[..], &[0]].concat()));
        keys.extend(rows.iter().filter_map(|row| Some(row.0.split_last()?.1.to_vec())));
        keys.push(vec![0xff; 40]);
        for key in keys {
            let expected = rows.iter().find(|row| row.0 >= key);
            cursor.seek(&entries, &key);
            prop_assert_eq!(cursor.valid().then(|| cursor.key()), expected.map(|row| &row.0[..]));
            let value = entries.value_at_or_after(&key).map(|value| &bytes[value]);
            prop_assert_eq!(value, expected.map(|row| &row.3[..]));
            let mut found = Vec::new();
            let outcome = entries.lookup(&key, 3, &mut |seqno, kind, value| {
                found.push((key.clone(), seqno, kind, bytes[value].to_vec()));
                ControlFlow::Continue(())
            });
            let versions: Vec<_> = rows.iter().filter(|row| row.0 == key && row.1 <= 3).cloned().collect();
            prop_assert_eq!(found, versions);
            let is_last = rows.last().is_some_and(|row| row.0 == key);
            prop_assert_eq!(outcome == Lookup::More, is_last);
        }
    }

    /// Goal: no bytes make reading panic or run beyond the block; every block that passes
    /// validation can be read to its end.
    /// Method: blocks with a few changed bytes, half of them in trailers and restarts.
    #[test]
    fn garbage(rows in rows(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..4), interval in 1u32..9) {
        let mut bytes = build(&rows, interval);
        let len = bytes.len();
        for (at, byte, at_end) in changes {
            let at = if at_end { len - 1 - at.index(len.min(60)) } else { at.index(len) };
            bytes[at] = byte;
        }
        let keys: Vec<_> = rows.iter().map(|row| row.0.clone()).take(20).collect();
        if let Ok(layout) = Layout::check(&bytes) {
            let walked = exercise(&bytes, &layout, &keys);
            prop_assert_eq!(walked.len(), layout.entries as usize);
        }
        for cut in [0, 1, 23, 24, len / 2, len - 1] {
            let _ = Layout::check(&bytes[..cut.min(len)]).map(|layout| exercise(&bytes[..cut], &layout, &keys));
        }
    }
}

/// Goal: common cases take little space.
/// Method: lengths of blocks of about a hundred entries, compared with the sizes that the format
/// gives.
#[test]
fn sizes() {
    let rows = |seqno: fn(u64) -> u64| -> Vec<Row> {
        (0..96u64)
            .map(|n| (format!("user{:012}", n * 7).into_bytes(), seqno(n), Kind::Put, vec![1; 8]))
            .collect()
    };
    // The keys share 13 bytes; of their three further digits, on average fewer than two differ from
    // the previous key; there are no tags.
    let plain = build(&rows(|_| 0), 16).len();
    assert!(plain <= 24 + 13 + 6 * 8 + 96 * (1 + 8 + 2) + 6, "{plain}");
    let numbered = build(&rows(|n| 1_000_000 + n * 3 % 31), 16).len();
    assert!(
        numbered <= plain + 96,
        "a tag of a number near the others takes a byte: {numbered} against {plain}"
    );
}

/// Goal: keys with equal heads, and with an empty head, are found.
/// Method: more keys than fit in one run, which differ only after four bytes.
#[test]
fn equal_heads() {
    let mut rows: Vec<Row> = vec![(Vec::new(), 0, Kind::Put, b"empty".to_vec())];
    rows.extend(
        (0..1000u32)
            .map(|n| ([b"same", &n.to_be_bytes()[..]].concat(), 0, Kind::Put, n.to_le_bytes().to_vec())),
    );
    let bytes = build(&rows, 4);
    let layout = Layout::check(&bytes).unwrap();
    let entries = Entries::new(&bytes, &layout);
    for row in &rows {
        let found = entries.value_at_or_after(&row.0).map(|value| &bytes[value]);
        assert_eq!(found, Some(&row.3[..]));
    }
    assert_eq!(entries.value_at_or_after(b"same\0").map(|value| bytes[value].to_vec()), Some(vec![0; 4]));
}
