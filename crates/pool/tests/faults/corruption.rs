//! Bytes that change on disk.

use std::path::Path;

use cairn_pool::{Error, PoolFile};
use cairn_vfs::{FaultFs, FaultOptions};

use super::model::{PAGE, Run, Shape, Step, open, version};
use super::rounds;

fn disk() -> (FaultFs, Shape) {
    let fs = FaultFs::new(FaultOptions::seeded(1));
    let shape = Shape { frames: 4, pages: 3, ..Shape::new(1, false) };
    let mut run = Run::new(&fs, &shape);
    for step in [Step::Write(0), Step::Write(1), Step::Write(1), Step::Flush, Step::Sync] {
        run.step(step).unwrap();
    }
    (fs, shape)
}

/// Asserts that all readable pages are as written. Returns the damaged pages.
fn damaged(file: &PoolFile, shape: &Shape) -> Vec<u32> {
    let is_damaged = |&page: &u32| match file.read(page) {
        Ok(guard) => {
            assert_eq!(version(&guard, page), [2, 3, 1][page as usize]);
            false
        }
        Err(Error::Corruption { page: named, offset, .. }) => {
            assert_eq!((named, offset), (page, u64::from(page) * PAGE as u64));
            true
        }
        Err(error) => panic!("{error}"),
    };
    (0..shape.pages).filter(is_damaged).collect()
}

/// Goal: every flipped bit is detected by the guard that requests its page, and no other page is
/// affected.
#[test]
fn every_flipped_bit() {
    let (fs, shape) = disk();
    let path = Path::new("/pages");
    let (_pool, file) = open(&fs, &shape).unwrap();
    let mut count = 0;
    for offset in (0..3 * PAGE as u64).step_by(rounds(3, 1) as usize) {
        for bit in 0..8 {
            assert!(fs.flip_bit(path, offset, bit));
            assert_eq!(damaged(&file, &shape), [(offset / PAGE as u64) as u32], "bit {bit} at {offset}");
            fs.flip_bit(path, offset, bit);
            // Make the next reads go to the disk.
            file.truncate(3).unwrap();
            drop_pages(&file);
            count += 1;
        }
    }
    println!("{count} flipped bits, all seen");
}

/// Evicts all pages, so that the pool reads them again.
fn drop_pages(file: &PoolFile) {
    let len = file.pages_on_disk().unwrap();
    // Newly created pages push out the resident ones.
    for page in 0..len {
        while file.is_resident(page) {
            (0..4).for_each(|other| drop(file.create(100 + other).unwrap()));
            file.truncate(len).unwrap();
        }
    }
}

/// Goal: swapped pages and zeroed tails are detected.
#[test]
fn swapped_pages_and_zeroed_tails_are_detected() {
    let (fs, shape) = disk();
    let path = Path::new("/pages");
    assert!(fs.swap_blocks(path, 0, PAGE as u64, PAGE as u64));
    let (_pool, file) = open(&fs, &shape).unwrap();
    assert_eq!(damaged(&file, &shape), [0, 1]);
    fs.swap_blocks(path, 0, PAGE as u64, PAGE as u64);
    for from in (1..PAGE as u64).step_by(97) {
        let (fs, shape) = disk();
        assert!(fs.zero_tail(path, 2 * PAGE as u64 + from));
        let (_pool, file) = open(&fs, &shape).unwrap();
        assert_eq!(damaged(&file, &shape), [2], "zeros from {from}");
    }
}
