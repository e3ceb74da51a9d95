use std::collections::BTreeMap;
use std::ops::Bound;

use cairn_pool::{BackgroundWriter, FileOptions, Pool};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{
    ErrorKind, FaultFs, FaultOptions, File, Fs, MemFs, OpenOptions, Operation, Rng, SeededRng, thread,
};
use proptest::prelude::*;

use super::*;
use crate::storage::node::HEADER;
use crate::storage::{Log, Unlogged};

const PAGE: usize = 4096;

fn space(frames: usize) -> Arc<Space> {
    space_in(MemFs::new().open("db".as_ref(), OpenOptions::create()).unwrap(), frames)
}

fn space_in(file: Box<dyn File>, frames: usize) -> Arc<Space> {
    let pool = Pool::builder()
        .page_size(PAGE)
        .frames(frames)
        .background_writer(BackgroundWriter::Off)
        .build()
        .unwrap();
    let file = pool.open(file, FileOptions::new()).unwrap();
    let log: Arc<dyn Log> = Arc::new(Unlogged);
    Arc::new(Space::create(file, PAGE, log).unwrap())
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn all(tree: &Tree, range: (Bound<&[u8]>, Bound<&[u8]>), direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = tree.scan(range, direction);
    let mut found = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        found.push((key.to_vec(), value.to_vec()));
    }
    found
}

fn agrees(tree: &Tree, map: &Map) {
    let stats = tree.check().unwrap();
    assert_eq!(stats.records, map.len() as u64);
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let pairs: Vec<_> = map.clone().into_iter().collect();
    assert!(all(tree, everything, Direction::Forward) == pairs);
    let mut backward = all(tree, everything, Direction::Backward);
    backward.reverse();
    assert!(backward == pairs);
}

fn key(rng: &mut SeededRng, spread: u64) -> Vec<u8> {
    // Some keys are long, some share prefixes, some are prefixes of others.
    let number = rng.below(spread);
    let text = match number % 4 {
        0 => format!("{number:06}"),
        1 => format!("{:04}-the same for many-{number}", number / 64),
        2 => "ab".repeat((number % 90) as usize),
        _ => format!("{}{}", number % 10, "x".repeat((number % 300) as usize)),
    };
    text.into_bytes()
}

/// Goal: a tree is a sorted map for all orders of operations, in a pool smaller than the tree.
/// Method: random puts, inserts, removals, lookups and scans against a map; freed pages are reused.
#[test]
fn behaves_like_a_map() {
    for seed in 0..6 {
        let space = space(64);
        let tree = Tree::create(&space).unwrap();
        let mut rng = SeededRng::new(seed).fork("tree");
        let mut map = Map::new();
        for round in 0..20_000u32 {
            let key = key(&mut rng, 6_000);
            let is_shrinking = round / 4_000 % 2 == 1;
            match rng.below(10) {
                0..3 if is_shrinking => assert_eq!(tree.remove(&key).unwrap(), map.remove(&key).is_some()),
                0..3 => {
                    let value = vec![round as u8; rng.below(if round % 50 == 0 { 250 } else { 30 }) as usize];
                    assert_eq!(tree.put(&key, &value).unwrap(), map.insert(key, value).is_none());
                }
                3..6 => {
                    let is_new = !map.contains_key(&key);
                    assert_eq!(tree.insert(&key, b"inserted").unwrap(), is_new);
                    map.entry(key).or_insert_with(|| b"inserted".to_vec());
                }
                6 => assert_eq!(tree.remove(&key).unwrap(), map.remove(&key).is_some()),
                _ => {
                    let mut value = vec![1, 2];
                    let expected = map.get(&key);
                    assert_eq!(tree.get(&key, &mut value).unwrap(), expected.is_some());
                    assert_eq!(value[2..], *expected.map_or(&[][..], |value| &value[..]));
                    assert_eq!(tree.contains(&key).unwrap(), expected.is_some());
                }
            }
        }
        agrees(&tree, &map);
        assert!(tree.check().unwrap().levels >= 2);
        for key in map.keys() {
            assert!(tree.remove(key).unwrap());
        }
        let stats = tree.check().unwrap();
        assert_eq!((stats.records, stats.pages, stats.levels), (0, 1, 1), "seed {seed}");
        assert_eq!(space.free_pages().unwrap() + 2, space.pages().unwrap());
    }
}

