//! Checksums of every page, and a record of the pages that were verified.
//!
//! The checksum of a page is stored in its parent rather than in the page itself, so a misplaced or
//! lost write is detected too. Level 0 holds one xxh3-64 for each page from the first after the
//! header up to the checksums themselves. Level 1 holds one for each page of level 0, and so on up
//! to a level of one page, whose checksum is in the header.
//!
//! A mapped table verifies a page when a lookup first touches it, and remembers the result in one
//! bit. After that, a lookup pays one AND for the certainty that it reads the bytes that were
//! written, and opening stays cheap (compare the Merkle trees of ZFS and TigerBeetle's checksums in
//! the parent).

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::Operation;

use super::format::{Header, PAGE_BYTES, word64};
use crate::{Error, Result};

const SUMS_PER_PAGE: u64 = PAGE_BYTES / 8;
const _: () = assert!(SUMS_PER_PAGE * 8 == PAGE_BYTES, "no checksum crosses a page");
const _: () =
    assert!(8 * SUMS_PER_PAGE.ilog2() >= u64::BITS - PAGE_BYTES.ilog2(), "eight levels cover any file");

/// One level of checksums: consecutive pages of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    first_page: u64,
    pages: u64,
}

/// Returns the location of each level, from the leaves to the top.
fn levels(header: &Header) -> Vec<Level> {
    let first_page = header.sums_offset / PAGE_BYTES;
    let mut levels = Vec::new();
    let (mut first_page, mut covered) = (first_page, first_page.saturating_sub(1));
    loop {
        let pages = covered.div_ceil(SUMS_PER_PAGE).max(1);
        levels.push(Level { first_page, pages });
        debug_assert!(levels.len() <= 8, "each level is 512 times smaller than the one below");
        if pages == 1 {
            return levels;
        }
        (first_page, covered) = (first_page + pages, pages);
    }
}

/// Builds the checksum pages over `leaf_sums`, passes them to `write` page by page from the leaves
/// to the top, and returns the checksum for the header. Besides one level of checksums, memory
/// holds one page and the checksums of the next level, a 512th of the size.
pub(crate) fn build_tree(leaf_sums: Vec<u64>, mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let mut sums = leaf_sums;
    let mut page = Vec::with_capacity(PAGE_BYTES as usize);
    loop {
        let mut above = Vec::with_capacity(sums.len().div_ceil(SUMS_PER_PAGE as usize));
        let mut rest = &sums[..];
        // A level has a page even if it has no checksums.
        loop {
            let (here, later) = rest.split_at(rest.len().min(SUMS_PER_PAGE as usize));
            page.clear();
            page.extend(here.iter().flat_map(|sum| sum.to_le_bytes()));
            debug_assert!(page.len() as u64 <= PAGE_BYTES);
            page.resize(PAGE_BYTES as usize, 0);
            write(&page)?;
            above.push(xxh3_64(&page));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        debug_assert_eq!(above.len() as u64, (sums.len() as u64).div_ceil(SUMS_PER_PAGE).max(1));
        sums = above;
        if let [root] = sums[..] {
            return Ok(root);
        }
    }
}

/// Verifies pages and remembers the sound ones.
#[derive(Debug)]
pub(crate) struct PageChecker {
    levels: Vec<Level>,
    root_sum: u64,
    /// One bit per page of the file, set once the page was verified.
    sound: Box<[AtomicU64]>,
}

impl PageChecker {
    /// Creates a checker of the file with this header. With `trusted`, every page counts as sound.
    /// Allocates one bit per page, so the caller maps the file first. Errors: out of memory.
    pub fn new(file: &Path, header: &Header, trusted: bool) -> Result<PageChecker> {
        let levels = levels(header);
        let end = levels.last().map_or(0, |top| top.first_page + top.pages);
        if end.checked_mul(PAGE_BYTES) != Some(header.file_bytes) {
            let detail = format!("checksums end at page {end}, but the file at byte {}", header.file_bytes);
            return Err(Error::corruption(file, 144, detail));
        }
        let fill = if trusted { u64::MAX } else { 0 };
        let mut sound = Vec::new();
        // A forged header of a sparse file can state any length.
        let words = usize::try_from(end.div_ceil(64)).unwrap_or(usize::MAX);
        sound.try_reserve_exact(words).map_err(|_| {
            cairn_vfs::Error::new(Operation::Map, file, io::Error::from(io::ErrorKind::OutOfMemory))
        })?;
        sound.extend((0..words).map(|_| AtomicU64::new(fill)));
        Ok(PageChecker { levels, root_sum: header.root_sum, sound: sound.into() })
    }

    /// Returns true if `page` is known to be sound.
    #[inline]
    pub fn is_sound(&self, page: u64) -> bool {
        // ORDER: relaxed is enough. The bit guards immutable bytes, not data that another thread
        // wrote before it.
        self.sound
            .get((page >> 6) as usize)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (page & 63) & 1 != 0)
    }

    fn remember(&self, page: u64) {
        debug_assert!((page >> 6) < self.sound.len() as u64, "page {page}");
        if let Some(word) = self.sound.get((page >> 6) as usize) {
            word.fetch_or(1 << (page & 63), Ordering::Relaxed);
        }
    }

    /// Returns the checksum that `page` must have. It is read from the parent page, which is
    /// verified first.
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

    /// Verifies `page`, which is within `bytes`, unless that was done before.
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

    /// Verifies `content`, which was read from `page`, against the checksums in `bytes`. Does not
    /// remember the result.
    pub fn check_bytes(&self, file: &Path, bytes: Window<'_>, page: u64, content: &[u8]) -> Result<()> {
        debug_assert!(page > 0, "the header has a checksum of its own");
        let expected = self.expected(file, bytes, page)?;
        let found = xxh3_64(content);
        if found == expected && content.len() as u64 == PAGE_BYTES {
            return Ok(());
        }
        let detail = format!("the page has checksum {found:016x}, expected {expected:016x}");
        Err(Error::corruption(file, page * PAGE_BYTES, detail))
    }
}

