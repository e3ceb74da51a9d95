use proptest::prelude::*;

use super::*;

fn header() -> Header {
    Header {
        keys: KeyForm::Hashed,
        timed: true,
        started_ns: 1_700_000_000_000_000_000,
        file_id: 7,
        sample: 3,
        adaptive: None,
        source: "a program".to_owned(),
    }
}

fn head() -> BlockHead {
    BlockHead { end: false, bytes: 7, records: 1, lane: 2, sample: 4, first_ns: 3, last_ns: 4, number: 5 }
}

/// Goal: the layout matches its documentation. Method: a header and a block against expected bytes.
#[test]
fn layout_is_fixed() {
    let bytes = header().encode();
    assert_eq!(bytes.len(), HEADER_BYTES + 9);
    assert_eq!(&bytes[..16], b"CAIRNTRC\x01\0\0\0\x01\0\0\0");
    assert_eq!(&bytes[24..49], b"\x07\0\0\0\0\0\0\0\x03\0\0\0\x09\0\0\0a program");
    let adaptive = |keys, hash| {
        Header { adaptive: Some(Adaptive { hash, seed: 0x0102_0304 }), keys, ..header() }.encode()
    };
    let before = adaptive(KeyForm::Raw, SampleHash::Xxh3);
    let bytes = adaptive(KeyForm::Raw, SampleHash::Rapid);
    assert_eq!(&bytes[..16], b"CAIRNTRC\x03\0\0\0\0\0\0\0");
    assert_eq!((&before[..12], &before[12..57]), (&b"CAIRNTRC\x02\0\0\0"[..], &bytes[12..57]));
    assert_eq!(&bytes[40..57], b"a program\x04\x03\x02\x01\0\0\0\0");
    assert_eq!(bytes.len(), HEADER_BYTES + 9 + 8);
    assert_eq!(&adaptive(KeyForm::Hashed, SampleHash::Rapid)[40..57], b"a program\0\0\0\0\0\0\0\0");
    let head = BlockHead { lane: 0x0102, ..head() };
    let mut block = [0; BLOCK_HEAD_BYTES];
    head.seal(&mut block, 1);
    assert_eq!(&block[..16], b"TBLK\x07\0\0\0\x01\0\0\0\x02\x01\x04\0");
    let mut records = Vec::new();
    let frame = Frame { joined: true, delta_ns: 300, keyspace: 2 };
    encode(&mut records, frame, StoredKey::Hash(0x0102, 5), Detail::Get(Some(Some(10))), None);
    assert_eq!(records, b"\xd0\xac\x02\x02\x02\x01\0\0\0\0\0\0\x05\x0c");
    records.clear();
    let frame = Frame { joined: false, delta_ns: 0, keyspace: 0 };
    encode(&mut records, frame, StoredKey::Raw(b"key"), Detail::Scan { entries: 9, backwards: true }, None);
    assert_eq!(records, b"\x24\x03key\x09");
}

/// Goal: a header survives the round trip, and every changed byte is detected. Method: each byte
/// flipped, each prefix.
#[test]
fn headers_are_checked() {
    let adaptive =
        |hash| Header { keys: KeyForm::Raw, adaptive: Some(Adaptive { hash, seed: 5 }), ..header() };
    for header in [header(), adaptive(SampleHash::Xxh3), adaptive(SampleHash::Rapid)] {
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok((header, bytes.len())));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            let error = Header::decode(&bad).unwrap_err();
            assert_eq!(error.version, (8..12).contains(&at), "byte {at}: {error:?}");
            assert!(Header::decode(&bytes[..at]).is_err());
        }
    }
    let long = Header { source: "ä".repeat(3000), ..self::header() };
    let (read, _) = Header::decode(&long.encode()).unwrap();
    assert_eq!(read.source, "ä".repeat(2048));
}

/// Goal: a block is accepted only if complete, unchanged and in its own file. Method: every byte
/// flipped, every prefix, another file's id.
#[test]
fn blocks_are_checked() {
    let mut block = vec![0; BLOCK_HEAD_BYTES];
    block.extend_from_slice(b"records");
    let head = head();
    head.seal(&mut block, 9);
    assert_eq!(BlockHead::decode(&block, 9), Some((head, &b"records"[..])));
    assert_eq!(BlockHead::decode(&block, 8), None);
    for at in 0..block.len() {
        let mut bad = block.clone();
        bad[at] ^= 1;
        assert_eq!(BlockHead::decode(&bad, 9), None, "byte {at}");
        assert_eq!(BlockHead::decode(&block[..at], 9), None);
    }
}

