//! Round trips, hostile blocks and dictionaries.

use proptest::prelude::*;

use super::*;
use crate::Error;

const ALL: [Compression; 4] =
    [Compression::None, Compression::Snappy, Compression::ZSTD, Compression::Zstd { level: -5 }];

fn compressed(compression: Compression, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::new(compression).unwrap().compress(input, &mut out).unwrap();
    out
}

/// Values as in a store of small records: similar, each slightly different.
fn records(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|id| {
            format!("{{\"id\":{id},\"country\":\"SE\",\"plan\":\"premium\",\"seen\":{}}}", id * 7919)
                .into_bytes()
        })
        .collect()
}

/// Goal: the output bound is exact. Method: decompress into a buffer that is one byte too short,
/// then into one that just fits.
#[test]
fn output_bound_is_hard() {
    let input = b"bound ".repeat(100);
    for compression in ALL {
        let block = compressed(compression, &input);
        let mut decompressor = Decompressor::new();
        let short = decompressor.decompress(compression.format(), &block, &mut vec![0; input.len() - 1]);
        assert!(matches!(short, Err(Error::TooLarge { .. })), "{short:?}");
        let short = decompressor.append(compression.format(), &block, &mut Vec::new(), input.len() - 1);
        assert!(matches!(short, Err(Error::TooLarge { .. })), "{short:?}");
        let mut output = vec![0; input.len()];
        assert_eq!(decompressor.decompress(compression.format(), &block, &mut output), Ok(input.len()));
        assert_eq!(output, input);
    }
}

/// Goal: a small block that claims gigabytes allocates nothing. Method: handmade headers with a
/// generous limit.
#[test]
fn absurd_claims_are_refused() {
    let snappy_4_gib = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
    let mut zstd_1_eib = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    zstd_1_eib.extend((1u64 << 60).to_le_bytes());
    zstd_1_eib.extend([1, 0, 0]);
    for (format, block) in [(Format::Snappy, &snappy_4_gib[..]), (Format::Zstd, &zstd_1_eib)] {
        let mut out = Vec::new();
        let result = Decompressor::new().append(format, block, &mut out, usize::MAX);
        assert!(matches!(result, Err(Error::TooLarge { .. })), "{result:?}");
        assert_eq!(out.capacity(), 0);
    }
}

/// Goal: `expansion_max` is a true bound. Method: the most compressible input possible, at several
/// lengths.
#[test]
fn expansion_bound_holds_for_zeros() {
    for compression in ALL {
        for len in [0, 1, 100, 65_536, 1 << 20] {
            let block = compressed(compression, &vec![0; len]);
            assert!(expansion_max(compression.format(), block.len()) >= len as u64, "{compression:?} {len}");
        }
    }
}

/// Goal: a dictionary pays off, works from several threads' contexts, and is required. Method:
/// train on half of some records, compress the other half with and without it, and decompress with
/// it, without it, and with a wrong one.
#[test]
fn dictionary() {
    let records = records(4000);
    let (samples, others) = records.split_at(2000);
    let dictionary = Dictionary::train(samples, 4096).unwrap();
    assert!(dictionary.as_bytes().len() <= 4096);
    let stored = Dictionary::from_bytes(dictionary.as_bytes());
    let prepared = stored.for_decompression().unwrap();
    let mut with = Compressor::with_dictionary(&dictionary.for_compression(3).unwrap()).unwrap();
    let mut without = Compressor::new(Compression::ZSTD).unwrap();
    let mut decompressor = Decompressor::new();
    let (mut bytes_with, mut bytes_without) = (0, 0);
    for record in others {
        let mut block = Vec::new();
        bytes_with += with.compress(record, &mut block).unwrap();
        bytes_without += without.compress(record, &mut Vec::new()).unwrap();
        let mut out = b"kept".to_vec();
        assert_eq!(decompressor.append_with(&prepared, &block, &mut out, 1000), Ok(record.len()));
        assert_eq!(&out[4..], record);
        let mut exact = vec![0; record.len()];
        assert_eq!(decompressor.decompress_with(&prepared, &block, &mut exact), Ok(record.len()));
        assert_eq!(&exact, record);
        let missing = decompressor.append(Format::Zstd, &block, &mut out, 1000);
        assert!(matches!(missing, Err(Error::Decompress { .. })), "{missing:?}");
    }
    assert!(bytes_with * 2 < bytes_without, "{bytes_with} against {bytes_without}");
}

