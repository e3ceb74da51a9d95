//! A full disk.

use super::*;

const PAGE: u64 = 4096;

fn disk(pages: u64) -> FaultFs {
    FaultFs::new(FaultOptions { quota_bytes: Some(pages * PAGE), ..Default::default() })
}

/// Goal: a write takes the bytes that fit, then fails with `ENOSPC`; it works again once the quota
/// is lifted. Control: a disk without a quota takes everything.
#[test]
fn full_and_lifted() {
    let data = vec![7; 5 * PAGE as usize];
    let fs = disk(3);
    let file = create(&fs, "f");
    assert_eq!(file.write_at(&data, 100).unwrap() as u64, 3 * PAGE - 100, "up to the end of the last page");
    let error = file.write_at(&data, 3 * PAGE).unwrap_err();
    assert!(error.is_full() && error.offset == Some(3 * PAGE), "{error}");
    assert_eq!(file.write_at(&data[..4096], 0).unwrap(), 4096, "bytes that have their page can be rewritten");
    assert_eq!((file.len().unwrap(), fs.used_bytes()), (3 * PAGE, 3 * PAGE));
    assert!(file.write_all_at(&data, 0).unwrap_err().is_full());
    fs.set_quota(Some(5 * PAGE));
    file.write_all_at(&data, 0).unwrap();
    assert!(file.write_at(&[1], 5 * PAGE).unwrap_err().is_full());
    fs.set_quota(None);
    file.write_all_at(&data, 5 * PAGE).unwrap();
    let endless = quiet();
    create(&endless, "f").write_all_at(&data, 0).unwrap();
}

/// Goal: truncation, removal and replacement free space, except while a removed file is open. Holes
/// are free.
#[test]
fn space_comes_back() {
    let fs = disk(2);
    let a = write(&fs, "a", &[1; 8192]);
    assert!(create(&fs, "b").write_at(b"x", 0).unwrap_err().is_full());
    a.set_len(4096).unwrap();
    drop(write(&fs, "b", b"x"));
    fs.rename(Path::new("b"), Path::new("a")).unwrap();
    assert!(create(&fs, "c").write_at(b"x", 0).unwrap_err().is_full(), "the old a is open still");
    drop(a);
    drop(write(&fs, "c", b"x"));
    assert_eq!(fs.used_bytes(), 2 * PAGE);
    fs.remove(Path::new("c")).unwrap();
    let holes = create(&fs, "holes");
    holes.set_len(1 << 40).unwrap();
    holes.write_at(b"x", 1 << 30).unwrap();
    assert_eq!(fs.used_bytes(), 2 * PAGE);
}

/// Goal: reserved space is available when it is needed. Control: without the reservation, the same
/// write fails.
#[test]
fn reservations_hold() {
    for reserve in [true, false] {
        let fs = disk(4);
        let log = create(&fs, "log");
        if reserve {
            log.allocate(0, 3 * PAGE).unwrap();
            assert!(log.allocate(3 * PAGE, 2 * PAGE).unwrap_err().is_full());
            let exact = disk(3);
            create(&exact, "log").allocate(0, 3 * PAGE).unwrap();
            assert!(log.is_empty().unwrap());
        }
        let other = create(&fs, "other");
        let taken = other.write_at(&[1; 4 * 4096], 0).unwrap() as u64;
        assert_eq!(taken, if reserve { PAGE } else { 4 * PAGE });
        let write = log.write_all_at(&[2; 3 * 4096], 0);
        assert_eq!(write.is_ok(), reserve);
    }
}

/// Goal: the quota survives a crash.
#[test]
fn quota_survives_crashes() {
    let fs = disk(1);
    fs.set_quota(Some(2 * PAGE));
    let after = fs.crash(CrashImage::All);
    let file = write(&after, "f", &[1; 8192]);
    assert!(file.write_at(&[1], 8192).unwrap_err().is_full());
}
