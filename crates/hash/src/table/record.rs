//! One record: a key, its value, and the little that says where each ends.
//!
//! ```text
//! plain table     varint key length | varint value length                | key | value
//! tagged table    varint key length | varint (stored length << 2 | tag)  | key | stored value
//! fixed table     key | value
//! ```
//! Stored value by tag: 0 the value; 1 varint length of the value, then one zstd frame or one raw
//! snappy block, as the header says; 2 nothing, the key is deleted; 3 u64 offset in the file and
//! u64 length of a blob. Varints are LEB128, shortest form.

use cairn_codec::varint;

/// What the stored value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The value itself.
    Raw = 0,
    /// The value's length and its compressed form.
    Compressed = 1,
    /// The key is deleted.
    Tombstone = 2,
    /// Where the value stands in the blob section.
    Blob = 3,
}

impl Tag {
    /// The tag with these two bits.
    #[inline]
    pub fn from_bits(bits: u64) -> Tag {
        match bits & 3 {
            0 => Tag::Raw,
            1 => Tag::Compressed,
            2 => Tag::Tombstone,
            _ => Tag::Blob,
        }
    }
}

/// The lengths at the head of a record, and where the key begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub key_bytes: u64,
    pub stored_bytes: u64,
    pub tag: Tag,
    /// Bytes of the head itself.
    pub head_bytes: usize,
}

impl RecordHead {
    /// The longest head: two varints.
    pub const BYTES_MAX: usize = 20;

    /// Reads the head at the start of `bytes`; `None` when it is garbled or cut off.
    #[inline]
    pub fn decode(bytes: &[u8], tagged: bool) -> Option<RecordHead> {
        let (key_bytes, token, head_bytes) = match bytes {
            // One byte each is by far the most common.
            &[key, token, ..] if key < 0x80 && token < 0x80 => (u64::from(key), u64::from(token), 2),
            _ => {
                let (key, first) = varint::decode(bytes).ok()?;
                let (token, second) = varint::decode(bytes.get(first..)?).ok()?;
                (key, token, first + second)
            }
        };
        let (stored_bytes, tag) =
            if tagged { (token >> 2, Tag::from_bits(token)) } else { (token, Tag::Raw) };
        Some(RecordHead { key_bytes, stored_bytes, tag, head_bytes })
    }

    /// Bytes of the whole record, `None` when that is absurd.
    #[inline]
    pub fn record_bytes(&self) -> Option<u64> {
        self.key_bytes.checked_add(self.stored_bytes)?.checked_add(self.head_bytes as u64)
    }
}

/// Appends a record to `data`. `tagged` says which head.
pub(crate) fn encode(data: &mut Vec<u8>, key: &[u8], stored: &[u8], tag: Tag, tagged: bool) {
    let token = if tagged { (stored.len() as u64) << 2 | tag as u64 } else { stored.len() as u64 };
    varint::push(key.len() as u64, data);
    varint::push(token, data);
    data.extend_from_slice(key);
    data.extend_from_slice(stored);
}

/// Where a blob stands: offset in the file and length.
pub(crate) fn encode_blob(offset: u64, len: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    bytes[8..].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// What [`encode_blob`] wrote.
pub(crate) fn decode_blob(stored: &[u8]) -> Option<(u64, u64)> {
    let (offset, len) = stored.split_first_chunk::<8>()?;
    let len: [u8; 8] = len.try_into().ok()?;
    Some((u64::from_le_bytes(*offset), u64::from_le_bytes(len)))
}
