//! Memory for blocks.

use std::ops::Deref;

/// The size of a cache line, to which blocks are aligned. A line of a bloom filter is then one
/// cache line.
const ALIGNMENT: usize = 64;

const _: () = assert!(ALIGNMENT.is_power_of_two());

/// The bytes of one block, aligned to a cache line. There may be a header before them that is not
/// part of the block.
pub(crate) struct BlockBytes {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl BlockBytes {
    /// Allocates a zeroed block after a zeroed header.
    pub(crate) fn zeroed(header_bytes: usize, len: usize) -> Self {
        let memory = vec![0; header_bytes + len + ALIGNMENT - 1];
        // The memory does not move, because the vector is never resized.
        let misaligned = (memory.as_ptr().addr() + header_bytes) % ALIGNMENT;
        let start = header_bytes + (ALIGNMENT - misaligned) % ALIGNMENT;
        debug_assert!(
            (memory.as_ptr().addr() + start).is_multiple_of(ALIGNMENT),
            "a block that is not aligned"
        );
        assert!(start >= header_bytes && start + len <= memory.len(), "a block from {start} of {len} bytes");
        BlockBytes { memory, start, len }
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = BlockBytes::zeroed(0, bytes.len());
        copy.bytes_mut().copy_from_slice(bytes);
        copy
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Returns the header, of this length, together with the block.
    pub(crate) fn with_header_mut(&mut self, header_bytes: usize) -> &mut [u8] {
        debug_assert!(
            header_bytes <= self.start,
            "a header of {header_bytes} bytes before byte {}",
            self.start
        );
        &mut self.memory[self.start - header_bytes..self.start + self.len]
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.capacity()
    }
}

impl Deref for BlockBytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl std::fmt::Debug for BlockBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockBytes").field("len", &self.len).finish()
    }
}
