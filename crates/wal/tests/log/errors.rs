//! Failing operations, failing syncs, and full disks.

use cairn_vfs::fault::{Fault, Rule, SyncFailure, fault_sweep};
use cairn_vfs::{CrashImage, ErrorKind, FaultOptions, Operation};

use super::crash::{Model, session};
use super::*;

/// Runs two sessions on a disk with an injected fault. Then checks that no acknowledged record is
/// lost, on the disk as it is and after a power loss, and that the log is usable again.
fn run(fs: &FaultFs, own: u64, context: &str) -> Result<()> {
    let mut rng = SeededRng::new(own);
    let mut model = Model::default();
    let result = session(fs, &mut model, &mut rng, 30).and_then(|()| session(fs, &mut model, &mut rng, 30));
    fs.clear_rules();
    let at = fs.operation_count();
    let point = fs.crash_point();
    for (image, after) in point.images(4) {
        let found = recover(&shared(&after), Lsn::ZERO, Mode::TolerateTornTail);
        let found = found.unwrap_or_else(|error| panic!("{context}, {image}: {error}")).numbers();
        let mut model = model.clone();
        model.settle(&found, at, &format!("{context}, {image}"));
        session(&after, &mut model, &mut rng.clone(), 10)
            .unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    // The name of the log's directory may stay in the cache only. A store creates its directory
    // before anything else.
    if matches!(&result, Err(Error::Vfs(error)) if error.operation == Operation::SyncDir && error.path == Path::new("."))
    {
        return result;
    }
    // The same machine without a power loss: bytes that a failed sync left only in the cache must
    // not be trusted.
    let found = recover(&shared(fs), Lsn::ZERO, Mode::TolerateTornTail);
    let found = found.unwrap_or_else(|error| panic!("{context}, restarted: {error}")).numbers();
    model.settle(&found, at, &format!("{context}, restarted"));
    session(fs, &mut model, &mut rng, 10).unwrap_or_else(|error| panic!("{context}, restarted: {error}"));
    let at = fs.operation_count();
    for (image, after) in fs.crash_point().images(4) {
        let found = recover(&shared(&after), Lsn::ZERO, Mode::TolerateTornTail);
        let found = found.unwrap_or_else(|error| panic!("{context}, restarted, {image}: {error}")).numbers();
        model.clone().settle(&found, at, &format!("{context}, restarted, {image}"));
    }
    result
}

/// Goal: an error of any operation reaches the caller and loses no acknowledged record, and a
/// recovery continues from the remaining state. Method: fail every operation of a run in turn, once
/// and persistently, with each fault.
#[test]
fn every_operation_fails() {
    let own = seed(31);
    let (mut struck, mut told) = (0, 0);
    for fault in [Fault::Io, Fault::Full, Fault::Short, Fault::Interrupted] {
        for persistent in [false, true] {
            for failure in [SyncFailure::CacheOnly, SyncFailure::Partial, SyncFailure::Lost] {
                if failure != SyncFailure::CacheOnly && fault != Fault::Io {
                    continue;
                }
                let options = FaultOptions { sync_failure: failure, ..FaultOptions::seeded(own) };
                struck += fault_sweep(&options, fault, persistent, |fs, index| {
                    let context = format!("{fault:?} at {index}, persistent: {persistent}, {failure:?}");
                    let result = run(fs, own, &context);
                    if fs.injected_count() == 0 {
                        return result.unwrap();
                    }
                    if let Err(error) = result {
                        told += 1;
                        let kind = error.kind();
                        assert!(matches!(kind, ErrorKind::Io | ErrorKind::Poisoned), "{context}: {error}");
                        assert!(matches!(fault, Fault::Io | Fault::Full), "{context}: {error}");
                    }
                });
            }
        }
    }
    println!("every operation fails: {struck} runs with a fault, {told} of them told");
    assert!(struck > 500 && told > 250, "{struck} {told}");
}

/// Goal: after a failed sync nothing succeeds any more, whatever the disk reports later, and every
/// waiter learns of the failure.
/// Method: fail the sync of a running log in each way a kernel may; then try every call.
#[test]
fn failed_syncs_poison() {
    for failure in [SyncFailure::CacheOnly, SyncFailure::Partial, SyncFailure::Lost, SyncFailure::Kept] {
        let fs = FaultFs::new(FaultOptions { sync_failure: failure, ..FaultOptions::seeded(seed(32)) });
        let (log, mut appender, _) = open(&shared(&fs), &small(), 1).unwrap();
        let first = append(&mut appender, 0..10).unwrap();
        log.sync().unwrap();
        let lsns = append(&mut appender, 10..20).unwrap();
        fs.inject(Rule::nth(Operation::SyncData, fs.operation_count_of(Operation::SyncData), Fault::Io));
        let error = log.sync_to(lsns[0]).unwrap_err();
        assert!(matches!(&error, Error::Vfs(error) if error.operation == Operation::SyncData), "{error}");
        let syncs = fs.operation_count_of(Operation::SyncData);
        for _ in 0..3 {
            let errors = [
                log.sync_to(lsns[9]).unwrap_err(),
                log.sync_to(first[0]).unwrap_err(),
                log.release_before(first[9]).unwrap_err(),
                appender.append(&[b"more"]).unwrap_err(),
                appender.rotate().unwrap_err(),
            ];
            for error in errors {
                assert!(error.kind() == ErrorKind::Poisoned && error.to_string().contains("sync"), "{error}");
            }
        }
        assert_eq!(appender.close().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(fs.operation_count_of(Operation::SyncData), syncs, "never tried again");
        drop(log);
        let image = fs.crash(CrashImage::None);
        assert_eq!(recover(&shared(&image), Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers().len(), 10);
    }
}

/// Goal: after a failed sync, a process that starts on the same machine finds records that only the
/// cache holds; those it recovers are durable from then on. Method: restart twice without a crash,
/// and lose power after the second restart.
#[test]
fn restarts_after_failed_syncs() {
    for failure in [SyncFailure::CacheOnly, SyncFailure::Partial, SyncFailure::Lost, SyncFailure::Kept] {
        let fs = FaultFs::new(FaultOptions { sync_failure: failure, ..FaultOptions::seeded(seed(37)) });
        let (log, mut appender, _) = open(&shared(&fs), &small(), 1).unwrap();
        append(&mut appender, 0..100).unwrap();
        log.sync().unwrap();
        append(&mut appender, 100..200).unwrap();
        fs.inject(Rule::nth(Operation::SyncData, fs.operation_count_of(Operation::SyncData), Fault::Io));
        log.sync().unwrap_err();
        fs.inject(Rule::nth(Operation::SyncData, fs.operation_count_of(Operation::SyncData), Fault::Io));
        drop((log, appender));
        open(&shared(&fs), &small(), 2).unwrap_err();
        let (log, mut appender, found) = open(&shared(&fs), &small(), 3).unwrap();
        assert!(found.len() >= 100);
        append(&mut appender, found.len() as u64..found.len() as u64 + 1).unwrap();
        log.sync().unwrap();
        let after = recover(&shared(&fs.crash(CrashImage::None)), Lsn::ZERO, Mode::TolerateTornTail).unwrap();
        assert_eq!(after.numbers(), (0..=found.len() as u64).collect::<Vec<_>>(), "{failure:?}");
    }
}

/// Goal: a write that fails without a mapping is reported to the committer, and nothing is
/// acknowledged any more, neither by a sync nor by a commit: later records would come after a hole.
#[test]
fn failed_writes_poison() {
    for fault in [Fault::Io, Fault::Full] {
        let fs = FaultFs::new(FaultOptions::seeded(seed(33)));
        let (log, mut appender, _) = open(&shared(&fs), &small(), 1).unwrap();
        let reservation = appender.reserve(10).unwrap();
        let lost = appender.reserve(10).unwrap();
        let position = appender.position();
        fs.inject(Rule::nth(Operation::Write, fs.operation_count_of(Operation::Write), fault));
        assert_eq!(reservation.commit().unwrap_err().kind(), ErrorKind::Io);
        drop(lost);
        let errors = [
            log.check().unwrap_err(),
            appender.append(&[b"after"]).unwrap_err(),
            appender.rotate().unwrap_err(),
            log.sync_to(position).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Poisoned), "{errors:?}");
    }
}

/// Goal: the same holds without a commit: a dropped reservation must be marked as void, or
/// recoveries end there. Also when the record's segment is no longer the current one.
#[test]
fn failed_void_record_poisons() {
    for rotates in [false, true] {
        let fs = FaultFs::new(FaultOptions::seeded(seed(38)));
        let (log, mut appender, _) = open(&shared(&fs), &small(), 1).unwrap();
        append(&mut appender, 0..3).unwrap();
        let given_up = appender.reserve(10).unwrap();
        if rotates {
            appender.rotate().unwrap();
        }
        fs.inject(Rule::nth(Operation::Write, fs.operation_count_of(Operation::Write), Fault::Io));
        drop(given_up);
        assert_eq!(log.check().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(append(&mut appender, 3..4).unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(recover(&shared(&fs), Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers(), [0, 1, 2]);
    }
}

/// Goal: after a process is killed, every record whose commit succeeded is kept, whatever failed
/// before and after it. Method: fail each write of a run in turn, of records, headers and zeros,
/// once and persistently, with a caller that ignores errors; then recover the kernel's state.
#[test]
fn nothing_is_acknowledged_after_a_hole() {
    let (mut struck, mut told) = (0, 0);
    for (fault, persistent) in [Fault::Io, Fault::Full].into_iter().flat_map(|it| [(it, false), (it, true)]) {
        for nth in 0.. {
            let fs = FaultFs::new(FaultOptions::seeded(seed(39)));
            let (_log, mut appender, _) = open(&shared(&fs), &small(), 1).unwrap();
            let before = fs.operation_count_of(Operation::Write);
            fs.inject(Rule { persistent, ..Rule::nth(Operation::Write, before + nth, fault) });
            let acknowledged: Vec<u64> =
                (0..60).filter(|&number| append(&mut appender, number..number + 1).is_ok()).collect();
            if fs.injected_count() == 0 {
                assert_eq!(acknowledged.len(), 60);
                break;
            }
            struck += 1;
            told += usize::from(acknowledged.len() < 60);
            fs.clear_rules();
            let found = recover(&shared(&fs), Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers();
            assert!(
                acknowledged.iter().all(|number| found.contains(number)),
                "{fault:?} at write {nth}, persistent: {persistent}: {found:?} of {acknowledged:?}"
            );
        }
    }
    println!("writes that fail: {struck} runs, {told} of them told");
    assert!(struck > 200 && told > 150, "{struck} {told}");
}

/// Goal: a full disk is reported when a segment is needed, leaves no file behind and does not
/// poison the log; the log continues when there is space, and releasing makes space. Method: fill
/// and lift repeatedly, by quota and by release.
#[test]
fn log_recovers_from_a_full_disk() {
    let fs = FaultFs::new(FaultOptions::seeded(seed(34)));
    let (log, mut appender, _) = open(&shared(&fs), &small().recycled_max(0), 1).unwrap();
    let (mut next, mut full, mut by_release) = (0, 0, 0);
    for round in 0..rounds(200, 5000) {
        fs.set_quota(Some(fs.used_bytes() + (round % 9) * 4096));
        loop {
            match append(&mut appender, next..next + 1) {
                Ok(_) => next += 1,
                Err(error) => {
                    assert!(error.is_full(), "round {round}: {error}");
                    full += 1;
                    break;
                }
            }
        }
        let used = fs.used_bytes();
        assert!(append(&mut appender, next..next + 1).unwrap_err().is_full());
        assert_eq!(fs.used_bytes(), used, "round {round}: tries leave nothing behind");
        let newest = format!("{:06}.wal", log.reserved().segment());
        assert_eq!(names(&*shared(&fs)).last(), Some(&newest), "round {round}: a file is left behind");
        log.sync().unwrap();
        // Releasing makes space, unless it was too little for the largest record.
        log.release_before(log.reserved()).unwrap();
        if round % 3 != 0 || fs.used_bytes() + (24 << 10) > used {
            fs.set_quota(None);
        } else {
            by_release += 1;
        }
        append(&mut appender, next..next + 1).unwrap_or_else(|error| panic!("round {round}: {error}"));
        next += 1;
        let found = recover(&shared(&fs), Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers();
        assert_eq!(found.last(), Some(&(next - 1)), "round {round}");
    }
    println!("full disks: {full} met, {by_release} lifted by a release, {next} records");
    assert!(by_release > 10, "{by_release}");
    log.sync().unwrap();
    let (image, names) = (fs.crash(CrashImage::None), fs.files());
    let found = recover(&shared(&image), Lsn::ZERO, Mode::TolerateTornTail).unwrap().numbers();
    assert_eq!(found.last(), Some(&(next - 1)));
    assert!(names.len() < 1000);
}

/// Goal: opening a log on a full disk fails and changes nothing in it; with space it succeeds.
#[test]
fn opening_on_a_full_disk() {
    let fs = FaultFs::new(FaultOptions::seeded(seed(35)));
    let (log, mut appender, _) = open(&shared(&fs), &small(), 1).unwrap();
    append(&mut appender, 0..50).unwrap();
    log.sync().unwrap();
    drop((log, appender));
    let before = fs.files();
    for _ in 0..3 {
        fs.set_quota(Some(fs.used_bytes()));
        assert!(open(&shared(&fs), &small(), 2).unwrap_err().is_full());
        assert_eq!(fs.files(), before);
    }
    fs.set_quota(None);
    assert_eq!(open(&shared(&fs), &small(), 3).unwrap().2.len(), 50);
}

/// Goal: a device that fails reads causes a file system error, never a shorter log; and the
/// recovery stays failed. Method: fail every operation of a recovery in turn.
#[test]
fn failed_reads_are_errors_not_shorter_logs() {
    let mut struck = 0;
    for mode in [Mode::TolerateTornTail, Mode::Strict, Mode::Salvage] {
        struck += fault_sweep(&FaultOptions::seeded(seed(36)), Fault::Io, true, |fs, index| {
            let source = memory();
            let (_log, mut appender, _) = open(&source, &small(), 1).unwrap();
            append(&mut appender, 0..100).unwrap();
            appender.close().unwrap();
            for (path, bytes) in files(&*source) {
                fs.install(&path, &bytes).unwrap();
            }
            let mut recovery = match Recovery::open(&shared(fs), Path::new(DIR), Lsn::ZERO, &options(mode)) {
                Ok(recovery) => recovery,
                Err(error) => return assert_eq!(error.kind(), ErrorKind::Io, "{index}"),
            };
            let mut found = 0;
            let error = loop {
                match recovery.next() {
                    Ok(Some(_)) => found += 1,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            match error {
                None => assert_eq!(found, 100, "{mode:?} {index}"),
                Some(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{index}");
                    fs.clear_rules();
                    assert_eq!(recovery.next().unwrap_err().to_string(), error.to_string());
                }
            }
        });
    }
    assert!(struck > 60, "{struck}");
}

fn options(mode: Mode) -> RecoveryOptions {
    RecoveryOptions::default().mode(mode).read_bytes(4096)
}
