//! Injected errors and silent faults.

use super::*;
use crate::{Access, Create, ErrorKind};

/// Runs one operation of the given kind, which succeeds unless a fault is injected.
fn one_of(fs: &FaultFs, file: &dyn File, operation: Operation) -> Result<()> {
    let path = Path::new;
    match operation {
        Operation::Open => fs.open(path("f"), OpenOptions::read()).map(|_| ()),
        Operation::Read => file.read_at(&mut [0; 4], 0).map(|_| ()),
        Operation::Write => file.write_at(b"data", 0).map(|_| ()),
        Operation::SetLen => file.set_len(10),
        Operation::Allocate => file.allocate(0, 10),
        Operation::SyncData => file.sync_data(),
        Operation::SyncDir => fs.sync_dir(path("/")),
        Operation::Rename => fs.rename(path("f"), path("g")).and_then(|()| fs.rename(path("g"), path("f"))),
        Operation::Remove => fs.hard_link(path("f"), path("l")).and_then(|()| fs.remove(path("l"))),
        Operation::Link => fs.hard_link(path("f"), path("l")).and_then(|()| fs.remove(path("l"))),
        Operation::CreateDir => fs.create_dir_all(path("d")),
        Operation::ReadDir => fs.read_dir(path("/")).map(|_| ()),
        Operation::Stat => fs.metadata(path("f")).map(|_| ()),
        Operation::Map => file.map().map(|_| ()),
        Operation::Lock => file.try_lock(),
        Operation::StartThread => unreachable!("not of a file system"),
    }
}

const KINDS: [Operation; 15] = [
    Operation::Open,
    Operation::Read,
    Operation::Write,
    Operation::SetLen,
    Operation::Allocate,
    Operation::SyncData,
    Operation::SyncDir,
    Operation::Rename,
    Operation::Remove,
    Operation::Link,
    Operation::CreateDir,
    Operation::ReadDir,
    Operation::Stat,
    Operation::Map,
    Operation::Lock,
];

/// Goal: any kind of operation can be made to fail, once or persistently, by kind or by index,
/// without affecting others. Control: the same operation without a rule.
#[test]
fn any_operation_fails_on_request() {
    for kind in KINDS {
        for fault in [Fault::Io, Fault::Full].into_iter().filter(|fault| fault.applies_to(kind)) {
            let fs = quiet();
            let file = install(&fs, "f", b"content");
            one_of(&fs, &*file, kind).unwrap();
            let next = fs.operation_count_of(kind);
            fs.inject(Rule::nth(kind, next, fault));
            let error = one_of(&fs, &*file, kind).unwrap_err();
            assert_eq!((error.kind(), error.operation), (ErrorKind::Io, kind), "{fault:?}");
            assert_eq!(error.is_full(), fault == Fault::Full);
            let _ = fs.remove(Path::new("l"));
            one_of(&fs, &*file, kind).unwrap_or_else(|e| panic!("{fault:?} is transient: {e}"));
            assert_eq!(fs.injected_count(), 1);

            fs.inject(Rule::at(fs.operation_count(), fault).persistent());
            assert!(one_of(&fs, &*file, kind).is_err() && one_of(&fs, &*file, kind).is_err());
            fs.clear_rules();
            let _ = fs.remove(Path::new("l"));
            one_of(&fs, &*file, kind).unwrap();
        }
    }
}

/// Goal: a failed operation changes nothing. Method: compare the disk digest around each modifying
/// operation failed with `EIO`.
#[test]
fn failed_operations_do_nothing() {
    for kind in
        [Operation::Write, Operation::SetLen, Operation::Rename, Operation::Link, Operation::CreateDir]
    {
        let fs = quiet();
        let file = install(&fs, "f", b"content");
        fs.inject(Rule::nth(kind, 0, Fault::Io));
        one_of(&fs, &*file, kind).unwrap_err();
        assert_eq!((read(&fs, "f").unwrap(), files(&fs)), (b"content".to_vec(), vec!["f".to_owned()]));
        assert!(fs.is_settled(), "{kind:?}");
    }
}

