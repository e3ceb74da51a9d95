//! Failing operations and full disks.

use cairn_vfs::fault::{Fault, Rule, SyncFailure, fault_sweep};
use cairn_vfs::{CrashImage, FaultOptions, Operation};

use super::*;

/// Checks the table after a build that returned `result`, and that the next build works and removes
/// leftovers.
fn check(disk: &FaultFs, result: &Result<BuildSummary>, old: &Content, content: &Content, context: &str) {
    let may_be_new = match result {
        Ok(_) => true,
        // The new table is already in place; only its survival of a power loss is uncertain.
        Err(Error::Vfs(error)) => error.operation == Operation::SyncDir,
        Err(_) => false,
    };
    for after in [disk.crash_point().image(CrashImage::None), disk.crash_point().image(CrashImage::All)] {
        let found = scanned(&open(&shared(&after), Mode::Mmap).unwrap()).unwrap();
        let (is_old, is_new) = (found == old.model(), found == content.model());
        assert!(if result.is_ok() { is_new } else { is_old || (may_be_new && is_new) }, "{context}");
    }
    let reader = open(&shared(disk), Mode::Pread).unwrap_or_else(|error| panic!("{context}: {error}"));
    let expected = if scanned(&reader).unwrap() == old.model() { old } else { content };
    assert!(result.is_err() || expected.name == content.name, "{context}");
    assert_holds(&reader, &expected.model(), context);
    content.build(&shared(disk)).unwrap_or_else(|error| panic!("{context}: the next build: {error}"));
    assert_holds(&open(&shared(disk), Mode::Mmap).unwrap(), &content.model(), context);
    assert_eq!(names(disk), [TABLE], "{context}: leaked files");
}

/// Fails every operation of a build over an older table. Returns the number of runs in which a
/// fault struck.
fn sweep(options: &FaultOptions, content: &Content, fault: Fault, persistent: bool) -> u64 {
    let old_bytes = old().bytes();
    fault_sweep(options, fault, persistent, |fs, index| {
        run(fs, index, &old_bytes, content, (fault, persistent));
    })
}

/// Builds over an older table on a disk with an injected `fault`.
fn run(fs: &FaultFs, index: u64, old_bytes: &[u8], content: &Content, (fault, persistent): (Fault, bool)) {
    let context = format!("{}: {fault:?} at {index}, persistent: {persistent}", content.name);
    fs.install(Path::new(TABLE), old_bytes).unwrap();
    let result = content.build(&shared(fs));
    if fs.injected_count() == 0 {
        return result.map(drop).unwrap();
    }
    if let Err(error) = &result {
        let told = matches!(error, Error::Vfs(_)) && matches!(fault, Fault::Io | Fault::Full);
        assert!(told, "{context}: {error}");
        // If the disk works again, a failed build leaves no file, except one that could not be
        // removed, and one that could not be locked, because that may belong to another process.
        let stays = [Operation::Lock, Operation::Remove];
        let stays = matches!(error, Error::Vfs(error) if stays.contains(&error.operation));
        if !persistent && !stays {
            assert_eq!(names(fs), [TABLE], "{context}: {error}");
        }
    }
    fs.clear_rules();
    check(fs, &result, &old(), content, &context);
}

/// Goal: an error of any operation reaches the caller unchanged, leaves the old table intact, and
/// leaves no file behind.
/// Method: fail every operation of a build in turn, once and permanently, in each way.
#[test]
fn every_operation_fails() {
    let options = FaultOptions::seeded(seed(5));
    let mut struck = 0;
    for content in contents() {
        for fault in [Fault::Io, Fault::Full, Fault::Short, Fault::Interrupted] {
            for persistent in [false, true] {
                struck += sweep(&options, &content, fault, persistent);
            }
        }
    }
    println!("every operation fails: {struck} runs with a fault");
    assert!(struck > 100, "{struck}");
}

/// Goal: the same for a build that spills, writes in several pieces, and has workers waiting when a
/// write fails.
/// Method: all operations at its beginning and end, and in the short form every eleventh of the
/// reads and writes between.
#[test]
fn every_operation_of_a_spilling_build_fails() {
    let options = FaultOptions::seeded(seed(6));
    let (content, old_bytes) = (spilling(), old().bytes());
    let sound = FaultFs::new(options.clone());
    content.build(&shared(&sound)).unwrap();
    let (operations, step) = (sound.operation_count(), rounds(11, 1));
    let mut struck = 0;
    for fault in [(Fault::Io, false), (Fault::Full, true)] {
        for index in (0..operations).filter(|at| *at < 20 || at + 20 > operations || at % step == 0) {
            let fs = FaultFs::new(options.clone());
            fs.inject(Rule { persistent: fault.1, ..Rule::at(index, fault.0) });
            run(&fs, index, &old_bytes, &content, fault);
            struck += u64::from(fs.injected_count() > 0);
        }
    }
    println!("every operation of a spilling build fails: {struck} runs with a fault");
    assert!(struck > 50, "{struck}");
}

