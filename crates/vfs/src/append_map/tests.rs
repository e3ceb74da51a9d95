use std::path::{Path, PathBuf};

use super::*;
use crate::fault::{Fault, Rule};
use crate::{CrashImage, FaultFs, FaultOptions, Fs, MemFs, OpenOptions, Rng, SeededRng, StdFs};

/// A file system, an empty directory in it, and the guard that keeps the directory alive.
type Subject = (Arc<dyn Fs>, PathBuf, Option<tempfile::TempDir>);

/// Directories on real disks. The temporary directory supports mappings on an ordinary test
/// machine, but may not in a container; shared memory does.
fn directories() -> Vec<tempfile::TempDir> {
    let shared = tempfile::tempdir_in("/dev/shm").ok();
    std::iter::once(tempfile::tempdir().unwrap()).chain(shared).collect()
}

/// One directory on each file system.
fn subjects() -> Vec<Subject> {
    let on_disk =
        |dir: tempfile::TempDir| -> Subject { (Arc::new(StdFs::new()), dir.path().to_owned(), Some(dir)) };
    let mut subjects: Vec<Subject> = directories().into_iter().map(on_disk).collect();
    subjects.push((Arc::new(MemFs::new()), PathBuf::new(), None));
    subjects.push((Arc::new(FaultFs::new(FaultOptions::seeded(1))), PathBuf::new(), None));
    subjects
}

fn create(fs: &dyn Fs, path: &Path) -> Arc<dyn File> {
    Arc::from(fs.open(path, OpenOptions::create()).unwrap())
}

