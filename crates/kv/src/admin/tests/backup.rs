use std::path::Path;
use std::time::Duration;

use cairn_vfs::fault::{Fault, FaultOptions, crash_sweep, fault_sweep};
use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, Fs, MemFs, OpenOptions, Operation};

use super::hook_fs::HookFs;
use super::*;
use crate::Backups;

const BACKUPS: &str = "/backups";

fn open_backups(fs: &Arc<dyn Fs>) -> Backups {
    Backups::open_in(fs, BACKUPS).unwrap()
}

/// Restores a backup and returns the pairs of the restored store.
fn restored(fs: &Arc<dyn Fs>, backups: &Backups, id: Option<u64>) -> Pairs {
    let path = format!("/restored{}", fs.read_dir(Path::new("/")).unwrap().len());
    backups.restore(id, &path).unwrap();
    let db = Db::builder(&path).fs(Arc::clone(fs)).default_keyspace(small()).create_if_missing(false);
    pairs(&db.open().unwrap())
}

/// Goal: stores, checkpoints and backups in missing directories survive a power loss, together with
/// all these directories.
/// Method: a store, a checkpoint and backups, each several directories deep; the power fails once
/// they count as durable.
#[test]
fn missing_parents() {
    let machine = FaultFs::new(FaultOptions::seeded(15));
    let fs: Arc<dyn Fs> = Arc::new(machine.clone());
    let after_power_loss = || -> Arc<dyn Fs> { Arc::new(machine.crash_point().image(CrashImage::None)) };
    let open_at = |fs: &Arc<dyn Fs>, path: &str| {
        let options = Options { background: Background::Inline, ..Options::default() };
        Db::builder(path)
            .fs(Arc::clone(fs))
            .seed(7)
            .options(options)
            .default_keyspace(small())
            .open()
            .unwrap()
    };
    let db = open_at(&fs, "/a/b/store");
    fill(&db, 0..10, 1);
    db.sync().unwrap();
    assert!(pairs(&open_at(&after_power_loss(), "/a/b/store")) == expected(0..10, 1));
    db.checkpoint("/c/d/copy").unwrap();
    assert!(pairs(&open_at(&after_power_loss(), "/c/d/copy")) == expected(0..10, 1));
    let made = Backups::open_in(&fs, "/e/f/backups").unwrap().create(&db).unwrap();
    assert_eq!(Backups::open_in(&after_power_loss(), "/e/f/backups").unwrap().list().unwrap(), [made]);
}

/// Goal: keyspaces without any file are backed up, and restored empty.
/// Method: a new store; then only its second keyspace has entries; then these are deleted.
#[test]
fn empty_keyspaces_are_backed_up() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    let named = db.create_keyspace("named", small()).unwrap();
    let backups = open_backups(&fs);
    backups.create(&db).unwrap();
    assert!(restored(&fs, &backups, None).is_empty());

    fill(&named, 0..10, 1);
    named.flush().unwrap();
    backups.create(&db).unwrap();
    backups.restore(None, "/filled").unwrap();
    let filled = Db::builder("/filled").fs(Arc::clone(&fs)).default_keyspace(small()).open().unwrap();
    assert!(pairs(&filled).is_empty());
    assert_eq!(pairs(&filled.keyspace("named").unwrap()), expected(0..10, 1));

    named.delete_range(key(0), key(10)).unwrap();
    named.compact_range(..).unwrap();
    backups.create(&db).unwrap();
    assert!(backups.verify().unwrap().is_empty());
    assert_eq!(backups.list().unwrap().len(), 3);
}

