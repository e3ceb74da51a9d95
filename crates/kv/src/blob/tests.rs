//! Tests of blob files alone.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, MemFs, OpenOptions};

use super::{BlobReader, BlobRef, BlobWriter};
use crate::file::BlobMeta;

fn write(fs: &MemFs, values: &[&[u8]]) -> (BlobMeta, Vec<BlobRef>) {
    fs.create_dir_all(Path::new("/s")).unwrap();
    let file = fs.open(Path::new("/s/000007.blob"), OpenOptions::create_new()).unwrap();
    let mut writer = BlobWriter::new(Arc::from(file), 7).unwrap();
    let references = values.iter().map(|value| writer.add(value).unwrap()).collect();
    (writer.finish().unwrap(), references)
}

/// Goal: values are read back, references survive encoding, and references beyond the file are
/// refused.
/// Method: values of several lengths, including empty.
#[test]
fn values_come_back() {
    let fs = MemFs::new();
    let values: [&[u8]; 4] = [b"one", b"", &[7; 300_000], b"last"];
    let (meta, references) = write(&fs, &values);
    assert_eq!((meta.values, meta.value_bytes), (4, 300_007));
    let reader = BlobReader::open(&fs, Path::new("/s"), &meta).unwrap();
    reader.verify().unwrap();
    let mut encoded = Vec::new();
    let mut value = Vec::new();
    for (reference, expected) in references.iter().zip(values) {
        reference.encode(&mut encoded);
        assert_eq!(BlobRef::decode(&encoded), Some(*reference));
        assert_eq!(BlobRef::decode(&encoded[1..]), None);
        reader.load(*reference, &mut value).unwrap();
        assert_eq!(value, expected);
        for wrong in [
            BlobRef { offset: reference.offset + 1, ..*reference },
            BlobRef { bytes: reference.bytes + 1, ..*reference },
            BlobRef { offset: u64::MAX, ..*reference },
            BlobRef { bytes: u64::MAX, ..*reference },
        ] {
            assert!(reader.load(wrong, &mut value).is_err(), "{wrong:?}");
        }
    }
}

/// Goal: `verify` detects every flipped bit and every truncation, and a lookup returns the right
/// value or an error.
/// Method: every bit and every length of a small file.
#[test]
fn damage_is_noticed() {
    let fs = MemFs::new();
    let values: [&[u8]; 2] = [b"first value", b"second"];
    let (meta, references) = write(&fs, &values);
    let path = Path::new("/s/000007.blob");
    let file = fs.open(path, OpenOptions::write()).unwrap();
    let mut bytes = vec![0; meta.bytes as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let mut value = Vec::new();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        file.write_all_at(&flipped, 0).unwrap();
        let Ok(reader) = BlobReader::open(&fs, Path::new("/s"), &meta) else { continue };
        assert!(reader.verify().is_err(), "bit {bit}");
        for (reference, expected) in references.iter().zip(values) {
            if reader.load(*reference, &mut value).is_ok() {
                assert_eq!(value, expected, "bit {bit}");
            }
        }
    }
    for len in 0..meta.bytes {
        file.set_len(len).unwrap();
        assert!(BlobReader::open(&fs, Path::new("/s"), &meta).is_err(), "length {len}");
    }
}
