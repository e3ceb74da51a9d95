//! Tests of single rules.

use super::*;

fn mib(mib: u64) -> u64 {
    mib << 20
}

/// Returns the targets for a last level of this many MiB.
fn targets(last_mib: u64) -> LevelTargets {
    let table = TableInfo {
        number: 1,
        bytes: mib(last_mib),
        smallest: b"a",
        largest: b"z",
        entries: 1,
        tombstones: 0,
        seqnos: (0, 0),
        oldest_secs: 0,
        newest_secs: 0,
        expires_secs: u64::MAX,
        compacting: false,
        marked: false,
    };
    let mut levels = vec![LevelInfo::default(); 7];
    levels[6].runs = vec![RunInfo { id: 0, tables: vec![table] }];
    LevelTargets::new(&LeveledOptions::default(), &State { levels, ..State::default() })
}

/// Goal: the number and sizes of levels follow the amount of data: no middle level where rewriting
/// the last is cheaper, ratios within bounds, each level at least the base size.
/// Method: sizes from nothing to 100 TiB.
#[test]
fn targets_follow_the_data() {
    let bases: Vec<usize> =
        [0, 1024, 10 << 10, 100 << 10, 1 << 20, 100 << 20].map(|size| targets(size).base).to_vec();
    assert!(bases.is_sorted_by(|a, b| a >= b), "{bases:?}");
    assert_eq!((bases[0], bases[1], bases[2]), (6, 6, 5));
    for size in (0..40).map(|power| 1 << power) {
        let it = targets(size);
        assert_eq!((it.of(6), it.of(0)), (u64::MAX, 0));
        assert!((1..it.base).all(|level| it.of(level) == 0));
        let mut above = mib(size) as f64;
        for level in (it.base..6).rev() {
            let ratio = above / it.of(level) as f64;
            assert!(ratio > 1.0 && ratio <= 10.01, "{size} MiB, level {level}: {ratio}");
            assert!(it.of(level) >= mib(256));
            above = it.of(level) as f64;
        }
    }
}

/// Goal: keys written in order are never rewritten.
/// Method: flushes in key order; all jobs are moves.
#[test]
fn ordered_writes_only_move() {
    for strategy in [Box::new(Leveled::new(leveled())) as Box<dyn Strategy>] {
        let mut tree = Tree::default();
        for key in 0..400 {
            tree.flush((key * 10..key * 10 + 10).map(|key| (key, false)));
            tree.settle(&*strategy);
        }
        assert_eq!(tree.merged, 0);
        assert!(tree.moved > 50);
    }
}

/// Goal: jobs of a level run in parallel where they do not touch.
/// Method: a tree of three levels; start as many jobs as there are.
#[test]
fn jobs_run_in_parallel() {
    let strategy = Leveled::new(leveled());
    let mut rng = SeededRng::new(2);
    let mut tree = Tree::default();
    let mut most = 0;
    for _ in 0..900 {
        random_flush(&mut tree, &mut rng, 6000, 0);
        if tree.running.len() > 3 || rng.chance(0.2) {
            while !tree.running.is_empty() {
                tree.finish(0);
            }
        }
        while let Some(job) = tree.pick(&strategy) {
            tree.start(job);
        }
        most = most.max(tree.running.len());
    }
    assert!(most >= 3, "{most}");
}

/// Returns a settled leveled tree of a few hundred keys and one table above the last level.
fn settled() -> (Leveled, Tree) {
    let strategy = Leveled::new(LeveledOptions { age_secs: Some(1000), ..leveled() });
    let mut tree = Tree::default();
    for piece in 0..20 {
        tree.flush((piece * 10..piece * 10 + 10).map(|key| (key, false)));
    }
    tree.settle(&strategy);
    tree.flush([(5, false), (50, false)]);
    tree.settle(&strategy);
    assert_eq!(tree.levels[0].len(), 1);
    (strategy, tree)
}

/// Goal: tables are compacted because of age, expired entries, a mark and tombstones, each once.
/// Method: one of each on a settled tree; check the job's reason, and that the tree settles again.
#[test]
fn upkeep() {
    let (strategy, mut tree) = settled();
    tree.now_secs = 999;
    assert_eq!(tree.pick(&strategy), None);
    tree.now_secs = 1000;
    let job = tree.pick(&strategy).unwrap();
    assert_eq!((job.reason, job.inputs[0].level), (Reason::Age, 0));
    tree.settle(&strategy);
    assert!(tree.levels[0].is_empty(), "what stands lowest is not old");

    let (strategy, mut tree) = settled();
    let last = tree.levels.len() - 1;
    tree.levels[last][0].tables[0].expires_secs = 100;
    tree.now_secs = 100 + 3599;
    tree.levels[0][0].tables[0].oldest_secs = 3000;
    assert_eq!(tree.pick(&strategy), None);
    tree.now_secs += 1;
    let job = tree.pick(&strategy).unwrap();
    assert_eq!((job.reason, job.output_level, job.kind), (Reason::Expired, last, JobKind::Merge));
    assert!(!job.bottommost || job.inputs.len() == 1);
    tree.settle(&strategy);

    let (strategy, mut tree) = settled();
    tree.tables_mut().last().unwrap().marked = true;
    assert_eq!(tree.pick(&strategy).unwrap().reason, Reason::Marked);
    tree.settle(&strategy);

    let (strategy, mut tree) = settled();
    tree.flush((0..20).map(|key| (key, key % 2 == 0)));
    assert_eq!(tree.pick(&strategy).unwrap().reason, Reason::Tombstones);
    tree.settle(&strategy);
    assert!(tree.tables().flat_map(|table| table.entries.values()).all(|entry| !entry.is_tombstone));
}

