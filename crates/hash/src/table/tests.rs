//! The behaviour of a table, compared with a `HashMap`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, MemFs, Rng, SeededRng};
use proptest::prelude::*;

use super::*;
use crate::Error;

mod compression;
mod equal_hashes;
mod fill_stats;
mod fixed_widths;
mod forged;
mod page_edges;
mod resources;

type Model = HashMap<Vec<u8>, Vec<u8>>;

fn fs() -> Arc<dyn Fs> {
    Arc::new(MemFs::new())
}

fn options() -> BuildOptions {
    BuildOptions::default().seed(7).id(9).threads(2).memory_bytes(16 << 20)
}

fn build(
    fs: &Arc<dyn Fs>,
    path: &str,
    options: BuildOptions,
    records: &[(Vec<u8>, Vec<u8>)],
) -> BuildSummary {
    let mut builder = Builder::create_in(fs, Path::new(path), options, &mut SeededRng::new(1)).unwrap();
    for (key, value) in records {
        builder.put(key, value).unwrap();
    }
    builder.finish().unwrap()
}

fn open(fs: &Arc<dyn Fs>, path: &str, mode: Mode) -> Reader {
    Reader::open_in(fs, Path::new(path), ReaderOptions::default().mode(mode)).unwrap()
}

/// Asserts that every query on `reader` agrees with `model`.
fn agrees(reader: &Reader, model: &Model, absent: &[Vec<u8>]) {
    assert_eq!(reader.len(), model.len() as u64);
    let keys: Vec<&Vec<u8>> = model.keys().chain(absent).collect();
    let mut value = Vec::new();
    for key in &keys {
        let expected = model.get(*key);
        assert_eq!(reader.get(key).unwrap().as_deref(), expected.map(Vec::as_slice));
        assert_eq!(reader.contains(key).unwrap(), expected.is_some());
        assert_eq!(reader.get_into(key, &mut value).unwrap(), expected.is_some());
        assert_eq!(expected.unwrap_or(&Vec::new()), &value);
        if let Some(expected) = expected {
            let mut streamed = Vec::new();
            std::io::Read::read_to_end(&mut reader.get_reader(key).unwrap().unwrap(), &mut streamed).unwrap();
            assert_eq!(expected, &streamed);
        }
    }
    let mut answers = 0;
    reader
        .get_many(&keys, |index, value| {
            assert_eq!(value, model.get(keys[index]).map(Vec::as_slice));
            assert_eq!(index, answers);
            answers += 1;
        })
        .unwrap();
    assert_eq!(answers, keys.len());
    let scanned: Model = reader
        .scan()
        .map(|entry| entry.map(|e| (e.key.into_owned(), e.value.into_owned())).unwrap())
        .collect();
    assert_eq!(&scanned, model);
    assert_eq!(reader.verify().unwrap().entries, model.len() as u64);
}

fn check_all_modes(options: BuildOptions, records: &[(Vec<u8>, Vec<u8>)]) {
    let fs = fs();
    build(&fs, "t.cairn", options, records);
    let model: Model = records.iter().cloned().collect();
    let absent: Vec<Vec<u8>> = (0..50u32).map(|n| format!("absent {n}").into_bytes()).collect();
    for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
        agrees(&open(&fs, "t.cairn", mode), &model, &absent);
    }
}

/// Returns every compression with its default settings, and zstd without a dictionary.
fn compressions() -> [Compression; 4] {
    let bare = Compression::Zstd { level: 3, dictionary_bytes: 0 };
    [Compression::None, Compression::Snappy, Compression::zstd(), bare]
}

/// Returns records with repetitive values, which each compression makes shorter.
fn repetitive(count: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let value = |n: u32| format!("value_{n},").repeat(4 + n as usize % 9).into_bytes();
    (0..count).map(|n| (format!("key_{n}").into_bytes(), value(n))).collect()
}

/// Returns the number of records that are stored compressed.
fn compressed_records(table: &Reader) -> usize {
    table.records().filter(|record| record.as_ref().unwrap().found.tag == Tag::Compressed).count()
}

fn numbered(count: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..count).map(|n| (format!("key_{n}").into_bytes(), format!("value_{n}").into_bytes())).collect()
}

