//! The features of a pool, one per test, on an in-memory disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_pool::{
    BackgroundWriter, Builder, Error, FileOptions, Format, Lsn, PolicyKind, Pool, PoolFile, WriteAhead,
};
use cairn_vfs::{ErrorKind, Fs, MemFs, OpenOptions, StdFs};

fn builder(frames: usize) -> Builder {
    Pool::builder()
        .frames(frames)
        .background_writer(BackgroundWriter::Off)
        .wait_limit(Duration::from_millis(20))
}

fn file(fs: &MemFs, pool: &Pool, options: FileOptions) -> PoolFile {
    pool.open(fs.open("file".as_ref(), OpenOptions::create()).unwrap(), options).unwrap()
}

fn fill(file: &PoolFile, pages: u32) {
    for page in 0..pages {
        file.create(page).unwrap().payload_mut(Lsn::NONE)[..4].copy_from_slice(&page.to_le_bytes());
    }
}

fn number(file: &PoolFile, page: u32) -> u32 {
    let guard = file.read(page).unwrap();
    u32::from_le_bytes(guard[..4].try_into().unwrap())
}

/// Returns how many pages of a hot set stay in memory after other pages were read once, in order.
fn hot_pages_left(policy: PolicyKind, read: impl Fn(&PoolFile, std::ops::Range<u32>)) -> usize {
    const HOT: u32 = 40;
    let fs = MemFs::new();
    let pool = builder(64).policy(policy).build().unwrap();
    let all = file(&fs, &pool, FileOptions::new());
    fill(&all, 1000);
    for _ in 0..20 {
        (0..HOT).for_each(|page| assert_eq!(number(&all, page), page));
    }
    read(&all, 100..1000);
    (0..HOT).filter(|&page| all.is_resident(page)).count()
}

/// Goal: a page that is read ahead and requested once counts as requested once: a scan evicts no
/// more than single reads of the same pages do. Method: both beside a hot set, with every policy.
#[test]
fn read_ahead_does_not_count_as_a_use() {
    for policy in PolicyKind::ALL {
        let ahead =
            hot_pages_left(policy, |all, pages| all.scan(pages).for_each(|guard| drop(guard.unwrap())));
        let alone = hot_pages_left(policy, |all, pages| pages.for_each(|page| _ = number(all, page)));
        println!("{policy:?}: {ahead} of the hot pages are left by a scan, {alone} by single reads");
        assert!(ahead + 4 >= alone, "{policy:?}: {ahead}, {alone}");
    }
}

/// Goal: a page that was read ahead and evicted before any request counts as unused: a later
/// request is its first use and evicts no hot page. Method: read pages ahead, push them out with
/// others, then request them; with LIRS, which keeps two of 64 frames for new pages.
#[test]
fn page_evicted_before_its_first_request_counts_as_unused() {
    let left = hot_pages_left(PolicyKind::Lirs, |all, pages| {
        let mut evicted = 0;
        for page in (pages.start..pages.end - 8).step_by(8) {
            all.prefetch(page..page + 2);
            (page + 2..page + 8).for_each(|other| _ = number(all, other));
            evicted += usize::from(!all.is_resident(page));
            (page..page + 2).for_each(|page| _ = number(all, page));
        }
        assert!(evicted > 100, "{evicted}");
    });
    assert!(left >= 38, "{left}");
}

