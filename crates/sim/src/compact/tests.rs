//! Picks of the compaction rules on hand-made trees.

use super::*;
use crate::options::CompactionPri;
use crate::tree::Entry;

const MIB: u64 = 1 << 20;

/// A file of this size and key range.
pub(crate) fn file(number: u64, smallest: u32, largest: u32, bytes: u64) -> File {
    let mut ids = vec![smallest];
    if largest > smallest {
        ids.push(largest);
    }
    File {
        number,
        smallest,
        largest,
        bytes,
        compensated_bytes: bytes,
        tombstones: 0,
        created_secs: 0.0,
        newest_secs: 0.0,
        seqs: (number, number),
        compacting: false,
        ratio: 1.0,
        entries: ids.into_iter().map(|id| Entry::new(id, 0, false)).collect(),
    }
}

/// A tree of runs, each with its level and files. The runs of a level get descending ids.
pub(super) fn tree_of(runs: &[(usize, Vec<File>)]) -> Tree {
    let mut tree = Tree::new(7);
    for (at, (level, files)) in runs.iter().enumerate() {
        tree.add(*level, 1000 - at as u64, files.clone());
    }
    tree
}

fn numbers(job: &Job) -> Vec<Vec<u64>> {
    job.inputs.iter().map(|input| input.files.clone()).collect()
}

fn zero(count: u64) -> Vec<(usize, Vec<File>)> {
    (0..count).map(|at| (0, vec![file(50 - at, 0, 99, 10 * MIB)])).collect()
}

/// Goal: level 0 is merged down as a whole at its trigger, and not before. Method: three and four
/// overlapping files over a level 1.
#[test]
fn level_zero_waits_for_its_trigger() {
    let options = Options::default();
    let mut runs = zero(3);
    runs.push((1, vec![file(1, 10, 20, MIB), file(2, 200, 300, MIB)]));
    assert_eq!(pick(&tree_of(&runs), &options, 0.0), None);
    runs.insert(3, (0, vec![file(40, 0, 99, 10 * MIB)]));
    let job = pick(&tree_of(&runs), &options, 0.0).unwrap();
    assert_eq!((job.reason, job.output_level, job.kind), (Reason::LevelZero, 1, JobKind::Merge));
    // File 2 of level 1 does not overlap.
    assert_eq!(numbers(&job), vec![vec![50], vec![49], vec![48], vec![40], vec![1]]);
}

/// Goal: the oldest file of level 0 goes down first, with the files that overlap it. Method: four
/// files, the newest of which overlaps none of the others.
#[test]
fn the_oldest_of_level_zero_goes_first() {
    let mut runs = zero(3);
    runs.insert(0, (0, vec![file(60, 200, 299, 10 * MIB)]));
    runs.push((1, vec![file(1, 0, 120, MIB), file(2, 180, 300, MIB)]));
    let job = pick(&tree_of(&runs), &Options::default(), 0.0).unwrap();
    assert_eq!(numbers(&job), vec![vec![50], vec![49], vec![48], vec![1]]);
}

/// Goal: of equally full levels the upper one goes first. Method: two levels at twice their size.
#[test]
fn equal_levels_go_from_above() {
    let options = Options {
        level_compaction_dynamic_level_bytes: false,
        max_bytes_for_level_base: 100 * MIB,
        max_bytes_for_level_multiplier: 10.0,
        ..Options::default()
    };
    let runs = [(1, vec![file(1, 0, 9, 200 * MIB)]), (2, vec![file(2, 0, 9, 2000 * MIB)])];
    assert_eq!(pick(&tree_of(&runs), &options, 0.0).unwrap().output_level, 2);
    let runs = [(1, vec![file(1, 0, 9, 200 * MIB)]), (2, vec![file(2, 0, 9, 2001 * MIB)])];
    assert_eq!(pick(&tree_of(&runs), &options, 0.0).unwrap().output_level, 3);
}

