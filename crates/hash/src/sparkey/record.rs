//! One record of a log.
//!
//! ```text
//! PUT     varint(key_bytes + 1)  varint(value_bytes)  key  value
//! DELETE  0                      varint(key_bytes)    key
//! ```

use cairn_codec::varint;

/// The effect of a record on its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// Gives the key a value.
    Put,
    /// Removes the key.
    Delete,
}

/// The two integers at the start of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub kind: RecordKind,
    pub key_bytes: u64,
    /// 0 for a DELETE.
    pub value_bytes: u64,
    /// Size of the head itself.
    pub head_bytes: usize,
}

impl RecordHead {
    /// The size of the longest head.
    pub const BYTES_MAX: usize = 2 * varint::MAX_BYTES;

    pub fn put(key_bytes: u64, value_bytes: u64) -> Self {
        let head_bytes = varint::encoded_len(key_bytes.saturating_add(1)) + varint::encoded_len(value_bytes);
        RecordHead { kind: RecordKind::Put, key_bytes, value_bytes, head_bytes }
    }

    pub fn delete(key_bytes: u64) -> Self {
        let head_bytes = 1 + varint::encoded_len(key_bytes);
        RecordHead { kind: RecordKind::Delete, key_bytes, value_bytes: 0, head_bytes }
    }

    /// Encodes the head into the first [`RecordHead::head_bytes`](Self::head_bytes) bytes of `out`.
    pub fn encode(&self, out: &mut [u8; RecordHead::BYTES_MAX]) {
        let (first, second) = match self.kind {
            RecordKind::Put => (self.key_bytes + 1, self.value_bytes),
            RecordKind::Delete => (0, self.key_bytes),
        };
        for (at, value) in [(0, first), (varint::encoded_len(first), second)] {
            let mut bytes = [0; varint::MAX_BYTES];
            let used = varint::encode(value, &mut bytes);
            out[at..at + used].copy_from_slice(&bytes[..used]);
        }
        debug_assert_eq!(RecordHead::decode(out).ok().as_ref(), Some(self), "decoded as it is encoded");
    }

    /// Decodes the head at the start of `bytes`.
    #[inline(always)]
    pub fn decode(bytes: &[u8]) -> cairn_codec::Result<Self> {
        let (first, first_bytes) = varint::decode(bytes)?;
        let (second, second_bytes) = varint::decode(bytes.get(first_bytes..).unwrap_or_default())?;
        let head_bytes = first_bytes + second_bytes;
        debug_assert!(head_bytes <= RecordHead::BYTES_MAX);
        Ok(match first.checked_sub(1) {
            Some(key_bytes) => {
                RecordHead { kind: RecordKind::Put, key_bytes, value_bytes: second, head_bytes }
            }
            None => RecordHead { kind: RecordKind::Delete, key_bytes: second, value_bytes: 0, head_bytes },
        })
    }

    /// Returns the size of the whole record before compression. Saturates for lengths that no file
    /// can hold.
    pub fn record_bytes(&self) -> u64 {
        self.key_bytes.saturating_add(self.value_bytes).saturating_add(self.head_bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: heads are encoded and decoded according to the format. Method: handwritten examples of
    /// each kind and length.
    #[test]
    fn known_heads() {
        let cases: [(RecordHead, &[u8]); 5] = [
            (RecordHead::put(0, 0), &[1, 0]),
            (RecordHead::put(1, 3), &[2, 3]),
            (RecordHead::put(127, 300), &[0x80, 1, 0xac, 2]),
            (RecordHead::delete(0), &[0, 0]),
            (RecordHead::delete(128), &[0, 0x80, 1]),
        ];
        for (head, bytes) in cases {
            let mut encoded = [0; RecordHead::BYTES_MAX];
            head.encode(&mut encoded);
            assert_eq!(&encoded[..head.head_bytes], bytes, "{head:?}");
            assert_eq!(RecordHead::decode(bytes), Ok(head));
            assert!(RecordHead::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    /// Goal: lengths near 2^64 do not overflow. Method: a head with the maximum lengths.
    #[test]
    fn absurd_lengths_saturate() {
        let mut bytes = Vec::new();
        varint::push(u64::MAX, &mut bytes);
        varint::push(u64::MAX, &mut bytes);
        let head = RecordHead::decode(&bytes).unwrap();
        assert_eq!((head.key_bytes, head.value_bytes), (u64::MAX - 1, u64::MAX));
        assert_eq!(head.record_bytes(), u64::MAX);
    }
}
