//! Actions on a file in the middle of another call.

use std::sync::{Arc, Mutex};

use cairn_pool::{BackgroundWriter, Builder, Copies, FileOptions, Lsn, Owner, Pool, PoolFile};
use cairn_vfs::fault::{Fault, Rule, SyncFailure};
use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, Fs, OpenOptions, Operation};

use super::hook;

fn builder() -> Builder {
    Pool::builder().frames(4).background_writer(BackgroundWriter::Off)
}

fn put(file: &PoolFile, page: u32, value: u8) {
    file.create(page).unwrap().payload_mut(Lsn::NONE)[0] = value;
}

/// Returns the first byte of a page on disk after the 16-byte page header.
fn on_disk(fs: &FaultFs, path: &str, page: usize) -> Option<u8> {
    fs.bytes_of(path.as_ref()).unwrap().get(page * 4096 + 16).copied()
}

/// Goal: a thread that still holds a closed file never takes pages of a later file for its own:
/// they are neither written to the closed file nor counted as written. Method: while a flush of all
/// files writes the first one, the second is closed and a third is opened and changed.
#[test]
fn flush_during_close_and_open_leaves_other_files_alone() {
    let fs = FaultFs::new(FaultOptions::seeded(1));
    let pool = builder().build().unwrap();
    let (first, hook) = hook::open(&fs, "/first");
    let first = pool.open(first, FileOptions::new()).unwrap();
    let open = |fs: &FaultFs, pool: &Pool, path: &str| {
        let file = fs.open(path.as_ref(), OpenOptions::create()).unwrap();
        pool.open(file, FileOptions::new()).unwrap()
    };
    let second = open(&fs, &pool, "/second");
    put(&first, 0, 1);
    put(&second, 0, 2);
    let third = Arc::new(Mutex::new(None));
    hook.set(Operation::Write, {
        let (fs, pool, third) = (fs.clone(), pool.clone(), Arc::clone(&third));
        move || {
            second.close().unwrap();
            let file = open(&fs, &pool, "/third");
            put(&file, 0, 3);
            *third.lock().unwrap() = Some(file);
        }
    });
    pool.flush().unwrap();
    assert!(hook.has_happened());
    let third = third.lock().unwrap().take().unwrap();
    third.close().unwrap();
    assert_eq!(on_disk(&fs, "/first", 0), Some(1));
    assert_eq!(on_disk(&fs, "/second", 0), Some(2), "pages of another file were written over it");
    assert_eq!(on_disk(&fs, "/third", 0), Some(3), "a page was counted written that is not");
    first.close().unwrap();
    // Numbers are reused once no reference to the file is left: at most as many numbers as files
    // were open at once.
    let numbers: Vec<u32> = (0..8).map(|_| open(&fs, &pool, "/second").number()).collect();
    assert!(numbers.iter().all(|&number| number < 3), "{numbers:?}");
}

/// Goal: a read concurrent with a failing sync never returns data that the sync lost. Method: a
/// sync fails and loses written data between the check of the file's state and the read of a page;
/// once for a request and once for read-ahead.
#[test]
fn read_during_a_failing_sync_is_never_stale() {
    for is_ahead in [false, true] {
        let options = FaultOptions { sync_failure: SyncFailure::Lost, ..FaultOptions::seeded(1) };
        let fs = FaultFs::new(options);
        let pool = builder().build().unwrap();
        let (pages, hook) = hook::open(&fs, "/pages");
        let file = Arc::new(pool.open(pages, FileOptions::new()).unwrap());
        (0..6).for_each(|page| put(&file, page, 1));
        file.flush().unwrap();
        file.sync().unwrap();
        put(&file, 0, 2);
        file.flush().unwrap();
        // Evicts the page.
        (1..6).cycle().take(60).for_each(|page| drop(file.read(page).unwrap()));
        assert!(!file.is_resident(0));
        fs.inject(Rule::nth(Operation::SyncData, fs.operation_count_of(Operation::SyncData), Fault::Io));
        let own = Arc::clone(&file);
        hook.set(Operation::Read, move || assert!(own.sync().is_err()));
        if is_ahead {
            assert_eq!(file.prefetch(0..1), 0);
        }
        let error = file.read(0).map(|page| page[0]).unwrap_err();
        assert!(hook.has_happened());
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    }
}

/// Goal: no thread waits for a file whose double write is being read, restored and synced while it
/// is opened. Method: in the middle of that, flush all files, open another file, and close one.
#[test]
fn opening_a_file_blocks_no_other_file() {
    let fs = FaultFs::new(FaultOptions::seeded(1));
    let pool = builder().build().unwrap();
    let pages = || fs.open("/pages".as_ref(), OpenOptions::create()).unwrap();
    let first = pool.open(pages(), FileOptions::new().double_write(hook::open(&fs, "/double").0)).unwrap();
    put(&first, 0, 1);
    first.close().unwrap();
    let (double, hook) = hook::open(&fs, "/double");
    hook.set(Operation::Read, {
        let (fs, pool) = (fs.clone(), pool.clone());
        move || {
            let other = fs.open("/other".as_ref(), OpenOptions::create()).unwrap();
            let other = pool.open(other, FileOptions::new()).unwrap();
            put(&other, 0, 2);
            pool.flush().unwrap();
            other.close().unwrap();
        }
    });
    let first = pool.open(pages(), FileOptions::new().double_write(double)).unwrap();
    assert!(hook.has_happened());
    assert_eq!((first.read(0).unwrap()[0], on_disk(&fs, "/other", 0)), (1, Some(2)));
}

/// Goal: copies of an earlier batch, put there from outside, do not replace later writes; copies of
/// another file are refused before anything is written.
/// Method: a double write from before a change; and one of another owner's file.
#[test]
fn stale_or_foreign_copies_replace_nothing() {
    let fs = FaultFs::new(FaultOptions::seeded(1));
    let pool = builder().build().unwrap();
    let open = |path: &str, owner: u64| {
        let double = fs.open("/double".as_ref(), OpenOptions::create()).unwrap();
        let owner = Owner { file: owner, session: 5, before: 4 };
        let pages = fs.open(path.as_ref(), OpenOptions::create()).unwrap();
        pool.open(pages, FileOptions::new().double_write(double).owner(owner))
    };
    let file = open("/pages", 7).unwrap();
    file.create(3).unwrap().payload_mut(Lsn(10))[0] = 1;
    file.close().unwrap();
    let old = fs.bytes_of("/double".as_ref()).unwrap();
    let copies =
        Copies::read(&*fs.open("/double".as_ref(), OpenOptions::read()).unwrap(), 4096).unwrap().unwrap();
    assert_eq!(copies.owner, Owner { file: 7, session: 5, before: 4 });
    let file = open("/pages", 7).unwrap();
    file.write(3).unwrap().payload_mut(Lsn(20))[0] = 2;
    file.close().unwrap();
    let put = |bytes: &[u8]| {
        let double = fs.open("/double".as_ref(), OpenOptions::write()).unwrap();
        double.write_all_at(bytes, 0).unwrap();
    };
    put(&old);
    assert_eq!(open("/pages", 7).unwrap().read(3).unwrap()[0], 2, "an older copy was written over the page");
    let before = fs.bytes_of("/pages".as_ref()).unwrap();
    put(&old);
    let refused = open("/pages", 8).unwrap_err();
    assert!(refused.to_string().contains("/double is not the double write of /pages"), "{refused}");
    assert_eq!(fs.bytes_of("/pages".as_ref()).unwrap(), before);
}
