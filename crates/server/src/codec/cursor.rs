//! Checked reads of a message body.

use crate::error::{ProtocolError, Result};

/// The unread rest of a message body.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    message: &'static str,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over the body of a message, whose name goes into errors.
    pub fn new(body: &'a [u8], message: &'static str) -> Self {
        Cursor { rest: body, message }
    }

    /// Reads `count` bytes.
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

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads an unsigned 16-bit number. The documentation calls counts signed, but they are sent
    /// unsigned.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads a signed 32-bit number.
    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Reads a string, without its terminating zero byte.
    pub fn string(&mut self) -> Result<&'a str> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(self.short())?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        std::str::from_utf8(text).map_err(|_| ProtocolError::Encoding { message: self.message })
    }

    /// Reads a length and that many bytes; `None` for length -1, which means NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| self.short())?;
                self.bytes(length).map(Some)
            }
        }
    }

    /// Reads all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Ends the message. Errors: there are bytes left.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(ProtocolError::Malformed { message: self.message }) }
    }

    fn short(&self) -> ProtocolError {
        ProtocolError::Malformed { message: self.message }
    }
}