/// Goal: each backup restores the state of the store at its time; unchanged files are copied once;
/// purging removes old backups and the files that only they had.
/// Method: three backups of a store that grows, then purge, restore each, and look at files and
/// bytes.
#[test]
fn incremental() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    let backups = open_backups(&fs);
    fill(&db, 0..400, 1);
    db.compact_range(..).unwrap();
    let first = backups.create(&db).unwrap();
    assert_eq!((first.id, first.copied_bytes), (1, first.bytes));
    fill(&db, 400..410, 1);
    let second = backups.create(&db).unwrap();
    assert!(second.copied_bytes * 5 < second.bytes, "{second:?}");
    assert_eq!(second.last_seqno, db.stats().last_seqno);
    fill(&db, 0..400, 2);
    db.compact_range(..).unwrap();
    let third = backups.create(&db).unwrap();
    assert_eq!(backups.list().unwrap(), [first.clone(), second.clone(), third.clone()]);
    assert!(backups.verify().unwrap().is_empty());

    let mut last = expected(0..400, 2);
    last.extend(expected(400..410, 1));
    assert!(restored(&fs, &backups, Some(1)) == expected(0..400, 1));
    assert!(restored(&fs, &backups, Some(2)) == expected(0..410, 1));
    assert!(restored(&fs, &backups, None) == last);

    let before = files(&fs, BACKUPS, ".table").len();
    backups.delete(1).unwrap();
    assert_eq!(files(&fs, BACKUPS, ".table").len(), before, "the second has them all");
    backups.purge(1).unwrap();
    assert_eq!(files(&fs, BACKUPS, ".table").len(), third.files);
    assert!(restored(&fs, &backups, None) == last);
    assert_eq!(backups.list().unwrap(), [third]);
    assert_eq!(backups.delete(2).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(backups.restore(Some(2), "/x").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(backups.restore(None, STORE).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(Backups::open_in(&fs, BACKUPS).unwrap_err().kind(), ErrorKind::Busy);
    backups.purge(0).unwrap();
    assert_eq!(backups.restore(None, "/x").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(files(&fs, BACKUPS, ".table").is_empty());
}

/// Goal: a restored store that is written to can be backed up beside the original, although it
/// gives its files the same numbers.
/// Method: both are written to differently, both are backed up, both backups restore.
#[test]
fn histories_that_fork() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let backups = open_backups(&fs);
    let db = open(&fs);
    fill(&db, 0..100, 1);
    backups.create(&db).unwrap();
    backups.restore(None, "/fork").unwrap();
    let fork = Db::builder("/fork").fs(Arc::clone(&fs)).default_keyspace(small()).open().unwrap();
    for (store, round) in [(&db, 2), (&fork, 3)] {
        fill(store, 0..100, round);
        store.flush().unwrap();
        backups.create(store).unwrap();
    }
    assert!(restored(&fs, &backups, Some(2)) == expected(0..100, 2));
    assert!(restored(&fs, &backups, Some(3)) == expected(0..100, 3));
    assert!(backups.verify().unwrap().is_empty());
}

/// Goal: damage is detected, reported and not restored; a damaged record prevents the removal of
/// files that its backup may need.
/// Method: flip a byte of a table and of a record.
#[test]
fn damage() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let backups = open_backups(&fs);
    let db = open(&fs);
    for round in 1..4 {
        fill(&db, 0..100, round);
        backups.create(&db).unwrap();
    }
    let flip = |path: &Path| {
        let file = fs.open(path, OpenOptions::write()).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 60).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 60).unwrap();
    };
    let table = files(&fs, BACKUPS, ".table")[0].clone();
    flip(&table);
    let found = backups.verify().unwrap();
    assert_eq!(found.iter().map(|damage| &damage.file).collect::<Vec<_>>(), [&table]);
    assert_eq!(backups.restore(Some(1), "/x").unwrap_err().kind(), ErrorKind::Corruption);
    assert!(!fs.exists(Path::new("/x")).unwrap());
    let record = Path::new("/backups/000002.backup");
    flip(record);
    assert_eq!(backups.verify().unwrap().len(), 2);
    assert_eq!(backups.list().unwrap().len(), 2);
    let before = files(&fs, BACKUPS, ".table").len();
    assert_eq!(backups.delete(1).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(files(&fs, BACKUPS, ".table").len(), before);
    backups.delete(2).unwrap();
    assert!(files(&fs, BACKUPS, ".table").len() < before);
    assert!(restored(&fs, &backups, None) == expected(0..100, 3));
}

/// Goal: a crash during a backup, a purge or a restore leaves earlier backups complete, and
/// acknowledged backups exist.
/// Method: a crash at every operation of two backups, a purge of the first and a restore.
#[test]
fn crashes() {
    let marks = std::cell::RefCell::new(Vec::new());
    let images = crash_sweep(
        FaultOptions::seeded(10),
        2,
        |machine| {
            let fs: Arc<dyn Fs> = Arc::new(machine.clone());
            let mark = || marks.borrow_mut().push(machine.operation_count());
            let db = open(&fs);
            let backups = open_backups(&fs);
            fill(&db, 0..50, 1);
            backups.create(&db).unwrap();
            mark();
            fill(&db, 0..50, 2);
            db.flush().unwrap();
            backups.create(&db).unwrap();
            mark();
            backups.purge(1).unwrap();
            mark();
            backups.restore(None, "/restored").unwrap();
            mark();
        },
        |point, image, after| {
            let fs: Arc<dyn Fs> = Arc::new(after);
            let passed = marks.borrow().iter().filter(|&&at| at <= point.operation()).count();
            let context = format!("operation {}, {image:?}, {passed}", point.operation());
            if passed == 0 {
                return;
            }
            let is_restored = fs.exists(Path::new("/restored")).unwrap();
            assert!(is_restored || passed < 4, "{context}");
            if is_restored {
                let db =
                    Db::builder("/restored").fs(Arc::clone(&fs)).create_if_missing(false).open().unwrap();
                assert!(pairs(&db) == expected(0..50, 2), "{context}");
            }
            let backups = open_backups(&fs);
            let ids: Vec<u64> = backups.list().unwrap().iter().map(|backup| backup.id).collect();
            let allowed: &[&[u64]] = match passed {
                1 => &[&[1], &[1, 2]],
                2 => &[&[1, 2], &[2]],
                _ => &[&[2]],
            };
            // A purge may have removed files only once its last step, the removal of the record,
            // was durable.
            assert!(allowed.contains(&ids.as_slice()), "{context}: {ids:?}");
            assert!(backups.verify().unwrap().is_empty(), "{context}");
            for id in ids {
                backups.restore(Some(id), format!("/again{id}")).unwrap();
                let db = Db::builder(format!("/again{id}")).fs(Arc::clone(&fs)).open().unwrap();
                assert!(pairs(&db) == expected(0..50, id as u32), "{context}");
            }
            let db = Db::builder("/new").fs(Arc::clone(&fs)).open().unwrap();
            fill(&db, 0..10, 7);
            backups.create(&db).unwrap();
            backups.purge(1).unwrap();
            assert_eq!(files(&fs, BACKUPS, ".table").len(), 1, "{context}: nothing else is left");
        },
    );
    assert!(images > 100, "{images}");
}

