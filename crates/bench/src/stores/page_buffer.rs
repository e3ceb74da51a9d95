//! Memory that is suitable for direct reads.
#![allow(unsafe_code)]

/// Direct I/O requires offsets, lengths and addresses to be multiples of this.
const BLOCK: usize = 4096;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK]);

/// Bytes at an address that is a multiple of 4096.
pub struct Buffer(Box<[Block]>);

impl Buffer {
    /// Allocates at least this many bytes, all zero.
    pub fn new(bytes: usize) -> Self {
        Buffer(vec![Block([0; BLOCK]); bytes.div_ceil(BLOCK).max(1)].into_boxed_slice())
    }

    /// Returns all bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: blocks are arrays of bytes without padding (their size is their alignment), and
        // the slice borrows them.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * BLOCK) }
    }

    /// Returns the first `count` bytes, or all if there are fewer.
    #[inline]
    pub fn bytes_mut(&mut self, count: usize) -> &mut [u8] {
        let count = count.min(self.0.len() * BLOCK);
        // SAFETY: as in `bytes`; the slice borrows the blocks mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the memory is aligned and long enough, and reads return the written bytes.
    #[test]
    fn buffers_are_aligned() {
        for bytes in [0, 1, 4096, 10_000, 1 << 20] {
            let mut buffer = Buffer::new(bytes);
            assert!(buffer.bytes().len() >= bytes && buffer.bytes().as_ptr().addr().is_multiple_of(BLOCK));
            buffer.bytes_mut(bytes).fill(3);
            assert!(buffer.bytes().iter().take(bytes).all(|&byte| byte == 3));
        }
        assert_eq!(Buffer::new(5).bytes_mut(10_000).len(), BLOCK);
    }
}