/// Goal: more pages than frames come back as written, with every policy and way of reading, also
/// after the file was closed.
#[test]
fn pages_read_back_as_written() {
    for policy in PolicyKind::ALL {
        let fs = MemFs::new();
        let pool = builder(8).policy(policy).build().unwrap();
        let all = file(&fs, &pool, FileOptions::new());
        fill(&all, 100);
        for page in (0..100).rev().chain(0..100).chain([3, 3, 3]) {
            assert_eq!(number(&all, page), page);
            assert_eq!(all.read_with(page, |view| view.u32(0)).unwrap(), page);
        }
        all.close().unwrap();
        let all = file(&fs, &pool, FileOptions::new());
        assert_eq!(all.pages_on_disk().unwrap(), 100);
        let scanned: Vec<u32> = all.scan(0..100).map(|guard| guard.unwrap().id().page()).collect();
        assert_eq!(scanned, (0..100).collect::<Vec<_>>());
        let stats = pool.stats();
        assert!(
            stats.misses > 100 && stats.hits > 200 && stats.evictions > 200 && stats.dirty_evictions >= 92,
            "{stats:?}"
        );
        assert_eq!((stats.frames, stats.resident, stats.dirty), (8, 8, 0));
        assert_eq!(pool.policy(), policy);
    }
}

/// Goal: guards exclude each other and convert into each other, and a wait that cannot end is an
/// error that names the page.
#[test]
fn guards_exclude_each_other() {
    let pool = builder(4).build().unwrap();
    let all = file(&MemFs::new(), &pool, FileOptions::new());
    fill(&all, 2);
    let (a, b) = (all.read(0).unwrap(), all.read(0).unwrap());
    let error = all.write(0).unwrap_err();
    assert!(matches!(error, Error::Timeout { page: 0, .. }) && error.kind() == ErrorKind::Busy, "{error}");
    let view = all.optimistic(0).unwrap();
    assert_eq!((view.u32(0), view.validate()), (Ok(0), Ok(())));
    drop((a, b));
    let mut alone = view.upgrade_exclusive().unwrap();
    assert!(view.validate().is_err() && view.upgrade_shared().is_err());
    assert!(all.read(0).is_err());
    alone.payload_mut(Lsn(7))[0] = 9;
    assert_eq!((alone.lsn(), alone.id().page()), (Lsn(7), 0));
    let shared = alone.downgrade();
    assert_eq!((shared[0], all.read(0).unwrap()[0], shared.lsn()), (9, 9, Lsn(7)));
    let view = all.optimistic(0).unwrap();
    drop(shared);
    assert_eq!(view.upgrade_shared().unwrap()[0], 9);
    assert!(format!("{view:?} {all:?} {pool:?}").contains("Optimistic"));
}

