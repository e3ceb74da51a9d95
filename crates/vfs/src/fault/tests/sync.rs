//! Syncs that fail once and then succeed.

use std::collections::BTreeSet;

use super::*;

fn disk(sync_failure: SyncFailure) -> FaultFs {
    FaultFs::new(FaultOptions { sync_failure, ..Default::default() })
}

/// Returns the content of `f` that programs see and the content that is certainly on disk.
fn seen_and_safe(fs: &FaultFs) -> (String, String) {
    let text = |fs: &FaultFs| read(fs, "f").map_or("-".into(), |b| String::from_utf8_lossy(&b).into_owned());
    (text(fs), text(&fs.crash_point().image(CrashImage::None)))
}

fn pair(seen: &str, safe: &str) -> (String, String) {
    (seen.to_owned(), safe.to_owned())
}

/// Goal: after a failed `sync_data`, the next one succeeds although none of the earlier changes was
/// written; the content that reads return meanwhile depends on the mode. Control: the mode that
/// keeps changes pending, and no fault at all.
#[test]
fn data_syncs() {
    for fault in [Fault::Io, Fault::Full] {
        for (mode, after_failure, after_next) in [
            (SyncFailure::CacheOnly, pair("NEW", "old"), pair("NEW", "old")),
            (SyncFailure::Lost, pair("old", "old"), pair("old", "old")),
            (SyncFailure::Kept, pair("NEW", "old"), pair("NEW", "NEW")),
        ] {
            let fs = disk(mode);
            let file = install(&fs, "f", b"old");
            file.write_all_at(b"NEW", 0).unwrap();
            fs.inject(Rule::nth(Operation::SyncData, 0, fault));
            file.sync_data().unwrap_err();
            assert_eq!(seen_and_safe(&fs), after_failure, "{mode:?}");
            file.sync_data().unwrap();
            assert_eq!(seen_and_safe(&fs), after_next, "{mode:?}");
        }
    }
    let fs = quiet();
    let file = install(&fs, "f", b"old");
    file.write_all_at(b"NEW", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(seen_and_safe(&fs), pair("NEW", "NEW"));
}

/// Goal: a failed sync may have written any part of its changes: reads return all of them, and the
/// disk keeps the part that it had at that time. Method: many seeds, with four writes and with
/// names; nothing, everything, and something in between must occur. Control: the other modes,
/// above.
#[test]
fn a_part_may_have_reached_the_disk() {
    let (mut bytes, mut names) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..200 {
        let options = FaultOptions { sync_failure: SyncFailure::Partial, ..FaultOptions::seeded(seed) };
        let fs = FaultFs::new(options.clone());
        let file = install(&fs, "f", b"oooo");
        (0..4).for_each(|at| file.write_all_at(b"N", at).unwrap());
        fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io));
        file.sync_data().unwrap_err();
        let (seen, safe) = seen_and_safe(&fs);
        assert_eq!(seen, "NNNN");
        file.sync_data().unwrap();
        assert_eq!(seen_and_safe(&fs), (seen, safe.clone()), "the next sync writes nothing");
        assert_eq!(seen_and_safe(&fs.crash_point().image(CrashImage::All)), (safe.clone(), safe.clone()));
        assert!(!fs.is_settled());
        bytes.insert(safe);

        let fs = FaultFs::new(options);
        drop(install(&fs, "a", b"1"));
        drop(write(&fs, "b", b"2"));
        fs.rename(Path::new("a"), Path::new("c")).unwrap();
        drop(write(&fs, "d", b"3"));
        fs.inject(Rule::nth(Operation::SyncDir, 0, Fault::Io));
        fs.sync_dir(Path::new("/")).unwrap_err();
        let safe = files(&fs.crash_point().image(CrashImage::None));
        fs.sync_dir(Path::new("/")).unwrap();
        assert_eq!(files(&fs), ["b", "c", "d"]);
        assert_eq!(files(&fs.crash_point().image(CrashImage::All)), safe, "the next sync writes nothing");
        names.insert(safe);
    }
    for some in ["oooo", "NNNN", "NooN"] {
        assert!(bytes.contains(some), "{some} of {bytes:?}");
    }
    let prefixes: [&[&str]; 4] = [&["a"], &["a", "b"], &["b", "c"], &["b", "c", "d"]];
    assert_eq!(names, prefixes.map(|names| names.iter().map(|&name| name.into()).collect()).into());
}

