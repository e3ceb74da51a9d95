//! Reads of a message's body, each of them checked.

use crate::error::{ProtocolError, Result};

/// What is left of a body.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    message: &'static str,
}

impl<'a> Cursor<'a> {
    /// The whole body of a message; its name goes into errors.
    pub fn new(body: &'a [u8], message: &'static str) -> Self {
        Cursor { rest: body, message }
    }

    /// `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(self.short())?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(self.short())?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// A number of 16 bits without sign: counts are written so, though the documentation calls them
    /// signed.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// A number of 32 bits.
    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A string, without the zero byte that ends it.
    pub fn string(&mut self) -> Result<&'a str> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(self.short())?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        std::str::from_utf8(text).map_err(|_| ProtocolError::Encoding { message: self.message })
    }

    /// A length and that many bytes; `None` for the length -1, which means NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| self.short())?;
                self.bytes(length).map(Some)
            }
        }
    }

    /// What is left, all of it.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Ends the message. Errors: there is more in it than there should be.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(ProtocolError::Malformed { message: self.message }) }
    }

    fn short(&self) -> ProtocolError {
        ProtocolError::Malformed { message: self.message }
    }
}
