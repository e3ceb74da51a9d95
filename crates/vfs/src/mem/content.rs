//! The bytes of a simulated file: sparse, and copied on write.
//!
//! Clones share pages until one of them writes, so that a snapshot of a disk costs one pointer per
//! page. A file may shadow another one: parts that were not written read as in the other file.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use crate::Map;

/// The unit of sharing, and of space on the simulated disk.
pub(crate) const PAGE: u64 = 4096;

/// The limit of ext4 with 4 KiB blocks, where page numbers fit 32 bits.
pub(crate) const MAX_FILE_BYTES: u64 = (u32::MAX as u64) * PAGE;

const _: () = assert!(PAGE.is_power_of_two() && MAX_FILE_BYTES.is_multiple_of(PAGE));
const _: () = assert!(MAX_FILE_BYTES <= i64::MAX as u64);

type Page = [u8; PAGE as usize];

/// The bytes of a file. Missing pages read as the shadowed file, or as zeros.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    len: u64,
    pages: BTreeMap<u64, Arc<Page>>,
    /// The shadowed file, which supplies missing pages up to its length. Truncated together with
    /// this file.
    below: Option<Map>,
}

impl Content {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Content {
        let mut content = Content::default();
        content.write(bytes, 0);
        debug_assert!(content.len == bytes.len() as u64);
        content
    }

    /// Creates a shadow of a file, which must not change meanwhile.
    pub(crate) fn shadow_of(map: Map) -> Content {
        Content { len: map.len() as u64, pages: BTreeMap::new(), below: Some(map) }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the number of pages that the file occupies on its disk.
    pub(crate) fn page_count(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns the number of pages that a write of `len` bytes at `offset` would add. Costs a
    /// lookup for each existing page.
    pub(crate) fn missing_pages(&self, offset: u64, len: u64) -> u64 {
        let pages = pages_of(offset, len);
        let (all, there) = (pages.end - pages.start, self.pages.range(pages).count() as u64);
        debug_assert!(there <= all, "{there} of {all} pages exist");
        all - there
    }

    /// Returns how many of `len` bytes at `offset` can be written when `free` more pages are
    /// available.
    pub(crate) fn fitting(&self, offset: u64, len: u64, mut free: u64) -> u64 {
        for page in pages_of(offset, len) {
            if !self.pages.contains_key(&page) {
                if free == 0 {
                    debug_assert!((page * PAGE).saturating_sub(offset) < len);
                    return (page * PAGE).saturating_sub(offset);
                }
                free -= 1;
            }
        }
        len
    }

    /// Allocates the pages of a range without changing its content.
    pub(crate) fn reserve(&mut self, offset: u64, len: u64) {
        for page in pages_of(offset, len) {
            if !self.pages.contains_key(&page) {
                self.pages.insert(page, self.page_below(page));
            }
        }
        debug_assert!(self.missing_pages(offset, len) == 0);
    }

    /// Reads up to the end of the file and returns the number of bytes.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let count = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        debug_assert!(count == 0 || offset + count as u64 <= self.len, "{count} bytes at {offset}");
        self.peek(&mut buf[..count], offset);
        count
    }

    /// Fills `buf`, including hidden bytes past the end of the file.
    pub(crate) fn peek(&self, buf: &mut [u8], offset: u64) {
        let end = offset + buf.len() as u64;
        let mut rest = buf;
        let mut at = offset;
        while !rest.is_empty() {
            let inside = (at % PAGE) as usize;
            let (piece, tail) = rest.split_at_mut(rest.len().min(PAGE as usize - inside));
            match self.pages.get(&(at / PAGE)) {
                Some(page) => piece.copy_from_slice(&page[inside..inside + piece.len()]),
                None => self.peek_below(piece, at),
            }
            at += piece.len() as u64;
            rest = tail;
        }
        debug_assert!(at == end, "bytes were read up to {at}, not up to {end}");
    }

    /// Reads bytes that were never written here.
    fn peek_below(&self, piece: &mut [u8], at: u64) {
        let below = self.below.as_deref().unwrap_or_default();
        let below = usize::try_from(at).ok().and_then(|at| below.get(at..)).unwrap_or_default();
        debug_assert!(!self.pages.contains_key(&(at / PAGE)), "the byte at {at} was written here");
        let (known, rest) = piece.split_at_mut(piece.len().min(below.len()));
        known.copy_from_slice(&below[..known.len()]);
        rest.fill(0);
    }

    /// Returns the content of a page before its first write.
    fn page_below(&self, page: u64) -> Arc<Page> {
        let mut bytes = [0; PAGE as usize];
        self.peek_below(&mut bytes, page * PAGE);
        Arc::new(bytes)
    }

    /// Writes `bytes`, growing the file as needed.
    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64) {
        self.put(bytes, offset);
        if !bytes.is_empty() {
            self.grow(offset + bytes.len() as u64);
        }
    }