/// Goal: removing a run of records is equivalent to removing them one by one. It removes exactly
/// those that pass the test and are free, even if a key is given twice or does not exist. It
/// reports records that are not free, whether they pass the test or not, and frees pages that
/// become empty. Method: random sorted keys, up to a hundred at a time over many leaves, against a
/// map, until nothing is left.
#[test]
fn run_of_removals_equals_single_removals() {
    for seed in 0..6 {
        let space = space(200);
        let tree = Tree::create(&space).unwrap();
        let mut rng = SeededRng::new(seed).fork("runs");
        let mut map = Map::new();
        for at in 0..4_000u32 {
            let key = key(&mut rng, 6_000);
            map.entry(key).or_insert_with(|| vec![(at % 3) as u8; 1 + at as usize % 40]);
        }
        map.iter().for_each(|(key, value)| assert!(tree.insert(key, value).unwrap()));
        let (mut calls, mut removed) = (0, 0);
        while !map.is_empty() {
            let there: Vec<Vec<u8>> = map.keys().cloned().collect();
            let from = rng.below(there.len() as u64) as usize;
            let mut keys: Vec<Vec<u8>> =
                there.into_iter().skip(from).take(100).filter(|_| rng.chance(0.8)).collect();
            keys.extend((0..5).map(|_| key(&mut rng, 9_000)));
            keys.extend(keys.first().cloned());
            keys.sort_unstable();
            let spared = rng.below(4) as u8;
            let turn = rng.below(4) as usize;
            let is_free = |key: &Vec<u8>| {
                !(key.iter().map(|byte| usize::from(*byte)).sum::<usize>() + turn).is_multiple_of(4)
            };
            let (mut rest, mut memory, mut held) = (&keys[..], RunMemory::default(), Vec::new());
            while !rest.is_empty() {
                let goes = |value: &[u8]| value.first() != Some(&spared);
                let run = tree.remove_run(rest, goes, is_free, &mut memory).unwrap();
                assert!(run.keys > 0 && run.removed <= run.keys);
                held.extend(memory.held.iter().map(|&at| rest[..run.keys][at].clone()));
                rest = &rest[run.keys..];
                (calls, removed) = (calls + 1, removed + run.removed);
            }
            let mut expected = keys.clone();
            expected.dedup();
            expected.retain(|key| map.contains_key(key) && !is_free(key));
            held.dedup();
            assert_eq!(held, expected, "seed {seed}");
            let before = map.len();
            map.retain(|key, value| {
                value.first() == Some(&spared) || !is_free(key) || keys.binary_search(key).is_err()
            });
            removed = removed.checked_sub(before - map.len()).unwrap();
            assert_eq!(removed, 0);
            if calls % 7 == 0 {
                agrees(&tree, &map);
            }
        }
        let stats = tree.check().unwrap();
        assert_eq!((stats.records, stats.pages, stats.levels), (0, 1, 1), "seed {seed}");
        assert_eq!(space.free_pages().unwrap() + 2, space.pages().unwrap());
    }
}

/// Goal: ascending keys fill pages to over 90 %, descending keys to 40 %, shuffled keys to 60 %.
#[test]
fn fill() {
    let share = |order: &dyn Fn(u32) -> u32| {
        let tree = Tree::create(&space(4000)).unwrap();
        (0..30_000).for_each(|at| assert!(tree.insert(&order(at).to_be_bytes(), &[7; 20]).unwrap()));
        let stats = tree.check().unwrap();
        assert_eq!((stats.records, stats.levels), (30_000, 3));
        1.0 - stats.free_bytes as f64 / (stats.pages as f64 * PAGE as f64)
    };
    let (up, down, mixed) =
        (share(&|at| at), share(&|at| 30_000 - at), share(&|at| at.wrapping_mul(0x9e37_79b1)));
    assert!(up > 0.9 && down > 0.4 && mixed > 0.6, "{up} {down} {mixed}");
}