fn read(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(map: &mut AppendMap, bytes: &[u8]) {
    let mut slot = map.reserve(bytes.len()).unwrap();
    slot.bytes_mut().copy_from_slice(bytes);
    slot.commit().unwrap();
}

/// Goal: these tests have a mapping to test. Method: a map on shared memory is mapped where that is
/// a tmpfs.
#[test]
fn something_is_mapped() {
    const TMPFS: u64 = 0x0102_1994;
    let mut mapped = 0;
    for dir in directories() {
        let kind = rustix::fs::statfs(dir.path()).unwrap().f_type as u64;
        let map = AppendMap::new(create(&StdFs::new(), &dir.path().join("log")), 0..4096).unwrap();
        println!("{}: file system {kind:x}, mapped: {}", dir.path().display(), map.is_mapped());
        assert!(map.is_mapped() || kind != TMPFS);
        mapped += usize::from(map.is_mapped());
    }
    println!("{mapped} mapped");
}

/// Goal: slots follow each other without gap or overlap and reach the file, and bytes that are not
/// ready or past the end are not handed out. Method: random lengths on every file system, with
/// windows prepared in every mode and memory released in between, compared with a `Vec`.
#[test]
fn pieces_reach_the_file() {
    for (fs, dir, _keep) in subjects() {
        let file = create(&*fs, &dir.join("log"));
        file.write_all_at(&[7; 9000], 0).unwrap();
        let (start, end) = (4096, 4096 + 300_000);
        let mut map = AppendMap::new(file.clone(), start..end).unwrap();
        let progress = map.progress();
        assert_eq!((file.len().unwrap(), map.position(), map.end()), (end, start, end));
        assert!(map.reserve(1).is_none(), "nothing is ready");
        progress.prepare(start + 1, Zeros::Keep).unwrap();
        assert_eq!(progress.ready(), start + 4096);
        let kept = if map.is_mapped() { 7 } else { 0 };
        assert_eq!(map.reserve(100).unwrap().bytes_mut(), [kept; 100]);
        let mut map = AppendMap::new(file.clone(), start..end).unwrap();
        let progress = map.progress();
        let mut expected = vec![7; 4096];
        let mut rng = SeededRng::new(3);
        loop {
            let len = 1 + rng.below(3000);
            let Some(mut slot) = map.reserve(len as usize) else {
                if progress.ready() == end {
                    assert!(map.position() + len > end);
                    break;
                }
                let how = if rng.chance(0.5) { Zeros::Small } else { Zeros::Large };
                progress.prepare(progress.ready() + 5_000 + rng.below(90_000), how).unwrap();
                continue;
            };
            assert!(slot.bytes_mut().iter().all(|&byte| byte == 0));
            assert_eq!((slot.start(), slot.end()), (expected.len() as u64, expected.len() as u64 + len));
            rng.fill(slot.bytes_mut());
            expected.extend_from_slice(slot.bytes_mut());
            assert_eq!(progress.committed(), slot.start());
            if rng.chance(0.2) {
                progress.release_memory(1).unwrap();
            }
            slot.commit().unwrap();
            assert_eq!((progress.committed(), progress.reserved()), (map.position(), map.position()));
        }
        expected.resize(end as usize, 0);
        assert!(read(&*file) == expected);
        assert!(progress.failure().is_none());
    }
}

/// Goal: threads fill more slots side by side than the ring has places, and none is lost or mixed
/// up.
/// Method: one owner hands slots to two threads through a lock; each writes its own pattern; read
/// the file back.
#[test]
fn two_threads() {
    const PIECES: u64 = 20_000;
    for (fs, dir, _keep) in subjects() {
        let file = create(&*fs, &dir.join("log"));
        let map = AppendMap::new(file.clone(), 0..PIECES * 40).unwrap();
        let progress = map.progress();
        progress.prepare(u64::MAX, Zeros::Keep).unwrap();
        let map = Mutex::new((map, 0));
        thread::scope(|scope| {
            for pattern in [1, 2] {
                let map = &map;
                scope.spawn(move || {
                    loop {
                        let slot = lock(map).0.reserve(40);
                        let Some(mut slot) = slot else { break };
                        let number = slot.start();
                        slot.bytes_mut()[..8].copy_from_slice(&number.to_le_bytes());
                        slot.bytes_mut()[8..].fill(pattern);
                        slot.commit().unwrap();
                        lock(map).1 += 1;
                    }
                });
            }
        });
        assert_eq!(lock(&map).1, PIECES);
        assert_eq!(progress.wait(PIECES * 40), PIECES * 40);
        for (number, piece) in read(&*file).chunks(40).enumerate() {
            assert_eq!(piece[..8], (number as u64 * 40).to_le_bytes());
            assert!(piece[8..].iter().all(|&byte| byte == piece[8] && byte > 0), "piece {number}");
        }
    }
}

/// Goal: only an unbroken run of slots from the start counts as committed, and a full ring makes
/// the next slot wait.
/// Method: commit out of order; then fill the ring and let another thread commit its oldest slot.
#[test]
fn committed_is_a_prefix() {
    let fs = MemFs::new();
    let mut map = AppendMap::new(create(&fs, Path::new("log")), 0..1 << 20).unwrap();
    let progress = map.progress();
    progress.prepare(1 << 20, Zeros::Keep).unwrap();
    // In the second lap, every place of the ring has been used before.
    for lap in 0..2 {
        let start = lap * 700 * 10;
        assert_eq!(map.position(), start);
        let mut slots: Vec<Slot> = (0..3).map(|_| map.reserve(10).unwrap()).collect();
        slots.pop().unwrap().commit().unwrap();
        assert_eq!((progress.committed(), progress.reserved()), (start, start + 30));
        slots.remove(0).commit().unwrap();
        assert_eq!(progress.committed(), start + 10);
        slots.pop().unwrap().commit().unwrap();
        assert_eq!(progress.wait(start + 30), start + 30);
        let oldest = map.reserve(10).unwrap();
        let others: Vec<Slot> = (1..RING).map(|_| map.reserve(10).unwrap()).collect();
        let thread = thread::spawn("oldest", move || oldest.commit().unwrap()).unwrap();
        let next = map.reserve(10).unwrap();
        assert_eq!(progress.committed(), start + 40, "the oldest was waited for");
        others.into_iter().chain([next]).for_each(|slot| slot.commit().unwrap());
        assert_eq!(progress.committed(), start + 30 + 10 * (RING + 1));
        thread.join().unwrap();
        while map.position() < start + 7000 {
            put(&mut map, &[7; 10]);
        }
    }
}

/// Goal: a slot that is never written fails the whole map, and the error says where. Method: drop
/// one.
#[test]
fn a_dropped_slot_fails_the_map() {
    for (fs, dir, _keep) in subjects() {
        let mut map = AppendMap::new(create(&*fs, &dir.join("log")), 0..8192).unwrap();
        map.progress().prepare(8192, Zeros::Keep).unwrap();
        put(&mut map, b"first");
        drop(map.reserve(5).unwrap());
        let progress = map.progress();
        assert_eq!(progress.committed(), 10);
        let error = progress.failure().unwrap();
        assert_eq!((error.operation, error.offset), (Operation::Write, Some(5)));
    }
}

/// Goal: a failed write is reported to the committer, to every observer, and to the listener before
/// anyone could take the slot for committed. Method: a disk without mappings fails the second of
/// three commits; a fourth slot is dropped.
#[test]
fn failed_writes() {
    let fs = FaultFs::new(FaultOptions::seeded(2));
    let mut map = AppendMap::new(create(&fs, Path::new("log")), 0..8192).unwrap();
    let progress = map.progress();
    let told = Arc::new(Mutex::new(Vec::new()));
    let (to, own) = (Arc::clone(&told), Arc::downgrade(&progress.shared));
    map.on_failure(move |error| {
        let committed = own.upgrade().unwrap().inner().walk().offset;
        lock(&to).push((error.offset, committed));
    });
    progress.prepare(8192, Zeros::Keep).unwrap();
    assert!(!map.is_mapped());
    fs.inject(Rule::nth(Operation::Write, 1, Fault::Io));
    put(&mut map, b"first");
    assert!(progress.failure().is_none());
    let error = map.reserve(6).unwrap().commit().unwrap_err();
    put(&mut map, b"third");
    assert_eq!(progress.failure().unwrap().to_string(), error.to_string());
    assert_eq!((error.operation, error.offset, progress.committed()), (Operation::Write, Some(5), 16));
    drop(map.reserve(7).unwrap());
    assert_eq!(*lock(&told), [(Some(5), 5), (Some(16), 16)]);
}

/// Goal: a slot may outlive the map and its observers. Method: drop these first, then write;
/// sanitizers detect memory that is freed too early or never.
#[test]
fn slots_outlive_the_map() {
    for (fs, dir, _keep) in subjects() {
        let file = create(&*fs, &dir.join("log"));
        let mut map = AppendMap::new(file.clone(), 0..4096).unwrap();
        map.progress().prepare(4096, Zeros::Keep).unwrap();
        let mut slots: Vec<Slot> = (0..2).map(|_| map.reserve(4).unwrap()).collect();
        drop(map);
        for slot in &mut slots {
            slot.bytes_mut().copy_from_slice(b"late");
        }
        let thread = thread::spawn("late", move || slots.into_iter().for_each(|slot| slot.commit().unwrap()));
        thread.unwrap().join().unwrap();
        free_orphans(None);
        assert_eq!(read(&*file)[..9], *b"latelate\0");
    }
}

/// Goal: without mappings, the fault model sees each slot as a write of its own, which is lost
/// before a sync and kept by it.
#[test]
fn pieces_are_pending_until_synced() {
    let fs = FaultFs::new(FaultOptions::seeded(3));
    let file = create(&fs, Path::new("log"));
    let mut map = AppendMap::new(file.clone(), 0..4096).unwrap();
    map.progress().prepare(4096, Zeros::Keep).unwrap();
    fs.sync_parent(Path::new("log")).unwrap();
    put(&mut map, b"kept");
    file.sync_data().unwrap();
    put(&mut map, b"lost");
    let after = fs.crash(CrashImage::None);
    assert_eq!(after.bytes_of(Path::new("log")).unwrap()[..9], *b"kept\0\0\0\0\0");
}

/// Goal: a full disk is an error when the range is allocated, not a signal when it is written.
/// Method: a quota below the range. (The same test on the real disk would fill it.)
#[test]
fn full_disks() {
    let fs = FaultFs::new(FaultOptions { quota_bytes: Some(64 << 10), ..FaultOptions::seeded(4) });
    let file = create(&fs, Path::new("log"));
    assert!(AppendMap::new(file.clone(), 0..128 << 10).unwrap_err().is_full());
    assert!(AppendMap::new(file, 0..32 << 10).is_ok());
}

/// Goal: invalid ranges and read-only files are errors.
#[test]
fn refusals() {
    for (fs, dir, _keep) in subjects() {
        let file = create(&*fs, &dir.join("log"));
        for range in [0..0, 1..4096, 5000..9000] {
            assert_eq!(AppendMap::new(file.clone(), range).unwrap_err().kind(), crate::ErrorKind::Invalid);
        }
        let mut map = AppendMap::new(file.clone(), 0..4096).unwrap();
        map.progress().prepare(1, Zeros::Large).unwrap();
        assert!(map.reserve(0).is_none() && map.reserve(4097).is_none() && map.reserve(usize::MAX).is_none());
        assert!(format!("{map:?} {:?} {:?}", map.progress(), map.reserve(1)).contains("log"));
        let file: Arc<dyn File> = Arc::from(fs.open(&dir.join("log"), OpenOptions::read()).unwrap());
        assert_eq!(AppendMap::new(file, 0..4096).unwrap_err().kind(), crate::ErrorKind::Invalid);
    }
}

const CHILD: &str = "CAIRN_VFS_APPEND_CHILD";

/// Goal: bytes stored in the mapping survive a process that is killed at the next instant. Method:
/// this test runs itself as a child, which stores records until it is killed with `SIGKILL`; every
/// record that the child reported as committed is in the file.
#[test]
fn stores_survive_a_killed_process() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    if let Some(path) = std::env::var_os(CHILD) {
        let mut map = AppendMap::new(create(&StdFs::new(), Path::new(&path)), 0..64 << 20).unwrap();
        map.progress().prepare(64 << 20, Zeros::Keep).unwrap();
        let mut out = std::io::stdout();
        for number in 1_u64.. {
            put(&mut map, &number.to_le_bytes());
            if number % 1000 == 0 {
                writeln!(out, "{CHILD}={number}").unwrap();
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for round in 0..5_u64 {
        let path = dir.path().join(round.to_string());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "append_map::tests::stores_survive_a_killed_process", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The test runner may print a line of its own before the first number.
        let numbers =
            lines.filter_map(|line| line.unwrap().split_once('=').and_then(|(_, n)| n.parse::<u64>().ok()));
        let said = numbers.take(3 + round as usize).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let bytes = std::fs::read(path).unwrap();
        let stored = bytes.chunks(8).take_while(|chunk| **chunk != [0; 8]).enumerate();
        let mut count = 0;
        for (index, chunk) in stored {
            assert_eq!(chunk, (index as u64 + 1).to_le_bytes());
            count = index as u64 + 1;
        }
        assert!(count >= said, "{count} stored, {said} were said to be");
    }
}

/// Goal: released memory leaves the process. Method: fill 8 MiB of a mapped file, release it, and
/// ask the kernel how much of the file is resident before and after.
#[test]
fn committed_memory_is_released() {
    const BYTES: u64 = 8 << 20;
    for dir in directories() {
        let path = dir.path().join("resident");
        let file = create(&crate::StdFs::new(), &path);
        let mut map = AppendMap::new(file, 0..BYTES).unwrap();
        if !map.is_mapped() {
            println!("{} is not mapped", path.display());
            continue;
        }
        // Resident bytes of the mapping with this name; concurrent tests have other mappings.
        let resident = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let mut lines = maps.lines().skip_while(|line| !line.ends_with(path.to_str().unwrap()));
            let line = lines.find(|line| line.starts_with("Rss:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
        };
        map.progress().prepare(BYTES, Zeros::Large).unwrap();
        put(&mut map, &[1; 6 << 20]);
        assert_eq!(resident(), BYTES);
        map.progress().release_memory(7 << 20).unwrap();
        assert_eq!(resident(), BYTES, "less than what was asked for");
        map.progress().release_memory(1 << 20).unwrap();
        assert_eq!(resident(), BYTES - (6 << 20));
    }
}
