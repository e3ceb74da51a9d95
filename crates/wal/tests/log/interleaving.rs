//! Concurrent actions in the middle of an operation. Method: a file system that runs a callback at
//! a chosen call.

use std::fmt;
use std::sync::{Mutex, OnceLock};

use cairn_vfs::{Advice, CrashImage, FaultOptions, File, FileId, Map, Metadata, Operation};

use super::*;

/// The operation, the file name of its path, and the callback. It runs before the operation, or
/// after it if that is a sync of a file.
type Call = (Operation, &'static str, Box<dyn FnMut() + Send>);

/// A disk that runs a callback once, at the first operation of a kind on a path with a given name.
#[derive(Clone)]
struct CallbackFs {
    disk: FaultFs,
    call: Arc<Mutex<Option<Call>>>,
}

impl fmt::Debug for CallbackFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackFs")
    }
}

impl CallbackFs {
    fn new() -> CallbackFs {
        CallbackFs { disk: FaultFs::new(FaultOptions::seeded(1)), call: Arc::default() }
    }

    fn before(&self, operation: Operation, name: &'static str, call: impl FnMut() + Send + 'static) {
        *self.call.lock().unwrap() = Some((operation, name, Box::new(call)));
    }

    fn comes(&self, operation: Operation, path: &Path) {
        let mut call = self.call.lock().unwrap();
        let is_it = |call: &mut Call| call.0 == operation && path.ends_with(call.1);
        let found = call.take_if(is_it);
        drop(call);
        if let Some((_, _, mut call)) = found {
            call();
        }
    }

    fn is_over(&self) -> bool {
        self.call.lock().unwrap().is_none()
    }
}

