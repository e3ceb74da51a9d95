//! Reading byte ranges of a table file.

use std::cell::RefCell;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU64, Ordering::*};
use cairn_vfs::{ErrorKind, File, Fs};

use crate::open_files::{OpenFiles, SharedFile};
use crate::{Error, Result};

/// The alignment that every device accepts. Direct reads that are refused are retried with it.
const DIRECT_ALIGNMENT_MAX: u64 = 4096;

const _: () = assert!(DIRECT_ALIGNMENT_MAX.is_power_of_two(), "a multiple of every smaller alignment");

/// A table's file.
#[derive(Debug)]
pub(super) struct Source {
    file: SharedFile,
    direct: bool,
    /// The alignment in file and memory of direct reads. It is the device's, which is usually less
    /// than a page: a lookup reads one block at an arbitrary offset, and the bytes around it are
    /// read for nothing.
    alignment: AtomicU64,
}

thread_local! {
    /// The aligned buffer of direct reads, from which the requested bytes are copied.
    static LANDING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Source {
    pub(super) fn open(fs: &dyn Fs, path: &Path, direct: bool) -> Result<Self> {
        let options = cairn_vfs::OpenOptions { direct, ..cairn_vfs::OpenOptions::read() };
        Ok(Source::of(SharedFile::owned(fs.open(path, options)?, options)?, direct))
    }

    pub(super) fn open_shared(files: &Arc<OpenFiles>, path: &Path, direct: bool) -> Result<Self> {
        let options = cairn_vfs::OpenOptions { direct, ..cairn_vfs::OpenOptions::read() };
        Ok(Source::of(SharedFile::open(files, path, options)?, direct))
    }

    fn of(file: SharedFile, direct: bool) -> Self {
        let alignment = AtomicU64::new(file.direct_alignment().clamp(1, DIRECT_ALIGNMENT_MAX));
        Source { file, direct, alignment }
    }

    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Fills `buffer` with the bytes at `offset`.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.with(|file| {
            if !self.direct {
                return Ok(file.read_exact_at(buffer, offset)?);
            }
            LANDING.with(|landing| match landing.try_borrow_mut() {
                Ok(mut landing) => self.read_direct(file, &mut landing, buffer, offset),
                Err(_) => self.read_direct(file, &mut Vec::new(), buffer, offset),
            })
        })
    }

    fn read_direct(
        &self,
        file: &dyn File,
        landing: &mut Vec<u8>,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<()> {
        let alignment = self.alignment.load(Relaxed);
        match read_aligned(file, landing, buffer, offset, alignment) {
            // The device requires a larger alignment than the system reports.
            Err(Error::Vfs(error))
                if error.kind() == ErrorKind::Invalid && alignment < DIRECT_ALIGNMENT_MAX =>
            {
                self.alignment.store(DIRECT_ALIGNMENT_MAX, Relaxed);
                read_aligned(file, landing, buffer, offset, DIRECT_ALIGNMENT_MAX)
            }
            result => result,
        }
    }
}

/// Fills `buffer` with the bytes at `offset`, using reads whose offset, length and address are
/// multiples of `alignment`.
fn read_aligned(
    file: &dyn File,
    landing: &mut Vec<u8>,
    buffer: &mut [u8],
    offset: u64,
    alignment: u64,
) -> Result<()> {
    debug_assert!(alignment > 0 && alignment <= DIRECT_ALIGNMENT_MAX, "an alignment of {alignment}");
    let start = offset - offset % alignment;
    let end = (offset + buffer.len() as u64).next_multiple_of(alignment);
    let (len, step) = ((end - start) as usize, alignment as usize);
    debug_assert!(start <= offset && offset + buffer.len() as u64 <= end, "{start} to {end} misses {offset}");
    debug_assert!(len.is_multiple_of(step), "{len} bytes in units of {step}");
    landing.resize(len + step, 0);
    let from = (step - landing.as_ptr().addr() % step) % step;
    let pages = &mut landing[from..from + len];
    debug_assert!(pages.as_ptr().addr().is_multiple_of(step), "a buffer that is not aligned");
    let wanted = (offset - start) as usize..(offset - start) as usize + buffer.len();
    let mut have = 0;
    while have < wanted.end {
        // At the end of the file, less is read. After a short read elsewhere, its last partial unit
        // is read again, because direct reads begin at multiples of the alignment.
        let again = have - have % step;
        let read = file.read_at(&mut pages[again..], start + again as u64)?;
        if again + read <= have {
            return Err(too_short(file, offset).into());
        }
        have = again + read;
    }
    buffer.copy_from_slice(&pages[wanted]);
    Ok(())
}

fn too_short(file: &dyn File, offset: u64) -> cairn_vfs::Error {
    let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    cairn_vfs::Error::new(cairn_vfs::Operation::Read, file.path(), source).at(offset)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use cairn_vfs::{Advice, FileId, Map, MemFs, OpenOptions};

    use super::*;

    /// A file on a device with blocks of 512 bytes that requires an alignment of `takes`, whatever
    /// it reports.
    #[derive(Debug)]
    struct Device {
        inner: Box<dyn File>,
        takes: u64,
        reads: Arc<AtomicU64>,
        was_refused: Arc<AtomicBool>,
    }

    impl File for Device {
        fn path(&self) -> &Path {
            self.inner.path()
        }
        fn id(&self) -> FileId {
            self.inner.id()
        }
        fn len(&self) -> cairn_vfs::Result<u64> {
            self.inner.len()
        }
        fn read_at(&self, buf: &mut [u8], offset: u64) -> cairn_vfs::Result<usize> {
            let all = buf.as_ptr().addr() as u64 | buf.len() as u64 | offset;
            if !all.is_multiple_of(self.takes) {
                self.was_refused.store(true, Relaxed);
                let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
                return Err(cairn_vfs::Error::new(cairn_vfs::Operation::Read, self.path(), source));
            }
            self.reads.fetch_add(buf.len() as u64, Relaxed);
            self.inner.read_at(buf, offset)
        }
        fn write_at(&self, buf: &[u8], offset: u64) -> cairn_vfs::Result<usize> {
            self.inner.write_at(buf, offset)
        }
        fn set_len(&self, len: u64) -> cairn_vfs::Result<()> {
            self.inner.set_len(len)
        }
        fn allocate(&self, offset: u64, len: u64) -> cairn_vfs::Result<()> {
            self.inner.allocate(offset, len)
        }
        fn sync_data(&self) -> cairn_vfs::Result<()> {
            self.inner.sync_data()
        }
        fn try_lock(&self) -> cairn_vfs::Result<()> {
            self.inner.try_lock()
        }
        fn advise(&self, offset: u64, len: u64, advice: Advice) {
            self.inner.advise(offset, len, advice);
        }
        fn map(&self) -> cairn_vfs::Result<Map> {
            self.inner.map()
        }
        fn direct_alignment(&self) -> u64 {
            512
        }
    }

    /// Goal: a direct read covers no more than the device's blocks around the requested bytes, even
    /// if the device accepts only pages although it reports smaller blocks.
    /// Method: reads of a block's size from arbitrary offsets, including the end of the file; count
    /// the bytes read.
    #[test]
    fn direct_reads_take_the_devices_blocks() {
        for takes in [512, 4096] {
            let fs = MemFs::new();
            let content: Vec<u8> = (0..50_001u32).map(|at| (at % 251) as u8).collect();
            let inner = fs.open(Path::new("t"), OpenOptions::create_new()).unwrap();
            inner.write_all_at(&content, 0).unwrap();
            let (reads, was_refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
            let device =
                Device { inner, takes, reads: Arc::clone(&reads), was_refused: Arc::clone(&was_refused) };
            let options = OpenOptions { direct: true, ..OpenOptions::read() };
            let source = Source::of(SharedFile::owned(Box::new(device), options).unwrap(), true);
            let mut buffer = vec![0; 4_000];
            for offset in (0..46_000).step_by(977).chain([46_001]) {
                let before = reads.load(Relaxed);
                source.read(&mut buffer, offset as u64).unwrap();
                assert_eq!(buffer, content[offset..offset + 4_000], "{offset}");
                assert!(reads.load(Relaxed) - before <= (4_000u64).next_multiple_of(takes) + takes);
            }
            assert_eq!(was_refused.load(Relaxed), takes == 4096);
            assert!(source.read(&mut buffer, 46_002).is_err());
        }
    }
}
