//! Disks that are full, and have room again.

use cairn_kv::{Background, Error};
use cairn_vfs::{CrashImage, FaultOptions, Rng, SeededRng};

use super::workload::{Mix, Step};
use super::*;

/// Room for everything, on a disk that counts what is allocated.
const ENDLESS: Option<u64> = Some(1 << 40);

/// Fills the disk and lifts the limit, again and again; says how often the store was told, and how often it had to be
/// opened again to go on, which is never.
fn fill_and_lift(shape: &Shape, rounds: u64) -> u64 {
    let mut rng = SeededRng::new(shape.seed).fork("quota");
    let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
    let mut run =
        Run::new(&fs, shape, State::default(), Mix::Logged, SeededRng::new(shape.seed).fork("full"));
    fs.set_quota(ENDLESS);
    run.open().unwrap();
    let mut told = 0;
    for round in 0..rounds {
        let context = format!("shape {}, round {round}", shape.seed);
        fs.set_quota(Some(fs.used_bytes() + rng.below(16) * 4096));
        for _ in 0..120 {
            let before = run.history.commits.len();
            let Err(error) = run.step() else { continue };
            assert!(error.is_full(), "{context}: {error}");
            told += 1;
            if run.db.is_none() {
                // A store cannot be opened on a full disk; that changes nothing in it.
                fs.set_quota(ENDLESS);
                run.open().unwrap();
            }
            // The write is there or not: as a whole.
            let found = scan(run.db()).unwrap();
            if found != run.model {
                let commit = run.history.commits[before].clone();
                commit.changes.iter().for_each(|(keyspace, change)| run.model[*keyspace].apply(change));
                assert!(found == run.model, "{context}");
            } else if run.history.commits.len() > before {
                run.history.forget_last();
            }
            run.assert_reads(&context);
            break;
        }
        fs.set_quota(ENDLESS);
        // Without opening it again.
        let write = Step::Write(
            vec![(0, Change::Put(b"room".to_vec(), round.to_be_bytes().to_vec()))],
            cairn_kv::Durability::Sync,
        );
        run.perform(write).unwrap_or_else(|error| panic!("{context}: {error}"));
        run.perform(Step::Flush(0)).unwrap_or_else(|error| panic!("{context}: {error}"));
        run.perform(Step::Flush(1)).unwrap_or_else(|error| panic!("{context}: {error}"));
        run.db().wait_idle().unwrap();
        if shape.background == Background::Inline {
            assert_no_leaks(&fs, run.db(), &context);
        }
        if round % 8 == 0 {
            let accepted = run.history.accepted(fs.operation_count() + 1, None);
            for image in [CrashImage::None, CrashImage::Random(round)] {
                let disk = fs.crash_point().image(image);
                crash::check(
                    &disk,
                    &Shape { background: Background::Inline, ..shape.clone() },
                    &run.history,
                    &accepted,
                    5,
                    &context,
                );
            }
            run.perform(Step::Reopen).unwrap();
            let model = run.model.clone();
            run = run.begin_again(model);
        }
    }
    told
}

/// Goal: a full disk costs nothing that was acknowledged, leaves nothing behind, and when there is room the store goes on
/// by itself. Method: quotas of a few pages more than there are, filled by the usual steps, then lifted.
#[test]
fn full_disks_that_lift() {
    let own = seed(8);
    let mut told = 0;
    for round in 0..4 {
        told += fill_and_lift(&Shape::new(own.wrapping_add(round)), rounds(50, 1250));
    }
    println!("full disks: 200 rounds or more, told {told} times");
    assert!(told > 120, "{told}");
}

/// Goal: the same with threads, where it is a thread that meets the full disk: nobody waits for ever, and writers are told.
/// Method: as above; the order of events is the scheduler's, the checks are the same.
#[test]
fn full_disks_with_threads() {
    let shape = Shape { background: Background::Threads(2), ..Shape::new(seed(9)) };
    let told = fill_and_lift(&shape, rounds(25, 1000));
    println!("full disks with threads: told {told} times");
    assert!(told > 8, "{told}");
}

/// Goal: what has to wait for room says so instead of waiting: `flush`, `compact_range`, opening. Method: a disk without a
/// free page.
#[test]
fn nobody_waits_for_room() {
    let shape = Shape::new(seed(10));
    let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
    let mut run = Run::new(&fs, &shape, State::default(), Mix::Logged, SeededRng::new(shape.seed));
    fs.set_quota(ENDLESS);
    run.open().unwrap();
    run.steps(150).unwrap();
    run.perform(Step::Write(
        vec![(0, Change::Put(b"new".to_vec(), b"value".to_vec()))],
        cairn_kv::Durability::Buffered,
    ))
    .unwrap();
    fs.set_quota(Some(fs.used_bytes()));
    for _ in 0..3 {
        let errors: [Error; 2] =
            [run.keyspace(0).flush().unwrap_err(), run.keyspace(0).compact_range(..).unwrap_err()];
        for error in errors {
            assert!(error.is_full(), "{error}");
        }
        run.assert_reads("on a full disk");
    }
    let before = names(&fs);
    run.close();
    for _ in 0..3 {
        let error = open(&fs, &shape).unwrap_err();
        assert!(error.is_full(), "{error}");
    }
    fs.set_quota(ENDLESS);
    run.open().unwrap();
    run.assert_reads("after the disk was full");
    run.keyspace(0).flush().unwrap();
    assert_no_leaks(&fs, run.db(), "after the disk was full");
    assert!(names(&fs).len() <= before.len() + 6, "{before:?} {:?}", names(&fs));
}
