//! Reading ranges of the file.

use std::cell::RefCell;
use std::path::Path;

use cairn_vfs::{File, Fs};

use crate::Result;

/// Direct reads begin, end and land at multiples of this.
const DIRECT_ALIGNMENT: u64 = 4096;

/// A table's file.
#[derive(Debug)]
pub(super) struct Source {
    file: Box<dyn File>,
    len: u64,
    direct: bool,
}

thread_local! {
    /// Where direct reads land before what was asked for is copied out.
    static LANDING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Source {
    pub(super) fn open(fs: &dyn Fs, path: &Path, direct: bool) -> Result<Self> {
        let options = cairn_vfs::OpenOptions { direct, ..cairn_vfs::OpenOptions::read() };
        let file = fs.open(path, options)?;
        let len = file.len()?;
        Ok(Source { file, len, direct })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Fills `buffer` from `offset`.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if !self.direct {
            return Ok(self.file.read_exact_at(buffer, offset)?);
        }
        LANDING.with(|landing| match landing.try_borrow_mut() {
            Ok(mut landing) => self.read_direct(&mut landing, buffer, offset),
            Err(_) => self.read_direct(&mut Vec::new(), buffer, offset),
        })
    }

    fn read_direct(&self, landing: &mut Vec<u8>, buffer: &mut [u8], offset: u64) -> Result<()> {
        let start = offset - offset % DIRECT_ALIGNMENT;
        let end = (offset + buffer.len() as u64).next_multiple_of(DIRECT_ALIGNMENT);
        let len = (end - start) as usize;
        landing.resize(len + DIRECT_ALIGNMENT as usize, 0);
        let skew = landing.as_ptr().addr() % DIRECT_ALIGNMENT as usize;
        let from = (DIRECT_ALIGNMENT as usize - skew) % DIRECT_ALIGNMENT as usize;
        let pages = &mut landing[from..from + len];
        let wanted = (offset - start) as usize..(offset - start) as usize + buffer.len();
        let mut have = 0;
        while have < wanted.end {
            // The last page of the file comes short. After a short read elsewhere, the page that it ended in is read
            // again: direct reads begin at a page.
            let again = have - have % DIRECT_ALIGNMENT as usize;
            let read = self.file.read_at(&mut pages[again..], start + again as u64)?;
            if again + read <= have {
                return Err(self.too_short(offset).into());
            }
            have = again + read;
        }
        buffer.copy_from_slice(&pages[wanted]);
        Ok(())
    }

    fn too_short(&self, offset: u64) -> cairn_vfs::Error {
        let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        cairn_vfs::Error::new(cairn_vfs::Operation::Read, self.path(), source).at(offset)
    }
}