/// Goal: tombstones protected by a snapshot do not cause repeated compactions.
/// Method: delete everything under an earlier snapshot; the tree settles and still has the
/// tombstones; without the snapshot it empties.
#[test]
fn protected_tombstones_wait() {
    let (strategy, mut tree) = settled();
    tree.oldest_snapshot = Some(tree.seqno);
    tree.flush((0..200).map(|key| (key, true)));
    tree.settle(&strategy);
    assert!(tree.entries() > 0);
    tree.oldest_snapshot = None;
    tree.settle(&strategy);
    assert_eq!(tree.entries(), 0);
}

/// Goal: level 0 merges within itself only when it is long and merges into the base level are
/// blocked.
/// Method: keep a job to the base level running, and flush more.
#[test]
fn level_zero_helps_itself() {
    let (strategy, mut tree) = settled();
    let mut rng = SeededRng::new(3);
    while tree.running.is_empty() {
        random_flush(&mut tree, &mut rng, 200, 0);
        if let Some(job) = tree.pick(&strategy) {
            assert!(matches!(job.reason, Reason::LevelZero { .. }), "{}", job.reason);
            tree.start(job);
        }
    }
    let mut reasons = Vec::new();
    for _ in 0..30 {
        random_flush(&mut tree, &mut rng, 200, 0);
        if let Some(job) = tree.pick(&strategy) {
            reasons.push(job.reason);
            tree.start(job);
            tree.finish(1);
        }
    }
    assert!(
        !reasons.is_empty() && reasons.iter().all(|it| matches!(it, Reason::WithinLevelZero { runs: 8.. }))
    );
    assert!(tree.levels[0].len() < 20);
    tree.finish(0);
    tree.settle(&strategy);
}

/// Goal: large jobs include keys at which to split them.
/// Method: a job over many tables; its parts have similar numbers of them.
#[test]
fn large_jobs_are_split() {
    let strategy = Leveled::new(leveled());
    let mut tree = Tree::default();
    tree.flush((0..300).map(|key| (key, false)));
    tree.flush((0..300).map(|key| (key, false)));
    tree.settle(&strategy);
    let tables = tree.levels[6][0].tables.len();
    assert_eq!(tables, 15);
    for _ in 0..4 {
        tree.flush((0..20).map(|key| (key * 15, false)));
    }
    let job = tree.pick(&strategy).unwrap();
    assert_eq!(job.boundaries.len(), 3);
    let keys: Vec<u16> = job.boundaries.iter().map(|key| u16::from_be_bytes([key[0], key[1]])).collect();
    assert!(keys.iter().zip([75, 150, 225]).all(|(key, fair)| key.abs_diff(fair) <= 20), "{keys:?}");
}

/// Goal: FIFO starts no job before the previous one has ended.
/// Method: two flushes over the size limit while the job of the first is running.
#[test]
fn fifo_jobs_follow_each_other() {
    let fifo = Fifo::new(FifoOptions { bytes_max: 1, ttl_secs: None });
    let mut tree = Tree::default();
    tree.flush([(1, false)]);
    let job = tree.pick(&fifo).unwrap();
    tree.start(job);
    tree.flush([(2, false)]);
    assert_eq!(tree.pick(&fifo), None);
    tree.finish(0);
    assert_eq!(tree.pick(&fifo).unwrap().kind, JobKind::Drop);
}

/// Goal: the error for an invalid setting names it.
/// Method: one bad value for each.
#[test]
fn bad_settings() {
    let bad = [
        ("table_bytes", StrategyOptions::Leveled(LeveledOptions { table_bytes: 0, ..leveled() })),
        ("levels", StrategyOptions::Leveled(LeveledOptions { levels: 1, ..leveled() })),
        (
            "level_zero_runs_min",
            StrategyOptions::Leveled(LeveledOptions { level_zero_runs_min: 0, ..leveled() }),
        ),
        (
            "level_zero_runs_max",
            StrategyOptions::Leveled(LeveledOptions { level_zero_runs_max: 1, ..leveled() }),
        ),
        ("level_zero_bytes", StrategyOptions::Leveled(LeveledOptions { level_zero_bytes: 0, ..leveled() })),
        ("multiplier", StrategyOptions::Leveled(LeveledOptions { multiplier: f64::NAN, ..leveled() })),
        (
            "tombstone_ratio",
            StrategyOptions::Leveled(LeveledOptions { tombstone_ratio: f64::NAN, ..leveled() }),
        ),
        (
            "idle_space_ratio",
            StrategyOptions::LazyLeveled(LazyOptions { idle_space_ratio: f64::NAN, ..lazy() }),
        ),
        ("runs", StrategyOptions::Universal(UniversalOptions { runs: 1, ..universal() })),
        ("merge_runs_min", StrategyOptions::Universal(UniversalOptions { merge_runs_min: 1, ..universal() })),
        ("merge_runs_max", StrategyOptions::Universal(UniversalOptions { merge_runs_max: 1, ..universal() })),
        ("bytes_max", StrategyOptions::Fifo(FifoOptions { bytes_max: 0, ttl_secs: None })),
        ("size_ratio", StrategyOptions::LazyLeveled(LazyOptions { size_ratio: 1, ..lazy() })),
        ("flush_bytes", StrategyOptions::LazyLeveled(LazyOptions { flush_bytes: 0, ..lazy() })),
    ];
    for (name, options) in bad {
        let message = options.build().unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    }
    assert_eq!(StrategyOptions::default().build().unwrap().name(), "leveled");
    let reason = Reason::LevelZero { runs: 4, bytes: mib(256) };
    assert_eq!(reason.to_string(), "level 0 has 4 runs, 256 MiB");
}
