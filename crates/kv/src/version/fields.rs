//! Values and tagged fields of manifest records, on byte slices.
//!
//! ```text
//! field   varint tag | varint bytes | value          tag = number << 1 | skippable
//! ```
//!
//! A reader that does not know a field's number skips the field if the tag is marked skippable, and
//! refuses the record otherwise. So newer versions can add optional fields, and older versions
//! never misread mandatory ones.

use cairn_codec::varint;

/// The reason why a record cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// No writer writes these bytes.
    Damaged {
        /// The byte offset in the record.
        at: usize,
        /// The expected content.
        what: &'static str,
    },
    /// A field of a newer version that must not be skipped.
    Newer {
        /// The field's number.
        field: u64,
    },
}

/// Decodes values from the front of a slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// The offset of `bytes` in the record.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn damaged(&self, what: &'static str) -> Malformed {
        Malformed::Damaged { at: self.at, what }
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        let (value, used) = varint::decode(self.bytes).map_err(|_| self.damaged("expected a varint"))?;
        self.skip(used);
        Ok(value)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        let before = *self;
        u32::try_from(self.u64()?).map_err(|_| before.damaged("expected a number below 2^32"))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        Ok(self.part()?.bytes)
    }

    pub(super) fn string(&mut self) -> Result<String, Malformed> {
        let part = self.part()?;
        let text = std::str::from_utf8(part.bytes).map_err(|_| part.damaged("expected UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Decodes the next field: its number, whether it may be skipped, and its value.
    pub(super) fn field(&mut self) -> Result<(u64, bool, Reader<'a>), Malformed> {
        let tag = self.u64()?;
        Ok((tag >> 1, tag & 1 == 1, self.part()?))
    }

    /// Checks that nothing is left. Bytes after the end of a value would be lost when the record is
    /// written again.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.damaged("expected the end of the field")) }
    }

    fn part(&mut self) -> Result<Reader<'a>, Malformed> {
        let before = *self;
        let len = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        let Some((bytes, _)) = self.bytes.split_at_checked(len) else {
            return Err(before.damaged("a length exceeds the rest of the record"));
        };
        let part = Reader { bytes, at: self.at };
        self.skip(len);
        Ok(part)
    }

    fn skip(&mut self, len: usize) {
        debug_assert!(len <= self.bytes.len(), "skips {len} of {} bytes", self.bytes.len());
        self.bytes = self.bytes.get(len..).unwrap_or(&[]);
        self.at += len;
    }
}

pub(super) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::push(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a mandatory field whose value `write` produces.
pub(super) fn push_field(number: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    push_tagged(number << 1, out, write);
}

/// Appends a field that readers may skip if they do not know it.
pub(super) fn push_skippable(number: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    push_tagged(number << 1 | 1, out, write);
}

fn push_tagged(tag: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    debug_assert!(tag >> 1 > 0, "fields are numbered from 1");
    let start = out.len();
    varint::push(tag, out);
    let mut value = Vec::new();
    write(&mut value);
    push_bytes(&value, out);
    debug_assert!(
        Reader::new(&out[start..]).field().is_ok_and(|(number, skippable, read)| {
            number << 1 | u64::from(skippable) == tag && read.bytes == value
        }),
        "field {} would not be read back",
        tag >> 1
    );
}