    /// Writes without changing the length. Bytes past the end stay hidden until [`Content::grow`]
    /// reaches them or [`Content::trim`] clears them.
    pub(crate) fn put(&mut self, bytes: &[u8], offset: u64) {
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let inside = (at % PAGE) as usize;
            let (piece, tail) = rest.split_at(rest.len().min(PAGE as usize - inside));
            let number = at / PAGE;
            if !self.pages.contains_key(&number) {
                self.pages.insert(number, self.page_below(number));
            }
            if let Some(page) = self.pages.get_mut(&number) {
                Arc::make_mut(page)[inside..inside + piece.len()].copy_from_slice(piece);
            }
            at += piece.len() as u64;
            rest = tail;
        }
        debug_assert!(at == offset + bytes.len() as u64);
    }

    /// Raises the length to at least `len`.
    pub(crate) fn grow(&mut self, len: u64) {
        self.len = self.len.max(len);
        debug_assert!(self.len <= MAX_FILE_BYTES, "the file grows to {len} bytes");
    }

    /// Sets the length. Bytes that are cut off read as zeros if the file grows again.
    pub(crate) fn set_len(&mut self, len: u64) {
        debug_assert!(len <= MAX_FILE_BYTES, "the file gets {len} bytes");
        self.len = len;
        self.trim();
    }

    /// Clears the bytes past the end.
    pub(crate) fn trim(&mut self) {
        let last = self.len / PAGE;
        let inside = (self.len % PAGE) as usize;
        self.pages.split_off(&(last + u64::from(inside > 0)));
        if inside > 0
            && let Some(page) = self.pages.get_mut(&last)
            && page[inside..].iter().any(|&byte| byte != 0)
        {
            Arc::make_mut(page)[inside..].fill(0);
        }
        if let Some(below) = self.below.take_if(|below| below.len() as u64 > self.len) {
            self.below = Some(below.slice(0..self.len as usize));
        }
        debug_assert!(self.below.as_ref().is_none_or(|below| below.len() as u64 <= self.len));
        debug_assert!(self.pages.last_key_value().is_none_or(|(&page, _)| page * PAGE < self.len));
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        let count = self.read(&mut bytes, 0);
        debug_assert!(count == bytes.len());
        bytes
    }

    /// Returns a contiguous copy. Holes of a sparse file take no memory in it.
    pub(crate) fn to_map(&self) -> io::Result<Map> {
        const LARGE: u64 = 1 << 20;
        if self.len < LARGE {
            return Ok(Map::from_vec(self.to_vec()));
        }
        let len = usize::try_from(self.len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        debug_assert!(self.below.as_ref().is_none_or(|below| below.len() <= len));
        Map::filled(len, |bytes| {
            if let Some(below) = &self.below {
                bytes[..below.len()].copy_from_slice(below);
            }
            for (&index, page) in &self.pages {
                let start = (index * PAGE) as usize;
                let end = (start + PAGE as usize).min(len);
                if start < end {
                    bytes[start..end].copy_from_slice(&page[..end - start]);
                }
            }
        })
    }

    /// Passes length and bytes to `feed`, such that equal contents feed equal bytes. For a shadow,
    /// only the bytes written to it are fed.
    pub(crate) fn digest(&self, mut feed: impl FnMut(&[u8])) {
        feed(&self.len.to_le_bytes());
        for (index, page) in &self.pages {
            // A page of zeros reads like a missing page.
            if page.iter().any(|&byte| byte != 0) {
                feed(&index.to_le_bytes());
                feed(&page[..]);
            }
        }
    }
}

/// Checks the end against the maximum file size; fails with `EFBIG`.
pub(crate) fn check_end(offset: u64, len: u64) -> io::Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= MAX_FILE_BYTES => Ok(()),
        _ => Err(Errno::FBIG.into()),
    }
}

