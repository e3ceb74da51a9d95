//! Files written by Sparkey's own tools, read and written byte for byte.

use super::*;

/// Encodes the fields of a header, little-endian.
fn fields(fields: &[(u64, usize)]) -> Vec<u8> {
    fields.iter().flat_map(|&(value, bytes)| value.to_le_bytes()[..bytes].to_vec()).collect()
}

/// Encodes the header of a log: identifier, puts, deletes, data_end, key max, value max, delete
/// size, compression, block size, put size, entries per block.
fn log_header(f: [u64; 11]) -> Vec<u8> {
    let widths = [4, 8, 8, 8, 8, 8, 8, 4, 4, 8, 4];
    let mut bytes = vec![0x95, 0x9c, 0xb3, 0x49, 1, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(fields(&std::array::from_fn::<_, 11, _>(|n| (f[n], widths[n]))));
    bytes
}

/// Encodes the header of an index: identifier, seed, data_end, key max, value max, puts, garbage,
/// entries, address size, hash size, capacity, max displacement, entry bits, collisions, total
/// displacement.
fn index_header(f: [u64; 15]) -> Vec<u8> {
    let widths = [4, 4, 8, 8, 8, 8, 8, 8, 4, 4, 8, 8, 4, 8, 8];
    let mut bytes = vec![0x8f, 0x31, 0x11, 0x9a, 1, 0, 0, 0, 1, 0, 0, 0];
    bytes.extend(fields(&std::array::from_fn::<_, 15, _>(|n| (f[n], widths[n]))));
    bytes
}

/// sparkey-java 3.2.5, uncompressed: a=1, bb=22, a=333, delete bb, ccc=(empty), hash seed 1.
fn java_uncompressed() -> (Vec<u8>, Vec<u8>) {
    let mut log = log_header([0x87c5_5d90, 4, 1, 109, 3, 3, 4, 0, 0, 21, 1]);
    log.extend(b"\x02\x01a1\x03\x02bb22\x02\x03a333\x00\x02bb\x04\x00ccc");
    let mut index = index_header([0x87c5_5d90, 1, 109, 3, 3, 4, 10, 2, 4, 4, 5, 0, 0, 0, 0]);
    index.extend([0x2a, 0xb8, 0x9b, 0x9f, 0x68, 0, 0, 0]);
    index.extend([0; 16]);
    index.extend([0xe8, 0xdc, 0x8a, 0x58, 0x5e, 0, 0, 0]);
    index.extend([0; 8]);
    assert_eq!((log.len(), index.len()), (109, 152));
    (log, index)
}

fn uncompressed_ops() -> Vec<Op> {
    vec![put("a", "1"), put("bb", "22"), put("a", "333"), delete("bb"), put("ccc", "")]
}

/// sparkey-java 3.2.5, snappy, blocks of 32 bytes: a=1, bb=22, big=(40 digits), z=9, hash seed 1.
fn java_snappy() -> (Vec<u8>, Vec<u8>) {
    let mut log = log_header([5, 4, 0, 0x98, 3, 40, 0, 1, 32, 0x3b, 3]);
    log.extend(b"\x22\x20\x7c\x02\x01a1\x03\x02bb22\x04\x28big01234567890123456");
    log.extend(b"\x19\x17\x5878901234567890123456789");
    log.extend(b"\x06\x04\x0c\x02\x01z9");
    let mut index = index_header([5, 1, 0x98, 3, 40, 4, 0, 4, 4, 4, 5, 2, 2, 0, 3]);
    index.extend([0x8c, 0x91, 0x7c, 0xef, 0x44, 2, 0, 0]);
    index.extend([0; 8]);
    index.extend([0x96, 0x8d, 0x8f, 0x76, 0x51, 1, 0, 0]);
    index.extend([0xe8, 0xdc, 0x8a, 0x58, 0x50, 1, 0, 0]);
    index.extend([0x10, 0x9f, 0xd4, 0xab, 0x52, 1, 0, 0]);
    assert_eq!((log.len(), index.len()), (0x98, 152));
    (log, index)
}

fn block_ops() -> Vec<Op> {
    vec![put("a", "1"), put("bb", "22"), put("big", &"0123456789".repeat(4)), put("z", "9")]
}

/// Goal: Cairn reads files written by Java. Method: lookups, a scan and a full verification, in
/// every mode.
#[test]
fn reads_java_files() {
    for ((log, index), ops) in [(java_uncompressed(), uncompressed_ops()), (java_snappy(), block_ops())] {
        let store = Store::from_bytes(&log, &index);
        for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
            let reader = store.open(&ReaderOptions::default().mode(mode)).unwrap();
            for (key, value) in live(&ops) {
                assert_eq!(reader.get(&key).unwrap().as_deref(), Some(&value[..]));
            }
            assert_eq!(reader.get(b"bb").unwrap().is_some(), live(&ops).contains_key(&b"bb"[..]));
            assert_eq!(scanned(&reader), live(&ops));
            let report = reader.verify().unwrap();
            assert_eq!(report.entries, live(&ops).len() as u64);
        }
    }
}

