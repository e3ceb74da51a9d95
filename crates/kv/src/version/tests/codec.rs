//! Tests of the encoding of edits.

use cairn_codec::varint;
use cairn_wal::{Known, Lsn};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::file::Ingested;
use crate::test_config::cases;
use crate::version::edit::example;
use crate::version::encode::{decode, encode};
use crate::version::fields::Malformed;

fn meta() -> impl Strategy<Value = TableMeta> {
    let keys = (vec(any::<u8>(), 0..20), vec(any::<u8>(), 0..20));
    let numbers = vec(prop_oneof![any::<u64>(), 0..100u64], 12);
    (keys, numbers, vec((any::<u64>(), any::<u64>()), 0..4)).prop_map(|((smallest, largest), n, blobs)| {
        TableMeta {
            number: n[0],
            bytes: n[1],
            smallest,
            largest,
            seqnos: (n[2], n[3]),
            entries: n[4],
            tombstones: n[5],
            raw_bytes: n[6],
            oldest_secs: n[7],
            newest_secs: n[10],
            expires_secs: n[8],
            checksum: n[9],
            footer: n[11],
            blobs,
            ingested: (n[0] % 2 == 0).then_some(Ingested { seqno: n[2], number: n[3] }),
        }
    })
}

fn blob() -> impl Strategy<Value = BlobMeta> {
    any::<[u64; 6]>().prop_map(|[number, bytes, values, value_bytes, checksum, footer]| BlobMeta {
        number,
        bytes,
        values,
        value_bytes,
        checksum,
        footer,
    })
}

fn change() -> impl Strategy<Value = KeyspaceEdit> {
    let removed =
        vec((0..32usize, any::<u64>()).prop_map(|(level, number)| OldTable { level, number }), 0..4);
    let added = vec(
        (0..32usize, any::<u64>(), meta()).prop_map(|(level, run, meta)| NewTable { level, run, meta }),
        0..4,
    );
    let blobs = (vec(any::<u64>(), 0..3), vec(blob(), 0..3), vec(any::<(u64, u64)>(), 0..3));
    (any::<Option<u64>>(), removed, added, blobs).prop_map(
        |(log_start, removed, added, (blobs_removed, blobs_added, blob_garbage))| KeyspaceEdit {
            log_start,
            removed,
            added,
            blobs_removed,
            blobs_added,
            blob_garbage,
        },
    )
}