/// Goal: tables of every size, from empty to many partitions, give correct answers. Method:
/// numbered keys, all readers.
#[test]
fn sizes_from_empty_to_many_partitions() {
    for count in [0, 1, 2, 27, 28, 29, 57, 1000, 20_000] {
        check_all_modes(options(), &numbered(count));
    }
    for compression in compressions() {
        for count in [0, 1, 29, 12_000] {
            check_all_modes(options().compression(compression), &repetitive(count));
        }
    }
}

/// Goal: searches that pass through full lines find everything, with records of all sizes. Method:
/// tables at the maximum fill, with and without fixed widths. Some lines must have passed entries
/// on, or the test would show nothing.
#[test]
fn full_tables_answer_lookups() {
    let fixed: Vec<_> =
        (0..30_000u64).map(|n| (n.to_be_bytes().to_vec(), (n * 3).to_le_bytes().to_vec())).collect();
    let mut mixed = numbered(30_000);
    for (n, (_, value)) in mixed.iter_mut().enumerate().filter(|(n, _)| n % 40 == 0) {
        value.resize(200 + n % 3000, 7);
    }
    for records in [numbered(30_000), fixed, mixed] {
        let fs = fs();
        build(&fs, "t.cairn", options().fill(0.95), &records);
        let table = open(&fs, "t.cairn", Mode::Mmap);
        let distance = |record: super::scan::Record<'_>| {
            let (_, place) = table.partitions.find(table.hash(&record.key));
            record.line - u64::from(place.home)
        };
        let distances: Vec<u64> = table.records().map(|record| distance(record.unwrap())).collect();
        let farther_than = |lines| distances.iter().filter(|&&distance| distance > lines).count();
        assert!(farther_than(0) > 1000 && farther_than(1) > 10, "{} {}", farther_than(0), farther_than(1));
        check_all_modes(options().fill(0.95), &records);
    }
}

/// Goal: equal widths select the format without lengths, and give correct answers. Method: 8-byte
/// keys and values; then one record of another width, which must disable that format.
#[test]
fn fixed_widths() {
    let mut records: Vec<_> =
        (0..9000u64).map(|n| (n.to_be_bytes().to_vec(), (n * 3).to_le_bytes().to_vec())).collect();
    let fs = fs();
    build(&fs, "t.cairn", options(), &records);
    assert!(open(&fs, "t.cairn", Mode::Mmap).info().fixed_width);
    check_all_modes(options(), &records);
    records.push((b"longer than eight".to_vec(), vec![]));
    build(&fs, "t.cairn", options(), &records);
    assert!(!open(&fs, "t.cairn", Mode::Mmap).info().fixed_width);
    check_all_modes(options(), &records);
}

/// Goal: empty keys and values, long keys, values around and beyond the blob limit and of 1 MiB.
/// Method: one of each.
#[test]
fn values_around_size_limits() {
    let mut records = numbered(100);
    records.push((vec![], b"empty key".to_vec()));
    records.push((b"empty value".to_vec(), vec![]));
    records.push((vec![7; 100_000], b"long key".to_vec()));
    for bytes in [127, 128, 4095, 4096, 16_383, 16_384, 32_767, 32_768, 100_000, 1 << 20] {
        records.push((format!("v{bytes}").into_bytes(), vec![bytes as u8; bytes]));
    }
    for compression in compressions() {
        check_all_modes(options().compression(compression), &records);
    }
}

/// Goal: of equal keys the last one counts, and hot keys do not cost quadratic time. Method: three
/// keys put 200,000 times in total.
#[test]
fn last_put_wins() {
    let records: Vec<_> =
        (0..200_000u32).map(|n| (format!("k{}", n % 3).into_bytes(), n.to_le_bytes().to_vec())).collect();
    check_all_modes(options(), &records);
}

/// Goal: a base keeps no trace of deleted keys. Method: put, delete, put again.
#[test]
fn deletes_in_a_build() {
    let fs = fs();
    let mut builder = Builder::create_in(&fs, Path::new("t"), options(), &mut SeededRng::new(1)).unwrap();
    for (key, value) in numbered(10) {
        builder.put(&key, &value).unwrap();
    }
    builder.delete(b"key_3").unwrap();
    builder.delete(b"key_4").unwrap();
    builder.put(b"key_4", b"again").unwrap();
    builder.delete(b"never there").unwrap();
    builder.finish().unwrap();
    let mut model: Model = numbered(10).into_iter().collect();
    model.remove(&b"key_3"[..]);
    model.insert(b"key_4".to_vec(), b"again".to_vec());
    agrees(&open(&fs, "t", Mode::Mmap), &model, &[b"key_3".to_vec(), b"never there".to_vec()]);
}