/// Goal: records that are too long are refused, the longest allowed ones are not, and an empty key
/// and an empty value are allowed.
#[test]
fn record_length_limits() {
    let tree = Tree::create(&space(100)).unwrap();
    let most = tree.max_record();
    assert!(matches!(tree.put(&vec![1; most], &[1]), Err(Error::TooLong { most: said, .. }) if said == most));
    let mut map = Map::new();
    for at in 0..60u8 {
        let key = vec![at; most - usize::from(at)];
        let value = vec![at; at.into()];
        assert!(tree.insert(&key, &value).unwrap());
        map.insert(key, value);
    }
    assert!(tree.insert(b"", b"").unwrap());
    map.insert(Vec::new(), Vec::new());
    agrees(&tree, &map);
}

proptest! {
    #![proptest_config(crate::test_config::cases(60))]

    /// Goal: scans return the same as a map's range, in both directions, for all bounds.
    #[test]
    fn scans_equal_map_ranges(seed: u64, bounds in prop::collection::vec((0u8..3, 0u64..500, 0u8..3, 0u64..500), 10)) {
        let tree = Tree::create(&space(100)).unwrap();
        let mut rng = SeededRng::new(seed).fork("ranges");
        let mut map = Map::new();
        for _ in 0..600 {
            let key = key(&mut rng, 500);
            tree.put(&key, b"value").unwrap();
            map.insert(key, b"value".to_vec());
        }
        for (first, start, last, end) in bounds {
            let key_of = |number| key(&mut SeededRng::new(number).fork("bound"), 500);
            let (start, end) = (key_of(start), key_of(end));
            let bound = |kind, key| match kind {
                0 => Bound::Unbounded,
                1 => Bound::Included(key),
                _ => Bound::Excluded(key),
            };
            let (low, high) = (bound(first, &start[..]), bound(last, &end[..]));
            let is_in = |key: &[u8]| {
                let after = match low { Bound::Unbounded => true, Bound::Included(low) => key >= low, Bound::Excluded(low) => key > low };
                after && match high { Bound::Unbounded => true, Bound::Included(high) => key <= high, Bound::Excluded(high) => key < high }
            };
            let expected: Vec<_> = map.clone().into_iter().filter(|(key, _)| is_in(key)).collect();
            prop_assert_eq!(&all(&tree, (low, high), Direction::Forward), &expected);
            let mut backward = all(&tree, (low, high), Direction::Backward);
            backward.reverse();
            prop_assert_eq!(&backward, &expected);
        }
    }
}