/// Goal: training without enough samples is a typed error. Method: no samples, and one.
#[test]
fn too_few_samples() {
    for samples in [&[][..], &[b"alone".to_vec()]] {
        assert!(matches!(Dictionary::train(samples, 4096), Err(Error::Dictionary { .. })));
    }
}

/// Goal: a damaged dictionary is an error, not a crash. Method: truncate and corrupt a trained one,
/// its first byte included, and use bytes that never were one.
#[test]
fn damaged_dictionary() {
    let bytes = Dictionary::train(&records(1000), 4096).unwrap().as_bytes().to_vec();
    let mut garbled = bytes.clone();
    garbled[8..40].fill(0xff);
    let mut renamed = bytes.clone();
    renamed[0] ^= 1;
    for unsound in [&bytes[..12], &garbled, &renamed, b"", b"bytes that zstd would take as content"] {
        let dictionary = Dictionary::from_bytes(unsound);
        assert!(matches!(dictionary.for_compression(3), Err(Error::Dictionary { .. })));
        assert!(matches!(dictionary.for_decompression(), Err(Error::Dictionary { .. })));
    }
}

/// Goal: levels are checked. Method: just outside and at the ends of the range.
#[test]
fn levels() {
    for level in [-7, 0, 22] {
        assert!(Compressor::new(Compression::Zstd { level }).is_ok());
    }
    for level in [-8, 23] {
        let error = Compressor::new(Compression::Zstd { level }).unwrap_err();
        assert_eq!(error, Error::Level { level, min: -7, max: 22 });
    }
}

/// Goal: the thread's own decompressor may be requested while it is in use. Method: nest two calls.
#[test]
fn local_decompressor_nests() {
    let block = compressed(Compression::ZSTD, b"nested");
    let twice = Decompressor::local(|outer| {
        let mut out = Vec::new();
        outer.append(Format::Zstd, &block, &mut out, 10).unwrap();
        Decompressor::local(|inner| inner.append(Format::Zstd, &block, &mut out, 10).unwrap());
        out
    });
    assert_eq!(twice, b"nestednested");
}

fn blocks() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..2000),
        prop::collection::vec(0u8..4, 0..5000),
        (any::<u8>(), 0usize..200_000).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

proptest! {
    #![proptest_config(crate::test_config::cases(64))]

    /// Goal: round trip through reused contexts, appended after existing bytes. Method: random
    /// blocks.
    #[test]
    fn round_trip(inputs in prop::collection::vec(blocks(), 1..5)) {
        for compression in ALL {
            let mut compressor = Compressor::new(compression).unwrap();
            let mut decompressor = Decompressor::new();
            for input in &inputs {
                let mut block = b"head".to_vec();
                let len = compressor.compress(input, &mut block).unwrap();
                prop_assert_eq!(block.len(), 4 + len);
                let mut out = b"kept".to_vec();
                let done = decompressor.append(compression.format(), &block[4..], &mut out, input.len());
                prop_assert_eq!(done, Ok(input.len()));
                prop_assert_eq!(&out[4..], &input[..]);
            }
        }
    }

    /// Goal: damage ends in an error or in at most the allowed output. Method: corrupt a valid
    /// block, or take random bytes, and decompress with a small limit.
    #[test]
    fn garbage_is_bounded(input in blocks(), at: usize, byte: u8, cut: usize) {
        for compression in ALL {
            let mut block = compressed(compression, &input);
            if !block.is_empty() {
                let at = at % block.len();
                block[at] ^= byte;
                block.truncate(cut % (block.len() + 1));
            }
            for bytes in [&block, &input] {
                let mut out = b"kept".to_vec();
                let result = Decompressor::new().append(compression.format(), bytes, &mut out, 1000);
                prop_assert_eq!(out.len(), 4 + result.clone().unwrap_or(0));
                prop_assert!(out.len() <= 1004);
                prop_assert_eq!(&out[..4], b"kept");
            }
        }
    }
}