/// Goal: the bytes of a table do not depend on memory and threads, and a small memory does spill.
/// Method: 40 MB of records built with 16 MiB and with 1 GiB.
#[test]
fn bytes_do_not_depend_on_memory_or_threads() {
    let fs = fs();
    let mut rng = SeededRng::new(5);
    let records: Vec<_> = (0..60_000u64)
        .map(|n| {
            let mut value = vec![0; 200 + rng.below(800) as usize];
            rng.fill(&mut value);
            ((n % 50_000).to_le_bytes().to_vec(), value)
        })
        .collect();
    let small = build(&fs, "small", options(), &records);
    let large = build(&fs, "large", options().memory_bytes(1 << 30).threads(1), &records);
    assert!(small.spilled_bytes > 0 && large.spilled_bytes == 0);
    let bytes = |path: &str| {
        let file = fs.open(Path::new(path), cairn_vfs::OpenOptions::read()).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    assert!(bytes("small") == bytes("large"));
    agrees(&open(&fs, "small", Mode::Pread), &records.iter().cloned().collect(), &[]);
    assert_eq!(fs.read_dir(Path::new(".")).unwrap().len(), 2, "temporary files are gone");
}

/// Goal: the index takes three bytes per entry, apart from the effect of partitions. Method:
/// 100,000 entries.
#[test]
fn index_is_small() {
    let fs = fs();
    let summary = build(&fs, "t", options(), &numbered(100_000));
    let per_entry = summary.index_bytes as f64 / summary.entries as f64;
    assert!(per_entry < 3.3, "{per_entry}");
}

/// Goal: a second builder of the same path gets `Busy`, and a builder that is dropped leaves the
/// old table unchanged.
#[test]
fn one_builder_at_a_time() {
    let fs = fs();
    build(&fs, "t", options(), &numbered(5));
    let mut first = Builder::create_in(&fs, Path::new("t"), options(), &mut SeededRng::new(1)).unwrap();
    first.put(b"x", b"y").unwrap();
    let second = Builder::create_in(&fs, Path::new("t"), options(), &mut SeededRng::new(1));
    assert_eq!(second.unwrap_err().kind(), cairn_vfs::ErrorKind::Busy);
    drop(first);
    agrees(&open(&fs, "t", Mode::Mmap), &numbered(5).into_iter().collect(), &[b"x".to_vec()]);
    assert_eq!(fs.read_dir(Path::new(".")).unwrap().len(), 1);
}

/// Goal: errors name the option that is out of range. Method: one of each.
#[test]
fn bad_options_are_refused() {
    let fs = fs();
    for (options, word) in [
        (options().fill(0.99), "fill"),
        (options().threads(0), "threads"),
        (options().memory_bytes(1), "memory"),
        (options().compression(Compression::Zstd { level: 99, dictionary_bytes: 0 }), "level"),
        (options().compression(Compression::Zstd { level: 3, dictionary_bytes: 255 }), "dictionary"),
        (options().compression(Compression::Zstd { level: 3, dictionary_bytes: u32::MAX }), "dictionary"),
    ] {
        let error = Builder::create_in(&fs, Path::new("t"), options, &mut SeededRng::new(1)).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// Goal: every flipped bit is detected, and none gives a wrong value. Method: every bit of a small
/// table in turn; `verify` must fail, and each lookup gives the right value or an error.
#[test]
fn every_flipped_bit_is_found() {
    let zstd = Compression::Zstd { level: 3, dictionary_bytes: 0 };
    for (compression, compressed) in [(Compression::None, 0), (Compression::Snappy, 40), (zstd, 40)] {
        let fs = fs();
        let records = repetitive(40);
        build(&fs, "t", options().compression(compression), &records);
        assert_eq!(compressed_records(&open(&fs, "t", Mode::Mmap)), compressed);
        let file = fs.open(Path::new("t"), cairn_vfs::OpenOptions::write()).unwrap();
        let len = file.len().unwrap();
        for bit in 0..len * 8 {
            let mut byte = [0];
            file.read_exact_at(&mut byte, bit / 8).unwrap();
            file.write_all_at(&[byte[0] ^ 1 << (bit % 8)], bit / 8).unwrap();
            flipped_is_noticed(&fs, bit, &records);
            file.write_all_at(&byte, bit / 8).unwrap();
        }
        open(&fs, "t", Mode::Mmap).verify().unwrap();
    }
}

fn flipped_is_noticed(fs: &Arc<dyn Fs>, bit: u64, records: &[(Vec<u8>, Vec<u8>)]) {
    let mode = [Mode::Mmap, Mode::Pread][bit as usize % 2];
    let reader = match Reader::open_in(fs, Path::new("t"), ReaderOptions::default().mode(mode)) {
        Ok(reader) => reader,
        Err(error) => {
            let told =
                matches!(error, Error::Corruption { .. } | Error::Unsupported { .. } | Error::Foreign { .. });
            return assert!(told, "bit {bit}: {error}");
        }
    };
    assert!(matches!(reader.verify(), Err(Error::Corruption { .. })), "bit {bit} is not found");
    for (key, value) in records {
        match reader.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(value.as_slice()), "bit {bit}"),
            Err(error) => assert!(matches!(error, Error::Corruption { .. }), "bit {bit}: {error}"),
        }
    }
}

/// Goal: a table that is truncated anywhere, or has an extra byte at its end, is refused. Method:
/// every length.
#[test]
fn every_truncation_is_refused() {
    let fs = fs();
    build(&fs, "t", options(), &numbered(40));
    let file = fs.open(Path::new("t"), cairn_vfs::OpenOptions::write()).unwrap();
    let len = file.len().unwrap();
    file.set_len(len + 1).unwrap();
    for cut in (0..=len + 1).rev().filter(|cut| *cut != len) {
        file.set_len(cut).unwrap();
        let opened = Reader::open_in(&fs, Path::new("t"), ReaderOptions::default());
        match opened {
            Err(Error::Corruption { .. }) if cut > 0 => {}
            // An empty file has no bytes that tell its type.
            Err(Error::Foreign { .. }) if cut == 0 => {}
            other => panic!("{cut} bytes of {len}: {other:?}"),
        }
    }
}

/// Goal: a file of another type is reported as such, never as a damaged table, whatever its length.
/// Method: text of several lengths, an empty file, and a file that begins with the magic number.
#[test]
fn foreign_files_are_told_from_damaged_ones() {
    let fs = fs();
    for bytes in [0, 3, 8, 44, 4095, 4096, 9500] {
        let file = fs.open(Path::new("text"), cairn_vfs::OpenOptions::create()).unwrap();
        file.set_len(0).unwrap();
        file.write_all_at(&vec![b'x'; bytes], 0).unwrap();
        let error = Reader::open_in(&fs, Path::new("text"), ReaderOptions::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "text is not a constant store: it does not begin with CAIRNTBL",
            "{bytes}"
        );
        assert_eq!(error.kind(), cairn_vfs::ErrorKind::Unsupported);
    }
    let file = fs.open(Path::new("cut"), cairn_vfs::OpenOptions::create()).unwrap();
    file.write_all_at(b"CAIRNTBL and no more", 0).unwrap();
    let error = Reader::open_in(&fs, Path::new("cut"), ReaderOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Corruption { offset: 0, .. }), "{error}");
}