/// Goal: after a failed operation, the store keeps working, earlier backups are complete and the
/// next backup works.
/// Method: every operation of a second backup fails once.
#[test]
fn failures() {
    for fault in [Fault::Io, Fault::Full] {
        let struck = fault_sweep(&FaultOptions::seeded(11), fault, false, |machine, index| {
            let fs: Arc<dyn Fs> = Arc::new(machine.clone());
            let run = || -> crate::Result<()> {
                let db = builder(&fs).open()?;
                db.put("a", "1")?;
                let backups = Backups::open_in(&fs, BACKUPS)?;
                backups.create(&db)?;
                db.put("b", "2")?;
                let second = backups.create(&db);
                // The one fault may strike here.
                let damage = backups.verify()?;
                assert!(damage.is_empty() || backups.verify()?.is_empty(), "{index}: {second:?} {damage:?}");
                assert!(!backups.list()?.is_empty());
                if second.is_err() {
                    backups.create(&db)?;
                }
                backups.restore(None, "/restored")?;
                let restored = Db::builder("/restored").fs(Arc::clone(&fs)).open()?;
                assert_eq!(restored.iter().collect::<crate::Result<Pairs>>()?.len(), 2, "{index}");
                Ok(())
            };
            let _ = run();
        });
        assert!(struck > 30, "{struck}");
    }
}

/// Goal: backups on read-only media can be listed, verified and restored; a new one fails and does
/// no harm.
/// Method: a file system that refuses all changes in their directory.
#[test]
fn medium_that_cannot_be_written_to() {
    let memory: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&memory);
    fill(&db, 0..100, 1);
    open_backups(&memory).create(&db).unwrap();
    drop(db);
    let fs = HookFs::over(&memory, |operation, path| {
        match operation != Operation::Read && path.starts_with(BACKUPS) {
            true => {
                Err(cairn_vfs::Error::new(operation, path, std::io::ErrorKind::ReadOnlyFilesystem.into()))
            }
            false => Ok(()),
        }
    });
    let backups = open_backups(&fs);
    assert_eq!(Backups::open_in(&fs, BACKUPS).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(backups.list().unwrap().len(), 1);
    assert!(backups.verify().unwrap().is_empty());
    assert!(restored(&fs, &backups, None) == expected(0..100, 1));
    assert_eq!(backups.create(&open(&fs)).unwrap_err().kind(), ErrorKind::Io);
    assert!(restored(&fs, &backups, Some(1)) == expected(0..100, 1));
}

/// Goal: threads that share a handle take turns: a backup is complete whatever other threads
/// remove, and none takes another's number.
/// Method: when a second backup is about to write its record, another thread removes the first,
/// whose files it shares, or creates a third. Without the lock, the other thread would have time to
/// finish before the record is written.
#[test]
fn threads_take_turns() {
    use std::sync::mpsc::channel;
    type Other = fn(&Backups, &Db);
    let others: [(Other, &[u64]); 2] = [
        (|backups, _| backups.delete(1).unwrap(), &[2]),
        (|backups, db| assert_eq!(backups.create(db).unwrap().id, 3), &[1, 2, 3]),
    ];
    for (other, left) in others {
        let memory: Arc<dyn Fs> = Arc::new(MemFs::new());
        let db = open(&memory);
        fill(&db, 0..100, 1);
        db.flush().unwrap();
        let ((begin, begun), (end, ended)) = (channel(), channel());
        let (ended, is_first) = (Mutex::new(ended), AtomicBool::new(true));
        let fs = HookFs::over(&memory, move |_, path| {
            if path.ends_with("000002.backup.tmp") && is_first.swap(false, Ordering::SeqCst) {
                begin.send(()).unwrap();
                let _ = lock(&ended).recv_timeout(Duration::from_millis(300));
            }
            Ok(())
        });
        let backups = open_backups(&fs);
        backups.create(&db).unwrap();
        cairn_vfs::thread::scope(|scope| {
            scope.spawn(|| backups.create(&db).unwrap());
            begun.recv_timeout(Duration::from_secs(60)).unwrap();
            other(&backups, &db);
            let _ = end.send(());
        });
        assert!(backups.verify().unwrap().is_empty());
        let ids: Vec<u64> = backups.list().unwrap().iter().map(|backup| backup.id).collect();
        assert_eq!(ids, left);
        assert!(restored(&memory, &backups, None) == expected(0..100, 1));
    }
}
