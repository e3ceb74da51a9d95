//! Values and tagged fields of manifest records, on byte slices.
//!
//! ```text
//! field   varint tag | varint bytes | value          tag = number << 1 | skippable
//! ```
//!
//! A reader that does not know a field's number skips it when the tag says skippable and refuses
//! the record otherwise. So a newer version may add what an older one can do without, and is not
//! misread where it cannot.

use cairn_codec::varint;

/// Why a record cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Not what any writer writes.
    Damaged {
        /// Where in the record, in bytes.
        at: usize,
        /// What was expected.
        what: &'static str,
    },
    /// A field of a newer version that must not be skipped.
    Newer {
        /// The field's number.
        field: u64,
    },
}

/// Takes values off the front of a slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Where `bytes` starts in the record.
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

    /// The next field: its number, whether it may be skipped, and its value.
    pub(super) fn field(&mut self) -> Result<(u64, bool, Reader<'a>), Malformed> {
        let tag = self.u64()?;
        Ok((tag >> 1, tag & 1 == 1, self.part()?))
    }

    /// Nothing may be left: what is behind a value's end would be lost when the record is written
    /// again.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.damaged("expected the end of the field")) }
    }

    fn part(&mut self) -> Result<Reader<'a>, Malformed> {
        let before = *self;
        let len = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        let Some((bytes, _)) = self.bytes.split_at_checked(len) else {
            return Err(before.damaged("expected fewer bytes than are left"));
        };
        let part = Reader { bytes, at: self.at };
        self.skip(len);
        Ok(part)
    }

    fn skip(&mut self, len: usize) {
        self.bytes = self.bytes.get(len..).unwrap_or(&[]);
        self.at += len;
    }
}

pub(super) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::push(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a required field whose value `write` makes.
pub(super) fn push_field(number: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    push_tagged(number << 1, out, write);
}

/// Appends a field that a reader without a use for it may skip.
pub(super) fn push_skippable(number: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    push_tagged(number << 1 | 1, out, write);
}

fn push_tagged(tag: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    varint::push(tag, out);
    let mut value = Vec::new();
    write(&mut value);
    push_bytes(&value, out);
}
