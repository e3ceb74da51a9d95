//! The file whose pages all contenders read, and the content that identifies a page.
//!
//! ```text
//!   0        8        16       24       32                         page size
//!   | check  | LSN    | stamp  | writes | filler ...               |
//! ```
//!
//! *Check* (the checksum) and LSN are those of Cairn's format, so that its pool accepts the page;
//! to all other contenders they are ordinary bytes. Every request reads the page's *stamp*, a hash
//! of its number, and adds it to a sum. The sum of a whole sample is known in advance. This costs a
//! load and an addition, the same for all. *Writes* counts the changes of the page, from 0. The
//! filler follows from the number, and is compared at the end of a case.

use std::path::{Path, PathBuf};

use cairn_pool::{BackgroundWriter, FileOptions, Lsn, PAGE_HEADER_LEN, Pool};
use cairn_vfs::{Fs, OpenOptions, StdFs};

use crate::core::error::{Error, Result};

/// Offset of the stamp in a page.
pub const STAMP_AT: usize = PAGE_HEADER_LEN;
/// Offset of the count of writes.
pub const WRITES_AT: usize = STAMP_AT + 8;
const FILLER_AT: usize = WRITES_AT + 8;

/// Returns the stamp of a page: a hash of its number (the finaliser of SplitMix64) whose highest
/// bit is
/// 0. The [chained](super::pages::Access::SharedChained) accesses rely on that bit.
#[inline]
pub fn stamp(page: u32) -> u64 {
    let mut x = u64::from(page).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) >> 1
}

/// Returns the word at an offset of a page or of its payload; 0 beyond its end, which is no page's
/// stamp.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(bytes) => bytes.try_into().map_or(0, u64::from_le_bytes),
        None => 0,
    }
}

/// Fills the payload of a new page.
pub fn fill(page: u32, payload: &mut [u8]) {
    let mut value = stamp(page);
    let (words, rest) = payload.as_chunks_mut::<8>();
    for (at, word) in words.iter_mut().enumerate() {
        *word = match at {
            1 => [0; 8],
            _ => value.to_le_bytes(),
        };
        value = value.rotate_left(7).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    rest.fill(0);
}

/// Compares a whole page, except its header and its count of writes.
///
/// Errors: [`Error::Engine`] naming the page.
pub fn check(who: &str, page: u32, bytes: &[u8]) -> Result<()> {
    let payload = bytes.get(PAGE_HEADER_LEN..).unwrap_or_default();
    let mut expected = vec![0; payload.len()];
    fill(page, &mut expected);
    let same = |from: usize, to: usize| payload.get(from..to) == expected.get(from..to);
    if payload.is_empty() || !same(0, 8) || !same(FILLER_AT - PAGE_HEADER_LEN, payload.len()) {
        return Err(wrong(who, page, word(bytes, STAMP_AT)));
    }
    Ok(())
}

/// Returns the error of a contender that returned a page other than the requested one.
#[cold]
pub fn wrong(who: &str, page: u32, found: u64) -> Error {
    Error::engine(
        who,
        format!(
            "wrong answer: the stamp of page {page} is {:#018x}, but {found:#018x} was found",
            stamp(page)
        ),
    )
}

/// The file of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of pages.
    pub pages: u32,
    /// Size of a page in bytes.
    pub page_size: usize,
    /// Whether it is opened with direct I/O, which bypasses the kernel's page cache.
    pub direct: bool,
}

impl PageFile {
    /// Creates the file. It is written through Cairn's pool so that each page has its checksum, and
    /// durably so that no writeback disturbs the measurement. Unless it is opened with `direct`,
    /// its pages are in the kernel's page cache afterwards.
    pub fn create(path: &Path, pages: u32, page_size: usize, direct: bool) -> Result<PageFile> {
        const WHO: &str = "the file of pages";
        let fail = |error: cairn_pool::Error| Error::engine(WHO, error);
        let builder =
            Pool::builder().page_size(page_size).frames(1024).background_writer(BackgroundWriter::Off);
        let pool = builder.build().map_err(fail)?;
        let file = StdFs::new().open(path, OpenOptions::create_new())?;
        let file = pool.open(file, FileOptions::new()).map_err(fail)?;
        for page in 0..pages {
            fill(page, file.create(page).map_err(fail)?.payload_mut(Lsn::NONE));
            if page % 512 == 511 {
                file.flush().map_err(fail)?;
            }
        }
        file.close().map_err(fail)?;
        Ok(PageFile { path: path.to_owned(), pages, page_size, direct })
    }

    /// Opens the file.
    pub fn open(&self, access: OpenOptions) -> Result<Box<dyn cairn_vfs::File>> {
        Ok(StdFs::new().open(&self.path, OpenOptions { direct: self.direct, ..access })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::scratch::Scratch;

    /// Goal: pages are distinguishable, and damage anywhere in a page is detected, except in its
    /// count of writes.
    #[test]
    fn pages_are_known() {
        let scratch = Scratch::temporary("pages").unwrap();
        let file = PageFile::create(&scratch.path().join("f"), 700, 4096, false).unwrap();
        let open = file.open(OpenOptions::read()).unwrap();
        assert_eq!(open.len().unwrap(), 700 * 4096);
        let mut bytes = vec![0; 4096];
        for page in [0, 1, 511, 512, 699_u32] {
            open.read_exact_at(&mut bytes, u64::from(page) * 4096).unwrap();
            assert_eq!((word(&bytes, STAMP_AT), word(&bytes, WRITES_AT)), (stamp(page), 0));
            check("x", page, &bytes).unwrap();
            assert!(check("x", page + 1, &bytes).unwrap_err().to_string().contains("wrong answer"));
        }
        bytes[WRITES_AT] = 7;
        check("x", 699, &bytes).unwrap();
        for at in [STAMP_AT, FILLER_AT, 4095] {
            bytes[at] ^= 1;
            assert!(check("x", 699, &bytes).is_err(), "{at}");
            bytes[at] ^= 1;
        }
        assert!(check("x", 0, &[]).is_err());
        assert!((0..1000).all(|page| stamp(page) >> 63 == 0 && stamp(page) != 0));
    }
}
