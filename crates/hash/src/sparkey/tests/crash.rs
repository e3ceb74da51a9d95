//! Power loss at every operation, and failures of every operation.
//!
//! The disk may lose, tear and reorder all writes that were not synced. When the header of a log is
//! rewritten in place, one assumption is made, because the format allows no other way: a sector of
//! 512 bytes is written atomically, and the header lies in the first one. Building an index and
//! rewriting a store do not rewrite headers, and are tested without this assumption.

use cairn_vfs::fault::{AtomicWrite, Fault, crash_sweep, fault_sweep};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions};

use super::*;
use crate::Error;

fn options(seed: u64) -> FaultOptions {
    FaultOptions { atomic_write: AtomicWrite::Sector512, ..FaultOptions::seeded(seed) }
}

/// Returns the batches of operations that are written between flushes.
fn batches() -> Vec<Vec<Op>> {
    let mut batches: Vec<Vec<Op>> = (0..4)
        .map(|batch| {
            let mut ops: Vec<Op> =
                (0..5).map(|n| put(&format!("key {n}"), &format!("value {n} of {batch}"))).collect();
            ops.push(put(&format!("only in {batch}"), &"long ".repeat(150)));
            ops.push(delete(&format!("only in {}", batch - 1)));
            ops
        })
        .collect();
    batches.push(vec![delete("key 3")]);
    batches
}

/// Returns the live entries after the first `flushes` batches.
fn live_after(flushes: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
    live(&batches()[..flushes].concat())
}

/// The acknowledged progress of a run: the numbers of flushes and of indexed flushes.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    created: bool,
    flushes: usize,
    /// The number of flushes that the last index covers.
    indexed: Option<usize>,
}

/// Creates a log, flushes batches, builds an index after the second and the last, and reopens the
/// log after that. `seen` receives the progress after each completed step.
fn run(fs: &Arc<dyn Fs>, compression: Compression, mut seen: impl FnMut(Progress)) -> crate::Result<()> {
    let log = LogOptions::default().compression(compression).block_bytes(200).identifier(7).sync(true);
    let index = IndexOptions::default().seed(1);
    let mut progress = Progress::default();
    let mut writer = LogWriter::create_in(fs, LOG, &log)?;
    progress.created = true;
    seen(progress);
    for batch in batches() {
        for op in &batch {
            match op {
                Op::Put(key, value) => writer.put(key, value)?,
                Op::Delete(key) => _ = writer.delete(key)?,
                Op::Flush => {}
            }
        }
        writer.flush()?;
        progress.flushes += 1;
        seen(progress);
        if progress.flushes == 2 || progress.flushes == batches().len() {
            let sorting = Construction::Sorting { memory_bytes: IndexOptions::MEMORY_BYTES_MIN };
            let construction = if progress.flushes == 2 { Construction::InMemory } else { sorting };
            build_index_in(fs, LOG, &index.clone().construction(construction))?;
            progress.indexed = Some(progress.flushes);
            seen(progress);
            drop(writer);
            writer = LogWriter::append_in(fs, LOG, &log)?;
        }
    }
    writer.close()
}

/// Checks a disk after `progress` was acknowledged, without repairing anything, and continues to
/// work with it.
fn check(fs: Arc<dyn Fs>, progress: Progress, context: &str) {
    let store = Store { fs, live: BTreeMap::new() };
    let log = match LogReader::open_in(&store.fs, LOG, Mode::Pread) {
        Ok(log) => log,
        Err(error) if !progress.created => {
            assert!(
                matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption),
                "{context}: {error}"
            );
            let options = LogOptions::default().identifier(7);
            LogWriter::create_in(&store.fs, LOG, &options).unwrap().close().unwrap();
            return;
        }
        Err(error) => panic!("{context}: {error}"),
    };
    let flushes = flushes_in(&log).unwrap_or_else(|detail| panic!("{context}: {detail}"));
    assert!(
        (progress.flushes..=progress.flushes + 1).contains(&flushes),
        "{context}: {flushes} after {progress:?}"
    );
    match store.open(&ReaderOptions::default()) {
        Ok(reader) => {
            reader.verify().unwrap_or_else(|error| panic!("{context}: {error}"));
            let found = scanned(&reader);
            let indexed = (1..=flushes).rev().find(|&flushes| live_after(flushes) == found);
            assert!(
                indexed.is_some() && indexed >= progress.indexed,
                "{context}: {indexed:?} after {progress:?}"
            );
        }
        Err(error) => {
            assert!(progress.indexed.is_none() && error.kind() == ErrorKind::NotFound, "{context}: {error}");
        }
    }
    let mut writer = LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
    writer.put(b"after", b"the crash").unwrap();
    writer.close().unwrap();
    build_index_in(&store.fs, LOG, &IndexOptions::default().seed(1)).unwrap();
    let mut expected = live_after(flushes);
    expected.insert(b"after".to_vec(), b"the crash".to_vec());
    let reader = store.reader();
    reader.verify().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(scanned(&reader), expected, "{context}");
    // A crash between the two halves of a rename leaves the temporary name of the index, which the
    // build removes.
    let known = [LOG, INDEX].map(|name| Some(name.as_ref()));
    let names = store.fs.read_dir(Path::new(".")).unwrap();
    assert!(names.iter().all(|name| known.contains(&name.file_name())), "{context}: {names:?}");
}

