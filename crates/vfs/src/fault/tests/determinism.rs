//! Determinism from a seed: replay, and the shrinking that relies on it.

use super::*;

/// A long run that uses everything: all operations, faults, quotas, short transfers, corruption,
/// crashes.
fn busy_run(seed: u64, record: bool) -> FaultFs {
    let options = FaultOptions { record, short_reads: 0.2, short_writes: 0.2, ..FaultOptions::seeded(seed) };
    let mut fs = FaultFs::new(options);
    let mut rng = SeededRng::new(seed).fork("workload");
    for cycle in 0..5 {
        let _ = fs.create_dir_all(Path::new("dir with blanks/\u{e9}"));
        let mut open: Vec<Box<dyn File>> = Vec::new();
        for _ in 0..60 {
            one_step(&fs, &mut rng, &mut open);
        }
        if cycle < 4 {
            fs = fs.crash(if cycle == 0 { CrashImage::All } else { CrashImage::Random(rng.next_u64()) });
        }
    }
    fs
}

fn one_step(fs: &FaultFs, rng: &mut SeededRng, open: &mut Vec<Box<dyn File>>) {
    let paths = ["a", "b", "dir with blanks/c", "dir with blanks/\u{e9}/d%"];
    let mut path = || Path::new(paths[rng.below(4) as usize]);
    let (first, second) = (path(), path());
    let kind = rng.below(21);
    let number = rng.below(10_000);
    let file = open.get(rng.below(open.len() as u64) as usize);
    match (kind, file) {
        (0..4, _) => open.extend(fs.open(first, OpenOptions::create()).ok()),
        (4, Some(_)) => drop(open.swap_remove(0)),
        (5..8, Some(file)) => _ = file.write_at(&vec![number as u8; number as usize / 4], number),
        (8, Some(file)) => _ = file.read_at(&mut vec![0; 1000], number),
        (9, Some(file)) => _ = file.set_len(number),
        (10, Some(file)) => _ = file.sync_data(),
        (11, Some(file)) => _ = (file.len(), file.map(), file.try_lock(), file.allocate(0, number)),
        (12, _) => _ = fs.rename(first, second),
        (13, _) => _ = fs.hard_link(first, second),
        (14, _) => _ = fs.remove(first),
        (15, _) => _ = fs.sync_parent(first),
        (16, _) => _ = (fs.metadata(first), fs.read_dir(Path::new("/"))),
        (17, _) => fs.inject(Rule::at(fs.operation_count() + number % 20, Fault::BitFlip)),
        (18, _) => fs.inject(Rule::nth(Operation::SyncDir, number % 10, Fault::Io).persistent()),
        (19, _) => {
            fs.set_quota(number.is_multiple_of(2).then_some(number * 10));
            fs.clear_rules();
        }
        (20, _) => {
            let _ = fs.install(first, b"installed");
            fs.flip_bit(first, 3, 3);
            fs.swap_blocks(first, 0, 4, 2);
            fs.zero_tail(first, 7);
            fs.drop_caches();
        }
        _ => {}
    }
}

/// Goal: equal seeds end in equal states, down to the random stream; different seeds do not.
#[test]
fn same_seed_same_end() {
    for seed in 0..10 {
        assert_eq!(busy_run(seed, false).state_hash(), busy_run(seed, true).state_hash(), "seed {seed}");
        assert_ne!(busy_run(seed, false).state_hash(), busy_run(seed + 1, false).state_hash(), "seed {seed}");
    }
}

