//! Forged tables: every checksum is valid, but the content is not.

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::OpenOptions;

use super::super::format::{LINE_BYTES, PAGE_BYTES, word64};
use super::super::ingest::{BufferedRecord, Ingest};
use super::super::layout::{Shape, lay_out};
use super::super::pages::build_tree;
use super::super::place::Place;
use super::*;

/// Builds a table of `records`, applies `change`, and recomputes all its checksums.
fn forged(records: &[(Vec<u8>, Vec<u8>)], change: impl Fn(&mut [u8], &Reader)) -> Arc<dyn Fs> {
    forged_with(options(), records, change)
}

fn forged_with(
    options: BuildOptions,
    records: &[(Vec<u8>, Vec<u8>)],
    change: impl Fn(&mut [u8], &Reader),
) -> Arc<dyn Fs> {
    let fs = fs();
    build(&fs, "t", options, records);
    let sound = open(&fs, "t", Mode::Mmap);
    let mut bytes = sound.window().bytes.to_vec();
    change(&mut bytes, &sound);
    let sums_at = sound.header.sums_offset as usize;
    let leaves: Vec<u64> =
        bytes[PAGE_BYTES as usize..sums_at].chunks(PAGE_BYTES as usize).map(xxh3_64).collect();
    let mut tree = Vec::new();
    let root = build_tree(leaves, |page| {
        tree.extend_from_slice(page);
        Ok(())
    });
    bytes[sums_at..].copy_from_slice(&tree);
    put_word(&mut bytes, 152, root.unwrap());
    let sum = xxh3_64(&bytes[..4088]);
    put_word(&mut bytes, 4088, sum);
    let fs = super::fs();
    fs.open(Path::new("t"), OpenOptions::create()).unwrap().write_all_at(&bytes, 0).unwrap();
    fs
}

fn put_word(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

fn refused(fs: &Arc<dyn Fs>) -> (u64, String) {
    match Reader::open_in(fs, Path::new("t"), ReaderOptions::default()) {
        Err(Error::Corruption { offset, detail, .. }) => (offset, detail),
        other => panic!("{other:?}"),
    }
}

fn damage<T: std::fmt::Debug>(result: crate::Result<T>) -> (u64, String) {
    match result {
        Err(Error::Corruption { offset, detail, .. }) => (offset, detail),
        other => panic!("{other:?}"),
    }
}

/// Goal: the tables of these tests are invalid only because of their changes. Method: change
/// nothing.
#[test]
fn unchanged_table_verifies() {
    let fs = forged(&numbered(3000), |_, _| {});
    agrees(&open(&fs, "t", Mode::Mmap), &numbered(3000).into_iter().collect(), &[]);
}

/// Goal: a lookup soon ends even if every line passes the search on. Method: every line says that
/// any entry may have been passed on, so a search that ends without an error before the last line
/// has met the distance limit; in each reader mode.
#[test]
fn searches_end_in_forged_tables() {
    let records = numbered(8000);
    let fs = forged(&records, |bytes, table| {
        for line in 0..table.header.index_lines {
            let at = (table.header.index_offset + line * LINE_BYTES) as usize;
            let head = word64(bytes, at) & !(31 << 15) | 30 << 15;
            put_word(bytes, at, head);
        }
    });
    for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
        let table = open(&fs, "t", mode);
        assert_eq!(table.partitions.as_slice().len(), 1);
        let lines = table.header.index_lines;
        assert!(lines > 300, "{lines}");
        let mut cut = 0;
        for n in 0..2000u32 {
            let key = format!("absent {n}").into_bytes();
            let (_, place) = table.partitions.find(table.hash(&key));
            let beyond_limit = u64::from(place.home) + 257;
            match table.get(&key) {
                Ok(found) => {
                    assert!(found.is_none() && beyond_limit < lines, "{place:?}");
                    cut += 1;
                }
                // A candidate that is not a record, or the end of the partition.
                bad => _ = damage(bad),
            }
        }
        assert!(cut > 100, "{cut}");
        damage(table.verify());
    }
}

/// Goal: a partition with more tail lines than home lines is refused. Method: one home line and the
/// rest declared tail; half of the lines; one less than half.
#[test]
fn more_tail_than_home_is_refused() {
    let with_homes = |homes: &dyn Fn(u32) -> u32| {
        forged(&numbered(8000), |bytes, table| {
            let at = table.header.partitions_offset as usize;
            let partition = table.partitions.as_slice()[0];
            let lines = partition.home_lines + partition.tail_lines;
            put_word(bytes, at + 8, u64::from(homes(lines)) | u64::from(lines - homes(lines)) << 32);
        })
    };
    open(&with_homes(&|lines| lines.div_ceil(2)), "t", Mode::Mmap);
    for fs in [with_homes(&|_| 1), with_homes(&|lines| lines.div_ceil(2) - 1)] {
        assert!(refused(&fs).1.contains("tail lines"));
    }
}

