//! Access to the bytes of a page that is held, copied, or read optimistically.

use std::cmp::Ordering;

use cairn_pool::{Changed, Optimistic};

/// Bytes that can be read by offset. An offset out of bounds results in [`Changed`], because an
/// optimistic read may return arbitrary offsets.
pub(crate) trait Source {
    fn len(&self) -> usize;
    fn u8(&self, at: usize) -> Result<u8, Changed>;
    fn u16(&self, at: usize) -> Result<u16, Changed>;
    fn u32(&self, at: usize) -> Result<u32, Changed>;
    fn u64(&self, at: usize) -> Result<u64, Changed>;
    fn copy_to(&self, at: usize, to: &mut [u8]) -> Result<(), Changed>;
    fn compare(&self, at: usize, len: usize, other: &[u8]) -> Result<Ordering, Changed>;

    /// Appends bytes to a buffer.
    fn append_to(&self, at: usize, len: usize, to: &mut Vec<u8>) -> Result<(), Changed> {
        if at > self.len() || self.len() - at < len {
            return Err(Changed);
        }
        let start = to.len();
        to.resize(start + len, 0);
        let copied = self.copy_to(at, to.get_mut(start..).unwrap_or_default());
        if copied.is_err() {
            to.truncate(start);
        }
        debug_assert!(
            to.len() == start + if copied.is_ok() { len } else { 0 },
            "{} bytes were appended instead of {len}",
            to.len() - start
        );
        copied
    }
}

impl Source for Optimistic<'_> {
    #[inline]
    fn len(&self) -> usize {
        Optimistic::len(self)
    }

    #[inline]
    fn u8(&self, at: usize) -> Result<u8, Changed> {
        Optimistic::u8(self, at)
    }

    #[inline]
    fn u16(&self, at: usize) -> Result<u16, Changed> {
        Optimistic::u16(self, at)
    }

    #[inline]
    fn u32(&self, at: usize) -> Result<u32, Changed> {
        Optimistic::u32(self, at)
    }

    #[inline]
    fn u64(&self, at: usize) -> Result<u64, Changed> {
        Optimistic::u64(self, at)
    }

    #[inline]
    fn copy_to(&self, at: usize, to: &mut [u8]) -> Result<(), Changed> {
        Optimistic::copy_to(self, at, to)
    }

    #[inline]
    fn compare(&self, at: usize, len: usize, other: &[u8]) -> Result<Ordering, Changed> {
        Optimistic::compare(self, at, len, other)
    }
}

impl Source for [u8] {
    #[inline]
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    #[inline]
    fn u8(&self, at: usize) -> Result<u8, Changed> {
        self.get(at).copied().ok_or(Changed)
    }

    #[inline]
    fn u16(&self, at: usize) -> Result<u16, Changed> {
        let bytes = self.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Changed)?;
        Ok(u16::from_le_bytes(*bytes))
    }

    #[inline]
    fn u32(&self, at: usize) -> Result<u32, Changed> {
        let bytes = self.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Changed)?;
        Ok(u32::from_le_bytes(*bytes))
    }

    #[inline]
    fn u64(&self, at: usize) -> Result<u64, Changed> {
        let bytes = self.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Changed)?;
        Ok(u64::from_le_bytes(*bytes))
    }

    #[inline]
    fn copy_to(&self, at: usize, to: &mut [u8]) -> Result<(), Changed> {
        let end = at.checked_add(to.len()).ok_or(Changed)?;
        to.copy_from_slice(self.get(at..end).ok_or(Changed)?);
        Ok(())
    }

    #[inline]
    fn compare(&self, at: usize, len: usize, other: &[u8]) -> Result<Ordering, Changed> {
        let end = at.checked_add(len).ok_or(Changed)?;
        Ok(self.get(at..end).ok_or(Changed)?.cmp(other))
    }
}
