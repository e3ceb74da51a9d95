//! Tests of cursors that change direction.

use proptest::prelude::*;

use super::*;

fn small_blocks(restart_interval: u32) -> TableOptions {
    TableOptions { block_bytes: 256, partition_bytes: 256, restart_interval, ..TableOptions::default() }
}

/// Goal: from every entry a cursor finds both neighbours, however it got there.
/// Method: reach each entry by iteration from the front, from the back, and by a seek; then change
/// direction once and twice.
#[test]
fn turning_around_anywhere() {
    let model = numbered(250, 9);
    let entries: Vec<_> = model.iter().map(entry).collect();
    for restart_interval in [1, 3, 16] {
        let fs = disk();
        write(&fs, "t", 1, &small_blocks(restart_interval), &model);
        let table = open(&fs, "t", 1).unwrap();
        assert!(table.properties().partitions > 2, "{}", table.properties());
        let check = |cursor: &mut TableCursor, at: usize| {
            assert_eq!(shown(cursor).as_ref(), Some(&entries[at]));
            cursor.prev().unwrap();
            assert_eq!(shown(cursor).as_ref(), at.checked_sub(1).map(|before| &entries[before]));
            if cursor.valid() {
                cursor.next().unwrap();
                assert_eq!(shown(cursor).as_ref(), Some(&entries[at]));
                cursor.next().unwrap();
                assert_eq!(shown(cursor).as_ref(), entries.get(at + 1));
            }
        };
        for at in 0..entries.len() {
            let mut cursor = table.cursor(&CursorOptions::default());
            cursor.seek_first().unwrap();
            (0..at).for_each(|_| cursor.next().unwrap());
            check(&mut cursor, at);
            cursor.seek_last().unwrap();
            (at + 1..entries.len()).for_each(|_| cursor.prev().unwrap());
            check(&mut cursor, at);
            cursor.seek(&entries[at].0, entries[at].1).unwrap();
            check(&mut cursor, at);
        }
    }
}

/// Goal: a long iteration reads ahead, and a short one does not.
/// Method: count the reads of a disk.
#[test]
fn readahead_saves_reads() {
    use cairn_vfs::{FaultFs, FaultOptions, Operation};
    let faulty = FaultFs::new(FaultOptions::seeded(1));
    let fs: Arc<dyn Fs> = Arc::new(faulty.clone());
    let model = numbered(20_000, 40);
    let options = TableOptions { compression: Compression::None, ..TableOptions::default() };
    write(&fs, "t", 1, &options, &model);
    let blocks = u64::from(open(&fs, "t", 1).unwrap().properties().data_blocks);
    assert!(blocks > 100);
    let reads = |readahead_bytes, forward: bool| {
        let cache = Arc::new(Cache::new(0));
        let open = OpenOptions { pin: true, ..OpenOptions::default() };
        let table = Table::open(&fs, Path::new("t"), 1, &cache, open).unwrap();
        let before = faulty.operation_count_of(Operation::Read);
        let options = CursorOptions { fill_cache: false, readahead_bytes, ..CursorOptions::default() };
        let mut cursor = table.cursor(&options);
        let mut count = 0;
        if forward {
            cursor.seek_first().unwrap()
        } else {
            cursor.seek_last().unwrap()
        }
        while cursor.valid() {
            count += 1;
            if forward { cursor.next().unwrap() } else { cursor.prev().unwrap() }
        }
        assert_eq!(count, model.len());
        faulty.operation_count_of(Operation::Read) - before
    };
    for forward in [true, false] {
        let partitions = reads(0, forward) - blocks;
        let ahead = reads(256 << 10, forward) - partitions;
        assert!(ahead < blocks / 20, "{ahead} reads of {blocks} blocks");
    }
}

/// Goal: after an error a cursor is invalid, steps do not continue, and a seek does.
/// Method: a read fails in the middle of an iteration.
#[test]
fn errors_stay() {
    use cairn_vfs::fault::{Fault, Rule};
    use cairn_vfs::{FaultFs, FaultOptions, Operation};
    let faulty = FaultFs::new(FaultOptions::seeded(1));
    let fs: Arc<dyn Fs> = Arc::new(faulty.clone());
    write(&fs, "t", 1, &small_blocks(8), &numbered(500, 9));
    let table = open(&fs, "t", 1).unwrap();
    let mut cursor = table.cursor(&CursorOptions { readahead_bytes: 0, ..CursorOptions::default() });
    cursor.seek_first().unwrap();
    faulty.inject(Rule::nth(Operation::Read, faulty.operation_count_of(Operation::Read) + 3, Fault::Io));
    let error = loop {
        if let Err(error) = cursor.next() {
            break error;
        }
        assert!(cursor.valid());
    };
    assert_eq!(error.kind(), cairn_vfs::ErrorKind::Io);
    for _ in 0..2 {
        assert!(!cursor.valid());
        assert!(cursor.next().is_err() && cursor.prev().is_err());
    }
    cursor.seek_first().unwrap();
    assert_eq!(shown(&cursor).as_ref(), numbered(500, 9).iter().map(entry).next().as_ref());
    assert_eq!(scan(&table).unwrap().len(), numbered(500, 9).len(), "another cursor reads on");
}

proptest! {
    #![proptest_config(crate::test_config::cases(64))]

    /// Goal: any sequence of moves gives the same entries as the model.
    /// Method: random moves over a table of small blocks, and with a cursor over a sorted list of
    /// the entries.
    #[test]
    fn random_walks(moves in prop::collection::vec((0u8..6, any::<prop::sample::Index>()), 1..200), restart in 1u32..9) {
        let model = numbered(120, 9);
        let entries: Vec<_> = model.iter().map(entry).collect();
        let fs = disk();
        write(&fs, "t", 1, &small_blocks(restart), &model);
        let table = open(&fs, "t", 1).unwrap();
        let mut cursor = table.cursor(&CursorOptions::default());
        let mut at: Option<usize> = None;
        for (kind, target) in moves {
            let target = &entries[target.index(entries.len())];
            match (kind, at) {
                (0 | 1, Some(now)) => {
                    cursor.next().unwrap();
                    at = (now + 1 < entries.len()).then_some(now + 1);
                }
                (2 | 3, Some(now)) => {
                    cursor.prev().unwrap();
                    at = now.checked_sub(1);
                }
                (4, _) => {
                    cursor.seek_back(&target.0, false).unwrap();
                    at = entries.iter().rposition(|entry| entry.0 < target.0);
                }
                _ => {
                    cursor.seek(&target.0, target.1).unwrap();
                    at = entries.iter().position(|entry| entry == target);
                }
            }
            prop_assert_eq!(shown(&cursor), at.map(|at| entries[at].clone()));
        }
    }
}