/// Goal: writes after the failure become durable with the next sync while those before it stay
/// lost: a hole in the middle of acknowledged data, in every image.
#[test]
fn later_writes_survive_earlier_ones() {
    let fs = disk(SyncFailure::CacheOnly);
    let file = install(&fs, "f", b"");
    file.write_all_at(b"1111", 0).unwrap();
    fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io));
    file.sync_data().unwrap_err();
    file.write_all_at(b"2222", 4).unwrap();
    file.sync_data().unwrap();
    assert_eq!(seen_and_safe(&fs), pair("11112222", "\0\0\0\x002222"));
    for image in [CrashImage::All, CrashImage::Random(3)] {
        assert_eq!(read(&fs.crash_point().image(image), "f").unwrap(), b"\0\0\0\x002222");
    }
    assert!(!fs.is_settled(), "a crash still changes what programs see");
}

/// Goal: bytes that are rewritten after the failure become durable again; a program that kept them
/// can recover this way.
#[test]
fn rewriting_repairs() {
    let fs = disk(SyncFailure::CacheOnly);
    let file = install(&fs, "f", b"old");
    file.write_all_at(b"NEW", 0).unwrap();
    fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io));
    file.sync_data().unwrap_err();
    file.write_all_at(b"NEW", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(seen_and_safe(&fs), pair("NEW", "NEW"));
}

/// Goal: names behave the same way. Control as above.
#[test]
fn directory_syncs() {
    for (mode, after_failure, after_next) in [
        (SyncFailure::CacheOnly, pair("x", "-"), pair("x", "-")),
        (SyncFailure::Lost, pair("-", "-"), pair("-", "-")),
        (SyncFailure::Kept, pair("x", "-"), pair("x", "x")),
    ] {
        let fs = disk(mode);
        write(&fs, "f", b"x").sync_data().unwrap();
        fs.inject(Rule::nth(Operation::SyncDir, 0, Fault::Io));
        fs.sync_dir(Path::new("/")).unwrap_err();
        assert_eq!(seen_and_safe(&fs), after_failure, "{mode:?}");
        fs.sync_dir(Path::new("/")).unwrap();
        assert_eq!(seen_and_safe(&fs), after_next, "{mode:?}");
    }
    let fs = quiet();
    write(&fs, "f", b"x").sync_data().unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(seen_and_safe(&fs), pair("x", "x"));
}

/// Goal: a failed directory sync loses every rename in a chain that began in that directory.
/// Control: a file moved outside the chain arrives.
#[test]
fn chains_of_renames_are_lost_whole() {
    for mode in [SyncFailure::CacheOnly, SyncFailure::Lost] {
        let fs = disk(mode);
        drop(install(&fs, "a/f", b"x"));
        drop(install(&fs, "a/g", b"y"));
        drop(install(&fs, "b/h", b"z"));
        fs.create_dir_all(Path::new("c")).unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        fs.rename(Path::new("a/f"), Path::new("b/f")).unwrap();
        fs.rename(Path::new("b/f"), Path::new("c/f")).unwrap();
        fs.rename(Path::new("b/h"), Path::new("c/h")).unwrap();
        fs.inject(Rule::nth(Operation::SyncDir, 1, Fault::Io));
        fs.sync_dir(Path::new("a")).unwrap_err();
        ["a", "b", "c"].iter().for_each(|dir| fs.sync_dir(Path::new(dir)).unwrap());
        assert_eq!(files(&fs.crash_point().image(CrashImage::All)), ["a/f", "a/g", "c/h"], "{mode:?}");
    }
}

/// Goal: a rename whose directory sync fails is lost as a whole, on both sides, even between
/// directories; changes of other names stay pending.
#[test]
fn renames_are_lost_whole() {
    for mode in [SyncFailure::CacheOnly, SyncFailure::Lost] {
        for failing in ["from", "to"] {
            let fs = disk(mode);
            drop(install(&fs, "from/f", b"x"));
            drop(install(&fs, "to/f", b"y"));
            fs.rename(Path::new("from/f"), Path::new("to/f")).unwrap();
            let other = if failing == "from" { "to" } else { "from" };
            drop(create(&fs, &format!("{other}/bystander")));
            fs.inject(Rule::nth(Operation::SyncDir, 0, Fault::Io));
            fs.sync_dir(Path::new(failing)).unwrap_err();
            fs.sync_dir(Path::new("from")).unwrap();
            fs.sync_dir(Path::new("to")).unwrap();
            let bystander = format!("{other}/bystander");
            let mut expected = vec!["from/f", "to/f", &bystander];
            expected.sort_unstable();
            let after = fs.crash_point().image(CrashImage::All);
            assert_eq!(files(&after), expected, "{mode:?} {failing}");
            assert_eq!(
                (read(&after, "from/f").unwrap(), read(&after, "to/f").unwrap()),
                (b"x".into(), b"y".into())
            );
            assert_eq!(fs.exists(Path::new("from/f")).unwrap(), mode == SyncFailure::Lost);
        }
    }
}