/// Goal: threads that insert, remove, read and scan concurrently, in a pool too small for the tree,
/// find their own writes and leave a sound tree. Method: each thread has its own keys, interleaved
/// with those of the others, and a map of them.
#[test]
fn threads() {
    let space = space(40);
    let tree = Tree::create(&space).unwrap();
    let maps: Vec<Map> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4u64)
            .map(|worker| {
                let tree = &tree;
                scope.spawn(move || work(tree, worker))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    agrees(&tree, &maps.into_iter().flatten().collect());
}

fn work(tree: &Tree, worker: u64) -> Map {
    let mut rng = SeededRng::new(worker).fork("threads");
    let mut map = Map::new();
    for round in 0..4_000u64 {
        let number = rng.below(1_500) * 4 + worker;
        let key = format!("{number:05}{}", "y".repeat((number % 40) as usize)).into_bytes();
        match rng.below(if round / 1_000 % 2 == 0 { 10 } else { 6 }) {
            0..3 => assert_eq!(tree.remove(&key).unwrap(), map.remove(&key).is_some()),
            3 => {
                let mut value = Vec::new();
                assert_eq!(tree.get(&key, &mut value).unwrap().then_some(&value), map.get(&key));
            }
            4 if round % 20 == 0 => {
                let mut cursor = tree.scan((Bound::Included(&key), Bound::Unbounded), Direction::Forward);
                let (mut last, mut own) = (Vec::new(), map.range(key.clone()..));
                for _ in 0..200 {
                    let Some((found, _)) = cursor.next().unwrap() else { break };
                    assert!(*found > last[..] || last.is_empty());
                    last = found.to_vec();
                    let number: u64 = std::str::from_utf8(&last[..5]).unwrap().parse().unwrap();
                    if number % 4 == worker {
                        assert_eq!(own.next().map(|(key, _)| key), Some(&last));
                    }
                }
            }
            _ => {
                let value = round.to_le_bytes().to_vec();
                assert_eq!(tree.put(&key, &value).unwrap(), map.insert(key, value).is_none());
            }
        }
    }
    map
}

/// Goal: a node is split even if its parent has room for every separator but the longest. Method:
/// ascending keys fill leaves, each of which ends in a long key without a value, followed by a key
/// of one byte, so that the whole long key moves up. Five of them leave the root room for a sixth
/// one of their length, and the sixth one is four bytes longer.
#[test]
fn split_with_longest_separators() {
    let tree = Tree::create(&space(100)).unwrap();
    let most = tree.max_record();
    assert_eq!(most, 666);
    let mut map = Map::new();
    let mut put = |key: Vec<u8>, value: usize| {
        assert!(tree.put(&key, &vec![7; value]).unwrap());
        map.insert(key, vec![7; value]);
    };
    for leaf in 0..6u8 {
        let last = if leaf == 5 { most } else { most - 4 };
        // Sizes of slot, key and value of the records in between. They leave too little room for
        // the first record of the next leaf, and enough for the upper fence.
        let between: &[usize] = match leaf {
            0 => &[543; 5],
            5 => &[458, 458, 457],
            _ => &[459; 3],
        };
        if leaf > 0 {
            put(vec![leaf], most - 1);
        }
        (0u8..).zip(between).for_each(|(at, size)| put(vec![leaf, at], size - SLOT - 2));
        let mut long = vec![1; last];
        (long[0], long[1]) = (leaf, 0xff);
        put(long, 0);
    }
    assert_eq!(tree.check().unwrap().levels, 2);
    put(vec![6], most - 1);
    assert_eq!(tree.check().unwrap().levels, 3);
    agrees(&tree, &map);
}

/// Goal: a leaf that other threads have emptied since it was found full is not divided: removed
/// records stay removed, and the rest stays in order. Method: the second half of such a write.
#[test]
fn emptied_leaf_is_not_divided() {
    for left in [0, 1] {
        let tree = Tree::create(&space(100)).unwrap();
        (0..9u8).for_each(|at| assert!(tree.insert(&[b'm', at], &[at; 100]).unwrap()));
        (left..9).for_each(|at| assert!(tree.remove(&[b'm', at]).unwrap()));
        assert!(matches!(tree.split(b"aa"), Err(Stop::Changed)));
        let stats = tree.check().unwrap();
        assert_eq!((stats.records, stats.pages), (left.into(), 1));
    }
}

/// Goal: after an error a scan continues where it was and does not end. Method: each read of the
/// disk fails once.
#[test]
fn scan_continues_after_error() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let file = disk.open("/db".as_ref(), OpenOptions::create()).unwrap();
    let space = space_in(file, 8);
    let tree = Tree::create(&space).unwrap();
    (0..600u32).for_each(|at| assert!(tree.insert(&at.to_be_bytes(), &[7; 100]).unwrap()));
    let mut struck = 0;
    for direction in [Direction::Forward, Direction::Backward] {
        for nth in 0..20 {
            disk.inject(Rule::nth(
                Operation::Read,
                disk.operation_count_of(Operation::Read) + nth,
                Fault::Io,
            ));
            let mut cursor = tree.scan((Bound::Unbounded, Bound::Unbounded), direction);
            let mut count = 0;
            loop {
                match cursor.next() {
                    Ok(Some(_)) => count += 1,
                    Ok(None) => break,
                    Err(_) => struck += 1,
                }
            }
            assert_eq!(count, 600, "{direction:?} {nth}");
            disk.clear_rules();
        }
    }
    assert!(struck > 10, "{struck}");
}

