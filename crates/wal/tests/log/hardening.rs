//! Segments that are copied to make them durable, while reads go wrong or the kernel drops bytes
//! that it could not write.

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, ErrorKind, FaultOptions, Operation};

use super::*;

/// One segment, and several: the segment size, and the number of synced and of unsynced records.
const SHAPES: [(u32, u64); 2] = [(64 << 10, 20), (SMALL, 60)];

fn options(segment_bytes: u32) -> Options {
    small().segment_bytes(segment_bytes)
}

/// Creates a disk with the log of a finished process: `count` synced records, and as many unsynced
/// ones, for which a sync may have failed.
fn left(own: u64, (segment_bytes, count): (u32, u64), sync_fails: bool) -> FaultFs {
    let fs = FaultFs::new(FaultOptions::seeded(own));
    let (log, mut appender, _) = open(&shared(&fs), &options(segment_bytes), 1).unwrap();
    append(&mut appender, 0..count).unwrap();
    log.sync().unwrap();
    append(&mut appender, count..2 * count).unwrap();
    if sync_fails {
        fs.inject(Rule::nth(Operation::SyncData, fs.operation_count_of(Operation::SyncData), Fault::Io));
        log.sync().unwrap_err();
        fs.clear_rules();
    }
    fs
}

/// Asserts that all records exist and survive a power loss.
fn assert_whole(fs: &FaultFs, (segment_bytes, count): (u32, u64), context: &str) {
    let (_log, _appender, numbers) =
        open(&shared(fs), &options(segment_bytes), 3).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(numbers.iter().copied().eq(0..2 * count), "{context}: {} records", numbers.len());
    let after =
        recover(&shared(&fs.crash_point().image(CrashImage::None)), Lsn::ZERO, Mode::TolerateTornTail);
    assert!(after.unwrap().numbers() == numbers, "{context}");
}

/// Goal: a faulty read while a log is opened loses no record, whether during the copy or its check.
/// Method: each read of an opening in turn returns a flipped bit, or bytes from elsewhere; either
/// the opening fails or all records are there; and the next opening finds all.
#[test]
fn wrong_reads_replace_nothing() {
    let own = seed(51);
    let (mut refused, mut passed) = (0, 0);
    for shape in SHAPES {
        for (round, fault) in
            (0..50).flat_map(|round| [(round, Fault::BitFlip), (round, Fault::DuplicatedRead)])
        {
            for nth in 0.. {
                let fs = left(own + round, shape, false);
                let context = format!("{shape:?}, round {round}, {fault:?} of read {nth}");
                let found = recover(&shared(&fs), Lsn::ZERO, Mode::TolerateTornTail).unwrap();
                let (reads, renames) =
                    (fs.operation_count_of(Operation::Read), fs.operation_count_of(Operation::Rename));
                fs.inject(Rule::nth(Operation::Read, reads + nth, fault));
                let opened = Log::open(&shared(&fs), &options(shape.0), found.tail, &mut SeededRng::new(2));
                let copies = fs.operation_count_of(Operation::Rename) - renames;
                fs.clear_rules();
                match opened {
                    Ok(_) => passed += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{context}: {error}");
                        refused += 1;
                    }
                }
                assert_whole(&fs, shape, &context);
                if fs.injected_count() == 0 {
                    assert!(copies >= 1 && (copies > 1) == (shape.0 == SMALL), "{context}: {copies} copies");
                    break;
                }
            }
        }
    }
    println!("wrong reads: {refused} refused, {passed} without consequence");
    assert!(refused > 200, "{refused}");
}