/// Goal: the file with the least overlap for its size goes first, and is moved when it overlaps
/// nothing. Method: a level 1 of three files over its target.
#[test]
fn least_overlap_goes_first() {
    let options = Options { max_bytes_for_level_base: 100 * MIB, ..Options::default() };
    let one = vec![file(1, 0, 9, 60 * MIB), file(2, 20, 29, 60 * MIB), file(3, 40, 49, 60 * MIB)];
    let two = vec![file(11, 0, 30, 200 * MIB), file(12, 41, 45, 30 * MIB)];
    let job = pick(&tree_of(&[(1, one.clone()), (2, two.clone())]), &options, 0.0).unwrap();
    assert_eq!(numbers(&job), vec![vec![3], vec![12]]);
    let job = pick(&tree_of(&[(1, one), (2, vec![file(11, 0, 30, 200 * MIB)])]), &options, 0.0).unwrap();
    assert_eq!((numbers(&job), job.kind), (vec![vec![3]], JobKind::Move));
}

/// Goal: no two compactions write to the same range of a level, and round robin does not skip a
/// file that has to wait. Method: running jobs that write where the first file would go, next to
/// that range, and to another level.
#[test]
fn no_two_jobs_write_one_range() {
    let one = vec![file(1, 0, 9, 60 * MIB), file(2, 20, 29, 60 * MIB), file(3, 40, 49, 60 * MIB)];
    let two = vec![file(11, 0, 10, 100 * MIB), file(12, 20, 30, 90 * MIB), file(13, 41, 45, 30 * MIB)];
    let picked = |compaction_pri, output_level, smallest, largest| {
        let mut tree = tree_of(&[(1, one.clone()), (2, two.clone())]);
        tree.begin(crate::tree::Running { job: 1, from_level: 1, output_level, smallest, largest });
        let options = Options { max_bytes_for_level_base: 100 * MIB, compaction_pri, ..Options::default() };
        pick(&tree, &options, 0.0).map(|job| numbers(&job)[0][0])
    };
    let by_overlap = CompactionPri::MinOverlappingRatio;
    for (level, smallest, largest, expected) in
        [(2, 49, 60, 2), (2, 30, 40, 1), (2, 50, 60, 3), (2, 31, 39, 3), (3, 40, 49, 3)]
    {
        let found = picked(by_overlap, level, smallest, largest);
        assert_eq!(found, Some(expected), "{smallest}..={largest} of level {level}");
    }
    assert_eq!(picked(CompactionPri::RoundRobin, 2, 12, 18), Some(1));
    assert_eq!(picked(CompactionPri::RoundRobin, 2, 5, 8), None);
}

/// Goal: `compaction_pri` by age uses the sequence numbers of a file's writes, not the file's age.
/// Method: three files, the newest of which has the oldest write, and the middle one the oldest
/// newest write.
#[test]
fn age_is_that_of_the_writes() {
    let with = |number: u64, smallest: u32, seqs: (u64, u64)| File {
        seqs,
        ..file(number, smallest, smallest + 9, 60 * MIB)
    };
    let one = vec![with(1, 0, (50, 90)), with(2, 20, (40, 70)), with(3, 40, (10, 80))];
    let tree = tree_of(&[(1, one), (2, vec![file(11, 0, 99, 200 * MIB)])]);
    let tried = |compaction_pri: CompactionPri| -> Vec<usize> {
        order::order(&tree, &Options { compaction_pri, ..Options::default() }, 1).collect()
    };
    assert_eq!(tried(CompactionPri::OldestSmallestSeqFirst), [2, 1, 0]);
    assert_eq!(tried(CompactionPri::OldestLargestSeqFirst), [1, 2, 0]);
}

/// Goal: neighbours that bring in no more files of the next level are added. Method: two small
/// files of level 1 over one of level 2.
#[test]
fn free_files_come_along() {
    let options = Options { max_bytes_for_level_base: 10 * MIB, ..Options::default() };
    let one = vec![file(1, 0, 9, 8 * MIB), file(2, 20, 29, 8 * MIB), file(3, 60, 69, 8 * MIB)];
    let two = vec![file(11, 0, 30, 10 * MIB), file(12, 50, 90, 100 * MIB)];
    let job = pick(&tree_of(&[(1, one), (2, two)]), &options, 0.0).unwrap();
    assert_eq!(numbers(&job), vec![vec![1, 2], vec![11]]);
}

