//! One record: a head with lengths, a key and its stored value.
//!
//! ```text
//! plain table     varint key length | varint value length                | key | value
//! tagged table    varint key length | varint (stored length << 2 | tag)  | key | stored value
//! fixed table     key | value
//! ```
//! The stored value by tag: 0 the value; 1 varint length of the value, then one zstd frame or one
//! raw snappy block, depending on the header; 2 nothing, the key is deleted; 3 u64 file offset and
//! u64 length of a blob. Varints are LEB128 in the shortest form.

use cairn_codec::varint;

/// The type of the stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The value itself.
    Raw = 0,
    /// The value's length and its compressed form.
    Compressed = 1,
    /// The key is deleted.
    Tombstone = 2,
    /// The location of the value in the blob section.
    Blob = 3,
}

const _: () = assert!(Tag::Raw as u8 == 0 && Tag::Compressed as u8 == 1, "part of the format");
const _: () = assert!(Tag::Tombstone as u8 == 2 && Tag::Blob as u8 == 3, "part of the format");
const _: () = assert!(RecordHead::BYTES_MAX == 2 * varint::MAX_BYTES);

impl Tag {
    /// Returns the tag with these two bits.
    #[inline]
    pub fn from_bits(bits: u64) -> Tag {
        let tag = match bits & 3 {
            0 => Tag::Raw,
            1 => Tag::Compressed,
            2 => Tag::Tombstone,
            _ => Tag::Blob,
        };
        debug_assert_eq!(tag as u64, bits & 3, "decoded as it is encoded");
        tag
    }
}

/// The decoded head of a record: its lengths and tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub key_bytes: u64,
    pub stored_bytes: u64,
    pub tag: Tag,
    /// Size of the head itself.
    pub head_bytes: usize,
}

impl RecordHead {
    /// The longest head: two varints.
    pub const BYTES_MAX: usize = 20;

    /// Decodes the head at the start of `bytes`; `None` if it is malformed or truncated.
    #[inline]
    pub fn decode(bytes: &[u8], tagged: bool) -> Option<RecordHead> {
        let (key_bytes, token, head_bytes) = match bytes {
            // The most common case by far: one byte each.
            &[key, token, ..] if key < 0x80 && token < 0x80 => (u64::from(key), u64::from(token), 2),
            _ => {
                let (key, first) = varint::decode(bytes).ok()?;
                let (token, second) = varint::decode(bytes.get(first..)?).ok()?;
                (key, token, first + second)
            }
        };
        debug_assert!(head_bytes <= RecordHead::BYTES_MAX, "a head of {head_bytes} bytes");
        let (stored_bytes, tag) =
            if tagged { (token >> 2, Tag::from_bits(token)) } else { (token, Tag::Raw) };
        Some(RecordHead { key_bytes, stored_bytes, tag, head_bytes })
    }

    /// Returns the size of the whole record; `None` if it overflows.
    #[inline]
    pub fn record_bytes(&self) -> Option<u64> {
        self.key_bytes.checked_add(self.stored_bytes)?.checked_add(self.head_bytes as u64)
    }
}

/// Appends a record to `data`. `tagged` selects the form of the head.
pub(crate) fn encode(data: &mut Vec<u8>, key: &[u8], stored: &[u8], tag: Tag, tagged: bool) {
    debug_assert!(tagged || tag == Tag::Raw, "{tag:?} in a table whose records have no tags");
    debug_assert!(tag != Tag::Tombstone || stored.is_empty(), "a tombstone with a value");
    debug_assert!(tag != Tag::Blob || decode_blob(stored).is_some(), "a blob without its place");
    let start = data.len();
    let token = if tagged { (stored.len() as u64) << 2 | tag as u64 } else { stored.len() as u64 };
    varint::push(key.len() as u64, data);
    varint::push(token, data);
    let head_bytes = data.len() - start;
    data.extend_from_slice(key);
    data.extend_from_slice(stored);
    debug_assert_eq!(
        RecordHead::decode(&data[start..], tagged),
        Some(RecordHead { key_bytes: key.len() as u64, stored_bytes: stored.len() as u64, tag, head_bytes }),
        "decoded as it is encoded"
    );
}

/// Encodes the location of a blob: its offset in the file and its length.
pub(crate) fn encode_blob(offset: u64, len: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    bytes[8..].copy_from_slice(&len.to_le_bytes());
    debug_assert_eq!(decode_blob(&bytes), Some((offset, len)));
    bytes
}

/// Decodes a location that [`encode_blob`] encoded.
pub(crate) fn decode_blob(stored: &[u8]) -> Option<(u64, u64)> {
    let (offset, len) = stored.split_first_chunk::<8>()?;
    let len: [u8; 8] = len.try_into().ok()?;
    Some((u64::from_le_bytes(*offset), u64::from_le_bytes(len)))
}