fn edit() -> impl Strategy<Value = VersionEdit> {
    let created = (any::<u32>(), ".{0,8}", vec(any::<u8>(), 0..9))
        .prop_map(|(id, name, options)| NewKeyspace { id: KeyspaceId(id), name, options });
    let options = (any::<u32>().prop_map(KeyspaceId), vec(any::<u8>(), 0..9));
    let keyspaces = proptest::collection::btree_map(any::<u32>().prop_map(KeyspaceId), change(), 0..3);
    let dropped = vec(any::<u32>().prop_map(KeyspaceId), 0..3);
    let counters = any::<(Option<u64>, Option<u64>, Option<u64>, Option<u32>, Option<[u64; 3]>)>();
    (vec(created, 0..3), vec(options, 0..3), dropped, keyspaces, counters).prop_map(
        |(created, options, dropped, mut keyspaces, counters)| {
            let (last_seqno, last_ingest, next_file, next_keyspace, log) = counters;
            let log = log.map(|[log_id, at, salt]| Known { log_id, reached: Lsn::from(at), salt });
            // A keyspace without changes is not encoded.
            keyspaces.retain(|_, change| *change != KeyspaceEdit::default());
            VersionEdit {
                created,
                options,
                dropped,
                keyspaces,
                last_seqno,
                last_ingest,
                log,
                next_file,
                next_keyspace,
            }
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]

    /// Goal: edits survive the round trip.
    /// Method: random edits.
    #[test]
    fn round_trip(edit in edit()) {
        prop_assert_eq!(decode(&encode(&edit)), Ok(edit));
    }

    /// Goal: no bytes make the decoder panic, and decoded edits are encoded to the same edit again.
    /// Method: random changes of an edit's bytes.
    #[test]
    fn hostile_bytes(edit in edit(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut: prop::sample::Index) {
        let mut bytes = encode(&edit);
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        if let Ok(edit) = decode(&bytes) {
            prop_assert_eq!(decode(&encode(&edit)), Ok(edit));
        }
    }

    /// Goal: arbitrary bytes do no harm either.
    /// Method: random bytes, mostly small numbers.
    #[test]
    fn random_bytes(bytes in vec(prop_oneof![any::<u8>(), 0..30u8], 0..200)) {
        if let Ok(edit) = decode(&bytes) {
            prop_assert_eq!(decode(&encode(&edit)), Ok(edit));
        }
    }
}

fn field(tag: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::push(tag, &mut out);
    varint::push(value.len() as u64, &mut out);
    out.extend(value);
    out
}

/// Goal: unknown fields of later versions are skipped if marked skippable and refused otherwise, in
/// the edit and in a table.
/// Method: append such fields to an example, and to the last value of its table.
#[test]
fn later_fields() {
    let edit = example();
    let mut bytes = encode(&edit);
    bytes.extend(field(77 << 1 | 1, b"whatever"));
    assert_eq!(decode(&bytes).as_ref(), Ok(&edit));
    bytes.extend(field(77 << 1, b"important"));
    assert_eq!(decode(&bytes), Err(Malformed::Newer { field: 77 }));

    let one = add(vec![(1, 0, table(3, "a", "b"))]);
    let encoded = encode(&one);
    let (_, value) = encoded.split_at(2); // tag and length take a byte each
    for (later, expected) in [
        (field(5 << 1 | 1, b"x"), Ok(one.clone())),
        (field(5 << 1, b"x"), Err(Malformed::Newer { field: 5 })),
    ] {
        assert_eq!(decode(&field(9 << 1, &[value, &later].concat())), expected);
    }
}

/// Goal: fields added to the format are skippable for older versions, and are omitted when they
/// carry no information.
/// Method: edits with such fields equal the ones without plus the fields, byte by byte.
#[test]
fn fields_that_were_added() {
    let edit = VersionEdit { last_seqno: Some(5), ..VersionEdit::default() };
    let with_ingest = VersionEdit { last_ingest: Some(3), ..edit.clone() };
    assert_eq!(encode(&with_ingest), [encode(&edit), field(13 << 1 | 1, &[3])].concat());

    let old = TableMeta { footer: 0, ..table(3, "a", "b") };
    let news = [
        (TableMeta { newest_secs: 9, ..old.clone() }, field(2 << 1 | 1, &[9])),
        (TableMeta { footer: 8, ..old.clone() }, field(3 << 1 | 1, &[8])),
    ];
    let old = encode(&add(vec![(1, 0, old)]));
    let old = old.split_at(2).1; // tag and length take a byte each
    for (new, added) in news {
        assert_eq!(encode(&add(vec![(1, 0, new)])).split_at(2).1, [old, &added].concat());
    }
}

/// Goal: a truncated edit is never accepted.
/// Method: every truncation of one field.
#[test]
fn cuts() {
    let bytes = encode(&add(vec![(1, 0, table(3, "a", "b"))]));
    for end in 1..bytes.len() {
        assert!(matches!(decode(&bytes[..end]), Err(Malformed::Damaged { .. })), "{end}");
    }
}

/// Goal: the format does not change.
/// Method: compare the hash of the example's bytes with the recorded one.
#[test]
fn format_is_fixed() {
    let bytes = encode(&example());
    assert_eq!((bytes.len(), cairn_codec::checksum::xxh3_64(&bytes)), (399, 1_330_622_963_890_613_319));
}