/// Goal: a header with a valid checksum and false values causes an error, at open or in `verify`,
/// and no allocation or panic. Method: every field of the header in turn is set to extreme values,
/// and the checksum is recomputed.
#[test]
fn absurd_headers_are_refused() {
    let fs = fs();
    build(&fs, "t", options(), &numbered(40));
    let file = fs.open(Path::new("t"), cairn_vfs::OpenOptions::write()).unwrap();
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    let before = page.clone();
    for at in (12..200).step_by(4) {
        for value in [0, 1, 2, 4, 63, 0xffff, 0x7fff_ffff, u32::MAX] {
            page.clone_from(&before);
            page[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
            let sum = cairn_codec::checksum::xxh3_64(&page[..4088]);
            page[4088..].copy_from_slice(&sum.to_le_bytes());
            file.write_all_at(&page, 0).unwrap();
            // Flags, id, parent, generation, puts and compression may have other values in a valid
            // table.
            let may_differ = matches!(at, 12 | 16..40 | 64..72 | 124) || page == before;
            for mode in [Mode::Mmap, Mode::Pread] {
                let options = ReaderOptions::default().mode(mode).trust(Trust::Unchecked);
                if let Ok(reader) = Reader::open_in(&fs, Path::new("t"), options) {
                    let verified = reader.verify();
                    assert!(may_differ || verified.is_err(), "{value:#x} at {at}: {verified:?}");
                    let _ = reader.scan().count();
                    numbered(40).iter().for_each(|(key, _)| drop(reader.get(key)));
                }
            }
        }
    }
}

/// Goal: garbage never causes a panic or an endless loop, even if its checksums are not verified.
/// Method: unchecked readers over random damage.
#[test]
fn unchecked_readers_survive_garbage() {
    for compression in compressions() {
        let fs = fs();
        let records = repetitive(300);
        build(&fs, "t", options().compression(compression), &records);
        let file = fs.open(Path::new("t"), cairn_vfs::OpenOptions::write()).unwrap();
        let len = file.len().unwrap();
        let mut rng = SeededRng::new(11);
        for _ in 0..2000 {
            let at = 4096 + rng.below(len - 4096 - 8);
            let mut before = [0; 8];
            file.read_exact_at(&mut before, at).unwrap();
            file.write_all_at(&rng.next_u64().to_le_bytes(), at).unwrap();
            let options = ReaderOptions::default().trust(Trust::Unchecked);
            if let Ok(reader) = Reader::open_in(&fs, Path::new("t"), options) {
                let _ = reader.scan().count();
                let _ = reader.get_many(&records.iter().map(|r| &r.0).collect::<Vec<_>>(), |_, _| {});
                records.iter().for_each(|(key, _)| drop(reader.get(key)));
            }
            file.write_all_at(&before, at).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(crate::test_config::cases(64))]

    /// Goal: any records, in any order, with any options. Method: small alphabets, so that keys
    /// repeat.
    #[test]
    fn any_records(
        records in prop::collection::vec(
            (prop::collection::vec(0u8..4, 0..6), prop::collection::vec(any::<u8>(), 0..300)), 0..400),
        repeats in 1usize..4,
        compression in prop::sample::select(compressions().to_vec()),
        fill in 0.1f64..0.95,
    ) {
        let records: Vec<_> = records.into_iter().map(|(key, value)| (key, value.repeat(repeats))).collect();
        check_all_modes(options().compression(compression).fill(fill), &records);
    }
}

/// A source of a value that fails after some bytes.
struct Failing<F>(usize, F);

impl<F: Fn() -> std::io::Error> std::io::Read for Failing<F> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let count = buf.len().min(self.0);
        self.0 -= count;
        if count == 0 { Err((self.1)()) } else { Ok(count) }
    }
}

/// Goal: the error for a streamed value that cannot be read states the failure of its source,
/// whatever its length. Method: a device that fails, another table that is damaged, and a source
/// that ends too early; short and long values.
#[test]
fn failed_streams_report_their_cause() {
    let (fs, path) = (fs(), Path::new("t.cairn"));
    for bytes in [100, 100_000] {
        let put = |source: &mut dyn std::io::Read| {
            let mut builder = Builder::create_in(&fs, path, options(), &mut SeededRng::new(1)).unwrap();
            builder.put_stream(b"k", bytes, source).unwrap_err()
        };
        let device = put(&mut Failing(50, || std::io::Error::other("the device is gone")));
        assert!(
            matches!(&device, Error::Invalid { detail } if detail.contains("the device is gone")),
            "{device}"
        );
        let damaged = || std::io::Error::other(Error::corruption(Path::new("other"), 7, "garbled"));
        let damage = put(&mut Failing(50, damaged));
        assert!(matches!(&damage, Error::Corruption { offset: 7, .. }), "{damage}");
        let early = put(&mut &[0; 50][..]);
        assert!(early.to_string().contains("fewer than the announced"), "{early}");
    }
}
