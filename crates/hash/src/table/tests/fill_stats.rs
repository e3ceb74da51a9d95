//! The fill of an index.

use super::*;

/// Goal: every entry is in one used slot, whatever the fill, the widths and the mode. Method:
/// tables of several fills; sums compared with the counts in the header.
#[test]
fn slots_add_up() {
    let fs = fs();
    let record = |number: u32| (number.to_le_bytes().to_vec(), vec![7; number as usize % 30]);
    let records: Vec<_> = (0..20_000).map(record).collect();
    let mut before = 0.0;
    for fill in [0.5, 0.8, 0.95] {
        let path = format!("/{fill}.cairn");
        build(&fs, &path, options().fill(fill), &records);
        for mode in [Mode::Mmap, Mode::Pread] {
            let reader = open(&fs, &path, mode);
            let found = reader.fill().unwrap();
            let used: u64 = found.lines_by_slots.iter().zip(0..).map(|(lines, slots)| lines * slots).sum();
            assert_eq!((used, found.lines_by_slots.len()), (20_000, Fill::SLOTS + 1));
            assert_eq!(found.lines_by_slots.iter().sum::<u64>(), found.home_lines + found.tail_lines);
            assert!((found.share() - fill).abs() < 0.05, "{fill}: {found:?}");
        }
        let found = open(&fs, &path, Mode::Mmap).fill().unwrap();
        assert!(found.passed_on as f64 >= before, "the fuller, the more goes on: {found:?}");
        before = found.passed_on as f64;
    }
    build(&fs, "/empty.cairn", options(), &[]);
    assert_eq!(open(&fs, "/empty.cairn", Mode::Mmap).fill().unwrap().share(), 0.0);
}

/// Goal: damage in the index is reported with its offset. Method: flip a bit of the index, then
/// open a reader.
#[test]
fn damage_is_an_error() {
    let fs = fs();
    let records: Vec<_> =
        (0..5_000u32).map(|number| (number.to_le_bytes().to_vec(), b"v".to_vec())).collect();
    build(&fs, "/a.cairn", options(), &records);
    let offset = open(&fs, "/a.cairn", Mode::Mmap).header.index_offset;
    let file = fs.open(Path::new("/a.cairn"), cairn_vfs::OpenOptions::write()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset + 100).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset + 100).unwrap();
    let error = open(&fs, "/a.cairn", Mode::Mmap).fill().unwrap_err();
    assert!(
        matches!(error, Error::Corruption { offset: found, .. } if found / 4096 == offset / 4096),
        "{error}"
    );
}
