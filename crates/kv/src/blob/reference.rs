//! References from tables to values in blob files.

use cairn_codec::varint;

use crate::file::FileNumber;

/// The place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobRef {
    /// The number of the blob file.
    pub number: FileNumber,
    /// The offset of its record in the file.
    pub offset: u64,
    /// Length of the value.
    pub bytes: u64,
}

impl BlobRef {
    /// Replaces `out` with the encoded reference.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        varint::push(self.number, out);
        varint::push(self.offset, out);
        varint::push(self.bytes, out);
        debug_assert_eq!(BlobRef::decode(out), Some(*self), "a reference that would not be read back");
    }

    /// Decodes a reference. Returns `None` for bytes that are not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<BlobRef> {
        let (number, used) = varint::decode(bytes).ok()?;
        let bytes = bytes.get(used..)?;
        let (offset, used) = varint::decode(bytes).ok()?;
        let bytes = bytes.get(used..)?;
        let (len, used) = varint::decode(bytes).ok()?;
        (used == bytes.len()).then_some(BlobRef { number, offset, bytes: len })
    }
}
