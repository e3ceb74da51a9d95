//! The effect of a power loss on bytes and lengths.

use std::collections::BTreeSet;

use super::*;

const OLD: u8 = b'o';
const NEW: u8 = b'N';

/// The fate of a write of `NEW` over `OLD`, as far as the bytes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Lost,
    Whole,
    /// A part kept, the rest lost, divided at this granularity (4096, 512 or 1).
    Mixed(u64),
    Prefix,
    Garbage,
}

/// Classifies `bytes`, of which `range` was overwritten.
fn shape(bytes: &[u8], range: std::ops::Range<usize>) -> Shape {
    let part = &bytes[range.clone()];
    if part.iter().any(|&byte| byte != OLD && byte != NEW) {
        return Shape::Garbage;
    }
    let new = part.iter().filter(|&&byte| byte == NEW).count();
    if new == 0 {
        return Shape::Lost;
    }
    if new == part.len() {
        return Shape::Whole;
    }
    let cuts = (1..part.len()).filter(|&i| part[i] != part[i - 1]);
    let cuts: Vec<u64> = cuts.map(|i| (range.start + i) as u64).collect();
    match [4096, 512].into_iter().find(|unit| cuts.iter().all(|cut| cut % unit == 0)) {
        Some(unit) => Shape::Mixed(unit),
        None if cuts.len() == 1 && part[0] == NEW => Shape::Prefix,
        None => Shape::Mixed(1),
    }
}

/// Creates a durable file of 16 KiB and overwrites `100..14_000` without a sync.
fn overwritten(options: FaultOptions) -> FaultFs {
    let fs = FaultFs::new(options);
    install(&fs, "f", &[OLD; 16_384]).write_all_at(&[NEW; 13_900], 100).unwrap();
    fs
}

fn shapes(options: FaultOptions) -> BTreeSet<Shape> {
    over_images(&overwritten(options), 400, |fs| {
        let bytes = read(fs, "f").unwrap();
        assert_eq!(bytes.len(), 16_384);
        assert!(bytes[..100].iter().chain(&bytes[14_000..]).all(|&byte| byte == OLD), "neighbours are safe");
        shape(&bytes, 100..14_000)
    })
}

/// Goal: every fate of a write occurs. Method: 400 images of one write, classified by their bytes.
#[test]
fn every_fate_occurs() {
    let all = shapes(FaultOptions::default());
    let expected =
        [Shape::Lost, Shape::Whole, Shape::Mixed(512), Shape::Mixed(1), Shape::Prefix, Shape::Garbage];
    for shape in expected {
        assert!(all.contains(&shape), "{shape:?} is missing from {all:?}");
    }
}

/// Goal: a disk with atomic sectors or blocks tears only at their edges. Control:
/// `every_fate_occurs`, where it tears anywhere.
#[test]
fn atomic_units_do_not_tear() {
    let sectors = shapes(FaultOptions { atomic_write: AtomicWrite::Sector512, ..Default::default() });
    let (lost, whole) = (Shape::Lost, Shape::Whole);
    assert_eq!(sectors, BTreeSet::from([lost, whole, Shape::Mixed(512), Shape::Mixed(4096)]));
    let blocks = shapes(FaultOptions { atomic_write: AtomicWrite::Block4096, ..Default::default() });
    assert_eq!(blocks, BTreeSet::from([lost, whole, Shape::Mixed(4096)]));
}

/// Goal: the fixed images keep nothing and everything; a synced write is in all images.
#[test]
fn fixed_images_and_syncs() {
    let fs = overwritten(FaultOptions::default());
    let images = |fs: &FaultFs| {
        let point = fs.crash_point();
        let look = |image| shape(&read(&point.image(image), "f").unwrap(), 100..14_000);
        [look(CrashImage::None), look(CrashImage::All)]
    };
    assert_eq!(images(&fs), [Shape::Lost, Shape::Whole]);
    assert!(!fs.is_settled());
    fs.open(Path::new("f"), OpenOptions::read()).unwrap().sync_data().unwrap();
    assert!(fs.is_settled());
    assert_eq!(images(&fs), [Shape::Whole, Shape::Whole]);
    let after_sync = over_images(&fs, 50, |fs| shape(&read(fs, "f").unwrap(), 100..14_000));
    assert_eq!(after_sync, BTreeSet::from([Shape::Whole]));
}

