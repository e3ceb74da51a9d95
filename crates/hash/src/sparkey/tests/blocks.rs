//! Block boundaries.

use super::*;
use crate::sparkey::block::{RawWindow, read_block};
use crate::sparkey::log::{Log, open_file};

/// Returns the decompressed blocks of a log.
fn blocks(store: &Store) -> Vec<Vec<u8>> {
    let log = Log::open(open_file(&store.fs, Path::new(LOG)).unwrap(), Mode::Mmap, 0).unwrap();
    let (mut position, mut blocks) = (84, Vec::new());
    while position < log.end {
        let mut block = Vec::new();
        position = read_block(&log, position, &mut RawWindow::default(), 0, &mut block).unwrap();
        blocks.push(block);
    }
    blocks
}

fn varint_bytes(mut value: usize) -> usize {
    let mut bytes = 1;
    while value >= 128 {
        value /= 128;
        bytes += 1;
    }
    bytes
}

/// An independent implementation of Java's rules, record by record, with a list of whole blocks.
fn expected_blocks(ops: &[Op], size: usize) -> Vec<Vec<u8>> {
    let mut uncompressed = Vec::new();
    let mut longest = 0;
    for op in ops {
        let single = Store::log_only(std::slice::from_ref(op), &LogOptions::default()).read(LOG);
        match op {
            Op::Put(key, value) => {
                longest = longest.max(key.len());
                uncompressed
                    .push((varint_bytes(key.len() + 1) + varint_bytes(value.len()), single[84..].to_vec()));
            }
            Op::Delete(key) if key.len() <= longest => {
                let mut record = vec![0];
                cairn_codec::varint::push(key.len() as u64, &mut record);
                record.extend(key);
                uncompressed.push((1 + varint_bytes(key.len() + 1), record));
            }
            Op::Delete(_) => {}
            Op::Flush => uncompressed.push((0, Vec::new())),
        }
    }
    let mut blocks: Vec<Vec<u8>> = vec![Vec::new()];
    for (head_bytes, record) in uncompressed {
        let filled = blocks.last().unwrap().len();
        if record.is_empty() {
            blocks.push(Vec::new());
            continue;
        }
        // The size as Java counts it: for a delete, the head has the length of the key plus one.
        let key_and_value = record.len() - actual_head_bytes(&record);
        let counted = head_bytes + key_and_value;
        let free = size - filled;
        if free < head_bytes || (free < counted && counted < filled) {
            blocks.push(Vec::new());
        }
        let before = blocks.len();
        let mut rest = &record[..];
        while !rest.is_empty() {
            let last = blocks.last_mut().unwrap();
            let count = rest.len().min(size - last.len());
            last.extend(&rest[..count]);
            rest = &rest[count..];
            if last.len() == size {
                blocks.push(Vec::new());
            }
        }
        if blocks.len() > before {
            blocks.push(Vec::new());
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

fn actual_head_bytes(record: &[u8]) -> usize {
    crate::sparkey::record::RecordHead::decode(record).unwrap().head_bytes
}

proptest! {
    #![proptest_config(cases(200))]

    /// Goal: blocks have the same content as Java's. Method: an independent implementation of the
    /// rules, on random operations that include keys of the lengths at which a delete counts
    /// differently.
    #[test]
    fn cut_as_java_cuts(mut ops in ops(100), size in prop_oneof![Just(16u32), Just(64), 100u32..400], n in 0usize..8) {
        for at in 0..n {
            let key = vec![b'k'; 126 + at % 3];
            ops.push(Op::Put(key.clone(), vec![]));
            ops.push(Op::Delete(key));
        }
        let options = LogOptions::default().compression(Compression::Snappy).block_bytes(size);
        let store = Store::log_only(&ops, &options);
        prop_assert_eq!(blocks(&store), expected_blocks(&ops, size as usize));
    }
}

/// Goal: the entries per block in the header are the actual maximum. Method: many records with
/// one-byte keys in blocks of 64 bytes.
#[test]
fn entries_per_block() {
    let ops: Vec<Op> = (0..100).map(|n| put(&char::from(b'a' + n % 26).to_string(), "")).collect();
    let options = LogOptions::default().compression(Compression::Snappy).block_bytes(64);
    let store = Store::build(&ops, &options, &IndexOptions::default());
    let info = store.reader().info();
    // A record has three bytes; the block has no room for the head of the 22nd.
    assert_eq!((info.log.block_entries_max, info.index.entry_bits), (21, 5));
}