/// Goal: a persistent rule for one kind does not affect other kinds.
#[test]
fn persistent_by_kind() {
    let fs = quiet();
    let file = install(&fs, "f", b"content");
    fs.inject(Rule::nth(Operation::Write, 1, Fault::Io).persistent());
    file.write_at(b"1", 0).unwrap();
    for _ in 0..3 {
        file.write_at(b"2", 0).unwrap_err();
        file.read_at(&mut [0; 4], 0).unwrap();
    }
    assert_eq!(fs.injected_count(), 3);
}

/// Goal: interrupts surface in the plain calls, and the loops over them retry.
#[test]
fn interrupts() {
    let fs = quiet();
    let file = install(&fs, "f", b"content");
    fs.inject(Rule::nth(Operation::Read, 0, Fault::Interrupted));
    fs.inject(Rule::nth(Operation::Read, 1, Fault::Interrupted));
    fs.inject(Rule::nth(Operation::Write, 0, Fault::Interrupted));
    let interrupted = file.read_at(&mut [0; 4], 0).unwrap_err();
    assert_eq!(interrupted.source.kind(), std::io::ErrorKind::Interrupted);
    let mut buf = [0; 7];
    file.read_exact_at(&mut buf, 0).unwrap();
    file.write_all_at(b"CON", 0).unwrap();
    assert_eq!((&buf, read(&fs, "f").unwrap()), (b"content", b"CONtent".to_vec()));
    assert_eq!(fs.injected_count(), 3);
}

/// Goal: short transfers move half, never nothing, and the loops over them finish, even when every
/// transfer is short.
#[test]
fn short_transfers() {
    let fs = quiet();
    let file = install(&fs, "f", b"12345678");
    assert_eq!(file.read_at(&mut [0; 8], 0).unwrap(), 8);
    fs.inject(Rule::nth(Operation::Read, 1, Fault::Short).persistent());
    fs.inject(Rule::nth(Operation::Write, 0, Fault::Short).persistent());
    assert_eq!(file.read_at(&mut [0; 8], 0).unwrap(), 4);
    assert_eq!(file.write_at(b"ABCDE", 0).unwrap(), 2);
    assert_eq!(file.write_at(b"A", 0).unwrap(), 1);
    file.write_all_at(b"abcdefgh", 0).unwrap();
    let mut buf = [0; 8];
    file.read_exact_at(&mut buf, 0).unwrap();
    assert_eq!(&buf, b"abcdefgh");
}

/// Goal: the options make some transfers short and lose no byte. Control: with chance 0, none is
/// short.
#[test]
fn short_by_chance() {
    let shorts = |chance: f64| {
        let fs = FaultFs::new(FaultOptions {
            short_reads: chance,
            short_writes: chance,
            ..FaultOptions::seeded(5)
        });
        let file = create(&fs, "f");
        let mut short = [0, 0];
        for round in 0..200_u64 {
            let (data, mut back) = ([round as u8; 100], [0; 100]);
            short[0] += u32::from(file.write_at(&data, round * 100).unwrap() < 100);
            file.write_all_at(&data, round * 100).unwrap();
            short[1] += u32::from(file.read_at(&mut back, round * 100).unwrap() < 100);
            file.read_exact_at(&mut back, round * 100).unwrap();
            assert_eq!(data, back);
        }
        short
    };
    assert_eq!(shorts(0.0), [0, 0]);
    assert!(shorts(0.5).iter().all(|count| (60..140).contains(count)), "{:?}", shorts(0.5));
    assert_eq!(shorts(1.0), [200, 200]);
}