/// Goal: values are read from a page without a latch, and out-of-range offsets are refused.
#[test]
fn optimistic_reads_return_values_and_refuse_bad_offsets() {
    let pool = builder(4).build().unwrap();
    let all = file(&MemFs::new(), &pool, FileOptions::new());
    let bytes: Vec<u8> = (0..all.create(0).unwrap().len()).map(|at| (at * 7) as u8).collect();
    all.write(0).unwrap().payload_mut(Lsn::NONE).copy_from_slice(&bytes);
    let view = all.optimistic(0).unwrap();
    assert_eq!((view.len(), view.is_empty()), (4080, false));
    for at in [0, 1, 5, 8, 100, 4072, 4073, 4079] {
        assert_eq!(view.u8(at).unwrap(), bytes[at]);
        let (u16, u32, u64) = (view.u16(at).ok(), view.u32(at).ok(), view.u64(at).ok());
        assert_eq!(u16, bytes.get(at..at + 2).map(|bytes| u16::from_le_bytes(bytes.try_into().unwrap())));
        assert_eq!(u32, bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())));
        assert_eq!(u64, bytes.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())));
        for len in [0, 1, 7, 8, 9, 30] {
            let mut copy = vec![0; len];
            let is_inside = at + len <= bytes.len();
            assert_eq!(view.copy_to(at, &mut copy).is_ok(), is_inside);
            if !is_inside {
                assert!(view.compare(at, len, &copy).is_err());
                continue;
            }
            assert_eq!(copy, bytes[at..at + len]);
            assert_eq!(view.compare(at, len, &copy).unwrap(), std::cmp::Ordering::Equal);
            for other in [&copy[..len / 2], &[&copy[..], &[0]].concat(), b"zzzz", b"", &[0; 40], &[255; 9]] {
                assert_eq!(
                    view.compare(at, len, other).unwrap(),
                    copy[..].cmp(other),
                    "{at} {len} {other:?}"
                );
            }
        }
    }
    assert!(
        view.u8(4080).is_err()
            && view.u64(usize::MAX).is_err()
            && view.copy_to(usize::MAX, &mut [0]).is_err()
    );
    let error = all.read_with(0, |view| view.u8(9999)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

/// Goal: when every frame is pinned, a request for one more page fails after the limit, and
/// succeeds again after the guards are dropped.
#[test]
fn request_fails_while_every_frame_is_pinned() {
    let pool = builder(3).build().unwrap();
    let all = file(&MemFs::new(), &pool, FileOptions::new());
    fill(&all, 5);
    let held: Vec<_> = (0..3).map(|page| all.read(page).unwrap()).collect();
    let error = all.read(4).unwrap_err();
    assert!(matches!(error, Error::Exhausted { frames: 3, .. }), "{error}");
    assert_eq!(all.prefetch(3..5), 0);
    drop(held);
    assert_eq!((number(&all, 4), pool.stats().frame_waits), (4, 1));
}

/// Goal: a missing or damaged page is a typed error with its location; and a page that was skipped
/// when the file grew reads as zeros.
#[test]
fn missing_and_damaged_pages_are_typed_errors() {
    let fs = MemFs::new();
    let pool = builder(4).build().unwrap();
    let all = file(&fs, &pool, FileOptions::new());
    assert!(matches!(all.read(0).unwrap_err(), Error::BeyondEnd { page: 0, len: 0, .. }));
    drop(all.create(2).unwrap());
    all.flush().unwrap();
    assert!(all.read(1).unwrap().iter().all(|&byte| byte == 0));
    assert_eq!(all.read(3).unwrap_err().kind(), ErrorKind::NotFound);
    all.close().unwrap();
    let raw = fs.open("file".as_ref(), OpenOptions::write()).unwrap();
    raw.write_all_at(&[1], 2 * 4096 + 100).unwrap();
    let all = file(&fs, &pool, FileOptions::new());
    let error = all.read(2).unwrap_err();
    assert!(matches!(error, Error::Corruption { page: 2, offset: 8192, .. }), "{error}");
    assert_eq!((all.prefetch(0..4), all.is_resident(1), all.is_resident(2)), (2, true, false));
    // The error is not permanent: the page may be repaired.
    raw.write_all_at(&[0], 2 * 4096 + 100).unwrap();
    assert!(all.read(2).is_ok());
}

/// Goal: files in the raw format keep every byte.
#[test]
fn raw_format_keeps_every_byte() {
    let fs = MemFs::new();
    let pool = builder(2).page_size(8192).build().unwrap();
    let all = file(&fs, &pool, FileOptions::new().format(Format::Raw));
    for page in 0..4 {
        all.create(page).unwrap().payload_mut(Lsn::NONE).fill(page as u8 + 1);
    }
    all.close().unwrap();
    let raw = fs.open("file".as_ref(), OpenOptions::read()).unwrap();
    let mut bytes = vec![0; 4 * 8192];
    raw.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == (at / 8192) as u8 + 1));
}

#[derive(Debug, Default)]
struct Log {
    durable: Mutex<Vec<u64>>,
    fails: Mutex<bool>,
}

impl WriteAhead for Log {
    fn make_durable(&self, lsn: Lsn) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if *self.fails.lock().unwrap() {
            return Err("the log is broken".into());
        }
        self.durable.lock().unwrap().push(lsn.0);
        Ok(())
    }
}