/// Goal: a disk with names that exist only in the cache is not settled. Method: a failed directory
/// sync in each mode, then the same name created again and synced; a removal whose sync fails.
#[test]
fn lost_names_are_not_settled() {
    for (mode, settled) in [(SyncFailure::CacheOnly, false), (SyncFailure::Lost, true)] {
        let fs = disk(mode);
        write(&fs, "f", b"x").sync_data().unwrap();
        fs.inject(Rule::nth(Operation::SyncDir, 0, Fault::Io));
        fs.sync_dir(Path::new("/")).unwrap_err();
        assert_eq!(fs.is_settled(), settled, "{mode:?}");
        assert_eq!(read(&fs.crash_point().image(CrashImage::All), "f"), None);
        // Under another name, the file is new to the directory.
        if fs.rename(Path::new("f"), Path::new("g")).is_ok() {
            fs.sync_dir(Path::new("/")).unwrap();
        }
        assert!(fs.is_settled(), "{mode:?}");
    }
    let fs = disk(SyncFailure::CacheOnly);
    drop(install(&fs, "f", b"x"));
    assert!(fs.is_settled());
    fs.remove(Path::new("f")).unwrap();
    fs.inject(Rule::nth(Operation::SyncDir, 0, Fault::Io));
    fs.sync_dir(Path::new("/")).unwrap_err();
    assert!(!fs.is_settled());
}

/// Goal: changes that a failed sync left only in the cache are gone when the cache is dropped,
/// pending changes stay, and the file is then like any other. Control: the modes that leave nothing
/// in the cache, and a replayed run.
#[test]
fn caches_that_are_dropped() {
    for (mode, after_failure, after_drop) in [
        (SyncFailure::CacheOnly, "NEW2", "old2"),
        (SyncFailure::Lost, "old2", "old2"),
        (SyncFailure::Kept, "NEW2", "NEW2"),
    ] {
        let options = FaultOptions { sync_failure: mode, record: true, ..Default::default() };
        let fs = FaultFs::new(options.clone());
        let file = install(&fs, "f", b"old");
        file.write_all_at(b"NEW", 0).unwrap();
        fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Io));
        file.sync_data().unwrap_err();
        file.write_all_at(b"2", 3).unwrap();
        assert_eq!(seen_and_safe(&fs), pair(after_failure, "old"), "{mode:?}");
        fs.drop_caches();
        assert_eq!(seen_and_safe(&fs), pair(after_drop, "old"), "{mode:?}");
        assert!(!fs.is_settled());
        file.sync_data().unwrap();
        assert_eq!(seen_and_safe(&fs), pair(after_drop, after_drop), "{mode:?}");
        assert!(fs.is_settled());
        assert_eq!(replay(&fs.log(), options).state_hash(), fs.state_hash(), "{mode:?}");
    }
}

/// Goal: a directory created durably survives with all parents that were missing, and costs one
/// sync if none was missing. Method: paths of each depth, absolute and relative; power lost at
/// every operation, followed by a second creation.
#[test]
fn directories_made_durably() {
    for (path, syncs) in
        [("/a/b/c", 3), ("/there/b/c", 2), ("/there/b", 1), ("/there", 1), ("a/b", 2), ("a", 1)]
    {
        let path = Path::new(path);
        let begin = || {
            let fs = quiet();
            fs.install(Path::new("/there/file"), b"").unwrap();
            fs
        };
        for index in 0.. {
            let fs = begin();
            fs.crash_at(index);
            let made = fs.create_dir_all_durably(path);
            let after = fs.crash(CrashImage::None);
            if made.is_ok() {
                assert_eq!(fs.operation_count_of(Operation::SyncDir), syncs, "{path:?}");
                assert!(after.metadata(path).unwrap().is_dir);
                break;
            }
            after.create_dir_all_durably(path).unwrap();
            assert!(after.crash(CrashImage::None).metadata(path).unwrap().is_dir, "{path:?} {index}");
        }
    }
}