/// Goal: a failed removal has had no effect, and a removal that took effect succeeds, regardless of
/// the following merge. Method: the pool does not hold the neighbours; records are removed from one
/// leaf after the other so that all leaves become sparse; one of the first reads of each removal
/// fails.
#[test]
fn failed_merge_does_not_fail_removal() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let file = disk.open("/db".as_ref(), OpenOptions::create()).unwrap();
    let tree = Tree::create(&space_in(file, 8)).unwrap();
    (0..800u32).for_each(|at| assert!(tree.insert(&at.to_be_bytes(), &[7; 100]).unwrap()));
    let (mut failed, mut merges) = (0, 0);
    for at in 0..800u32 {
        let key = (at % 20 * 40 + at / 20).to_be_bytes();
        let (nth, before) =
            (disk.operation_count_of(Operation::Read) + u64::from(at % 3), disk.injected_count());
        disk.inject(Rule::nth(Operation::Read, nth, Fault::Io));
        let removed = tree.remove(&key);
        disk.clear_rules();
        let has_struck = disk.injected_count() > before;
        match removed {
            Ok(is_there) => {
                assert!(is_there && !tree.contains(&key).unwrap());
                merges += u32::from(has_struck);
            }
            Err(error) => {
                assert!(tree.contains(&key).unwrap(), "{at}: {error}");
                assert!(tree.remove(&key).unwrap());
                failed += 1;
            }
        }
    }
    assert!(failed > 10 && merges > 0, "{failed} {merges}");
    assert_eq!(tree.check().unwrap().records, 0);
}

/// Rewrites a page of a tree with a valid checksum.
fn forge(tree: &Tree, page: u32, change: impl FnOnce(&mut [u8])) {
    let mut bytes = tree.space.file.read(page).unwrap().to_vec();
    change(&mut bytes);
    let mut forged = Change::default();
    let at = forged.hold(tree.space.file.write(page).unwrap());
    forged.plan(at, image(&bytes).unwrap());
    forged.commit(&*tree.space.log, tree.space.path()).unwrap();
}

/// Goal: pages with invalid contents cause an error and no endless loop: a node that is its own
/// descendant, a leaf with neither records nor room, and a leaf whose header claims room that does
/// not exist.
#[test]
fn invalid_nodes_are_errors() {
    let filled = |rows: u8| {
        let tree = Tree::create(&space(100)).unwrap();
        (0..rows).for_each(|at| assert!(tree.insert(&[b'm', at], &[at; 100]).unwrap()));
        tree
    };
    let below_itself = filled(200);
    assert_eq!(below_itself.check().unwrap().levels, 2);
    let root = below_itself.root;
    forge(&below_itself, root, |bytes| NodeMut(bytes).set_child(0, root).unwrap());
    assert_eq!(below_itself.free(false).unwrap_err().kind(), ErrorKind::Corruption);
    for rows in [0, 1] {
        let full = filled(rows);
        forge(&full, full.root, |bytes| {
            let slots = (HEADER + usize::from(rows) * SLOT) as u16;
            bytes[4..6].copy_from_slice(&slots.to_le_bytes());
        });
        let split = full.split(b"key");
        assert!(matches!(split, Err(Stop::Error(Error::Corruption { .. }))), "{rows} {split:?}");
        assert_eq!(full.check().unwrap_err().kind(), ErrorKind::Corruption);
    }
    let roomy = filled(9);
    forge(&roomy, roomy.root, |bytes| bytes[6] += 40);
    assert_eq!(roomy.check().unwrap_err().kind(), ErrorKind::Corruption);
}