/// Goal: the builder writes no table that a reader refuses. Method: keys of one home, as many as
/// fit within the distance limit, and more; no partition gets more tail lines than home lines.
#[test]
fn too_many_keys_of_one_hash() {
    for (count, fits) in [(7_000u64, true), (8_000, false)] {
        let mut ingest = Ingest::new(&fs(), "s".into(), 1 << 24);
        for n in 0..count {
            let key = &n.to_le_bytes();
            ingest.push(BufferedRecord { hash: n, key, stored: b"", tag: Tag::Raw }).unwrap();
        }
        let sealed = ingest.seal().unwrap();
        let shape =
            Shape { partition_bits: 0, fixed: false, tagged: false, drops_tombstones: false, fill: 0.95 };
        let mut compressor =
            super::super::compression::ValueCompressor::new(Compression::None, None).unwrap();
        match lay_out(&sealed.load(0, 0).unwrap(), shape, &mut compressor) {
            Ok(layout) => {
                let lines = layout.lines.len() as u64 / LINE_BYTES;
                assert!(fits && lines <= 2 * u64::from(layout.home_lines), "{count}");
            }
            Err(Error::Invalid { detail }) => assert!(!fits && detail.contains("seed"), "{count}: {detail}"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Goal: `verify` detects a record that two slots refer to. Method: the length of the first record
/// is set to zero, so that the second slot has the same start, and the fingerprint of the second
/// slot is set to that of the first. All totals stay right.
#[test]
fn slots_that_share_a_record() {
    // With tags: plain records of these lengths would have fixed widths, and their line would hold
    // no lengths.
    let options = options().compression(Compression::Snappy);
    let fs = forged_with(options, &numbered(2), |bytes, table| {
        let first = table.records().next().unwrap().unwrap();
        let print = Place::new(table.hash(&first.key), 1).fingerprint;
        let line = table.header.index_offset as usize;
        let quarters: u64 = (1..4).map(|q| if print.quarter() < q { 2 << (5 * (q - 1)) } else { 0 }).sum();
        let head = word64(bytes, line) & !0x7fff | quarters;
        put_word(bytes, line, head);
        bytes[line + 8] = 0;
        bytes[line + 37] = bytes[line + 36];
    });
    let table = open(&fs, "t", Mode::Mmap);
    let scanned: Vec<_> = table.scan().map(|entry| entry.unwrap().key.into_owned()).collect();
    assert!(scanned.len() == 2 && scanned[0] == scanned[1], "the forgery works: {scanned:?}");
    assert!(damage(table.verify()).1.contains("the one before it ends"));
}

/// Goal: `verify` detects a record that no search finds. Method: the fingerprint of a slot is
/// changed, in a line with lengths and in one of fixed widths; the rest of the table is valid.
#[test]
fn unreachable_records_are_reported() {
    let fixed: Vec<_> = (0..20u64).map(|n| (n.to_le_bytes().to_vec(), vec![n as u8; 8])).collect();
    for (records, is_fixed) in [(numbered(20), false), (fixed, true)] {
        let fs = forged(&records, |bytes, table| {
            assert_eq!(table.header.is_fixed(), is_fixed);
            bytes[table.header.index_offset as usize + 36] ^= 0x55;
        });
        for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
            let table = open(&fs, "t", mode);
            let lost = table.records().next().unwrap().unwrap();
            assert_eq!(table.get(&lost.key).unwrap(), None, "the forgery works");
            let (at, detail) = damage(table.verify());
            assert!(at == lost.start && detail.contains("does not find it"), "{at}: {detail}");
        }
    }
}

/// Goal: `verify` detects records out of hash order. Method: two neighbours of the same length,
/// home and quarter swap places, together with their fingerprints, so that searches still find
/// both.
#[test]
fn records_out_of_order() {
    let fs = forged(&numbered(100), |bytes, table| {
        let place = |record: &super::super::scan::Record<'_>| {
            let (_, place) = table.partitions.find(table.hash(&record.key));
            (record.line, place.home, place.fingerprint.quarter(), record.bytes)
        };
        let records: Vec<_> = table.records().map(|record| record.unwrap()).collect();
        let slot_of =
            |n: usize| n - records.iter().position(|record| record.line == records[n].line).unwrap();
        let first = (1..records.len()).find(|&n| place(&records[n - 1]) == place(&records[n])).unwrap() - 1;
        let (a, b) = (&records[first], &records[first + 1]);
        let firsts = table.header.index_offset + a.line * LINE_BYTES + 36 + slot_of(first) as u64;
        bytes.swap(firsts as usize, firsts as usize + 1);
        let (a, b) = (a.start as usize, b.start as usize);
        bytes[a..2 * b - a].rotate_left(b - a);
    });
    let table = open(&fs, "t", Mode::Mmap);
    let all_found = numbered(100).iter().all(|(key, value)| table.get(key).unwrap().unwrap() == &value[..]);
    assert!(all_found, "the forgery works");
    assert!(damage(table.verify()).1.contains("but the key before it"));
}

/// Goal: `verify` detects a long value that several records refer to. Method: two records refer to
/// a range that spans both values, and the totals are adjusted.
#[test]
fn records_that_share_a_blob() {
    let blobs = [(b"a".to_vec(), vec![1; 40_000]), (b"b".to_vec(), vec![2; 40_000])];
    let fs = forged(&blobs, |bytes, table| {
        for record in table.records() {
            let at = record.unwrap().found.start as usize;
            put_word(bytes, at, PAGE_BYTES);
            put_word(bytes, at + 8, 80_000);
        }
        put_word(bytes, 176, 80_000);
        put_word(bytes, 192, 160_000);
    });
    for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
        let table = open(&fs, "t", mode);
        assert_eq!(table.get(b"a").unwrap().unwrap().len(), 80_000, "the forgery works");
        assert_eq!(damage(table.verify()).0, 72);
    }
}

/// Goal: the fast path returns no record that the complete search refuses. Method: a length encoded
/// in more bytes than necessary; a length of the last record that extends beyond the data.
#[test]
fn records_that_no_builder_writes() {
    let mut records = numbered(30);
    records.iter_mut().for_each(|(_, value)| value.resize(200, b'x'));
    let start_of = |table: &Reader, nth: usize| {
        let record = table.records().nth(nth).unwrap().unwrap();
        (record.start as usize, record.key.into_owned())
    };
    let overlong = forged(&records, |bytes, table| {
        let (at, _) = start_of(table, 3);
        assert_eq!(bytes[at + 1..at + 3], [0xc8, 1]);
        bytes[at + 2] = 0;
    });
    let beyond = forged(&numbered(30), |bytes, table| {
        let (at, _) = start_of(table, 29);
        bytes[at + 1] += 20;
    });
    for (fs, records, nth) in [(overlong, records, 3), (beyond, numbered(30), 29)] {
        let sound = super::fs();
        build(&sound, "t", options(), &records);
        let (at, key) = start_of(&open(&sound, "t", Mode::Mmap), nth);
        for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
            let table = open(&fs, "t", mode);
            assert_eq!(damage(table.get(&key)).0, at as u64, "{mode:?}");
            assert_eq!(damage(table.get_into(&key, &mut Vec::new())).0, at as u64);
            assert_eq!(damage(table.get_many(&[&key], |_, _| {})).0, at as u64);
            assert_eq!(damage(table.contains(&key)).0, at as u64);
            damage(table.verify());
        }
    }
}