/// Goal: no page is written before its log record, by eviction or flush; when the log fails, pages
/// stay dirty in memory, and clean pages can be evicted instead.
#[test]
fn no_page_is_written_before_its_log_record() {
    let (fs, log) = (MemFs::new(), Arc::new(Log::default()));
    let pool = builder(4).policy(PolicyKind::Lru).build().unwrap();
    let all = file(&fs, &pool, FileOptions::new().write_ahead(log.clone()));
    for page in 0..6 {
        all.create(page).unwrap().payload_mut(Lsn(u64::from(page) + 10))[0] = page as u8;
    }
    assert_eq!(*log.durable.lock().unwrap(), [10, 11]);
    assert_eq!(pool.oldest_change(), Some(Lsn(12)));
    all.flush().unwrap();
    assert_eq!((log.durable.lock().unwrap().last(), pool.oldest_change()), (Some(&15), None));
    all.write(5).unwrap().payload_mut(Lsn(30))[0] = 50;
    *log.fails.lock().unwrap() = true;
    assert!(matches!(all.flush().unwrap_err(), Error::Log { lsn: Lsn(30), .. }));
    // All others are clean and make room for each other.
    for page in 0..5 {
        assert_eq!(all.read(page).unwrap()[0], page as u8);
    }
    assert_eq!((all.is_resident(5), pool.stats().dirty, all.read(5).unwrap().lsn()), (true, 1, Lsn(30)));
    for page in 0..3 {
        all.write(page).unwrap().payload_mut(Lsn(40))[0] = 60;
    }
    assert!(matches!(all.read(4).unwrap_err(), Error::Log { .. }));
    *log.fails.lock().unwrap() = false;
    assert_eq!((all.read(4).unwrap()[0], all.read(5).unwrap()[0], all.read(1).unwrap()[0]), (4, 50, 60));
    all.close().unwrap();
    let all = file(&fs, &pool, FileOptions::new());
    assert_eq!((all.read(5).unwrap()[0], all.read(5).unwrap().lsn()), (50, Lsn(30)));
}