/// Goal: universal compaction applies its three rules in order. Method: trees that meet one of them
/// each.
#[test]
fn universal_rules_in_order() {
    let options = Options { compaction_style: CompactionStyle::Universal, ..Options::default() };
    let tree = |sizes: &[u64]| {
        let count = sizes.len();
        let runs: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(at, &size)| {
                let level = if at + 1 == count { 6 } else { 0 };
                (level, vec![file(at as u64 + 1, 0, 99, size * MIB)])
            })
            .collect();
        tree_of(&runs)
    };
    let job = pick(&tree(&[10, 10, 10, 10]), &options, 0.0).unwrap();
    assert_eq!((job.reason, job.inputs.len(), job.output_level), (Reason::SpaceAmplification, 4, 6));
    let job = pick(&tree(&[10, 10, 10, 1000]), &options, 0.0).unwrap();
    assert_eq!((job.reason, job.inputs.len(), job.output_level), (Reason::SizeRatio, 3, 5));
    let mut wide = options.clone();
    wide.compaction_options_universal.size_ratio = 50;
    // Each run is larger than the newer ones together, but by less than half.
    let row = tree(&[10, 14, 35, 5000]);
    let job = pick(&row, &wide, 0.0).unwrap();
    assert_eq!((job.reason, job.inputs.len(), job.output_level), (Reason::SizeRatio, 3, 5));
    assert_eq!(pick(&row, &options, 0.0), None);
    let job = pick(&tree(&[1, 10, 100, 300, 5000]), &options, 0.0).unwrap();
    assert_eq!((job.reason, job.inputs.len()), (Reason::Runs, 2));
    assert_eq!(pick(&tree(&[10, 10, 10]), &options, 0.0), None);
}

/// Goal: Cairn compares space amplification in whole percent, RocksDB exactly. Method: newer runs
/// of 100.5 % of the oldest, which exceed a limit of 100 % in RocksDB only; and of 101 %.
#[test]
fn space_is_compared_in_whole_percent_by_cairn() {
    let pick_of = |newer: u64, engine: Engine| {
        let mut options =
            Options { compaction_style: CompactionStyle::Universal, engine, ..Options::default() };
        options.compaction_options_universal.max_size_amplification_percent = 100;
        options.compaction_options_universal.min_merge_width = 5;
        let mut runs: Vec<_> = (0..3).map(|at| (0, vec![file(10 + at, 0, 99, newer / 3)])).collect();
        runs.push((6, vec![file(1, 0, 99, 1000 * MIB)]));
        pick(&tree_of(&runs), &options, 0.0).map(|job| job.reason)
    };
    assert_eq!(pick_of(1005 * MIB, Engine::CairnKv), None);
    assert_eq!(pick_of(1013 * MIB, Engine::CairnKv), Some(Reason::SpaceAmplification));
    assert_eq!(pick_of(1005 * MIB, Engine::Rocksdb), Some(Reason::SpaceAmplification));
    assert_eq!(pick_of(990 * MIB, Engine::Rocksdb), None);
}

/// Goal: RocksDB starts another merge when the number of free runs reaches the trigger, Cairn when
/// the number of all runs does. Method: five runs, of which a job reads none, then two.
#[test]
fn runs_that_are_merged_do_not_count_for_rocksdb() {
    let sizes = [10, 10, 10, 100, 1000];
    let runs = sizes.iter().enumerate().map(|(at, &size)| {
        let level = if at == 4 { 6 } else { 0 };
        (level, vec![file(at as u64 + 1, 0, 99, size * MIB)])
    });
    let mut tree = tree_of(&runs.collect::<Vec<_>>());
    let pick_of = |tree: &Tree, engine: Engine| {
        let options = Options { compaction_style: CompactionStyle::Universal, engine, ..Options::default() };
        pick(tree, &options, 0.0).map(|job| job.inputs.len())
    };
    assert_eq!(pick_of(&tree, Engine::Rocksdb), Some(3));
    let input =
        |level: usize, run: u64, number: u64| Input { level, run, files: vec![number], range: (0, 99) };
    tree.mark(&[input(0, 997, 4), input(6, 996, 5)], true);
    assert_eq!(pick_of(&tree, Engine::Rocksdb), None);
    assert_eq!(pick_of(&tree, Engine::CairnKv), Some(3));
}