impl Fs for CallbackFs {
    fn open(&self, path: &Path, options: OpenOptions) -> cairn_vfs::Result<Box<dyn File>> {
        Ok(Box::new(Met { file: self.disk.open(path, options)?, callback_fs: self.clone() }))
    }
    fn metadata(&self, path: &Path) -> cairn_vfs::Result<Metadata> {
        self.disk.metadata(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> cairn_vfs::Result<()> {
        self.disk.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> cairn_vfs::Result<()> {
        self.disk.hard_link(from, to)
    }
    fn remove(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.disk.remove(path)
    }
    fn create_dir_all(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.disk.create_dir_all(path)
    }
    fn read_dir(&self, path: &Path) -> cairn_vfs::Result<Vec<PathBuf>> {
        self.disk.read_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.comes(Operation::SyncDir, path);
        self.disk.sync_dir(path)
    }
}

#[derive(Debug)]
struct Met {
    file: Box<dyn File>,
    callback_fs: CallbackFs,
}

impl File for Met {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn id(&self) -> FileId {
        self.file.id()
    }
    fn len(&self) -> cairn_vfs::Result<u64> {
        self.file.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> cairn_vfs::Result<usize> {
        self.callback_fs.comes(Operation::Read, self.path());
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> cairn_vfs::Result<usize> {
        // Zeros only come from preparing memory.
        if buf.iter().any(|&byte| byte != 0) {
            self.callback_fs.comes(Operation::Write, self.path());
        }
        self.file.write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> cairn_vfs::Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> cairn_vfs::Result<()> {
        self.file.allocate(offset, len)
    }
    fn sync_data(&self) -> cairn_vfs::Result<()> {
        self.file.sync_data()?;
        // The device is done, but no thread knows it yet.
        self.callback_fs.comes(Operation::SyncData, self.path());
        Ok(())
    }
    fn try_lock(&self) -> cairn_vfs::Result<()> {
        self.file.try_lock()
    }
    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.file.advise(offset, len, advice);
    }
    fn map(&self) -> cairn_vfs::Result<Map> {
        self.file.map()
    }
}

/// Goal: positions stay reserved while one segment ends and the next begins, although a sync
/// removes the old segment from the list at that moment; a sync to a position in it is not refused
/// as unreserved.
#[test]
fn positions_stay_reserved_between_two_segments() {
    let callback_fs = CallbackFs::new();
    let fs: Arc<dyn Fs> = Arc::new(callback_fs.clone());
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let log = Arc::new(log);
    let last = append(&mut appender, 0..10).unwrap().pop().unwrap();
    let seen = Arc::new(OnceLock::new());
    let (own, to) = (Arc::clone(&log), Arc::clone(&seen));
    callback_fs.before(Operation::Write, "000002.wal", move || {
        own.sync_to(last).unwrap();
        let nothing_released = own.release_before(last);
        _ = to.set((own.synced(), own.reserved(), nothing_released.is_ok()));
    });
    appender.rotate().unwrap();
    assert!(callback_fs.is_over());
    assert_eq!(seen.get(), Some(&(last, last, true)));
    assert!(log.reserved() > last);
    assert_eq!(recover(&fs, Lsn::ZERO, Mode::Strict).unwrap().records.len(), 10);
}

/// Goal: a segment that is being released, and that a power loss brings back with an end that was
/// never synced, is not taken for damaged. Method: append and sync twice while the directory is not
/// synced yet.
#[test]
fn returning_released_segment_is_not_damage() {
    let callback_fs = CallbackFs::new();
    let fs: Arc<dyn Fs> = Arc::new(callback_fs.clone());
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let log = Arc::new(log);
    append(&mut appender, 0..10).unwrap();
    let begun = appender.rotate().unwrap();
    let (own, disk, points) = (Arc::clone(&log), callback_fs.disk.clone(), Arc::new(Mutex::new(Vec::new())));
    let (appender, to) = (Arc::new(Mutex::new(appender)), Arc::clone(&points));
    let other = Arc::clone(&appender);
    callback_fs.before(Operation::SyncDir, DIR, move || {
        // The second record states how far the first sync reached.
        for number in [10, 11] {
            let lsn = append(&mut other.lock().unwrap(), number..number + 1).unwrap()[0];
            own.sync_to(lsn).unwrap();
            to.lock().unwrap().push(disk.crash_point());
        }
    });
    log.release_before(begun).unwrap();
    assert!(callback_fs.is_over() && log.synced() >= begun);
    let mut back = 0;
    for point in points.lock().unwrap().iter() {
        for (image, disk) in point.images(30) {
            let found = recover(&shared(&disk), Lsn::ZERO, Mode::TolerateTornTail);
            let numbers = found.unwrap_or_else(|error| panic!("{image}: {error}")).numbers();
            back += usize::from(numbers.iter().any(|&number| number < 10));
        }
    }
    assert!(back > 0, "no image brought the segment back");
}

/// Goal: a sync covers the records committed before it began, and none that came while the device
/// was busy: those are neither counted as synced nor acknowledged without a sync of their own.
/// Method: append when the device is done but the sync has not returned; check the disk that a
/// power loss leaves without anything unsynced.
#[test]
fn sync_covers_no_record_committed_during_it() {
    let callback_fs = CallbackFs::new();
    let fs: Arc<dyn Fs> = Arc::new(callback_fs.clone());
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let before = append(&mut appender, 0..10).unwrap().pop().unwrap();
    let late = Arc::new(OnceLock::new());
    let said = Arc::clone(&late);
    callback_fs.before(Operation::SyncData, "000001.wal", move || {
        _ = said.set(append(&mut appender, 10..13).unwrap());
    });
    log.sync_to(before).unwrap();
    assert!(callback_fs.is_over());
    let late = late.get().unwrap();
    assert_eq!(log.synced(), before);
    for (lsn, count) in late.iter().zip(11..) {
        log.sync_to(*lsn).unwrap();
        let after = callback_fs.disk.crash_point().image(CrashImage::None);
        let found = recover(&shared(&after), Lsn::ZERO, Mode::TolerateTornTail).unwrap();
        assert!(found.records.len() >= count, "{} records, {count} were acknowledged", found.records.len());
    }
}

/// Goal: a recovery beside a writer does not take records written since its first read for damage;
/// it continues with them, in every mode, even after the writer has moved to another segment.
/// Method: before the recovery's second read of the segment, append more than it reads at a time,
/// sync, and append once more.
#[test]
fn recovery_during_writing_is_not_damage() {
    for (mode, leaves) in [
        (Mode::TolerateTornTail, false),
        (Mode::Strict, false),
        (Mode::Salvage, false),
        (Mode::TolerateTornTail, true),
    ] {
        let callback_fs = CallbackFs::new();
        let fs: Arc<dyn Fs> = Arc::new(callback_fs.clone());
        let options = small().segment_bytes(64 << 10);
        let (log, mut appender, _) = open(&fs, &options, 1).unwrap();
        append(&mut appender, 0..10).unwrap();
        let until = appender.position().offset();
        assert!(until < 8000, "the first window has zeros behind the last record");
        let reading = RecoveryOptions::default().mode(mode).read_bytes(4096);
        let mut recovery = Recovery::open(&fs, Path::new(DIR), Lsn::ZERO, &reading).unwrap();
        let mut numbers: Vec<u64> = Vec::new();
        for _ in 0..10 {
            numbers.push(number_of(recovery.next().unwrap().unwrap().payload));
        }
        let written = Arc::new(OnceLock::new());
        let said = Arc::clone(&written);
        let mut writer = Some((log, appender));
        callback_fs.before(Operation::Read, "000001.wal", move || {
            let Some((log, mut appender)) = writer.take() else { return };
            let mut next = 10;
            while appender.position().offset() < until + (8 << 10) {
                append(&mut appender, next..next + 1).unwrap();
                next += 1;
            }
            log.sync().unwrap();
            append(&mut appender, next..next + 5).unwrap();
            if leaves {
                appender.rotate().unwrap();
            }
            _ = said.set(next + 5);
        });
        while let Some(record) = recovery.next().unwrap_or_else(|error| panic!("{mode:?}: {error}")) {
            numbers.push(number_of(record.payload));
        }
        assert!(callback_fs.is_over());
        assert!(numbers.into_iter().eq(0..*written.get().unwrap()), "{mode:?}");
    }
}