/// Goal: the pool grows and shrinks while in use; dirty pages are written; a pinned page stops the
/// resize, and the pool is as before.
#[test]
fn pool_resizes_while_in_use() {
    for policy in PolicyKind::ALL {
        let pool = builder(4).max_frames(64).policy(policy).build().unwrap();
        let all = file(&MemFs::new(), &pool, FileOptions::new());
        fill(&all, 40);
        pool.resize(64).unwrap();
        (0..40).for_each(|page| assert_eq!(number(&all, page), page));
        let misses = pool.stats().misses;
        (0..40).for_each(|page| assert_eq!(number(&all, page), page));
        assert_eq!(pool.stats().misses, misses, "{policy}");
        (0..40).for_each(|page| all.write(page).unwrap().payload_mut(Lsn::NONE)[4] = 1);
        let held: Vec<_> = (0..40).map(|page| all.read(page).unwrap()).collect();
        assert!(matches!(pool.resize(2).unwrap_err(), Error::Timeout { .. }));
        assert_eq!(pool.stats().frames, 64);
        drop(held);
        for frames in [7, 2, 64, 1, 5] {
            pool.resize(frames).unwrap();
            (0..40).for_each(|page| assert_eq!((number(&all, page), all.read(page).unwrap()[4]), (page, 1)));
            let stats = pool.stats();
            assert_eq!((stats.frames, stats.resident), (frames, frames.min(40)), "{policy}");
        }
        assert!(pool.resize(65).unwrap_err().to_string().contains("max_frames"));
        assert_eq!(pool.resize(0).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// Goal: truncated pages are gone, dirty ones included, and others stay; files are opened and
/// closed beside each other.
#[test]
fn truncated_pages_are_gone() {
    let fs = MemFs::new();
    let pool = builder(16).build().unwrap();
    let (one, other) =
        (file(&fs, &pool, FileOptions::new()), fs.open("other".as_ref(), OpenOptions::create()).unwrap());
    let other = pool.open(other, FileOptions::new()).unwrap();
    fill(&one, 8);
    fill(&other, 8);
    assert_ne!(one.number(), other.number());
    one.flush().unwrap();
    one.write(6).unwrap().payload_mut(Lsn::NONE)[0] = 99;
    one.truncate(6).unwrap();
    assert_eq!((one.pages_on_disk().unwrap(), pool.stats().resident), (6, 14));
    assert_eq!((number(&one, 5), one.read(6).unwrap_err().kind()), (5, ErrorKind::NotFound));
    assert!(pool.stats().dirty == 8);
    drop(one);
    assert_eq!((pool.stats().resident, number(&other, 7)), (8, 7));
    drop(other);
    let stats = pool.stats();
    assert_eq!((stats.resident, stats.dirty), (0, 0));
    let other =
        pool.open(fs.open("other".as_ref(), OpenOptions::read()).unwrap(), FileOptions::new()).unwrap();
    assert_eq!((number(&other, 3), other.path().to_str()), (3, Some("other")));
}

/// Goal: on a real disk pages come back as well, buffered and with direct I/O, singly and in
/// batches. Method: pages in random order, read ahead, scanned, changed and written in batches with
/// gaps.
#[test]
fn pages_read_back_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    for direct in [false, true] {
        let options = OpenOptions { direct, ..OpenOptions::create() };
        let raw = match StdFs::new().open(&dir.path().join(format!("direct {direct}")), options) {
            Ok(raw) => raw,
            // The file system does not support direct I/O.
            Err(error) if direct && error.kind() == ErrorKind::Unsupported => continue,
            Err(error) => panic!("{error}"),
        };
        let pool = builder(64).build().unwrap();
        let all = pool.open(raw, FileOptions::new()).unwrap();
        fill(&all, 400);
        all.flush().unwrap();
        for round in 0..3u32 {
            let apart: Vec<u32> = (0..40).map(|at| (at * 7 + round * 13) % 400).collect();
            // Later pages of a batch may take the frames of earlier ones.
            assert!(all.prefetch_pages(&apart) > 0 && apart.iter().any(|&page| all.is_resident(page)));
            assert!(apart.iter().all(|&page| number(&all, page) == page));
            (0..400).step_by(3).for_each(|page| all.write(page).unwrap().payload_mut(Lsn::NONE)[9] += 1);
            all.flush().unwrap();
            assert!(all.scan(0..400).zip(0..).all(|(guard, page)| {
                let guard = guard.unwrap();
                guard.id().page() == page && u32::from(guard[9]) == if page % 3 == 0 { round + 1 } else { 0 }
            }));
        }
        all.close().unwrap();
    }
}

/// Goal: truncated pages do not come back from the double write. Method: its last batch holds them
/// when the file is truncated and reopened.
#[test]
fn truncated_pages_do_not_return_from_the_double_write() {
    let fs = MemFs::new();
    let options =
        || FileOptions::new().double_write(fs.open("double".as_ref(), OpenOptions::create()).unwrap());
    let pool = builder(8).build().unwrap();
    let all = file(&fs, &pool, options());
    fill(&all, 6);
    all.flush().unwrap();
    all.truncate(3).unwrap();
    all.close().unwrap();
    let all = file(&fs, &pool, options());
    assert_eq!((all.pages_on_disk().unwrap(), number(&all, 2)), (3, 2));
}

/// Goal: invalid settings are refused by name.
#[test]
fn invalid_settings_are_refused_by_name() {
    let error = |builder: Builder| builder.build().unwrap_err().to_string();
    assert!(error(builder(0)).contains("frames is 0"));
    assert!(error(builder(1).page_size(5000)).contains("page_size is 5000"));
    assert!(error(builder(1).page_size(2048)).contains("4096 to 65536"));
    assert!(error(builder(1).background_writer(BackgroundWriter::Above(1.5))).contains("1.5"));
    assert!(matches!(builder(1 << 30).page_size(1 << 16).build().unwrap_err(), Error::Memory { .. }));
}