/// Goal: garbage stays inside the write, unless the disk is configured to spoil whole sectors.
#[test]
fn garbage_is_wide_only_on_request() {
    let spoiled = |wide_garbage| {
        let fs = FaultFs::new(FaultOptions { wide_garbage, ..Default::default() });
        install(&fs, "f", &[OLD; 2048]).write_all_at(&[NEW; 100], 700).unwrap();
        over_images(&fs, 200, |fs| {
            let bytes = read(fs, "f").unwrap();
            assert_eq!(bytes.len(), 2048);
            assert!(bytes[..512].iter().chain(&bytes[1024..]).all(|&byte| byte == OLD), "other sectors");
            bytes[512..700].iter().chain(&bytes[800..1024]).any(|&byte| byte != OLD)
        })
    };
    assert_eq!(spoiled(false), BTreeSet::from([false]));
    assert_eq!(spoiled(true), BTreeSet::from([false, true]));
}

/// Goal: bytes and length of an append survive independently: a length without bytes shows zeros,
/// bytes without a length are invisible.
#[test]
fn lengths_are_drawn_apart() {
    let fs = quiet();
    install(&fs, "f", b"old").write_all_at(b"NEW", 3).unwrap();
    let seen = over_images(&fs, 300, |fs| read(fs, "f").unwrap());
    for expected in [&b"old"[..], b"oldNEW", b"old\0\0\0", b"oldN\0\0"] {
        assert!(seen.contains(expected), "{expected:?}");
    }
    assert!(seen.iter().all(|bytes| bytes.len() == 3 || bytes.len() == 6));
}

/// Goal: rewriting the middle of an unsynced append is not a length change of its own.
#[test]
fn only_growth_brings_a_length() {
    let fs = quiet();
    let file = install(&fs, "f", b"");
    file.write_all_at(&[1; 100], 0).unwrap();
    file.write_all_at(&[2; 50], 0).unwrap();
    assert_eq!(over_images(&fs, 200, |fs| read(fs, "f").unwrap().len()), [0, 100].into());
}

/// Goal: bytes whose length was lost do not reappear when recovery extends the file.
#[test]
fn hidden_bytes_are_gone() {
    let fs = quiet();
    install(&fs, "f", b"old").write_all_at(&[NEW; 10_000], 3).unwrap();
    let tails = over_images(&fs, 200, |fs| {
        let file = fs.open(Path::new("f"), OpenOptions::write()).unwrap();
        let len = file.len().unwrap();
        file.set_len(10_003).unwrap();
        (len, read(fs, "f").unwrap()[len as usize..].iter().all(|&byte| byte == 0))
    });
    assert_eq!(tails, [(3, true), (10_003, true)].into());
}

/// Goal: an append-safe disk never shows a length without its bytes, over several appends. Control:
/// a disk without this property does.
#[test]
fn append_safety() {
    let holes = |append_safe| {
        let fs = FaultFs::new(FaultOptions { append_safe, ..Default::default() });
        let file = install(&fs, "f", b"");
        let data: Vec<u8> = (1..=250).collect();
        data.chunks(50).enumerate().for_each(|(i, piece)| file.write_all_at(piece, i as u64 * 50).unwrap());
        let wrong = over_images(&fs, 300, |fs| {
            let bytes = read(fs, "f").unwrap();
            (bytes != data[..bytes.len()], bytes.len())
        });
        let partly = wrong.iter().any(|&(_, len)| len > 0 && len < 250);
        assert!(partly, "some images must end in between");
        wrong.into_iter().map(|(wrong, _)| wrong).collect::<BTreeSet<_>>()
    };
    assert_eq!(holes(true), BTreeSet::from([false]));
    assert_eq!(holes(false), BTreeSet::from([false, true]));
}

/// Goal: truncations and extensions survive or are lost independently, and a truncation that
/// survives really truncates.
#[test]
fn set_len_is_pending_too() {
    let fs = quiet();
    let file = install(&fs, "f", b"abcdef");
    file.set_len(2).unwrap();
    file.set_len(4).unwrap();
    let seen = over_images(&fs, 200, |fs| read(fs, "f").unwrap());
    let expected: [&[u8]; 4] = [b"abcdef", b"ab", b"abcd", b"ab\0\0"];
    assert_eq!(seen, expected.map(<[u8]>::to_vec).into());
    file.sync_data().unwrap();
    assert_eq!(over_images(&fs, 50, |fs| read(fs, "f").unwrap()), [b"ab\0\0".to_vec()].into());
}