/// Goal: each silent write fault succeeds and stores exactly its own kind of wrong bytes. Control:
/// no rule.
#[test]
fn silent_write_faults() {
    let old = [b'o'; 32];
    let after = |fault: Option<Fault>| {
        let fs = quiet();
        let file = install(&fs, "f", &old);
        if let Some(fault) = fault {
            fs.inject(Rule::nth(Operation::Write, 0, fault));
        }
        assert_eq!(file.write_at(b"NEWDATA!", 16).unwrap(), 8);
        assert_eq!(fs.injected_count(), u64::from(fault.is_some()));
        String::from_utf8_lossy(&read(&fs, "f").unwrap()).into_owned()
    };
    let o = |count: usize| "o".repeat(count);
    assert_eq!(after(None), o(16) + "NEWDATA!" + &o(8));
    assert_eq!(after(Some(Fault::Lost)), o(32));
    assert_eq!(after(Some(Fault::Misdirected { by: -4 })), o(12) + "NEWDATA!" + &o(12));
    assert_eq!(after(Some(Fault::Misdirected { by: -100 })), "NEWDATA!".to_owned() + &o(24));
    assert_eq!(after(Some(Fault::Misdirected { by: 14 })), o(30) + "NEWDATA!");
    assert_eq!(after(Some(Fault::ZeroTail)), o(16) + "NEWD\0\0\0\0" + &o(8));
    let (good, flipped) = (after(None).into_bytes(), after(Some(Fault::BitFlip)).into_bytes());
    assert_eq!(bits_apart(&good[16..24], &flipped[16..24]), 1);
    assert_eq!((&good[..16], &good[24..]), (&flipped[..16], &flipped[24..]));
}

fn bits_apart(left: &[u8], right: &[u8]) -> u32 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(l, r)| (l ^ r).count_ones()).sum()
}

/// Goal: read faults change the returned bytes and nothing that is stored. Control: the next read.
#[test]
fn silent_read_faults() {
    let fs = quiet();
    let bytes: Vec<u8> = (0..200).collect();
    let file = install(&fs, "f", &bytes);
    let read_at = |offset: u64| {
        let mut buf = vec![0; 50];
        file.read_exact_at(&mut buf, offset).unwrap();
        buf
    };
    assert_eq!(read_at(100), bytes[100..150]);
    fs.inject(Rule::nth(Operation::Read, 1, Fault::DuplicatedRead));
    assert_eq!(read_at(0), bytes[100..150], "the previous read again");
    assert_eq!(read_at(0), bytes[..50]);
    assert_eq!(read_at(40), bytes[40..90]);
    fs.inject(Rule::nth(Operation::Read, 4, Fault::DuplicatedRead));
    assert_eq!(read_at(0), bytes[40..90], "the latest, not the first");
    fs.inject(Rule::nth(Operation::Read, 5, Fault::BitFlip));
    assert_eq!(bits_apart(&read_at(0), &bytes[..50]), 1);
    assert_eq!(read_at(0), bytes[..50]);
    fs.inject(Rule::nth(Operation::Map, 0, Fault::BitFlip));
    assert_eq!(bits_apart(&file.map().unwrap(), &bytes), 1);
    assert_eq!(*file.map().unwrap(), bytes);
}

/// Goal: a lost sync succeeds and protects nothing. Control: the next sync does.
#[test]
fn lost_syncs() {
    let fs = quiet();
    let file = write(&fs, "f", b"abc");
    fs.inject(Rule::nth(Operation::SyncData, 0, Fault::Lost));
    fs.inject(Rule::nth(Operation::SyncDir, 0, Fault::Lost));
    file.sync_data().unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(files(&fs.crash_point().image(CrashImage::None)), [""; 0]);
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(read(&fs.crash_point().image(CrashImage::None), "f").unwrap(), b"");
    file.sync_data().unwrap();
    assert_eq!(read(&fs.crash_point().image(CrashImage::None), "f").unwrap(), b"abc");
}