/// Goal: Cairn's universal debt is the size of the next merge, RocksDB's is zero. Method: trees
/// with too much space amplification, with a row of similar runs, with too many runs, and with
/// nothing due; sums by hand.
#[test]
fn universal_debt_is_that_of_cairn() {
    let debt_of = |sizes: &[u64], engine: Engine| {
        let last = sizes.len() - 1;
        let runs = sizes.iter().enumerate().map(|(at, &size)| {
            (if at == last { 6 } else { 0 }, vec![file(at as u64 + 1, 0, 99, size * MIB)])
        });
        let options = Options { compaction_style: CompactionStyle::Universal, engine, ..Options::default() };
        debt_bytes(&tree_of(&runs.collect::<Vec<_>>()), &options) / MIB
    };
    for (sizes, expected) in [
        (&[10, 10, 10][..], 0),
        (&[10, 10, 10, 9], 39),
        (&[10, 10, 30, 1000], 20),
        (&[1, 10, 100, 300, 5000], 11),
        (&[1, 10, 100, 5000], 0),
    ] {
        assert_eq!(debt_of(sizes, Engine::CairnKv), expected, "{sizes:?}");
        assert_eq!(debt_of(sizes, Engine::Rocksdb), 0);
    }
}

/// Goal: Cairn's universal compaction counts runs in use when it limits the number of runs. Method:
/// six runs, the oldest three of which a job reads.
#[test]
fn surplus_counts_runs_under_way() {
    let sizes = [1, 10, 100, 1000, 10_000, 100_000];
    let runs = sizes
        .iter()
        .enumerate()
        .map(|(at, &size)| (if at == 5 { 6 } else { 0 }, vec![file(at as u64 + 1, 0, 99, size * MIB)]));
    let mut tree = tree_of(&runs.collect::<Vec<_>>());
    let input =
        |level: usize, run: u64, number: u64| Input { level, run, files: vec![number], range: (0, 99) };
    tree.mark(&[input(0, 997, 4), input(0, 996, 5), input(6, 995, 6)], true);
    let options = Options {
        compaction_style: CompactionStyle::Universal,
        engine: Engine::CairnKv,
        ..Options::default()
    };
    let job = pick(&tree, &options, 0.0).unwrap();
    assert_eq!((job.reason, numbers(&job)), (Reason::Runs, vec![vec![1], vec![2], vec![3]]));
}

/// Goal: FIFO drops the oldest files until the rest fits. Method: five files with room for three.
#[test]
fn fifo_drops_the_oldest() {
    let mut options = Options { compaction_style: CompactionStyle::Fifo, ..Options::default() };
    options.compaction_options_fifo.max_table_files_size = 30 * MIB;
    let job = pick(&tree_of(&zero(5)), &options, 0.0).unwrap();
    assert_eq!(job.kind, JobKind::Drop);
    assert_eq!(numbers(&job), vec![vec![47], vec![46]]);
}

/// Goal: Cairn's lazy levels hold several runs, the last level one. Method: four runs of level 0
/// are merged down, three are not.
#[test]
fn lazy_levels_merge_by_count() {
    let options = Options {
        compaction_style: CompactionStyle::LazyLeveled,
        engine: Engine::CairnKv,
        ..Options::default()
    };
    let job = pick(&tree_of(&zero(4)), &options, 0.0).unwrap();
    assert_eq!((job.reason, job.inputs.len(), job.output_level), (Reason::Runs, 4, 6));
    assert_eq!(pick(&tree_of(&zero(3)), &options, 0.0), None);
}