/// The bytes of a file from a page on, the checksum pages included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The file offset of the first byte, a multiple of the page size.
    pub start: u64,
}

impl<'a> Window<'a> {
    /// Returns the bytes of a page; empty if it is not in the window.
    pub fn page(self, page: u64) -> &'a [u8] {
        debug_assert!(self.start.is_multiple_of(PAGE_BYTES), "a window from {} on", self.start);
        self.range(page * PAGE_BYTES, PAGE_BYTES).unwrap_or_default()
    }

    /// Returns `len` bytes at the file offset `offset`.
    #[inline]
    pub fn range(self, offset: u64, len: u64) -> Option<&'a [u8]> {
        let from = offset.checked_sub(self.start)?;
        self.bytes.get(from as usize..from.checked_add(len)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::ErrorKind;

    use super::*;

    /// Goal: checksums are written in the documented format, whatever their number, and page by
    /// page. Method: numbers around one, two and three levels; each level compared with the
    /// checksums of the pages of the level below.
    #[test]
    fn checksum_trees_of_all_heights() {
        for count in [0, 1, 511, 512, 513, 1024, 512 * 512, 512 * 512 + 1] {
            let leaves: Vec<u64> = (0..count).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let mut tree = Vec::new();
            let root = build_tree(leaves.clone(), |page| {
                assert_eq!(page.len() as u64, PAGE_BYTES);
                tree.extend_from_slice(page);
                Ok(())
            });
            let (mut below, mut left) = (leaves, &tree[..]);
            loop {
                let (level, above) = left.split_at(below.len().div_ceil(512).max(1) * 4096);
                let mut expected: Vec<u8> = below.iter().flat_map(|sum| sum.to_le_bytes()).collect();
                expected.resize(level.len(), 0);
                assert!(level == expected, "{count}");
                below = level.chunks(4096).map(xxh3_64).collect();
                left = above;
                if below.len() == 1 {
                    break;
                }
            }
            assert!(left.is_empty() && root.unwrap() == below[0], "{count}");
            let (pages, header) = (tree.len() as u64 / PAGE_BYTES, header_of(count + 1));
            assert_eq!(levels(&header).iter().map(|level| level.pages).sum::<u64>(), pages, "{count}");
        }
    }

    /// Returns the header of a table whose checksums begin on this page.
    fn header_of(sums_page: u64) -> Header {
        let mut header = Header { sums_offset: sums_page * PAGE_BYTES, ..Header::default() };
        let end = levels(&header).last().map_or(0, |top| top.first_page + top.pages);
        header.file_bytes = end * PAGE_BYTES;
        header
    }

    /// Goal: a huge sparse file causes an error instead of aborting the process. Method: a file so
    /// long that its bits exceed the address space of any machine.
    #[test]
    fn implausible_lengths_are_not_allocated() {
        let refused = PageChecker::new(Path::new("t"), &header_of(1 << 51), false).unwrap_err();
        assert!(matches!(&refused, Error::Vfs(error) if error.kind() == ErrorKind::Io), "{refused}");
        assert_eq!(PageChecker::new(Path::new("t"), &header_of(100), false).unwrap().sound.len(), 2);
    }
}