/// Goal: corruption at rest shows in reads and survives crashes, and is refused past the end.
#[test]
fn rot_at_rest() {
    let fs = quiet();
    drop(install(&fs, "f", b"aaaabbbbcccc"));
    let path = Path::new("f");
    assert!(fs.flip_bit(path, 1, 1));
    assert_eq!(read(&fs, "f").unwrap(), b"acaabbbbcccc");
    assert!(fs.swap_blocks(path, 0, 8, 4));
    assert_eq!(read(&fs, "f").unwrap(), b"ccccbbbbacaa");
    assert!(fs.zero_tail(path, 10));
    let expected = b"ccccbbbbac\0\0";
    assert_eq!(read(&fs, "f").unwrap(), expected);
    assert!(!fs.flip_bit(path, 12, 0) && !fs.swap_blocks(path, 0, 9, 4) && !fs.zero_tail(path, 13));
    assert!(!fs.flip_bit(Path::new("none"), 0, 0) && !fs.flip_bit(path, u64::MAX, 0));
    assert!(fs.is_settled() && fs.operation_count() == 1);
    for image in [CrashImage::None, CrashImage::All, CrashImage::Random(1)] {
        assert_eq!(read(&fs.crash_point().image(image), "f").unwrap(), expected);
    }
}

/// Goal: the power fails at the configured operation, for it and all later ones, on every handle.
/// Control: earlier operations succeed.
#[test]
fn power_is_lost_on_time() {
    let fs = quiet();
    let file = write(&fs, "f", b"abc");
    fs.crash_at(fs.operation_count() + 2);
    file.read_at(&mut [0; 1], 0).unwrap();
    file.write_at(b"x", 0).unwrap();
    assert!(!fs.is_powered_off());
    let error = file.write_at(b"y", 0).unwrap_err();
    assert!(error.to_string().contains("power was lost"), "{error}");
    assert!(fs.is_powered_off());
    for kind in KINDS {
        assert!(one_of(&fs, &*file, kind).is_err(), "{kind:?}");
    }
    assert_eq!(fs.operation_count(), 4, "what failed for want of power is not counted");
    let options = OpenOptions { access: Access::ReadWrite, create: Create::New, direct: false };
    assert!(fs.open(Path::new("new"), options).is_err());
    let after = fs.crash(CrashImage::All);
    assert_eq!(read(&after, "f").unwrap(), b"xbc");
    assert!(!after.is_powered_off());
}

/// Goal: simulated direct I/O is as strict as a disk with 4096-byte blocks.
#[test]
fn direct_io_needs_alignment() {
    #[repr(align(4096))]
    struct Aligned([u8; 8192]);
    let fs = quiet();
    let file = fs.open(Path::new("f"), OpenOptions { direct: true, ..OpenOptions::create() }).unwrap();
    let mut block = Aligned([7; 8192]);
    assert_eq!(file.write_at(&block.0, 4096).unwrap(), 8192);
    assert_eq!(file.read_at(&mut block.0[..4096], 0).unwrap(), 4096);
    for result in
        [file.write_at(&block.0, 512), file.write_at(&block.0[..100], 0), file.write_at(&block.0[1..4097], 0)]
    {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// Goal: corrupting unsynced bytes puts nothing on the disk. Method: flip a bit of unsynced bytes
/// and swap them with others, lose the bytes, grow the file; control: programs see the corruption.
#[test]
fn rot_of_unsynced_bytes_is_lost_with_them() {
    let fs = quiet();
    let file = install(&fs, "f", b"");
    file.write_all_at(b"abcd", 0).unwrap();
    assert!(fs.flip_bit(Path::new("f"), 1, 0));
    assert!(fs.swap_blocks(Path::new("f"), 0, 2, 2));
    assert_eq!(read(&fs, "f").unwrap(), b"cdac");
    let after = fs.crash_point().image(CrashImage::None);
    after.open(Path::new("f"), OpenOptions::write()).unwrap().set_len(4).unwrap();
    assert_eq!(read(&after, "f").unwrap(), [0; 4]);
}
