//! A file that runs a callback in the middle of an operation, so that a race needs no second
//! thread.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cairn_vfs::{Advice, Error, FaultFs, File, FileId, Fs, Map, OpenOptions, Operation};

type Step = Box<dyn FnOnce() + Send>;

/// A callback to run once, in the middle of an operation of a file.
#[derive(Clone, Default)]
pub struct Hook(Arc<Mutex<Option<(Operation, Step)>>>);

impl Hook {
    /// Sets a callback for the next read, write or sync. It runs before the operation.
    pub fn set(&self, operation: Operation, step: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some((operation, Box::new(step)));
    }

    pub fn has_happened(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }

    fn pass(&self, operation: Operation) {
        let step = self.0.lock().unwrap().take_if(|(when, _)| *when == operation);
        if let Some((_, step)) = step {
            step();
        }
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

#[derive(Debug)]
struct HookedFile {
    file: Box<dyn File>,
    hook: Hook,
}

/// Opens a file with a hook, creating it if missing.
pub fn open(fs: &FaultFs, path: &str) -> (Box<dyn File>, Hook) {
    let hook = Hook::default();
    let file = fs.open(path.as_ref(), OpenOptions::create()).unwrap();
    (Box::new(HookedFile { file, hook: hook.clone() }), hook)
}

impl File for HookedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn id(&self) -> FileId {
        self.file.id()
    }

    fn len(&self) -> Result<u64, Error> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.hook.pass(Operation::Read);
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize, Error> {
        self.hook.pass(Operation::Write);
        self.file.write_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<(), Error> {
        self.file.allocate(offset, len)
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.hook.pass(Operation::SyncData);
        self.file.sync_data()
    }

    fn try_lock(&self) -> Result<(), Error> {
        self.file.try_lock()
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.file.advise(offset, len, advice);
    }

    fn map(&self) -> Result<Map, Error> {
        self.file.map()
    }
}
