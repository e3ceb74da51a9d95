//! Tables whose keys all have the same length, and whose values do too.

use super::*;

fn eights(count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..count).map(|n| (n.to_be_bytes().to_vec(), (n * 3).to_le_bytes().to_vec())).collect()
}

/// Goal: the longest key in the header belongs to a key in the table, because records of fixed
/// widths are read by it. Method: keys and values of eight bytes, and deletes of keys of other
/// lengths: of present keys, of absent keys, of all keys.
#[test]
fn deletes_of_other_lengths() {
    for (deleted, left) in [
        (vec![b"a key of another length".to_vec(), vec![]], 100),
        (vec![eights(1)[0].0.clone(), b"short".to_vec()], 99),
        (eights(100).into_iter().map(|(key, _)| key).chain([b"a longer key".to_vec()]).collect(), 0),
    ] {
        let fs = fs();
        let mut builder = Builder::create_in(&fs, Path::new("t"), options(), &mut SeededRng::new(1)).unwrap();
        eights(100).iter().for_each(|(key, value)| builder.put(key, value).unwrap());
        deleted.iter().for_each(|key| builder.delete(key).unwrap());
        builder.finish().unwrap();
        let mut model: Model = eights(100).into_iter().collect();
        deleted.iter().for_each(|key| drop(model.remove(key)));
        assert_eq!(model.len(), left);
        for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
            let table = open(&fs, "t", mode);
            assert!(table.info().fixed_width);
            assert_eq!(table.info().key_bytes_max, if left == 0 { 0 } else { 8 });
            agrees(&table, &model, &deleted);
        }
    }
}

/// Goal: records that were overwritten or deleted do not count as the longest. Method: a long key
/// and a long value that do not stay.
#[test]
fn replaced_keys_do_not_count_as_the_longest() {
    let fs = fs();
    let mut builder = Builder::create_in(&fs, Path::new("t"), options(), &mut SeededRng::new(1)).unwrap();
    builder.put(&[7; 500], b"x").unwrap();
    builder.put(b"a", &[7; 500]).unwrap();
    builder.put(b"a", b"1").unwrap();
    builder.delete(&[7; 500]).unwrap();
    builder.finish().unwrap();
    let table = open(&fs, "t", Mode::Mmap);
    assert_eq!((table.info().key_bytes_max, table.info().value_bytes_max), (1, 1));
    agrees(&table, &[(b"a".to_vec(), b"1".to_vec())].into_iter().collect(), &[vec![7; 500]]);
}

/// Goal: a reader opens every table that a builder writes, at the limit of fixed widths. Method:
/// one byte less than the limit, exactly the limit, one byte more; with long keys, and with long
/// keys and long values.
#[test]
fn widths_around_the_limit() {
    for (key_bytes, value_bytes) in
        [(65_535, 0), (65_536, 0), (65_537, 8), (40_000, 25_535), (40_000, 25_536), (32_769, 32_767)]
    {
        let records: Vec<_> = (0..3u8).map(|n| (vec![n; key_bytes], vec![n; value_bytes])).collect();
        check_all_modes(options(), &records);
        let fs = fs();
        build(&fs, "t", options(), &records);
        assert_eq!(open(&fs, "t", Mode::Mmap).info().fixed_width, key_bytes + value_bytes < 65_536);
    }
}