/// Goal: an ordered disk keeps a prefix of all changes, across files, lengths and names. Control:
/// on an unordered disk, a later change survives without an earlier one. Method: ten one-byte
/// files, created and written in turn.
#[test]
fn order_is_kept_on_request() {
    let holes = |ordered| {
        let fs = FaultFs::new(FaultOptions { ordered, ..Default::default() });
        for i in 0..10 {
            drop(write(&fs, &format!("f{i}"), b"x"));
        }
        over_images(&fs, 300, |fs| {
            let kept: Vec<bool> =
                (0..10).map(|i| read(fs, &format!("f{i}")) == Some(b"x".to_vec())).collect();
            kept.is_sorted_by(|a, b| a >= b)
        })
    };
    assert_eq!(holes(true), BTreeSet::from([true]));
    assert_eq!(holes(false), BTreeSet::from([false, true]));
}

/// Goal: an ordered disk can stop after any number of changes, from none to all.
#[test]
fn ordered_disks_stop_anywhere() {
    let fs = FaultFs::new(FaultOptions { ordered: true, ..Default::default() });
    let file = install(&fs, "f", b"");
    (0..5).for_each(|i| file.write_all_at(&[b'a' + i], u64::from(i)).unwrap());
    let lengths = over_images(&fs, 300, |fs| read(fs, "f").unwrap().len());
    assert_eq!(lengths, (0..=5).collect());
}

/// Goal: an image depends only on its seed; different seeds give different images.
#[test]
fn images_follow_their_seed() {
    let point = overwritten(FaultOptions::default()).crash_point();
    let hash = |seed| point.image(CrashImage::Random(seed)).state_hash();
    let hashes: BTreeSet<u64> = (0..100).map(hash).collect();
    assert!(hashes.len() > 50, "{}", hashes.len());
    assert!((0..100).all(|seed| hashes.contains(&hash(seed))));
}

/// Goal: a crash kills every handle and the machine itself; the image is alive and settled, and can
/// crash in turn.
#[test]
fn handles_die_and_images_live() {
    let fs = quiet();
    let file = install(&fs, "f", b"abc");
    file.try_lock().unwrap();
    let mut machine = fs.crash(CrashImage::None);
    assert!(file.len().is_err() && file.sync_data().is_err() && fs.read_dir(Path::new("/")).is_err());
    for cycle in 0..50_u8 {
        assert!(machine.is_settled() && machine.operation_count() == 0);
        let file = machine.open(Path::new("f"), OpenOptions::write()).unwrap();
        file.try_lock().unwrap_or_else(|e| panic!("the lock died with its holder: {e}"));
        file.write_all_at(&[cycle], 0).unwrap();
        file.sync_data().unwrap();
        file.write_all_at(b"lost", 1).unwrap();
        let next = machine.crash(CrashImage::None);
        assert!(file.read_at(&mut [0], 0).is_err());
        assert_eq!(read(&next, "f").unwrap(), [cycle, b'b', b'c']);
        machine = next;
    }
}

/// Goal: images share no mutable state. Method: write to one, check another and the original.
#[test]
fn images_are_independent() {
    let fs = overwritten(FaultOptions::default());
    let before = fs.state_hash();
    let images = fs.crash_point().images(3).collect::<Vec<_>>();
    let hashes: Vec<u64> = images.iter().map(|(_, fs)| fs.state_hash()).collect();
    let file = images[1].1.open(Path::new("f"), OpenOptions::write()).unwrap();
    file.write_all_at(&[1; 16_384], 0).unwrap();
    images[1].1.remove(Path::new("f")).unwrap();
    for (index, (image, fs)) in images.iter().enumerate() {
        assert_eq!(fs.state_hash() == hashes[index], index != 1, "{image}");
    }
    assert_eq!(fs.state_hash(), before);
    assert_eq!(fs.images_at_crash(2).len(), 4);
    assert!(fs.is_powered_off());
}