/// Builds a record in the format of rows: flags, NULL bits, a number and a text.
fn row(rng: &mut SeededRng) -> Vec<u8> {
    let words = ["ledger ", "harbour ", "signal ", "copper "];
    let text: String = (0..rng.below(12)).map(|_| words[rng.below(4) as usize]).collect();
    let number = 1_000_000 + rng.below(900) as u32;
    [&[0, 0][..], &number.to_le_bytes(), &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
}

fn packed_tree(space: &Arc<Space>, rng: &mut SeededRng, form: u64, rows: u32) -> (Tree, Map) {
    packed_tree_by(space, rng, (form, rows), 2)
}

fn packed_tree_by(
    space: &Arc<Space>,
    rng: &mut SeededRng,
    (form, rows): (u64, u32),
    threads: usize,
) -> (Tree, Map) {
    use crate::storage::packed::{Layout, Lead};
    let tree = Tree::create(space).unwrap();
    let layout = Layout { lead: Lead::Nothing, widths: vec![4, 0] };
    let mut builder = Builder::new(&tree, 0.95, Some(layout)).with_threads(threads);
    let mut map: Map = (0..rows).map(|at| (packed_key(form, u64::from(at) * 3), Vec::new())).collect();
    for (at, own) in map.values_mut().enumerate() {
        // Some records cannot be packed, both single ones and many in a row.
        *own = match at {
            _ if rows > 1_000 && at % 5_000 == 77 => vec![1],
            3_000..3_400 => vec![2; 20],
            _ => row(rng),
        };
    }
    for (key, value) in &map {
        builder.push(key, value).unwrap();
        assert!(!builder.is_next(key));
    }
    builder.finish().unwrap();
    (tree, map)
}

fn packed_key(form: u64, at: u64) -> Vec<u8> {
    match form {
        0 => [&[1][..], &(at as u32 ^ 1 << 31).to_be_bytes()].concat(),
        1 => format!("key {}", at * 7919 % 100_003).into_bytes(),
        _ => {
            [&[1][..], &(at / 50).to_be_bytes(), &[1], &(at.wrapping_mul(0x9e37_79b9)).to_be_bytes()].concat()
        }
    }
}

fn packed_leaves(tree: &Tree) -> (usize, usize) {
    let (mut packed, mut ordinary) = (0, 0);
    tree.check_with(&mut |_, level, bytes| {
        match Node(bytes).is_packed().unwrap() {
            true => packed += 1,
            false => ordinary += usize::from(level == 0),
        }
        Ok(())
    })
    .unwrap();
    (packed, ordinary)
}

/// Goal: a tree can be built of keys that share long prefixes up to some key, and little after it.
/// The size of an inner node is computed with the common prefix of its keys, and the next key may
/// shorten that prefix. Method: groups of keys with long prefixes, some hundreds of leaves each,
/// sized so that groups end at many positions in an inner node.
#[test]
fn build_with_long_prefixes() {
    for rows in (3_000..5_800u32).step_by(400) {
        let tree = Tree::create(&space(2_000)).unwrap();
        let mut builder = Builder::new(&tree, 0.95, None);
        let mut map = Map::new();
        for group in 0..4 {
            let prefix = format!("{group:02}{}", "tenant".repeat(6));
            for at in 0..rows {
                map.insert([prefix.as_bytes(), &at.to_be_bytes()].concat(), vec![7; 190]);
            }
        }
        map.iter().for_each(|(key, value)| builder.push(key, value).unwrap());
        builder.finish().unwrap_or_else(|error| panic!("{rows} rows: {error}"));
        agrees(&tree, &map);
    }
}

/// Goal: a check completes in a pool far smaller than the tree. Method: a tree of hundreds of
/// pages, and only the frames that its writer needs.
#[test]
fn check_in_small_pool() {
    let space = space(12);
    let mut rng = SeededRng::new(1).fork("small pool");
    let (tree, map) = packed_tree(&space, &mut rng, 0, 60_000);
    let stats = tree.check().unwrap();
    assert!(stats.pages > 100 && stats.levels > 1, "{stats:?}");
    assert_eq!(stats.records, map.len() as u64);
}

/// Goal: a tree large enough to be packed by a second thread contains every record, and is
/// identical byte for byte to one built without that thread. Method: several batches of all kinds
/// of keys, including records that are not packed, against a map; compares the pages of both trees.
#[test]
fn background_packing_is_identical() {
    for form in 0..3 {
        let mut both = Vec::new();
        for threads in [1, 2] {
            let space = space(2_000);
            let mut rng = SeededRng::new(form).fork("packed beside");
            let (tree, map) = packed_tree_by(&space, &mut rng, (form, 100_000), threads);
            let bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
            assert!(bytes > 4 << 20, "{bytes}");
            agrees(&tree, &map);
            let (packed, ordinary) = packed_leaves(&tree);
            assert!(packed > 50 && ordinary > 1, "{packed} {ordinary}");
            let mut pages = Vec::new();
            tree.check_with(&mut |page, level, bytes| {
                pages.push((page, level, bytes.to_vec()));
                Ok(())
            })
            .unwrap();
            both.push(pages);
        }
        assert!(both[0] == both[1]);
    }
}

/// Goal: a tree with packed leaves is a sorted map, and stays one through changes that unpack them;
/// once all records are removed, all pages are freed. Method: trees built bottom up with three
/// kinds of keys, against a map: puts, inserts, removals, lookups, and range scans in both
/// directions.
#[test]
fn packed_tree_behaves_like_a_map() {
    for form in 0..3 {
        let space = space(600);
        let mut rng = SeededRng::new(form).fork("packed tree");
        let (tree, mut map) = packed_tree(&space, &mut rng, form, 6_000);
        agrees(&tree, &map);
        let (packed, ordinary) = packed_leaves(&tree);
        assert!(packed > 10 && ordinary > 1, "{packed} {ordinary}");
        let before = tree.check().unwrap().pages;
        for round in 0..4_000 {
            let key = packed_key(form, rng.below(20_000));
            match rng.below(10) {
                // At first only in one region, so that leaves there are unpacked and others are
                // not.
                0..=5 if round < 1_000 && key < packed_key(form, 9_000) => {}
                0..3 => {
                    let value = row(&mut rng);
                    assert_eq!(tree.put(&key, &value).unwrap(), map.insert(key, value).is_none());
                }
                3 => {
                    assert_eq!(tree.insert(&key, b"inserted").unwrap(), !map.contains_key(&key));
                    map.entry(key).or_insert_with(|| b"inserted".to_vec());
                }
                4 | 5 => assert_eq!(tree.remove(&key).unwrap(), map.remove(&key).is_some()),
                6..9 => {
                    let mut value = Vec::new();
                    assert_eq!(tree.get(&key, &mut value).unwrap(), map.contains_key(&key));
                    assert_eq!(tree.contains(&key).unwrap(), map.contains_key(&key));
                    assert_eq!(value, map.get(&key).cloned().unwrap_or_default());
                }
                _ => {
                    let mut ends = [key, packed_key(form, rng.below(20_000))];
                    ends.sort();
                    let range = (Bound::Excluded(&ends[0][..]), Bound::Included(&ends[1][..]));
                    let expected: Vec<_> = map
                        .range::<[u8], _>((Bound::Excluded(&ends[0][..]), Bound::Included(&ends[1][..])))
                        .take(300)
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                    let mut cursor = tree.scan(range, Direction::Forward);
                    for (key, value) in &expected {
                        let found = cursor.next().unwrap().unwrap();
                        assert!(found.0 == key && found.1 == value);
                    }
                    let mut last = tree.scan(range, Direction::Backward);
                    let expected =
                        map.range::<[u8], _>((Bound::Excluded(&ends[0][..]), Bound::Included(&ends[1][..])));
                    for (key, value) in expected.rev().take(300) {
                        let found = last.next().unwrap().unwrap();
                        assert!(found.0 == key && found.1 == value);
                    }
                }
            }
            if round == 1_000 {
                agrees(&tree, &map);
                let (packed, ordinary) = packed_leaves(&tree);
                assert!(packed > 2 && ordinary > 10, "{packed} {ordinary}");
            }
        }
        agrees(&tree, &map);
        assert!(tree.check().unwrap().pages > before);
        for key in map.keys() {
            assert!(tree.remove(key).unwrap());
        }
        let stats = tree.check().unwrap();
        assert_eq!(stats.records, 0, "form {form}");
        tree.free(true).unwrap();
        assert_eq!(space.free_pages().unwrap() + 1, space.pages().unwrap());
    }
}

/// Goal: a packed leaf can be divided wherever a record of it changes, even if a single outlier was
/// the reason for a dictionary and is in only one of the parts. Method: numbers of two values, and
/// one row of other values near the beginning; changes at several places after it, against a map.
#[test]
fn packed_leaf_with_outlier_is_divided() {
    use crate::storage::packed::{Layout, Lead};
    for changed in [150, 400, 700, 1_000, 1_200] {
        let tree = Tree::create(&space(600)).unwrap();
        let mut rng = SeededRng::new(changed).fork("one of others");
        let mut map: Map = (0..6_000).map(|at| (packed_key(0, at), Vec::new())).collect();
        for (at, own) in map.values_mut().enumerate() {
            own.extend([0, 0]);
            for _ in 0..5 {
                let number: u32 = if at == 40 { 1_000_000 } else { rng.below(2) as u32 * 300 };
                own.extend(number.to_le_bytes());
            }
        }
        let layout = Layout { lead: Lead::Nothing, widths: vec![4; 5] };
        let mut builder = Builder::new(&tree, 0.95, Some(layout));
        map.iter().for_each(|(key, value)| builder.push(key, value).unwrap());
        builder.finish().unwrap();
        let (packed, _) = packed_leaves(&tree);
        assert!(packed > 2 && tree.check().unwrap().pages < 24, "{packed}");
        for at in [changed, changed + 1, 10, 6_000] {
            let (key, value) = (packed_key(0, at), vec![0; 22]);
            assert_eq!(tree.put(&key, &value).unwrap(), map.insert(key, value).is_none());
        }
        agrees(&tree, &map);
    }
}

/// Goal: a packed leaf becomes the root when it is the last one, even without records after it, and
/// can be unpacked there too.
#[test]
fn packed_root() {
    let space = space(100);
    let mut rng = SeededRng::new(5).fork("packed root");
    let (tree, mut map) = packed_tree(&space, &mut rng, 0, 300);
    let whole = tree.check().unwrap().pages;
    assert_eq!((packed_leaves(&tree), whole), ((1, 1), 3));
    while let Some((key, _)) = map.pop_last() {
        assert!(tree.remove(&key).unwrap());
        if packed_leaves(&tree) == (1, 0) {
            break;
        }
    }
    assert!(map.len() > 250);
    agrees(&tree, &map);
    let stats = tree.check().unwrap();
    assert_eq!((stats.pages, stats.levels), (1, 1));
    for at in 0..40 {
        let (key, value) = (packed_key(0, at * 23), row(&mut rng));
        assert_eq!(tree.put(&key, &value).unwrap(), map.insert(key, value).is_none());
        agrees(&tree, &map);
    }
    assert_eq!(packed_leaves(&tree).0, 0);
}

/// Goal: threads that read while others unpack leaves see every record that is not removed, in
/// order.
/// Method: writers of odd records; readers that scan and look up even ones.
#[test]
fn packed_while_others_write() {
    let space = space(400);
    let mut rng = SeededRng::new(9).fork("packed threads");
    let (tree, map) = packed_tree(&space, &mut rng, 0, 6_000);
    let even: Vec<(Vec<u8>, Vec<u8>)> =
        map.iter().step_by(2).map(|(key, value)| (key.clone(), value.clone())).collect();
    let odd: Vec<Vec<u8>> = map.keys().skip(1).step_by(2).cloned().collect();
    thread::scope(|scope| {
        for writer in 0..2u64 {
            let (tree, odd) = (&tree, &odd);
            scope.spawn(move || {
                let mut rng = SeededRng::new(writer).fork("writer");
                for _ in 0..3_000 {
                    let key = &odd[rng.below(odd.len() as u64) as usize];
                    if rng.below(2) == 0 {
                        tree.put(key, &row(&mut rng)).unwrap();
                    } else {
                        tree.remove(key).unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..3 {
                let mut cursor = tree.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward);
                let mut expected = even.iter();
                let mut next = expected.next();
                while let Some((key, value)) = cursor.next().unwrap() {
                    if let Some((wanted, is)) = next
                        && key >= &wanted[..]
                    {
                        assert!(key == wanted && value == is);
                        next = expected.next();
                    }
                }
                assert!(next.is_none());
            }
        });
        let mut value = Vec::new();
        for (key, expected) in &even {
            value.clear();
            assert!(tree.get(key, &mut value).unwrap() && value == *expected);
        }
    });
    let mut left = map;
    left.retain(|key, _| tree.contains(key).unwrap());
    assert!(even.iter().all(|(key, _)| left.contains_key(key)));
    assert_eq!(tree.check().unwrap().records, left.len() as u64);
}
