//! Reads the small fields of a page, each checked against the end of its part.

use cairn_codec::varint;

use crate::damage::{Checked, Damage};

/// A part of a page, and the position up to which it was read.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    page: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(page: &'a [u8], at: usize, end: usize) -> Checked<Self> {
        if at > end || end > page.len() {
            return Err(Damage::at(at, "a part within the page"));
        }
        Ok(Cursor { page, at, end })
    }

    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Checked<&'a [u8]> {
        match self.at.checked_add(count) {
            Some(next) if next <= self.end => {
                let bytes = &self.page[self.at..next];
                self.at = next;
                debug_assert!(self.at <= self.end && self.end <= self.page.len());
                Ok(bytes)
            }
            _ => Err(Damage::at(self.at, "more bytes before the end of the part")),
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Checked<u8> {
        Ok(self.take(1)?[0])
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Checked<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// Reads a variable-length integer.
    pub(crate) fn varint(&mut self) -> Checked<u64> {
        match varint::decode(&self.page[self.at..self.end]) {
            Ok((value, used)) => {
                self.at += used;
                debug_assert!(self.at <= self.end, "{used} bytes up to {} of {}", self.at, self.end);
                Ok(value)
            }
            Err(_) => Err(Damage::at(self.at, "a variable-length integer")),
        }
    }

    /// Reads a signed integer in zigzag encoding, in which small magnitudes are short.
    #[inline]
    pub(crate) fn zigzag(&mut self) -> Checked<u64> {
        let raw = self.varint()?;
        Ok((raw >> 1) ^ (raw & 1).wrapping_neg())
    }

    /// Returns the next `len` bytes as a separate part.
    #[inline]
    pub(crate) fn part(&mut self, len: usize) -> Checked<Cursor<'a>> {
        let at = self.at;
        self.take(len)?;
        debug_assert_eq!(self.at - at, len);
        Ok(Cursor { page: self.page, at, end: self.at })
    }
}

/// Appends the two's complement `value` in the encoding that [`Cursor::zigzag`] reads.
pub(crate) fn push_zigzag(value: u64, out: &mut Vec<u8>) {
    varint::push(zigzag(value), out);
}

/// Returns the number of bytes that [`push_zigzag`] appends.
pub(crate) fn zigzag_len(value: u64) -> usize {
    varint::encoded_len(zigzag(value))
}

fn zigzag(value: u64) -> u64 {
    let raw = (value << 1) ^ ((value as i64) >> 63) as u64;
    debug_assert_eq!((raw >> 1) ^ (raw & 1).wrapping_neg(), value, "as `Cursor::zigzag` reads it");
    raw
}
