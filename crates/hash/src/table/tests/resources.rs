//! The memory, reads and threads that a build or a lookup uses.

use std::sync::Mutex;

use cairn_vfs::{FaultFs, FaultOptions, OpenOptions, StdFs};

use super::super::ingest::{BufferedRecord, Ingest, temporary_file};
use super::super::source::Scratch;
use super::*;

/// Goal: a read of a long value leaves no buffer of its length in the thread. Method: values of
/// megabytes, read whole and scanned, in a table that is not mapped.
#[test]
fn long_values_leave_no_memory_held() {
    let fs = fs();
    let records = [(b"a".to_vec(), vec![1; 3 << 20]), (b"b".to_vec(), vec![2; (5 << 20) + 77])];
    build(&fs, "t", options(), &records);
    let table = open(&fs, "t", Mode::Pread);
    agrees(&table, &records.iter().cloned().collect(), &[]);
    let kept = Scratch::local(|scratch| scratch.capacity());
    assert!((1..=256 << 10).contains(&kept), "{kept}");
}

/// Goal: a lookup by positional reads takes one read, whatever the position of the record on its
/// page. Method: records of all lengths up to a few pages, except those in the last slots of their
/// lines, whose length is not known.
#[test]
fn lookup_takes_one_read() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    let mut records = numbered(2000);
    for (n, (_, value)) in records.iter_mut().enumerate() {
        value.resize(n * 5, 7);
    }
    build(&fs, "t", options(), &records);
    let table = open(&fs, "t", Mode::Pread);
    let before = disk.operation_count();
    for (key, value) in &records {
        assert_eq!(table.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    let reads = disk.operation_count() - before;
    let lines = table.header.index_lines;
    // A false candidate or a record in the last slot of a line takes another read.
    assert!(reads <= 2000 + lines + 2000 / 50, "{reads} reads, {lines} lines");
}

/// Goal: once anything was spilled, everything is, so that the memory is free for sorting. Method:
/// as many records as fit, and more.
#[test]
fn spilling_build_leaves_no_files() {
    for (count, fits) in [(10u32, true), (1000, false)] {
        let mut ingest = Ingest::new(&fs(), "s".into(), 2 << 20);
        for n in 0..count {
            let hash = u64::from(n) << 50;
            let key = &n.to_le_bytes();
            ingest.push(BufferedRecord { hash, key, stored: &[7; 5000], tag: Tag::Raw }).unwrap();
        }
        let sealed = ingest.seal().unwrap();
        assert_eq!((sealed.memory_bytes() > 0, sealed.spilled_bytes() == 0), (fits, fits));
        let loaded: usize = (0..256).map(|index| sealed.load(index, 8).unwrap().places().len()).sum();
        assert_eq!(loaded, count as usize);
    }
}

type Steps = Arc<Mutex<Vec<(Stage, u64, u64)>>>;

#[derive(Debug)]
struct RecordedSteps(Steps);

impl Progress for RecordedSteps {
    fn advanced(&mut self, stage: Stage, done: u64, total: u64) {
        self.0.lock().unwrap().push((stage, done, total));
    }
}

/// Goal: the reported progress reaches the end of each stage. Method: a build of several
/// partitions.
#[test]
fn progress_reaches_the_total() {
    let (fs, steps) = (fs(), Steps::default());
    let mut builder = Builder::create_in(&fs, Path::new("t"), options(), &mut SeededRng::new(1)).unwrap();
    builder.set_progress(Box::new(RecordedSteps(steps.clone())));
    numbered(20_000).iter().for_each(|(key, value)| builder.put(key, value).unwrap());
    builder.finish().unwrap();
    let mut expected: Vec<_> = (1..=4).map(|done| (Stage::Sort, done, 4)).collect();
    expected.extend([(Stage::Publish, 0, 1), (Stage::Publish, 1, 1)]);
    assert_eq!(*steps.lock().unwrap(), expected);
}

/// Goal: a spill file is always a new file. Method: a symbolic link to another file at its path,
/// and a file of that name; the contents of both stay unchanged, and the name is free afterwards.
#[test]
fn build_creates_its_temporary_files_anew() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    for is_link in [true, false] {
        let other = fs.open(&at("other"), OpenOptions::create()).unwrap();
        other.write_all_at(b"precious", 0).unwrap();
        if is_link {
            std::os::unix::fs::symlink("other", at("spill")).unwrap();
        } else {
            fs.hard_link(&at("other"), &at("spill")).unwrap();
        }
        let mut file = temporary_file(&fs, &at("spill")).unwrap();
        file.write_all(b"records").unwrap();
        file.flush().unwrap();
        assert_eq!(*other.map().unwrap(), *b"precious", "{is_link}");
        assert!(!fs.exists(&at("spill")).unwrap());
    }
}