/// Goal: the hash detects a single bit, a single pending item, and a single drawn number.
#[test]
fn the_hash_is_sensitive() {
    let base = || {
        let fs = FaultFs::new(FaultOptions { short_reads: 0.5, ..Default::default() });
        (install(&fs, "f", &[0; 10_000]), fs)
    };
    let hash = |change: &dyn Fn(&FaultFs, &dyn File)| {
        let (file, fs) = base();
        change(&fs, &*file);
        fs.state_hash()
    };
    let mut hashes = vec![
        hash(&|_, _| {}),
        hash(&|fs, _| _ = fs.flip_bit(Path::new("f"), 9_999, 7)),
        hash(&|_, file| _ = file.write_at(&[0], 0)),
        hash(&|_, file| _ = file.len()),
        hash(&|_, file| _ = file.read_at(&mut [0; 2], 0)),
        hash(&|_, file| _ = file.set_len(10_000)),
        hash(&|fs, _| _ = fs.rename(Path::new("f"), Path::new("g"))),
        hash(&|fs, _| fs.set_quota(Some(1))),
    ];
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

/// Goal: a log that was written as text and parsed again replays to the same state and the same
/// log, crashes included.
#[test]
fn logs_replay() {
    for seed in 0..10 {
        let fs = busy_run(seed, true);
        let log = fs.log();
        assert!(log.len() > 250, "{}", log.len());
        assert_eq!(log.iter().filter(|line| matches!(line, LoggedOperation::Crash(_))).count(), 4);
        let parsed = parse_log(&format_log(&log)).unwrap();
        assert_eq!(parsed, log);
        let options = FaultOptions { record: true, ..fs.state().options.as_ref().clone() };
        let again = replay(&parsed, options);
        assert_eq!(again.state_hash(), fs.state_hash(), "seed {seed}");
        assert_eq!(again.log(), log, "seed {seed}");
    }
}

/// Goal: nothing is recorded by default.
#[test]
fn logs_are_off_by_default() {
    assert!(busy_run(1, false).log().is_empty());
}

/// Goal: a failing log of hundreds of lines shrinks to the few that matter. Method: the "bug" is
/// that a file named `b` survives a crash without its bytes; that takes a create, a write, a
/// directory sync, and the crash.
#[test]
fn failing_logs_shrink() {
    let fs = FaultFs::new(FaultOptions { record: true, ..FaultOptions::seeded(3) });
    let mut rng = SeededRng::new(3);
    let mut open = Vec::new();
    for _ in 0..100 {
        one_step(&fs, &mut rng, &mut open);
    }
    fs.clear_rules();
    fs.set_quota(None);
    write(&fs, "needle", b"lost").set_len(4).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    for _ in 0..100 {
        one_step(&fs, &mut rng, &mut open);
    }
    let log = fs.crash(CrashImage::None).log();
    let fails = |log: &[LoggedOperation]| {
        let before = replay(&log[..log.len().saturating_sub(1)], FaultOptions::default());
        let after = replay(log, FaultOptions::default());
        read(&before, "needle").is_some_and(|b| b == b"lost")
            && read(&after, "needle").is_some_and(|b| b.is_empty())
    };
    assert!(log.len() > 150 && fails(&log));
    let small = shrink(&log, fails);
    let text = format_log(&small);
    assert_eq!(small.len(), 4, "{text}");
    for (line, start) in text.lines().zip(["open ", "write ", "sync-dir ", "crash none"]) {
        assert!(line.starts_with(start), "{text}");
    }
}

/// Goal: each image continues the log of its run, up to its own crash point.
#[test]
fn images_continue_the_log() {
    let fs = FaultFs::new(FaultOptions { record: true, ..Default::default() });
    fs.capture_crash_points();
    let file = write(&fs, "f", b"1");
    file.sync_data().unwrap();
    let points = fs.take_crash_points();
    assert_eq!(points.iter().map(CrashPoint::operation).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for point in points {
        let after = point.image(CrashImage::Random(9));
        after.exists(Path::new("f")).unwrap();
        let log = format_log(&after.log());
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len() as u64, point.operation() + 2, "{log}");
        assert_eq!(lines[lines.len() - 2..], ["crash random:9", "stat f"]);
    }
}

/// Goal: a replay repeats a refused direct write. Method: write from a misaligned buffer, which the
/// log cannot describe.
#[test]
fn refused_direct_writes_stay_refused() {
    let options = FaultOptions { record: true, ..FaultOptions::default() };
    let fs = FaultFs::new(options.clone());
    let direct = OpenOptions { direct: true, ..OpenOptions::create() };
    let file = fs.open(Path::new("f"), direct).unwrap();
    let buffer = vec![1; 3 * 4096];
    let skip = buffer.as_ptr().addr().wrapping_neg() % 4096;
    let misaligned = skip + 512;
    file.write_at(&buffer[misaligned..misaligned + 4096], 0).unwrap_err();
    file.write_at(&buffer[skip..skip + 4096], 4096).unwrap();
    drop(file);
    assert_eq!(replay(&fs.log(), options).state_hash(), fs.state_hash());
}