/// Returns the records that each batch leaves in the log: all except deletes of keys longer than
/// any put so far.
fn kept_batches() -> Vec<Vec<Op>> {
    let mut longest = 0;
    let mut keep = |op: &Op| match op {
        Op::Put(key, _) => {
            longest = longest.max(key.len());
            true
        }
        Op::Delete(key) => key.len() <= longest,
        Op::Flush => false,
    };
    batches().into_iter().map(|batch| batch.into_iter().filter(&mut keep).collect()).collect()
}

/// Returns how many batches the log holds. Fails unless it is a whole number and matches the counts
/// in the header.
fn flushes_in(log: &LogReader) -> Result<usize, String> {
    let mut records = Vec::new();
    let mut scan = log.scan();
    while let Some(mut entry) = scan.next_entry().map_err(|error| error.to_string())? {
        let value = entry.value().map_err(|error| error.to_string())?.into_owned();
        records.push(match entry.kind() {
            RecordKind::Put => Op::Put(entry.key().to_vec(), value),
            RecordKind::Delete => Op::Delete(entry.key().to_vec()),
        });
    }
    let header = log.header();
    if header.puts + header.deletes != records.len() as u64 {
        return Err(format!(
            "{} records, {} and {} by the header",
            records.len(),
            header.puts,
            header.deletes
        ));
    }
    let kept = kept_batches();
    let flushes = (0..=kept.len()).find(|&flushes| kept[..flushes].concat() == records);
    flushes
        .ok_or_else(|| format!("{} records that are no whole number of batches: {records:?}", records.len()))
}

/// Goal: after power loss at any operation, the log holds every acknowledged flush completely and
/// no part of any other, and an acknowledged index exists and is correct. Method: the images of a
/// crash at every operation of creating, appending, indexing in both ways and reopening.
#[test]
fn power_loss_at_every_operation() {
    let mut images = 0;
    for (seed, compression) in
        [Compression::None, Compression::Snappy, Compression::ZSTD].into_iter().enumerate()
    {
        let history = std::cell::RefCell::new(vec![(0, Progress::default())]);
        images += crash_sweep(
            options(seed as u64),
            6,
            |fs| {
                let shared: Arc<dyn Fs> = Arc::new(fs.clone());
                let seen = |progress| history.borrow_mut().push((fs.operation_count(), progress));
                run(&shared, compression, seen).unwrap();
            },
            |point, image, after| {
                let acknowledged = |&&(operations, _): &&(u64, Progress)| operations <= point.operation();
                let progress = history.borrow().iter().rfind(acknowledged).unwrap().1;
                check(
                    Arc::new(after),
                    progress,
                    &format!("{compression:?}, {image} at {}", point.operation()),
                );
            },
        );
    }
    assert!(images > 500, "{images}");
}

/// Goal: an error of any operation reaches the caller, poisons a writer, and loses nothing that was
/// acknowledged; after the error clears, work continues. Method: fail every operation in turn, once
/// and permanently, in each way; then check the disk as it is, and as it would be after power loss.
#[test]
fn every_operation_fails() {
    let faults = [Fault::Io, Fault::Full, Fault::Short, Fault::Interrupted];
    for (compression, fault) in [Compression::None, Compression::Snappy]
        .into_iter()
        .flat_map(|compression| faults.map(|fault| (compression, fault)))
    {
        for persistent in [false, true] {
            let struck = fault_sweep(&options(1), fault, persistent, |fs, index| {
                let context = format!("{compression:?}, {fault:?} at {index}, persistent: {persistent}");
                let shared: Arc<dyn Fs> = Arc::new(fs.clone());
                let mut progress = Progress::default();
                let result = run(&shared, compression, |now| progress = now);
                match (&result, fault) {
                    (Ok(()), _) => {}
                    (Err(Error::Vfs(_)), Fault::Io | Fault::Full) => {}
                    (Err(error), _) => panic!("{context}: {error}"),
                }
                fs.clear_rules();
                // After a failed sync of a directory, the new name may exist or not.
                let after = fs.crash_point().image(CrashImage::None);
                check(Arc::new(after), progress, &context);
                check(shared, progress, &context);
            });
            assert!(struck > 20, "{struck}");
        }
    }
}