/// Goal: a scan reports a number of entries other than that in the header, instead of just ending.
/// Method: one less and one more in the header, in each reader mode; all entries are returned, and
/// then the error.
#[test]
fn scans_compare_their_count_with_the_header() {
    for counted in [99, 101] {
        let fs = forged(&numbered(100), |bytes, _| {
            put_word(bytes, 48, counted);
            put_word(bytes, 64, counted);
        });
        for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
            let table = open(&fs, "t", mode);
            let mut found: Vec<_> = table.scan().collect();
            let (at, detail) = damage(found.pop().unwrap());
            assert!(at == 48 && detail.contains("found 100 entries"), "{mode:?}, {counted}: {at}, {detail}");
            assert_eq!(found.iter().filter(|entry| entry.is_ok()).count(), 100, "{mode:?}, {counted}");
            damage(table.verify());
        }
    }
}

/// Goal: a header is refused if its entries exceed its lines or if its id is 0. Method: one entry
/// too many, with matching puts; an id of 0.
#[test]
fn impossible_entry_counts_and_ids_are_refused() {
    let too_many = forged(&numbered(100), |bytes, table| {
        put_word(bytes, 48, 28 * table.header.index_lines + 1);
        put_word(bytes, 64, u64::MAX);
    });
    assert_eq!(refused(&too_many).0, 48);
    assert_eq!(refused(&forged(&numbered(100), |bytes, _| put_word(bytes, 16, 0))).0, 16);
}
