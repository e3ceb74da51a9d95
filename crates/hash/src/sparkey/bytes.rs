//! Little-endian fields of the fixed headers.

/// Returns the `u32` at `at`; 0 beyond the end, which no caller reads.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    debug_assert!(at + 4 <= bytes.len(), "4 bytes at {at} of {}", bytes.len());
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |field| u32::from_le_bytes(*field))
}

/// Returns the `u64` at `at`; 0 beyond the end, which no caller reads.
#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(at + 8 <= bytes.len(), "8 bytes at {at} of {}", bytes.len());
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |field| u64::from_le_bytes(*field))
}

/// Writes the fields of a header one after the other.
#[derive(Debug)]
pub(super) struct FieldWriter<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> FieldWriter<N> {
    pub fn new() -> Self {
        FieldWriter { bytes: [0; N], at: 0 }
    }

    pub fn u32(self, value: u32) -> Self {
        self.put(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.put(&value.to_le_bytes())
    }

    fn put(mut self, field: &[u8]) -> Self {
        let end = self.at + field.len();
        self.bytes[self.at..end].copy_from_slice(field);
        self.at = end;
        self
    }

    /// Returns the header. All of its bytes must have been written.
    pub fn finish(self) -> [u8; N] {
        assert_eq!(self.at, N, "every field of the header was written");
        self.bytes
    }
}
