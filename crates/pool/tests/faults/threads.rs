//! Contending threads on a pool that is too small for them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cairn_pool::{BackgroundWriter, FileOptions, Lsn, PolicyKind, Pool, PoolFile};
use cairn_vfs::{Fs, MemFs, OpenOptions, Rng, SeededRng, thread};

use super::model::{put, version};
use super::{rounds, seed};

const PAGES: u32 = 12;

fn pool(frames: usize, policy: PolicyKind, share: f64) -> (Pool, PoolFile) {
    let pool = Pool::builder()
        .frames(frames)
        .max_frames(32)
        .policy(policy)
        .background_writer(BackgroundWriter::Above(share))
        .wait_limit(Duration::from_secs(60));
    let pool = pool.build().unwrap();
    let file = MemFs::new().open("pages".as_ref(), OpenOptions::create()).unwrap();
    let file = pool.open(file, FileOptions::new()).unwrap();
    for page in 0..PAGES {
        put(file.create(page).unwrap().payload_mut(Lsn::NONE), page, 1);
    }
    (pool, file)
}

fn write_one(file: &PoolFile, page: u32) {
    let mut guard = file.write(page).unwrap();
    let next = version(&guard, page) + 1;
    put(guard.payload_mut(Lsn::NONE), page, next);
}

fn read_one(file: &PoolFile, page: u32, rng: &mut SeededRng) {
    match rng.below(3) {
        0 => _ = version(&file.read(page).unwrap(), page),
        1 => {
            let mut bytes = [0; 4080];
            file.read_with(page, |view| view.copy_to(0, &mut bytes)).unwrap();
            version(&bytes, page);
        }
        _ => {
            let view = file.optimistic(page).unwrap();
            let mut bytes = [0; 4080];
            if view.copy_to(0, &mut bytes).is_ok() && view.validate().is_ok() {
                version(&bytes, page);
            }
        }
    }
}

/// Goal: no update is lost, no reader sees a half-changed page, and no thread waits forever,
/// whatever the policy. Method: threads increment page versions beside readers, scans, flushes and
/// resizes, in pools of few frames; the versions add up to the number of updates.
#[test]
fn no_lost_updates() {
    let own = seed();
    for (number, policy) in PolicyKind::ALL.into_iter().enumerate() {
        for frames in [6, 9] {
            let (pool, file) = pool(frames, policy, 0.3);
            let updates = AtomicU64::new(0);
            let count = rounds(3_000, 200_000);
            thread::scope(|scope| {
                for writer in 0..4u64 {
                    let (pool, file, updates) = (&pool, &file, &updates);
                    let mut rng =
                        SeededRng::new(own.wrapping_add(number as u64)).fork(&format!("{frames} {writer}"));
                    scope.spawn(move || {
                        for _ in 0..count {
                            let page = rng.below(u64::from(PAGES)) as u32;
                            match rng.below(200) {
                                0 => file.flush().unwrap(),
                                1 => file
                                    .scan(0..PAGES)
                                    .zip(0..)
                                    .for_each(|(guard, page)| _ = version(&guard.unwrap(), page)),
                                2 => _ = file.prefetch(page..page + 3),
                                3 if writer == 0 => pool.resize(frames - 1 + rng.below(4) as usize).unwrap(),
                                4..100 => read_one(file, page, &mut rng),
                                _ => {
                                    write_one(file, page);
                                    updates.fetch_add(1, Relaxed);
                                }
                            }
                        }
                    });
                }
            });
            let total: u64 =
                (0..PAGES).map(|page| u64::from(version(&file.read(page).unwrap(), page)) - 1).sum();
            assert_eq!(total, updates.load(Relaxed), "{policy}, {frames} frames");
            let stats = pool.stats();
            assert!(stats.evictions > 100 && stats.pages_written > 100, "{stats:?}");
            file.close().unwrap();
            assert_eq!((pool.stats().resident, pool.stats().dirty), (0, 0));
        }
    }
}

/// Goal: threads that need more frames than exist all get theirs in turn. Method: many threads,
/// each holding one page after the other in a pool of two frames.
#[test]
fn every_thread_gets_its_frames_in_turn() {
    let (pool, file) = pool(2, PolicyKind::Clock, 1.0);
    let threads = 24;
    thread::scope(|scope| {
        for thread in 0..threads {
            let file = &file;
            scope.spawn(move || {
                for round in 0..rounds(50, 2_000) as u32 {
                    let page = (thread * 7 + round) % PAGES;
                    let guard = file.read(page).unwrap();
                    cairn_vfs::thread::yield_now();
                    version(&guard, page);
                }
            });
        }
    });
    let stats = pool.stats();
    assert!(stats.frame_waits > 0, "{stats:?}");
}

/// Goal: threads that miss the same page cause a single read.
#[test]
fn concurrent_misses_share_one_read() {
    let (pool, file) = pool(8, PolicyKind::Lru, 1.0);
    file.flush().unwrap();
    let before = pool.stats().misses;
    assert!(!file.is_resident(0));
    let barrier = std::sync::Barrier::new(16);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                barrier.wait();
                assert_eq!(version(&file.read(0).unwrap(), 0), 1);
            });
        }
    });
    assert_eq!(pool.stats().misses, before + 1);
}
