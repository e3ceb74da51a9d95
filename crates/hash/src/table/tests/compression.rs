//! Compressed values.

use cairn_codec::compress::{Compression as Block, Compressor};

use super::*;

/// Goal: a dictionary stored in the file shrinks values with common content. Method: JSON-like
/// values.
#[test]
fn dictionary_compression_shrinks_small_values() {
    let fs = fs();
    let records: Vec<_> = (0..20_000u32)
        .map(|n| {
            let value =
                format!("{{\"name\":\"entry {n}\",\"kind\":\"settlement\",\"population\":{}}}", n * 37);
            (n.to_le_bytes().to_vec(), value.into_bytes())
        })
        .collect();
    build(&fs, "plain", options(), &records);
    build(&fs, "zstd", options().compression(Compression::zstd()), &records);
    let (plain, zstd) = (open(&fs, "plain", Mode::Mmap), open(&fs, "zstd", Mode::Mmap));
    // Without a dictionary, values of 60 bytes do not shrink at all.
    assert!(zstd.info().data_bytes * 3 < plain.info().data_bytes * 2, "{} {}", zstd.info(), plain.info());
    assert!(zstd.info().dictionary_bytes > 0);
    agrees(&zstd, &records.iter().cloned().collect(), &[]);
    agrees(&open(&fs, "zstd", Mode::Pread), &records.iter().cloned().collect(), &[]);
}

/// Goal: a value is stored compressed exactly if that is shorter. Method: values of every short
/// length, of one repeated byte and of random bytes; checks the tag and the length of every record.
#[test]
fn only_what_shrinks_is_compressed() {
    let mut rng = SeededRng::new(2);
    let mut records = Vec::new();
    for bytes in 0..300u32 {
        let mut noise = vec![0; bytes as usize];
        rng.fill(&mut noise);
        records.push((format!("noise {bytes}").into_bytes(), noise));
        records.push((format!("equal {bytes}").into_bytes(), vec![7; bytes as usize]));
    }
    let lengths: HashMap<_, _> = records.iter().map(|(key, value)| (key.clone(), value.len())).collect();
    // With a dictionary trained on this noise, the noise would shrink.
    let bare = Compression::Zstd { level: 3, dictionary_bytes: 0 };
    for compression in [Compression::None, Compression::Snappy, bare] {
        let fs = fs();
        build(&fs, "t", options().compression(compression), &records);
        let table = open(&fs, "t", Mode::Mmap);
        for record in table.records().map(Result::unwrap) {
            let (bytes, is_equal) = (lengths[&*record.key], record.key.starts_with(b"equal"));
            let compressed = record.found.tag == Tag::Compressed;
            assert_eq!(compressed, record.found.bytes < bytes as u64, "{bytes} bytes: {record:?}");
            // For lengths in between, the result depends on the compressor.
            if compression == Compression::None || !is_equal || bytes < 16 {
                assert!(!compressed, "{bytes} bytes: {record:?}");
            } else if bytes >= 20 {
                assert!(compressed, "{bytes} bytes: {record:?}");
            }
        }
        assert_eq!(table.info().compression, compression.format());
        let named = format!(", compression {};", compression.format().name());
        assert!(table.info().to_string().contains(&named), "{}", table.info());
    }
}

/// Goal: the header records the compression, and an invalid record of it is refused. Method: the
/// number in tables of each compression; then an unknown number, and a dictionary together with
/// snappy, both with a valid checksum.
#[test]
fn compression_in_the_header() {
    for (compression, number) in compressions().into_iter().zip([0u32, 2, 1, 1]) {
        let fs = fs();
        build(&fs, "t", options().compression(compression), &repetitive(2000));
        let has_dictionary = open(&fs, "t", Mode::Mmap).info().dictionary_bytes > 0;
        assert_eq!(has_dictionary, compression == Compression::zstd());
        let file = fs.open(Path::new("t"), cairn_vfs::OpenOptions::write()).unwrap();
        let mut page = vec![0; 4096];
        file.read_exact_at(&mut page, 0).unwrap();
        assert_eq!(page[124..128], number.to_le_bytes());
        let mut open_with = |number: u32| {
            page[124..128].copy_from_slice(&number.to_le_bytes());
            let sum = cairn_codec::checksum::xxh3_64(&page[..4088]);
            page[4088..].copy_from_slice(&sum.to_le_bytes());
            file.write_all_at(&page, 0).unwrap();
            Reader::open_in(&fs, Path::new("t"), ReaderOptions::default())
        };
        let unknown = open_with(3).unwrap_err();
        assert!(matches!(&unknown, Error::Unsupported { detail, .. } if detail.contains("compression 3")));
        let as_snappy = open_with(2);
        assert_eq!(matches!(as_snappy, Err(Error::Corruption { offset: 136, .. })), has_dictionary);
        open_with(number).unwrap().verify().unwrap();
    }
}

/// Goal: a stored value that no builder wrote is reported as corruption, and no allocation exceeds
/// the longest value that may be compressed. Method: lengths that are malformed, absurd or
/// different from that of the block; blocks that are truncated or of another compression; noise.
#[test]
fn garbled_compressed_values() {
    let stored = |claimed: u64, block: Block, value: &[u8]| {
        let mut stored = Vec::new();
        cairn_codec::varint::push(claimed, &mut stored);
        Compressor::new(block).unwrap().compress(value, &mut stored).unwrap();
        stored
    };
    let (value, long) = (b"abcd".repeat(50), vec![7; 1 << 20]);
    let blocks = [(Compression::Snappy, Block::Snappy), (Compression::zstd(), Block::ZSTD)];
    for (index, (compression, block)) in blocks.into_iter().enumerate() {
        let fs = fs();
        build(&fs, "t", options().compression(compression), &repetitive(1));
        let table = open(&fs, "t", Mode::Mmap);
        let good = stored(200, block, &value);
        let mut out = Vec::new();
        table.decompress(&good, 0, &mut out).unwrap();
        assert_eq!(out, value);
        let mut bad = vec![
            vec![],
            vec![0xc8, 0x01],
            [&[0x80, 0x00][..], &good[2..]].concat(),
            [&[0xff; 10][..], &good[2..]].concat(),
            stored(199, block, &value),
            stored(201, block, &value),
            stored(0, block, &value),
            stored(1 << 20, block, &long),
            stored(32 << 10, block, &long),
            stored(u64::MAX, block, &long),
            stored(200, blocks[1 - index].1, &value),
            good[..good.len() - 1].to_vec(),
            [&good[..], b"x"].concat(),
        ];
        let mut rng = SeededRng::new(4);
        for _ in 0..5000 {
            let mut noise = vec![0; 3 + rng.below(60) as usize];
            rng.fill(&mut noise);
            // A valid length, so that the block is decompressed at all.
            noise.splice(..2, [0x80 | rng.below(128) as u8, 1 + rng.below(127) as u8]);
            bad.push(noise);
        }
        for stored in bad {
            let mut out = Vec::new();
            let result = table.decompress(&stored, 7, &mut out);
            let told = matches!(result, Err(Error::Corruption { offset: 7, .. }));
            assert!(told, "{compression:?} {stored:x?}: {result:?}");
            assert!(out.capacity() <= 32 << 10, "{} for {stored:x?}", out.capacity());
        }
    }
    let fs = fs();
    build(&fs, "t", options(), &numbered(1));
    let result =
        open(&fs, "t", Mode::Mmap).decompress(&stored(200, Block::Snappy, &value), 7, &mut Vec::new());
    assert!(matches!(result, Err(Error::Corruption { .. })), "{result:?}");
}