fn pages_of(offset: u64, len: u64) -> std::ops::Range<u64> {
    debug_assert!(offset.checked_add(len).is_some(), "{len} bytes at {offset}");
    if len == 0 { 0..0 } else { offset / PAGE..(offset + len).div_ceil(PAGE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, SeededRng};

    /// Goal: reads, writes and truncations agree with a plain `Vec`, and a clone never sees later
    /// changes.
    /// Method: 2,000 random steps around page edges, with a snapshot checked at intervals.
    #[test]
    fn agrees_with_a_vec() {
        let mut rng = SeededRng::new(11);
        let (mut content, mut model) = (Content::default(), Vec::new());
        let mut snapshot = (content.clone(), model.clone());
        for step in 0..2_000 {
            let offset = rng.below(20_000) as usize;
            if rng.chance(0.7) {
                let mut bytes = vec![0; rng.below(9_000) as usize];
                rng.fill(&mut bytes);
                content.write(&bytes, offset as u64);
                if !bytes.is_empty() {
                    model.resize(model.len().max(offset + bytes.len()), 0);
                    model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                }
            } else {
                content.set_len(offset as u64);
                model.resize(offset, 0);
            }
            assert_eq!(content.to_vec(), model, "step {step}");
            let mut buf = vec![1; 5_000];
            let count = content.read(&mut buf, offset as u64);
            let expected = model.get(offset..).unwrap_or_default();
            assert_eq!(buf[..count], expected[..expected.len().min(5_000)]);
            if step % 100 == 0 {
                assert_eq!(snapshot.0.to_vec(), snapshot.1);
                snapshot = (content.clone(), model.clone());
            }
        }
    }

    /// Goal: a shadow reads like the shadowed file until it is written or truncated, and never
    /// changes that file. Method: as above, starting from a `Vec` of three pages and a partial one.
    #[test]
    fn shadows_agree_with_a_vec() {
        let mut rng = SeededRng::new(12);
        let mut below = vec![0; 13_000];
        rng.fill(&mut below);
        let map = Map::from_vec(below.clone());
        for round in 0..40 {
            let (mut content, mut model) = (Content::shadow_of(map.clone()), below.clone());
            assert_eq!((content.len(), content.page_count()), (13_000, 0));
            for step in 0..20 {
                let offset = rng.below(20_000) as usize;
                match rng.below(10) {
                    0..6 => {
                        let bytes = vec![step; 1 + rng.below(5_000) as usize];
                        content.write(&bytes, offset as u64);
                        model.resize(model.len().max(offset + bytes.len()), 0);
                        model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                    6..8 => {
                        content.set_len(offset as u64);
                        model.resize(offset, 0);
                    }
                    _ => content.reserve(offset as u64, 9_000),
                }
                assert_eq!(content.to_vec(), model, "round {round}, step {step}");
            }
        }
        assert_eq!(map[..], below[..]);
    }

    /// Goal: mapping a large shadow returns the same bytes as reading it. Method: a shadow above
    /// the length from which the map is assembled from pages, written to in the middle.
    #[test]
    fn large_shadows_map() {
        let mut content = Content::shadow_of(Map::from_vec(vec![7; 3 << 20]));
        content.write(b"middle", 1 << 20);
        content.grow((3 << 20) + 5);
        assert_eq!(content.to_map().unwrap()[..], content.to_vec()[..]);
        assert_eq!(content.to_vec()[(3 << 20) - 1..], [7, 0, 0, 0, 0, 0]);
    }

    /// Goal: hidden bytes appear when the length reaches them, and are gone after a trim.
    #[test]
    fn hidden_bytes() {
        let mut content = Content::from_bytes(b"ab");
        content.put(b"XY", 4);
        assert_eq!(content.to_vec(), b"ab");
        let mut shown = content.clone();
        shown.grow(5);
        assert_eq!(shown.to_vec(), b"ab\0\0X");
        content.trim();
        content.grow(6);
        assert_eq!(content.to_vec(), b"ab\0\0\0\0");
    }

    /// Goal: space is counted in pages, holes are free, and a reservation takes space but changes
    /// no bytes.
    #[test]
    fn space() {
        let mut content = Content::default();
        content.write(&[1], 10 * PAGE);
        assert_eq!((content.len(), content.page_count()), (10 * PAGE + 1, 1));
        assert_eq!(content.missing_pages(9 * PAGE, 3 * PAGE), 2);
        assert_eq!(content.fitting(9 * PAGE + 5, 3 * PAGE, 1), 2 * PAGE - 5);
        assert_eq!(content.fitting(9 * PAGE, 3 * PAGE, 0), 0);
        assert_eq!(content.fitting(9 * PAGE, 3 * PAGE, 2), 3 * PAGE);
        content.reserve(9 * PAGE, 3 * PAGE);
        assert_eq!((content.len(), content.page_count()), (10 * PAGE + 1, 3));
        assert_eq!(content.missing_pages(9 * PAGE, 3 * PAGE), 0);
    }

    /// Goal: files far larger than 4 GiB work, and mapping them takes no memory for their holes.
    #[test]
    fn sparse_giants() {
        let mut content = Content::default();
        content.write(b"end", 6 << 30);
        let map = content.to_map().unwrap();
        assert_eq!((map.len(), &map[6 << 30..]), ((6 << 30) + 3, &b"end"[..]));
        assert!(check_end(MAX_FILE_BYTES, 1).is_err() && check_end(MAX_FILE_BYTES, 0).is_ok());
    }

    /// Goal: the digest depends on bytes and length, not on the history of the file.
    #[test]
    fn digest_is_of_the_bytes() {
        let digest = |content: &Content| {
            let mut bytes = Vec::new();
            content.digest(|piece| bytes.extend_from_slice(piece));
            bytes
        };
        let (mut a, mut b) = (Content::from_bytes(b"abc"), Content::from_bytes(b"abc"));
        b.reserve(0, 3 * PAGE);
        assert_eq!(digest(&a), digest(&b));
        a.grow(4);
        assert_ne!(digest(&a), digest(&b));
    }
}
