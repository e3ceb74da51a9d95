//! Checksums over every page, and the memory of which pages were found sound.
//!
//! The sums are kept by the parent, not in the page: a page that was written to the wrong place, or not at all,
//! fails too. Level 0 holds one xxh3-64 for each page from the first after the header up to the sums themselves;
//! level 1 one for each page of level 0; and so on up to a level of one page, whose sum is in the header.
//!
//! A mapped table checks a page when a lookup first touches it and remembers that in one bit, so a lookup pays an
//! AND for knowing that what it reads is what was written, and opening stays cheap (compare the Merkle trees of
//! ZFS and TigerBeetle's checksums in the parent).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_codec::checksum::xxh3_64;

use super::format::{Header, PAGE_BYTES, word64};
use crate::{Error, Result};

const SUMS_PER_PAGE: u64 = PAGE_BYTES / 8;

/// One level of sums: consecutive pages of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    first_page: u64,
    pages: u64,
}

/// Where each level stands, from the leaves to the top.
fn levels(header: &Header) -> Vec<Level> {
    let first_page = header.sums_offset / PAGE_BYTES;
    let mut levels = Vec::new();
    let (mut first_page, mut covered) = (first_page, first_page.saturating_sub(1));
    loop {
        let pages = covered.div_ceil(SUMS_PER_PAGE).max(1);
        levels.push(Level { first_page, pages });
        if pages == 1 {
            return levels;
        }
        (first_page, covered) = (first_page + pages, pages);
    }
}

/// The sum pages of all levels for the leaf sums given, and the sum for the header.
pub(crate) fn build_tree(leaf_sums: &[u64]) -> (Vec<u8>, u64) {
    let mut tree = Vec::new();
    let mut sums = leaf_sums.to_vec();
    loop {
        let mut level: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        level.resize((level.len().max(1)).next_multiple_of(PAGE_BYTES as usize), 0);
        sums = level.chunks_exact(PAGE_BYTES as usize).map(xxh3_64).collect();
        tree.extend_from_slice(&level);
        if let [root] = sums[..] {
            return (tree, root);
        }
    }
}

/// Tells sound pages from damaged ones, and remembers the sound ones.
#[derive(Debug)]
pub(crate) struct PageChecker {
    levels: Vec<Level>,
    root_sum: u64,
    /// One bit a page of the file, set once the page was found sound.
    sound: Box<[AtomicU64]>,
}

impl PageChecker {
    /// A checker of the file with this header. `trusted` takes every page for sound.
    pub fn new(file: &Path, header: &Header, trusted: bool) -> Result<PageChecker> {
        let levels = levels(header);
        let end = levels.last().map_or(0, |top| top.first_page + top.pages);
        if end.checked_mul(PAGE_BYTES) != Some(header.file_bytes) {
            let what = format!("checksums end at page {end}, the file at byte {}", header.file_bytes);
            return Err(Error::corruption(file, 144, what));
        }
        let fill = if trusted { u64::MAX } else { 0 };
        let sound = (0..end.div_ceil(64)).map(|_| AtomicU64::new(fill)).collect();
        Ok(PageChecker { levels, root_sum: header.root_sum, sound })
    }

    /// True when `page` is known to be sound.
    #[inline]
    pub fn is_sound(&self, page: u64) -> bool {
        // ORDER: relaxed is enough. The bit guards immutable bytes, not data that another thread wrote before it.
        self.sound
            .get((page >> 6) as usize)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (page & 63) & 1 != 0)
    }

    fn remember(&self, page: u64) {
        if let Some(word) = self.sound.get((page >> 6) as usize) {
            word.fetch_or(1 << (page & 63), Ordering::Relaxed);
        }
    }

    /// The sum that `page` must have, from its parent, which is checked first.
    fn expected(&self, file: &Path, bytes: Window<'_>, page: u64) -> Result<u64> {
        let (parent_level, index) = match self.levels.iter().rposition(|level| level.first_page <= page) {
            None => (0, page.wrapping_sub(1)),
            Some(level) => (level + 1, page - self.levels[level].first_page),
        };
        let Some(parent) = self.levels.get(parent_level) else { return Ok(self.root_sum) };
        let parent_page = parent.first_page + index / SUMS_PER_PAGE;
        // BOUND: each step goes one level up; there are at most eight.
        self.ensure(file, bytes, parent_page)?;
        Ok(word64(bytes.page(parent_page), (index % SUMS_PER_PAGE) as usize * 8))
    }

    /// Checks `page`, which is within `bytes`, unless that was done before.
    #[inline]
    pub fn ensure(&self, file: &Path, bytes: Window<'_>, page: u64) -> Result<()> {
        if self.is_sound(page) { Ok(()) } else { self.check(file, bytes, page) }
    }

    #[cold]
    fn check(&self, file: &Path, bytes: Window<'_>, page: u64) -> Result<()> {
        self.check_bytes(file, bytes, page, bytes.page(page))?;
        self.remember(page);
        Ok(())
    }

    /// Checks `content`, which was read from `page`, against the sums in `bytes`. Remembers nothing.
    pub fn check_bytes(&self, file: &Path, bytes: Window<'_>, page: u64, content: &[u8]) -> Result<()> {
        let expected = self.expected(file, bytes, page)?;
        let found = xxh3_64(content);
        if found == expected && content.len() as u64 == PAGE_BYTES {
            return Ok(());
        }
        let what = format!("the page has checksum {found:016x}, expected {expected:016x}");
        Err(Error::corruption(file, page * PAGE_BYTES, what))
    }
}

/// Bytes of a file from a page on, the checksum pages included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The file offset of the first one, a multiple of the page size.
    pub start: u64,
}

impl<'a> Window<'a> {
    /// The bytes of a page; empty when it is not in the window.
    pub fn page(self, page: u64) -> &'a [u8] {
        self.range(page * PAGE_BYTES, PAGE_BYTES).unwrap_or_default()
    }

    /// `len` bytes at the file offset `offset`.
    #[inline]
    pub fn range(self, offset: u64, len: u64) -> Option<&'a [u8]> {
        let from = offset.checked_sub(self.start)?;
        self.bytes.get(from as usize..from.checked_add(len)? as usize)
    }
}