/// Goal: a table is never published after a failed sync, whatever the kernel does with the pages
/// afterwards.
/// Method: fail the sync of the file in each way that a kernel may, then lose power in many ways.
#[test]
fn failed_syncs_publish_nothing() {
    let seed = seed(7);
    let mut images = 0;
    for sync_failure in [SyncFailure::CacheOnly, SyncFailure::Partial, SyncFailure::Lost, SyncFailure::Kept] {
        for (index, content) in contents().into_iter().enumerate() {
            let options = FaultOptions { sync_failure, ..FaultOptions::seeded(seed + index as u64) };
            let fs = FaultFs::new(options);
            fs.install(Path::new(TABLE), &old().bytes()).unwrap();
            fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io));
            let result = content.build(&shared(&fs));
            assert!(matches!(&result, Err(Error::Vfs(error)) if error.operation == Operation::SyncData));
            let context = format!("{sync_failure:?} {}", content.name);
            for (image, after) in fs.crash_point().images(rounds(20, 2000)) {
                images += 1;
                let reader = open(&shared(&after), Mode::Mmap).unwrap();
                assert_holds(&reader, &old().model(), &format!("{context} {image}"));
            }
            check(&fs, &result, &old(), &content, &context);
            // The table that the second build published is durable.
            for (image, after) in fs.images_at_crash(rounds(20, 2000)) {
                images += 1;
                let reader = open(&shared(&after), Mode::Mmap).unwrap();
                assert_holds(&reader, &content.model(), &format!("{context}, again, {image}"));
            }
        }
    }
    println!("failed syncs publish nothing: {images} crash images");
}

/// Goal: a full disk costs nothing but the build, its space is released, and the next build with
/// enough room works.
/// Method: every quota from the used space to a sufficient one, page by page.
#[test]
fn builds_on_a_full_disk_fail() {
    let seed = seed(8);
    let (mut full, mut fitted) = (0, 0);
    for content in contents() {
        for pages in 0.. {
            let fs = FaultFs::new(FaultOptions::seeded(seed));
            fs.install(Path::new(TABLE), &old().bytes()).unwrap();
            let used = fs.used_bytes();
            fs.set_quota(Some(used + pages * 4096));
            let result = content.build(&shared(&fs));
            if result.is_ok() {
                fitted += 1;
                break;
            }
            full += 1;
            assert!(matches!(&result, Err(Error::Vfs(error)) if error.is_full()), "{result:?}");
            assert_eq!(fs.used_bytes(), used, "{} with {pages} pages", content.name);
            fs.set_quota(None);
            check(&fs, &result, &old(), &content, &format!("{} with {pages} pages", content.name));
        }
    }
    println!("full disks: {full} builds met one");
    assert!(full > 50 && fitted == contents().len(), "{full} {fitted}");
}

/// Goal: short transfers make no difference. Method: half of all reads and writes are cut short, in
/// every mode; then short and interrupted ones at every operation of opening and reading.
#[test]
fn short_reads_and_writes_are_continued() {
    let seed = seed(9);
    for content in contents() {
        let options = FaultOptions { short_reads: 0.5, short_writes: 0.5, ..FaultOptions::seeded(seed) };
        let fs = FaultFs::new(options);
        content.build(&shared(&fs)).unwrap();
        assert!(fs.bytes_of(Path::new(TABLE)).unwrap() == content.bytes(), "{}", content.name);
        for mode in MODES {
            assert_holds(&open(&shared(&fs), mode).unwrap(), &content.model(), content.name);
        }
        for fault in [Fault::Short, Fault::Interrupted] {
            fs.inject(Rule::nth(Operation::Read, fs.operation_count_of(Operation::Read), fault).persistent());
            let reader = open(&shared(&fs), Mode::Pread).unwrap();
            assert_holds(&reader, &content.model(), content.name);
            fs.clear_rules();
        }
    }
}

/// Goal: a device that fails reads causes a file system error, never a wrong or missing value, and
/// the reader works again when the device does. Method: fail every operation of opening and reading
/// in turn.
#[test]
fn failed_reads_are_errors() {
    let options = FaultOptions::seeded(seed(10));
    let mut struck = 0;
    for mut content in contents() {
        // A few keys suffice: every lookup is one read, so all are alike.
        content.records.truncate(40);
        let (bytes, model) = (content.bytes(), content.model());
        for (mode, persistent) in [(Mode::Mmap, true), (Mode::Heap, false), (Mode::Pread, false)] {
            struck += fault_sweep(&options, Fault::Io, persistent, |fs, _| {
                fs.install(Path::new(TABLE), &bytes).unwrap();
                let reader = match open(&shared(fs), mode) {
                    Ok(reader) => reader,
                    Err(error) => return assert!(matches!(error, Error::Vfs(_)), "{error}"),
                };
                for (key, value) in model.iter().take(10) {
                    match reader.get(key) {
                        Ok(found) => assert!(found.as_deref() == Some(value)),
                        Err(error) => assert!(matches!(error, Error::Vfs(_)), "{error}"),
                    }
                }
                match scanned(&reader) {
                    Ok(found) => assert!(found == model),
                    Err(error) => assert!(matches!(error, Error::Vfs(_)), "{error}"),
                }
                fs.clear_rules();
                assert_holds(&reader, &model, content.name);
            });
        }
    }
    println!("reads that fail: {struck} runs with a fault");
    assert!(struck > 30, "{struck}");
}