fn details() -> impl Strategy<Value = Detail<'static>> {
    let bytes = prop_oneof![0_u64..300, any::<u64>().prop_map(|bytes| bytes / 4)];
    prop_oneof![
        Just(Detail::Get(None)),
        Just(Detail::Get(Some(None))),
        bytes.clone().prop_map(|bytes| Detail::Get(Some(Some(bytes)))),
        bytes.clone().prop_map(Detail::Put),
        Just(Detail::Delete),
        bytes.clone().prop_map(Detail::Merge),
        (bytes.clone(), any::<bool>()).prop_map(|(entries, backwards)| Detail::Scan { entries, backwards }),
        bytes.clone().prop_map(Detail::Statement),
        (bytes, any::<Option<bool>>()).prop_map(|(bytes, hit)| Detail::Block { bytes, hit }),
    ]
}

proptest! {
    #![proptest_config(crate::test_config::cases(256))]

    /// Goal: decoding inverts encoding, in both forms of keys. Method: random records, including
    /// ranges.
    #[test]
    fn records_come_back(
        (joined, delta, keyspace) in (any::<bool>(), any::<u64>(), any::<u32>()),
        key in prop::collection::vec(any::<u8>(), 0..300),
        hash: u64,
        detail in details(),
        ranged: bool,
    ) {
        let detail = if ranged { Detail::DeleteRange { end: &[], end_bytes: 0 } } else { detail };
        let frame = Frame { joined, delta_ns: delta / 2, keyspace };
        let mut out = Vec::new();
        encode(&mut out, frame, StoredKey::Raw(&key), detail, ranged.then_some(StoredKey::Raw(b"end")));
        let (event, used) = decode(&out, KeyForm::Raw, 4, 100).unwrap();
        prop_assert_eq!(used, out.len());
        let detail_read = if ranged { Detail::DeleteRange { end: b"end", end_bytes: 3 } } else { detail };
        let expected = Event {
            time_ns: 100 + delta / 2, lane: 4, joined, keyspace, key: &key, key_bytes: key.len() as u32,
            detail: detail_read,
        };
        prop_assert_eq!(event, expected);
        for cut in 0..out.len() {
            prop_assert!(decode(&out[..cut], KeyForm::Raw, 4, 100).is_err());
        }
        out.clear();
        encode(&mut out, frame, StoredKey::Hash(hash, 77), detail, ranged.then_some(StoredKey::Hash(5, 6)));
        let (event, used) = decode(&out, KeyForm::Hashed, 0, 0).unwrap();
        prop_assert_eq!((used, event.key, event.key_bytes), (out.len(), &hash.to_le_bytes()[..], 77));
    }

    /// Goal: the short and the long encoder produce the same bytes. Method: lookups and writes
    /// around the values at which numbers need another byte.
    #[test]
    fn short_records_are_the_same(
        joined: bool,
        hash: u64,
        key_bytes in 0_u32..300,
        bytes in prop_oneof![0_u64..300, 0x3ff0_u64..0x4010, any::<u64>()],
        found: Option<bool>,
    ) {
        let frame = Frame { joined, delta_ns: 0, keyspace: 0 };
        let get = Detail::Get(found.map(|found| found.then_some(bytes)));
        for detail in [get, Detail::Put(bytes)] {
            let (mut short, mut long) = (vec![1], vec![1]);
            encode(&mut short, frame, StoredKey::Hash(hash, key_bytes), detail, None);
            encode_long(&mut long, frame, StoredKey::Hash(hash, key_bytes), detail, None);
            prop_assert_eq!(short, long);
        }
    }

    /// Goal: arbitrary bytes never cause a panic. Method: random bytes as a header, as a block, as
    /// records.
    #[test]
    fn garbage_causes_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Header::decode(&bytes);
        let _ = BlockHead::decode(&bytes, 0);
        for keys in [KeyForm::Raw, KeyForm::Hashed] {
            if let Ok((_, used)) = decode(&bytes, keys, 0, u64::MAX - 5) {
                prop_assert!(used <= bytes.len());
            }
        }
    }
}