/// Goal: the same holds for a sync in the middle of a recovery that has not read everything.
/// Method: as above, for each read of that call, with half of the unsynced records read.
#[test]
fn wrong_reads_in_the_middle_replace_nothing() {
    let own = seed(52);
    let (mut refused, mut passed) = (0, 0);
    for shape in SHAPES {
        for (round, fault) in
            (0..50).flat_map(|round| [(round, Fault::BitFlip), (round, Fault::DuplicatedRead)])
        {
            for nth in 0.. {
                let fs = left(own + round, shape, false);
                let context = format!("{shape:?}, round {round}, {fault:?} of read {nth}");
                let reading = RecoveryOptions::default().read_bytes(4096);
                let mut recovery = Recovery::open(&shared(&fs), Path::new(DIR), Lsn::ZERO, &reading).unwrap();
                for _ in 0..shape.1 * 3 / 2 {
                    recovery.next().unwrap().unwrap();
                }
                fs.inject(Rule::nth(Operation::Read, fs.operation_count_of(Operation::Read) + nth, fault));
                let synced = recovery.sync();
                fs.clear_rules();
                match synced {
                    Ok(()) => {
                        passed += 1;
                        for _ in shape.1 * 3 / 2..shape.1 * 2 {
                            recovery.next().unwrap().unwrap();
                        }
                        assert!(recovery.next().unwrap().is_none(), "{context}");
                        let tail = recovery.finish().unwrap();
                        drop(
                            Log::open(&shared(&fs), &options(shape.0), tail, &mut SeededRng::new(2)).unwrap(),
                        );
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Io, "{context}: {error}");
                        refused += 1;
                    }
                }
                assert_whole(&fs, shape, &context);
                if fs.injected_count() == 0 {
                    break;
                }
            }
        }
    }
    println!("wrong reads in the middle: {refused} refused, {passed} without consequence");
    assert!(refused > 200, "{refused}");
}

/// Goal: records that a failed sync left only in the cache, and that the kernel drops after they
/// were recovered, are not sealed as durable: the log reports them once, and continues from the
/// content of the disk. Method: drop the caches between the recovery and the opening.
#[test]
fn records_dropped_from_the_cache_are_not_sealed() {
    let own = seed(53);
    for shape in SHAPES {
        let fs = left(own, shape, true);
        let found = recover(&shared(&fs), Lsn::ZERO, Mode::TolerateTornTail).unwrap();
        assert_eq!(found.numbers().len() as u64, 2 * shape.1);
        fs.drop_caches();
        let error =
            Log::open(&shared(&fs), &options(shape.0), found.tail, &mut SeededRng::new(2)).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Io && error.to_string().contains("recover the log again"),
            "{error}"
        );
        for _ in 0..2 {
            let (log, mut appender, numbers) = open(&shared(&fs), &options(shape.0), 3).unwrap();
            let next = numbers.len() as u64;
            assert!(next >= shape.1 && numbers.iter().copied().eq(0..next), "{shape:?}: {next} records");
            append(&mut appender, next..next + 1).unwrap();
            log.sync().unwrap();
            let after = recover(
                &shared(&fs.crash_point().image(CrashImage::None)),
                Lsn::ZERO,
                Mode::TolerateTornTail,
            );
            assert!(after.unwrap().numbers().into_iter().eq(0..=next), "{shape:?}");
        }
    }
}

/// Goal: records that a recovery made durable on its way stay, whatever the kernel drops
/// afterwards. Method: drop the caches after a sync in the middle, and read on.
#[test]
fn hardened_records_survive_dropped_caches() {
    let own = seed(54);
    for shape in SHAPES {
        let fs = left(own, shape, true);
        let mut recovery =
            Recovery::open(&shared(&fs), Path::new(DIR), Lsn::ZERO, &RecoveryOptions::default()).unwrap();
        let mut numbers = Vec::new();
        while let Some(record) = recovery.next().unwrap() {
            numbers.push(number_of(record.payload));
            if numbers.len() as u64 == shape.1 * 3 / 2 {
                recovery.sync().unwrap();
                fs.drop_caches();
            }
        }
        let tail = recovery.finish().unwrap();
        drop(Log::open(&shared(&fs), &options(shape.0), tail, &mut SeededRng::new(2)).unwrap());
        assert!(numbers.len() as u64 >= shape.1 * 3 / 2, "{shape:?}");
        let after =
            recover(&shared(&fs.crash_point().image(CrashImage::None)), Lsn::ZERO, Mode::TolerateTornTail);
        assert!(after.unwrap().numbers() == numbers, "{shape:?}");
    }
}