/// Goal: Cairn writes the same uncompressed log and index as Java. Method: the same operations. The
/// only byte that differs is the entries per block, 1 by Java and 0 by the C library and Cairn.
#[test]
fn writes_java_uncompressed_bytes() {
    let (mut log, index) = java_uncompressed();
    log[0x50] = 0;
    for construction in [Construction::InMemory, Construction::Sorting { memory_bytes: 1 << 20 }] {
        let options = LogOptions::default().identifier(0x87c5_5d90);
        let store = Store::build(
            &uncompressed_ops(),
            &options,
            &IndexOptions::default().seed(1).construction(construction),
        );
        assert_eq!(store.read(LOG), log);
        assert_eq!(store.read(INDEX), index);
    }
}

/// Goal: Cairn writes the same snappy log and index as Java. Method: the same operations; here all
/// bytes are equal.
#[test]
fn writes_java_snappy_bytes() {
    let (log, index) = java_snappy();
    let options = LogOptions::default().compression(Compression::Snappy).block_bytes(32).identifier(5);
    let store = Store::build(&block_ops(), &options, &IndexOptions::default().seed(1));
    assert_eq!(store.read(LOG), log);
    assert_eq!(store.read(INDEX), index);
}

/// Goal: the index of a log written by Java equals Java's index, whatever the header of the log
/// says about entries per block. Method: index Java's log with its seed.
#[test]
fn indexes_java_logs() {
    for (log, index) in [java_uncompressed(), java_snappy()] {
        let store = Store::from_bytes(&log, &[]);
        build_index_in(&store.fs, LOG, &IndexOptions::default().seed(1)).unwrap();
        assert_eq!(store.read(INDEX), index);
        assert_eq!(store.read(LOG), log);
    }
}

/// Goal: Cairn's zstd blocks equal those of the C library. Method: the operations of its dump,
/// compared with the known bytes of the dump.
#[test]
fn writes_c_zstd_blocks() {
    let options = LogOptions::default().compression(Compression::ZSTD).block_bytes(32).identifier(5);
    let store = Store::build(&block_ops(), &options, &IndexOptions::default().seed(1));
    let log = store.read(LOG);
    let mut first = vec![0x29, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x20, 1, 1, 0];
    first.extend(b"\x02\x01a1\x03\x02bb22\x04\x28big01234567890123456");
    assert_eq!(log[0x54..0x7e], first);
    assert_eq!(log[0x7e..0x85], [0x19, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x17]);
    assert_eq!(log[0x98..], *b"\x0d\x28\xb5\x2f\xfd\x20\x04\x21\x00\x00\x02\x01z9");
    assert_eq!(scanned(&store.reader()), live(&block_ops()));
}

/// Goal: an empty store has the minimum size, and works. Method: sizes, and lookups.
#[test]
fn empty_store() {
    for compression in [Compression::None, Compression::Snappy, Compression::ZSTD] {
        let options = LogOptions::default().compression(compression);
        let store = Store::build(&[], &options, &IndexOptions::default());
        assert_eq!((store.read(LOG).len(), store.read(INDEX).len()), (84, 120));
        let reader = store.reader();
        assert!(reader.is_empty());
        assert_eq!(reader.get(b"").unwrap(), None);
        assert_eq!(scanned(&reader), BTreeMap::new());
        reader.verify().unwrap();
    }
}
