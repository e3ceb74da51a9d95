//! Records that cross into further pages: a sound first page does not imply that the next one is
//! sound.

use cairn_vfs::OpenOptions;

use super::super::format::PAGE_BYTES;
use super::*;

/// A record that crosses a page boundary, with its bytes and its pages.
struct Crossing {
    key: Vec<u8>,
    bytes: std::ops::Range<u64>,
    pages: std::ops::RangeInclusive<u64>,
}

/// Returns the records that cross a page boundary, and for every page the keys of the records that
/// lie within it.
fn crossings(table: &Reader) -> (Vec<Crossing>, HashMap<u64, Vec<Vec<u8>>>) {
    let (mut crossings, mut within) = (Vec::new(), HashMap::<_, Vec<_>>::new());
    for record in table.records().map(|record| record.unwrap()) {
        let (key, bytes) = (record.key.into_owned(), record.start..record.start + record.bytes);
        let pages = bytes.start / PAGE_BYTES..=(bytes.end - 1) / PAGE_BYTES;
        if pages.start() == pages.end() {
            within.entry(*pages.start()).or_default().push(key);
        } else {
            crossings.push(Crossing { key, bytes, pages });
        }
    }
    (crossings, within)
}

/// Goal: a sound first page of a record does not make the rest of the record trusted. Method: for
/// every record that crosses a page boundary, and every later page of it, the first and the last of
/// its bytes on that page are inverted. Other lookups verify the first page before. Each kind of
/// query fails, twice, for records of all kinds.
#[test]
fn damage_beyond_the_first_page_of_a_record() {
    // With snappy the even ones are stored compressed and the others uncompressed.
    let (mut mixed, mut rng) = (numbered(300), SeededRng::new(1));
    for (n, (_, value)) in mixed.iter_mut().enumerate() {
        *value = vec![n as u8; if n % 60 == 1 { 9_000 } else { 20 + n % 200 }];
        if n % 2 == 1 {
            rng.fill(value);
        }
    }
    let fixed: Vec<_> = (0..300u64).map(|n| (n.to_le_bytes().to_vec(), vec![n as u8; 93])).collect();
    for (options, records, far) in [
        (options(), &mixed, true),
        (options().compression(Compression::Snappy), &mixed, true),
        (options(), &fixed, false),
    ] {
        let fs = fs();
        build(&fs, "t", options, records);
        let (crossings, within) = crossings(&open(&fs, "t", Mode::Mmap));
        assert!(crossings.len() > 3, "{}", crossings.len());
        assert!(!far || crossings.iter().any(|record| record.pages.end() - record.pages.start() > 1));
        let file = fs.open(Path::new("t"), OpenOptions::write()).unwrap();
        for record in crossings {
            let neighbours = within.get(record.pages.start()).map(Vec::as_slice).unwrap_or_default();
            for page in record.pages.clone().skip(1) {
                for at in [page * PAGE_BYTES, record.bytes.end.min((page + 1) * PAGE_BYTES) - 1] {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, at).unwrap();
                    file.write_all_at(&[!byte[0]], at).unwrap();
                    fails(&open(&fs, "t", Mode::Mmap), &record, page, neighbours);
                    file.write_all_at(&byte, at).unwrap();
                }
            }
        }
    }
}

/// Asserts that each kind of query for `record` reports `page` as damaged, after queries for
/// `neighbours`.
fn fails(table: &Reader, record: &Crossing, page: u64, neighbours: &[Vec<u8>]) {
    let key = &record.key;
    let damage = |result: crate::Result<()>| match result {
        Err(Error::Corruption { offset, .. }) => assert_eq!(offset, page * PAGE_BYTES, "{key:?}"),
        other => panic!("{key:?}, damaged on page {page} of {:?}: {other:?}", record.pages),
    };
    neighbours.iter().for_each(|key| assert!(table.get(key).unwrap().is_some()));
    for _ in 0..2 {
        damage(table.get(key).map(drop));
        damage(table.get_into(key, &mut Vec::new()).map(drop));
        damage(table.contains(key).map(drop));
        damage(table.get_many(&[key], |_, _| {}));
    }
}

/// Goal: a record head that crosses a page boundary is verified too, because a wrong length would
/// make its key seem absent. Method: a seed for which the second byte of a key length is the first
/// of a page; each bit of that byte is flipped.
#[test]
fn damage_in_a_record_head() {
    let records: Vec<_> = (0..300).map(|n| (format!("{n:0140}").into_bytes(), vec![7; n % 50])).collect();
    let fs = fs();
    let crossing = |seed| {
        build(&fs, "t", options().seed(seed), &records);
        let (crossings, within) = crossings(&open(&fs, "t", Mode::Mmap));
        let found = crossings.into_iter().find(|record| record.bytes.start % PAGE_BYTES == PAGE_BYTES - 1)?;
        let neighbours = within.get(found.pages.start()).cloned()?;
        Some((found, neighbours))
    };
    let (record, neighbours) = (0..1000).find_map(crossing).unwrap();
    let at = record.pages.end() * PAGE_BYTES;
    let file = fs.open(Path::new("t"), OpenOptions::write()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    assert_eq!(byte, [1], "the upper bits of 140");
    for bit in 0..8 {
        file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
        fails(&open(&fs, "t", Mode::Mmap), &record, *record.pages.end(), &neighbours);
    }
}
