//! A file and its double write that assert that copies are not overwritten while their pages are
//! being written in place.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU32, Ordering::SeqCst};
use cairn_vfs::{Advice, FaultFs, File, FileId, Fs, Map, OpenOptions, Result, WriteRequest};

/// The number of running calls that write in place.
type InPlace = Arc<AtomicU32>;

#[derive(Debug)]
struct CheckedFile {
    file: Box<dyn File>,
    in_place: InPlace,
    is_journal: bool,
}

/// The file, and the file for its double write.
pub fn pair(disk: &FaultFs) -> (Box<dyn File>, Box<dyn File>) {
    let in_place = InPlace::default();
    let open = |path: &str, is_journal| {
        let file = disk.open(path.as_ref(), OpenOptions::create()).unwrap();
        Box::new(CheckedFile { file, in_place: Arc::clone(&in_place), is_journal })
    };
    (open("/pages", false), open("/double", true))
}

impl File for CheckedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn id(&self) -> FileId {
        self.file.id()
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_>]) {
        self.in_place.fetch_add(1, SeqCst);
        self.file.write_batch(requests);
        self.in_place.fetch_sub(1, SeqCst);
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        assert!(
            !self.is_journal || self.in_place.load(SeqCst) == 0,
            "pages that are being written lose their copies"
        );
        self.file.write_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()
    }

    fn try_lock(&self) -> Result<()> {
        self.file.try_lock()
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.file.advise(offset, len, advice);
    }

    fn map(&self) -> Result<Map> {
        self.file.map()
    }
}