/// Goal: a writer accepts no further records after a failed write or sync. Method: fail the sync of
/// the data, then that of the header, then a write.
#[test]
fn failed_writers_are_poisoned() {
    use cairn_vfs::Operation;
    use cairn_vfs::fault::Rule;
    for (operation, after) in [(Operation::SyncData, 0), (Operation::SyncData, 1), (Operation::Write, 0)] {
        let fault = FaultFs::new(options(1));
        let fs: Arc<dyn Fs> = Arc::new(fault.clone());
        let mut writer =
            LogWriter::create_in(&fs, LOG, &LogOptions::default().identifier(7).sync(true)).unwrap();
        writer.put(b"a", b"1").unwrap();
        fault.inject(Rule::nth(operation, fault.operation_count_of(operation) + after, Fault::Io));
        assert!(matches!(writer.flush(), Err(Error::Vfs(_))));
        let before = fault.operation_count();
        assert!(matches!(writer.put(b"b", b"2"), Err(Error::Poisoned { .. })));
        assert!(matches!(writer.flush(), Err(Error::Poisoned { .. })));
        assert!(matches!(writer.close(), Err(Error::Poisoned { .. })));
        assert_eq!(fault.operation_count(), before, "a poisoned writer leaves the file alone");
    }
}

/// Goal: a full disk loses nothing that was acknowledged, and work continues when there is room
/// again. Method: fill the disk with records, and with an index, repeatedly, with a little more
/// room each time.
#[test]
fn writes_on_a_full_disk_fail() {
    let fault = FaultFs::new(options(1));
    let fs: Arc<dyn Fs> = Arc::new(fault.clone());
    let log = LogOptions::default().identifier(7).sync(true);
    LogWriter::create_in(&fs, LOG, &log).unwrap().close().unwrap();
    let (mut quota, mut expected, mut builds_failed) = (8 << 10, BTreeMap::new(), 0);
    for round in 0..40 {
        fault.set_quota(Some(quota));
        let mut writer = LogWriter::append_in(&fs, LOG, &log).unwrap();
        for n in 0.. {
            let (key, value) = (format!("{round} {n}").into_bytes(), vec![b'v'; 700]);
            let flushed = writer.put(&key, &value).and_then(|()| writer.flush());
            match flushed {
                Ok(()) => _ = expected.insert(key, value),
                Err(Error::Vfs(error)) => {
                    assert!(error.is_full(), "{error}");
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        drop(writer);
        builds_failed += usize::from(build_index_in(&fs, LOG, &IndexOptions::default().seed(1)).is_err());
        quota += 4096;
        fault.set_quota(None);
        build_index_in(&fs, LOG, &IndexOptions::default().seed(1)).unwrap();
        let reader = SparkeyReader::open_in(&fs, LOG, &ReaderOptions::default()).unwrap();
        assert_eq!(scanned(&reader), expected);
        fs.remove(Path::new(INDEX)).unwrap();
    }
    assert!(builds_failed > 20, "{builds_failed}");
    assert!(expected.len() > 100);
}

/// Goal: a rewrite of a store onto itself is atomic, or leaves a pair that is reported as
/// mismatched and that indexing repairs. Method: crash images at every operation, without the
/// sector assumption; the old store existed before.
#[test]
fn power_loss_during_a_rewrite() {
    let ops: Vec<Op> = batches().concat();
    let old = Store::build(&ops, &LogOptions::default().identifier(7), &IndexOptions::default().seed(1));
    for compression in [Compression::None, Compression::Snappy] {
        let done = std::cell::Cell::new(u64::MAX);
        crash_sweep(
            FaultOptions::seeded(5),
            12,
            |fs| {
                install(fs, &old, &[LOG, INDEX]);
                let fs_dyn: Arc<dyn Fs> = Arc::new(fs.clone());
                let reader = SparkeyReader::open_in(&fs_dyn, LOG, &ReaderOptions::default()).unwrap();
                let to = LogOptions::default().compression(compression).identifier(8);
                reader.rewrite_in(&fs_dyn, LOG, &to, &IndexOptions::default().seed(2)).unwrap();
                done.set(fs.operation_count());
            },
            |point, image, after| {
                let context = format!("{compression:?}, {image} at {}", point.operation());
                let store = Store { fs: Arc::new(after), live: BTreeMap::new() };
                // The first crash points of the sweep precede the installation of the store.
                if !store.fs.exists(Path::new(INDEX)).unwrap() {
                    assert_eq!(point.operation(), 0, "{context}");
                    return;
                }
                match store.open(&ReaderOptions::default()) {
                    Err(Error::Mismatch { .. }) if point.operation() < done.get() => {
                        build_index_in(&store.fs, LOG, &IndexOptions::default().seed(3)).unwrap();
                    }
                    Err(error) => panic!("{context}: {error}"),
                    Ok(_) => {}
                }
                let reader = store.reader();
                reader.verify().unwrap();
                assert_eq!(scanned(&reader), live(&ops), "{context}");
                assert!(point.operation() < done.get() || reader.info().log.identifier == 8, "{context}");
            },
        );
    }
}

/// Goal: if the first rename of a pair fails, the old pair stays in place; if only the second
/// fails, the new log is in place, and the error tells how to repair the pair. Method: fail each of
/// the two renames of a rewrite.
#[test]
fn failed_publication_of_a_pair() {
    use cairn_vfs::Operation;
    use cairn_vfs::fault::Rule;
    let ops: Vec<Op> = batches().concat();
    let old = Store::build(&ops, &LogOptions::default().identifier(7), &IndexOptions::default().seed(1));
    for nth in 0..2 {
        let fault = FaultFs::new(options(1));
        install(&fault, &old, &[LOG, INDEX]);
        let store = Store { fs: Arc::new(fault.clone()), live: BTreeMap::new() };
        fault.inject(Rule::nth(
            Operation::Rename,
            fault.operation_count_of(Operation::Rename) + nth,
            Fault::Io,
        ));
        let rewritten = store.reader().rewrite_in(
            &store.fs,
            LOG,
            &LogOptions::default().identifier(8),
            &IndexOptions::default().seed(2),
        );
        let error = rewritten.unwrap_err();
        if nth == 0 {
            assert!(matches!(error, Error::Vfs(_)), "{error}");
        } else {
            assert!(matches!(&error, Error::Unfinished { left, .. } if left.contains(LOG)), "{error}");
            let mixed = store.open(&ReaderOptions::default()).map(|_| ()).unwrap_err();
            assert!(matches!(mixed, Error::Mismatch { .. }), "{mixed}");
            build_index_in(&store.fs, LOG, &IndexOptions::default().seed(3)).unwrap();
        }
        let reader = store.reader();
        reader.verify().unwrap();
        assert_eq!((reader.info().log.identifier, scanned(&reader)), (7 + nth as u32, live(&ops)));
    }
}

/// Installs files of `store` on a disk as if they had always been there.
fn install(fs: &FaultFs, store: &Store, names: &[&str]) {
    for name in names {
        fs.install(Path::new(name), &store.read(name)).unwrap();
    }
}

/// Goal: a crash during an index build leaves the old index or the new one, and no other file that
/// a later build does not remove.
/// Method: crash images at every operation without the sector assumption, in memory and by sorting
/// with runs on disk; then build again.
#[test]
fn power_loss_during_an_index_build() {
    // More entries than fit the minimum memory for sorting, so that runs are written.
    let ops: Vec<Op> = (0..3000).map(|n| put(&n.to_string(), "")).collect();
    let old = Store::build(&ops, &LogOptions::default().identifier(7), &IndexOptions::default().seed(1));
    let sorting = Construction::Sorting { memory_bytes: IndexOptions::MEMORY_BYTES_MIN };
    for construction in [Construction::InMemory, sorting] {
        let index = IndexOptions::default().construction(construction);
        let done = std::cell::Cell::new(u64::MAX);
        crash_sweep(
            FaultOptions::seeded(9),
            4,
            |fs| {
                install(fs, &old, &[LOG, INDEX]);
                let fs_dyn: Arc<dyn Fs> = Arc::new(fs.clone());
                build_index_in(&fs_dyn, LOG, &index.clone().seed(2)).unwrap();
                done.set(fs.operation_count());
            },
            |point, image, after| {
                let context = format!("{construction:?}, {image} at {}", point.operation());
                let store = Store { fs: Arc::new(after), live: BTreeMap::new() };
                if !store.fs.exists(Path::new(INDEX)).unwrap() {
                    assert_eq!(point.operation(), 0, "{context}");
                    return;
                }
                let reader = store.open(&ReaderOptions::default());
                let reader = reader.unwrap_or_else(|error| panic!("{context}: {error}"));
                assert!(point.operation() < done.get() || reader.info().index.seed == 2, "{context}");
                reader.verify().unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(reader.len(), 3000, "{context}");
                build_index_in(&store.fs, LOG, &IndexOptions::default().seed(3)).unwrap();
                let names = store.fs.read_dir(Path::new(".")).unwrap();
                let known = [LOG, INDEX].map(|name| Some(name.as_ref()));
                assert!(names.iter().all(|name| known.contains(&name.file_name())), "{context}: {names:?}");
            },
        );
    }
}

/// Goal: a published index never refers to lost records, even if the writer of the log never
/// synced. Method: crash images at every operation of writing a log without syncs and indexing it.
#[test]
fn power_loss_around_the_index_of_an_unsynced_log() {
    for compression in [Compression::None, Compression::ZSTD] {
        let acknowledged = std::cell::Cell::new(u64::MAX);
        crash_sweep(
            options(11),
            60,
            |fs| {
                let shared: Arc<dyn Fs> = Arc::new(fs.clone());
                let log = LogOptions::default().compression(compression).block_bytes(200).identifier(7);
                let mut writer = LogWriter::create_in(&shared, LOG, &log).unwrap();
                for batch in batches() {
                    apply(&mut writer, &batch);
                    writer.flush().unwrap();
                }
                writer.close().unwrap();
                build_index_in(&shared, LOG, &IndexOptions::default().seed(1)).unwrap();
                acknowledged.set(fs.operation_count());
            },
            |point, image, after| {
                let context = format!("{compression:?}, {image} at {}", point.operation());
                let store = Store { fs: Arc::new(after), live: BTreeMap::new() };
                if !store.fs.exists(Path::new(INDEX)).unwrap() {
                    assert!(point.operation() < acknowledged.get(), "{context}");
                    return;
                }
                let reader = store.open(&ReaderOptions::default());
                let reader = reader.unwrap_or_else(|error| panic!("{context}: {error}"));
                reader.verify().unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(scanned(&reader), live(&batches().concat()), "{context}");
            },
        );
    }
}

/// Goal: a synced flush is safe, however the log was created. Method: create without syncs, append
/// with syncs, lose power.
#[test]
fn synced_appends_to_an_unsynced_log() {
    let fault = FaultFs::new(options(1));
    let fs: Arc<dyn Fs> = Arc::new(fault.clone());
    LogWriter::create_in(&fs, LOG, &LogOptions::default().identifier(7)).unwrap().close().unwrap();
    let mut writer = LogWriter::append_in(&fs, LOG, &LogOptions::default().sync(true)).unwrap();
    writer.put(b"a", b"1").unwrap();
    writer.flush().unwrap();
    let after: Arc<dyn Fs> = Arc::new(fault.crash_point().image(CrashImage::None));
    let log = LogReader::open_in(&after, LOG, Mode::Pread).unwrap();
    assert_eq!(log.header().puts, 1);
}

/// Goal: of two builds of one index, the one that publishes last has read the log last. Method: in
/// the sequence of operations of a build, the lock on the index comes before the open of the log.
#[test]
fn the_index_is_locked_before_the_log_is_read() {
    use cairn_vfs::fault::LoggedOperation;
    let fault = FaultFs::new(FaultOptions { record: true, ..options(1) });
    let fs: Arc<dyn Fs> = Arc::new(fault.clone());
    LogWriter::create_in(&fs, LOG, &LogOptions::default().identifier(7)).unwrap().close().unwrap();
    let before = fault.log().len();
    build_index_in(&fs, LOG, &IndexOptions::default().seed(1)).unwrap();
    let log = fault.log();
    let at = |wanted: &dyn Fn(&LoggedOperation) -> bool| log[before..].iter().position(wanted).unwrap();
    let locked = at(&|operation| matches!(operation, LoggedOperation::TryLock { .. }));
    let opened =
        at(&|operation| matches!(operation, LoggedOperation::Open { path, .. } if path.ends_with(LOG)));
    assert!(locked < opened, "{locked} {opened}");
}
